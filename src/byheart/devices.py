"""Devices that networks run on: the CPU or a GPU."""

import torch

from byheart.errors import BadInput

PROOF_DEVICES = ("cpu", "cuda")
"""Kinds of devices that compute with float64 as IEEE 754 says."""


def find_device(name: str, kinds: tuple[str, ...] | None = None) -> torch.device:
    """Return the device of this name; raise BadInput if it is not of these ``kinds`` or cannot be used here.

    >>> find_device("cpu")
    device(type='cpu')
    """
    if kinds is not None and name.partition(":")[0] not in kinds:
        raise BadInput(f"device is {name!r}; expected {' or '.join(kinds)}")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise BadInput(f"device is {name!r}, which cannot be used here: {error}") from None
    return device


def device_suffix(device: torch.device) -> str:
    """Return " on NVIDIA H200" for such a GPU, and an empty string for the CPU.

    >>> device_suffix(torch.device("cpu"))
    ''
    """
    return "" if device.type == "cpu" else f" on {torch.cuda.get_device_name(device)}"
