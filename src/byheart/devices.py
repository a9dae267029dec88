"""Where networks run: the CPU or a GPU."""

import torch

from byheart.errors import BadInput

PROVING = ("cpu", "cuda")
"""Kinds of devices that compute with float64 as IEEE 754 says."""


def device_called(name: str, kinds: tuple[str, ...] | None = None) -> torch.device:
    """The device of this name, of one of these ``kinds``; BadInput if it cannot be used here.

    >>> device_called("cpu")
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


def on(device: torch.device) -> str:
    """Where something ran, at the end of a phrase: nothing of the CPU.

    >>> on(torch.device("cpu"))
    ''
    """
    return "" if device.type == "cpu" else f" on {torch.cuda.get_device_name(device)}"
