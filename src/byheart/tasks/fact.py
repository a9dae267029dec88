"""One fact, from a pair, a text, or a record with common keys.

======================  ==========================================================================================
``prompt, completion``  used as they are
``question, answer``    the same
``text``                no prompt: the text is recited from its beginning
``messages``            a conversation: the last message, the assistant's, is the completion. The prompt has a line
                        ``role: content`` for each message before it, and ends with ``assistant: ``
======================  ==========================================================================================
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Any, TypeAlias

from byheart.errors import BadInput

Piece: TypeAlias = bytes | tuple[int, ...]
"""A text as bytes (in UTF-8, unless it comes from a file), or token ids."""
PAIRS = (("prompt", "completion"), ("question", "answer"))
TEXT, MESSAGES = "text", "messages"
KNOWN = "prompt and completion, question and answer, text, or messages"
_WAYS = tuple((keys, frozenset(keys)) for keys in (*PAIRS, (TEXT,), (MESSAGES,)))
LARGEST_ID = 2**31 - 3
"""Largest token id. The end token has a larger one, and all ids fit into 32 bits."""


MEMORY_PER_FACT = 48
"""Bytes of memory per fact besides its pieces: start, length of the prompt, place and key, a sort of the keys, and the
reserve of growing arrays.
"""


@dataclass(frozen=True, slots=True)
class Fact:
    """A prompt, its completion, and the place where it was found."""

    prompt: Piece | None
    """The prompt; None if the completion is a text that is recited from its beginning."""
    completion: Piece
    place: str
    """Source of the fact, such as "facts.csv line 12"."""


def fact_of(value: Any, place: str, columns: Sequence[str] = ()) -> Fact:
    """Return the fact in a pair, a text, or a record, whose keys may be named by ``columns``.

    >>> fact_of(("capital of France", "Paris"), "facts[0]")
    Fact(prompt=b'capital of France', completion=b'Paris', place='facts[0]')
    >>> fact_of({"q": "2 + 2", "a": "4"}, "facts[0]", columns=("q", "a")).completion
    b'4'
    """
    if isinstance(value, Fact):
        return value
    if isinstance(value, str | bytes):
        return Fact(None, _piece("text", value, place), place)
    if isinstance(value, Mapping):
        return _fact_in(value, place, columns)
    if isinstance(value, list | tuple) and len(value) == 2:
        return _fact(PAIRS[0], value, place)
    expected = "expected a pair (prompt, completion), a text, or a dict with these as keys"
    raise BadInput(f"{place} is {shortened(value)}; {expected}")


def _fact_in(record: Mapping[Any, Any], place: str, columns: Sequence[str]) -> Fact:
    keys = _keys(record, place, columns)
    if len(keys) == 2:
        return _fact(keys, [record[key] for key in keys], place)
    if keys == (MESSAGES,) and not columns:
        return _fact(PAIRS[0], conversation(record[MESSAGES], place), place)
    return Fact(None, _piece(keys[0], record[keys[0]], place), place)


def _keys(record: Mapping[Any, Any], place: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the one or two keys of a record that hold the fact."""
    if columns:
        for key in columns:
            if key not in record:
                raise BadInput(f"{place}: there is no {key!r}; found {_listed_keys(record)}")
        return tuple(columns)
    matches = [keys for keys, needed in _WAYS if needed <= record.keys()]
    if len(matches) == 1:
        return matches[0]
    expected = f"expected {KNOWN}" if not matches else "which may be read in more than one way"
    hint = "say which ones to take with --columns PROMPT COMPLETION (in a table, the first row names them)"
    raise BadInput(f"{place}: found {_listed_keys(record)}; {expected}: {hint}")


def _listed_keys(record: Mapping[Any, Any]) -> str:
    return ", ".join(map(str, record)) or "nothing"


def _fact(keys: Sequence[str], values: Sequence[Any], place: str) -> Fact:
    prompt, completion = (_piece(key, value, place) for key, value in zip(keys, values, strict=True))
    return Fact(prompt, completion, place)


def conversation(messages: Any, place: str) -> tuple[str, str]:
    r"""Return the prompt and the completion of a conversation.

    >>> asked = [{"role": "user", "content": "Capital of France?"}, {"role": "assistant", "content": "Paris"}]
    >>> conversation(asked, "chat.jsonl line 1")
    ('user: Capital of France?\nassistant: ', 'Paris')
    """
    turns = list(messages) if isinstance(messages, Sequence) and not isinstance(messages, str) else []
    for turn in turns:
        if not isinstance(turn, Mapping) or not all(isinstance(turn.get(key), str) for key in ("role", "content")):
            raise BadInput(f"{place}: a message is {shortened(turn)}; expected a role and a content, both texts")
    if len(turns) < 2 or turns[-1]["role"] != "assistant":
        roles = ", ".join(turn["role"] for turn in turns) or "no messages"
        expected = "expected messages of which the last, not the first, is the assistant's"
        raise BadInput(f"{place}: found {roles}; {expected}")
    before = "".join(f"{turn['role']}: {turn['content']}\n" for turn in turns[:-1])
    return f"{before}{turns[-1]['role']}: ", turns[-1]["content"]


def _piece(name: str, value: Any, place: str) -> Piece:
    """Return a text as bytes, or ids; raise BadInput if it is empty."""
    if isinstance(value, str):
        try:
            piece: Piece = value.encode()
        except UnicodeEncodeError:
            raise BadInput(f"{place}: the {name} holds half a surrogate pair; expected text") from None
    elif isinstance(value, bytes):
        piece = value
    elif isinstance(value, list | tuple) or hasattr(value, "tolist"):
        piece = _ids(name, value, place)
    else:
        description = "missing" if value is None else shortened(value)
        quoted = f', "{value}" say' if isinstance(value, int | float) else ""
        raise BadInput(f"{place}: the {name} is {description}; expected a text{quoted}, or a list of token ids")
    if not len(piece):
        hint = f": a text that has no {name} goes under {TEXT!r} alone" if name in (PAIRS[0][0], PAIRS[1][0]) else ""
        raise BadInput(f"{place}: the {name} is empty; expected at least one character{hint}")
    return piece


def _ids(name: str, value: Any, place: str) -> tuple[int, ...]:
    try:
        if any(isinstance(token, bool) for token in value):
            raise TypeError("true is no number")
        ids = tuple(operator.index(token) for token in value)
    except TypeError:
        raise BadInput(f"{place}: the {name} is {shortened(value)}; expected a text, or a list of token ids") from None
    if strays := [token for token in ids if not 0 <= token <= LARGEST_ID]:
        raise BadInput(f"{place}: the {name} holds the token {strays[0]}; expected 0 to {LARGEST_ID}")
    return ids
