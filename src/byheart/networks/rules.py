"""What the config.json of other people's models may say: every key that is known, and the values that are allowed.

Whatever else a configuration says could change what it means: it is refused, not ignored.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from reprlib import repr as shortened
from typing import Any

from byheart.errors import BadInput

MOST = 1 << 24
"""No size of a model is larger; those that tensors have are smaller anyway."""

Rule = tuple[Callable[[Any], bool], str]
"""Which values are allowed, and in words."""


def whole(low: int, high: int) -> Rule:
    """A whole number."""
    return (lambda value: type(value) is int and low <= value <= high), f"a whole number from {low} to {high:,}"


def number(low: float, high: float) -> Rule:
    """A number."""
    return (lambda value: type(value) in (int, float) and low <= value <= high), f"a number from {low:g} to {high:g}"


def one_of(*values: object) -> Rule:
    """One of these, as JSON writes them."""
    allowed = {json.dumps(value) for value in values}
    return (lambda value: json.dumps(value) in allowed), " or ".join(sorted(allowed))


def _is_token(value: object) -> bool:
    return value is None or (type(value) is int and 0 <= value <= MOST)


SIZE = whole(1, MOST)
TOKEN: Rule = (_is_token, "null or a token")
TOKENS: Rule = (lambda value: all(map(_is_token, value if isinstance(value, list) else [value])), "null or tokens")
TEXT: Rule = (lambda value: isinstance(value, str), "a text")
ANYTHING: Rule = (lambda value: True, "anything")


def check(config: Mapping[str, Any], known: Mapping[str, Rule], needed: Iterable[str], what: str) -> None:
    """BadInput unless all keys are known, those that are needed there, and all values allowed."""
    for name in needed:
        if name not in config:
            raise BadInput(f"config.json: {name} is missing; expected the sizes of {what}")
    for name, value in config.items():
        if name not in known:
            raise BadInput(f"config.json: has {name!r}, which {what} of Byheart's does not have; remove it")
        allowed, expected = known[name]
        if not allowed(value):
            raise BadInput(f"config.json: {name} is {shortened(value)}; expected {expected}")
