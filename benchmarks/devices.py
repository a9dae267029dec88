"""The benchmarks' flag --device."""

import argparse

from byheart.devices import find_device
from byheart.errors import BadInput


def usable(name: str) -> str:
    """Return the device's name, as an argparse type. Raise ArgumentTypeError if it cannot be used here."""
    try:
        find_device(name)
    except BadInput as refusal:
        raise argparse.ArgumentTypeError(str(refusal)) from None
    return name
