"""Type hints decode JSON."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict

import pytest

from byheart.errors import BadInput
from byheart.files.decoding import Such, Within, decode, is_decodable

SMALL = Annotated[int, Within(1, 9)]


@dataclass(frozen=True)
class Part:
    name: str
    share: float = 0.5


@dataclass(frozen=True)
class Whole:
    kind: Literal["a", "b", 3]
    parts: tuple[Part, ...]
    size: SMALL | None
    more: dict[str, list[int]] = field(default_factory=dict)


class Note(TypedDict):
    count: SMALL


class Optional(TypedDict, total=False):
    count: SMALL


WHOLE: dict[str, Any] = {"kind": "a", "parts": [{"name": "x"}, {"name": "y", "share": 1}], "size": None}


def test_a_dataclass_becomes_an_instance() -> None:
    assert decode(Whole, WHOLE, "file") == Whole("a", (Part("x"), Part("y", 1)), None)
    assert decode(Whole, WHOLE | {"more": {"z": [1, 2]}, "size": 9}, "file").more == {"z": [1, 2]}


def test_a_typed_dict_stays_the_object_with_its_other_keys() -> None:
    note = {"count": 3, "other": [None]}
    assert decode(Note, note, "") is note  # type: ignore[comparison-overlap]
    assert decode(Optional, {"other": 1}, "") == {"other": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "c"}, r"^file\.kind is 'c'; expected \"a\" or \"b\" or 3$"),
        ({"kind": ["a"]}, r"file\.kind is \['a'\]; expected"),
        ({"kind": 3.0}, r"file\.kind is 3\.0; expected"),
        ({"parts": {}}, r"^file\.parts is \{\}; expected a list$"),
        ({"parts": [{"name": "x"}, 5]}, r"^file\.parts\[1\] is 5; expected an object$"),
        ({"parts": [{"share": 1}]}, r"^file\.parts\[0\] lacks 'name'; expected the keys name, share$"),
        ({"parts": [{"name": "x", "share": True}]}, r"^file\.parts\[0\]\.share is True; expected a number$"),
        ({"parts": [{"name": "x", "z" * 9999: 1}]}, r"^file\.parts\[0\] has 'z{8,20}\.\.\.z{8,20}'; expected the keys"),
        ({"size": 10}, r"^file\.size is 10; expected a whole number from 1 to 9 or null$"),
        ({"size": True}, r"file\.size is True"),
        ({"size": 2.0}, r"file\.size is 2\.0"),
        ({"more": {"a": [1, "2"]}}, r"^file\.more\.a\[1\] is '2'; expected a whole number$"),
        ({"stray": 1}, r"^file has 'stray'; expected the keys kind, parts, size, more$"),
    ],
    ids=str,
)
def test_refusals_say_where(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        decode(Whole, WHOLE | change, "file")


@pytest.mark.parametrize("missing", ["kind", "parts", "size"])
def test_fields_without_a_default_are_needed(missing: str) -> None:
    with pytest.raises(BadInput, match=f"^file lacks '{missing}'"):
        decode(Whole, {name: value for name, value in WHOLE.items() if name != missing}, "file")


def test_a_typed_dict_needs_its_required_keys() -> None:
    assert not is_decodable(Note, {})
    assert not is_decodable(Note, [])
    assert not is_decodable(Optional, {"count": 0})


@pytest.mark.parametrize(
    ("hint", "accepted", "refused"),
    [
        (int, [0, -5], [True, 1.0, "1", None, [], {}]),
        (float, [0, 0.5], [True, "1", None]),
        (bool, [True, False], [0, 1, "true"]),
        (str, ["", "a"], [0, None]),
        (None, [None], [0, False, ""]),
        (Any, [None, 0, 0.5, True, "", [], {}], []),
        (Literal[1], [1], [True, 1.0, "1"]),
        (Literal[None, "a"], [None, "a"], ["b", 0]),
        (list[int] | str, [[1], "a"], [["a"], 1]),
        (list[int | None], [[], [1, None]], [["a"], [1, False]]),
        (Annotated[float, Within(0.0, 1.0)], [0, 1, 0.5], [-0.1, 2, True]),
        (Annotated[str, Such(str.islower, "small letters")], ["a"], ["A", 1]),
    ],
    ids=str,
)
def test_hints(hint: Any, accepted: list[object], refused: list[object]) -> None:
    assert all(is_decodable(hint, value) for value in accepted)
    assert not any(is_decodable(hint, value) for value in refused)


def test_conditions_call_a_value_by_their_words() -> None:
    with pytest.raises(BadInput, match=r"^name is 'A'; expected small letters$"):
        decode(Annotated[str, Such(str.islower, "small letters")], "A", "name")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"^size is 0; expected a whole number from 1 to 16,777,216$"):
        decode(Annotated[int, Within(1, 1 << 24)], 0, "size")  # type: ignore[arg-type]
