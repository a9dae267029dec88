"""The flag --device of the benchmarks."""

import argparse

from byheart.devices import find_device
from byheart.errors import BadInput


def usable(name: str) -> str:
    """The name of a device, for argparse: one that cannot be used here is an error of the command line."""
    try:
        find_device(name)
    except BadInput as refusal:
        raise argparse.ArgumentTypeError(str(refusal)) from None
    return name
