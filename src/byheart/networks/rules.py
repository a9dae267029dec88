"""Rules for the config.json of other people's models: a type hint (:mod:`byheart.files.decoding`) for every known key.

An unknown key could change what the configuration means, so it is refused, not ignored.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from byheart.errors import BadInput
from byheart.files.decoding import Such, Within, decode

MOST = 1 << 24
"""Largest size in a configuration; the sizes of tensors are smaller anyway."""

Rule = Any
"""Type hint for the allowed values of a key."""


def one_of(*values: object) -> Rule:
    """Return a hint that accepts only ``values``, compared as JSON text."""
    allowed = {json.dumps(value) for value in values}
    return Annotated[Any, Such(lambda value: json.dumps(value) in allowed, " or ".join(sorted(allowed)))]


SIZE = Annotated[int, Within(1, MOST)]
TOKEN: Rule = None | Annotated[int, Such(lambda value: 0 <= value <= MOST, "a token")]
TOKENS: Rule = TOKEN | Annotated[list[TOKEN], Such(lambda value: True, "tokens")]
FRACTION = Annotated[float, Within(0.0, 1.0)]


def check(config: Mapping[str, Any], known: Mapping[str, Rule], needed: Iterable[str], what: str) -> None:
    """Raise BadInput unless all keys are ``known``, the ``needed`` ones are present, and all values are allowed."""
    for name in needed:
        if name not in config:
            raise BadInput(f"config.json: {name} is missing; expected the sizes of {what}")
    for name, value in config.items():
        if name not in known:
            raise BadInput(f"config.json: has {name!r}, which {what} of Byheart's does not have; remove it")
        decode(known[name], value, f"config.json: {name}")
