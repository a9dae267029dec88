"""What softmax and trained networks read: token ids, or contexts with a query beside each."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput

Inputs = tuple[npt.NDArray[Any], npt.NDArray[np.float64] | None]
"""Token ids int64 [N, n] and None; or contexts float64 [N, n, d] and queries float64 [N, d]."""
Reads = Literal["tokens", "queries"]
_NAMES: dict[Reads, str] = {"tokens": "token ids", "queries": "contexts and queries"}


def check_kind(reads: Reads, inputs: Inputs) -> None:
    """BadInput unless the inputs are of the kind that a network reads."""
    kind: Reads = "tokens" if inputs[1] is None else "queries"
    if kind != reads:
        raise BadInput(f"the network reads {_NAMES[reads]}; the task has {_NAMES[kind]}")


def check_tokens(tokens: npt.NDArray[np.int64], vocab: int, *, padded: bool = False) -> None:
    """BadInput if a token is not below ``vocab``; where sequences are ``padded``, ``vocab`` itself pads them."""
    if tokens.min() < 0 or tokens.max() >= vocab + padded:
        stray = tokens.min() if tokens.min() < 0 else tokens.max()
        raise BadInput(f"token {stray} occurs; the network knows 0 to {vocab - 1}")
