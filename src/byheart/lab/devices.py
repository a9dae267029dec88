"""Where models are trained."""

import torch

from byheart.errors import BadInput


def device_called(name: str) -> torch.device:
    """The device of this name; BadInput if it cannot be used here.

    >>> device_called("cpu")
    device(type='cpu')
    """
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise BadInput(f"device is {name!r}, which cannot be used here: {error}") from None
    return device
