"""Decode hostile JSON: type hints say which values are accepted, and dataclasses and TypedDicts say which keys.

- ``int``, ``str``, ``bool`` accept values of exactly this type (``true`` is not a number), ``float`` any number.
- ``A | B`` accepts what either accepts, ``Literal["a", "b"]`` one of its values, ``Any`` everything.
- ``list[T]``, ``tuple[T, ...]`` and ``dict[str, T]`` accept lists and objects of what T accepts.
- A dataclass accepts an object with its fields as keys; unknown keys are refused. The result is an instance.
- A TypedDict accepts an object with its keys, and further ones. The result is the object itself.
- ``Annotated[T, Within(1, 9)]`` and ``Annotated[T, Such(test, words)]`` accept some of what T accepts.

A value is checked before anything is made of it, and the result takes no more memory than the parsed JSON.
"""

import json
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import cache
from reprlib import repr as shortened
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from byheart.errors import BadInput

_T = TypeVar("_T")
_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", NoneType: "null"}
_ANY = frozenset({*_WORDS, list, dict})


@dataclass(frozen=True)
class Within:
    """Smallest and largest number accepted."""

    low: float
    high: float

    def __str__(self) -> str:
        low, high = (f"{bound:,}" if isinstance(bound, int) else f"{bound:g}" for bound in (self.low, self.high))
        return f"from {low} to {high}"


@dataclass(frozen=True)
class Such:
    """A condition on values, and what errors call a value that meets it."""

    test: Callable[[Any], bool]
    words: str


class _Mismatch(Exception):  # noqa: N818 (it becomes a BadInput where the place is known)
    """A value that its hint does not accept, and its place, which grows from the inside to the outside."""

    def __init__(self, problem: str, place: str = "") -> None:
        self.problem, self.place = problem, place


@dataclass(frozen=True)
class _Decoder:
    """A hint, compiled."""

    types: frozenset[type]
    """Types that the parsed value may have."""
    words: str
    convert: Callable[[Any], Any] | None = None
    """Returns what is made of a value, part by part. None: the value stays as it is."""
    test: Callable[[Any], bool] | None = None

    def accepts(self, value: Any) -> bool:
        """Return True if type and condition fit. The parts of lists and objects are left to ``convert``."""
        return type(value) in self.types and (self.test is None or self.test(value))

    def __call__(self, value: Any, place: str = "") -> Any:
        try:
            if not self.accepts(value):
                raise _Mismatch(f"is {shortened(value)}; expected {self.words}")
            return value if self.convert is None else self.convert(value)
        except _Mismatch as mismatch:
            raise _Mismatch(mismatch.problem, place + mismatch.place) from None


def decode(hint: type[_T], value: object, place: str) -> _T:
    """Return the parsed JSON ``value`` as what ``hint`` says; raise BadInput, with its ``place``, if it is none.

    >>> decode(dict[str, list[int]], {"a": [1, 2.5]}, "config.json: sizes")
    Traceback (most recent call last):
    byheart.errors.BadInput: config.json: sizes.a[1] is 2.5; expected a whole number
    """
    try:
        return cast("_T", _decoder(cast("Any", hint))(value, place))
    except _Mismatch as mismatch:
        raise BadInput(f"{mismatch.place} {mismatch.problem}".lstrip(". ")) from None


def is_decodable(hint: Any, value: object) -> bool:
    """Return True if ``hint`` accepts the parsed JSON ``value``."""
    try:
        decode(hint, value, "")
    except BadInput:
        return False
    return True


@cache
def _decoder(hint: Any) -> _Decoder:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _conditional(_decoder(arguments[0]), arguments[1])
    if origin in (Union, UnionType):
        return _either([_decoder(argument) for argument in arguments])
    if origin is Literal:
        allowed = {(type(value), value) for value in arguments}
        words = " or ".join(json.dumps(value) for value in arguments)
        return _Decoder(frozenset(map(type, arguments)), words, test=lambda value: (type(value), value) in allowed)
    return (
        _simple(NoneType if hint is None else hint)
        if origin is None
        else _many(origin, _decoder(arguments[origin is dict]))
    )


def _simple(kind: Any) -> _Decoder:
    """Return the decoder of a hint without arguments."""
    if kind in _WORDS:
        return _Decoder(frozenset({kind, int} if kind is float else {kind}), _WORDS[kind])
    return _Decoder(_ANY, "anything") if kind is Any else _Decoder(frozenset({dict}), "an object", _members(kind))


def _conditional(inner: _Decoder, condition: Within | Such) -> _Decoder:
    if isinstance(condition, Such):
        return _Decoder(inner.types, condition.words, inner.convert, condition.test)
    low, high = condition.low, condition.high
    return _Decoder(inner.types, f"{inner.words} {condition}", inner.convert, lambda value: low <= value <= high)


def _either(choices: list[_Decoder]) -> _Decoder:
    """Return the decoder of a union: the first of ``choices`` that accepts a value decodes it."""
    return _Decoder(
        frozenset[type]().union(*(choice.types for choice in choices)),
        " or ".join(choice.words for choice in choices),
        lambda value: next(choice for choice in choices if choice.accepts(value))(value),
        lambda value: any(choice.accepts(value) for choice in choices),
    )


def _many(kind: Any, item: _Decoder) -> _Decoder:
    """Return the decoder of a list, tuple or dictionary of any length."""

    def convert_list(values: list[Any]) -> Any:
        if item.convert is not None or not all(map(item.accepts, values)):
            values = [item(value, f"[{place}]") for place, value in enumerate(values)]
        return kind(values)

    def convert_object(value: dict[str, Any]) -> Any:
        return {key: item(part, f".{key}") for key, part in value.items()}

    is_object = kind is dict
    return _Decoder(
        frozenset({dict if is_object else list}),
        "an object" if is_object else "a list",
        convert_object if is_object else convert_list,
    )


def _members(kind: Any) -> Callable[[dict[str, Any]], Any]:
    """Return what makes an instance of a dataclass from an object, or checks an object that a TypedDict describes."""
    decoders = {name: _decoder(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}
    if is_typeddict(kind):
        required = sorted(kind.__required_keys__)
    else:
        decoders = {field.name: decoders[field.name] for field in fields(kind)}  # without class variables
        required = [field.name for field in fields(kind) if field.default is field.default_factory is MISSING]

    def convert(value: dict[str, Any]) -> Any:
        for name in required:
            if name not in value:
                raise _Mismatch(f"lacks {name!r}; expected the keys {', '.join(decoders)}")
        members = {name: decoders[name](part, f".{name}") for name, part in value.items() if name in decoders}
        if is_typeddict(kind):
            return value
        if len(members) < len(value):
            stray = next(name for name in value if name not in decoders)
            raise _Mismatch(f"has {shortened(stray)}; expected the keys {', '.join(decoders)}")
        return kind(**members)

    return convert
