"""Bounds on how much longer than a text a tokenizer can make it, from its ``tokenizer.json`` alone.

The library ``tokenizers`` aborts the process if memory runs out, and a few normalizers that double a letter each are
enough for that. Every step has a factor, and the product of a stage's factors is bounded before the library reads the
file. Lengths are letters after compatibility decomposition (NFKD), which are additive. No Unicode normal form and no
lowercasing adds to them, so those steps may be repeated. Decomposition itself makes at most 18 letters of one.
"""

import math
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from unicodedata import normalize

from byheart.errors import BadInput

MAX_GROWTH: Final = 128
"""Largest product of a stage's factors. Those of well-known tokenizers are at most 72."""
MAX_NAME: Final = 1 << 12
"""Largest number of letters of a token. Each token of a text is stored with its letters."""
Step = dict[str, Any]


def check_growth(tokenizer: Mapping[str, Any]) -> None:
    """Raise BadInput if any stage of a tokenizer may lengthen a text too much, or is of an unknown type.

    >>> check_growth({"normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 200}})
    Traceback (most recent call last):
    byheart.errors.BadInput: normalizer makes a text up to 200 times as long; expected at most 128 times
    """
    for stage, (steps, factors) in _STAGES.items():
        with _reading(stage):
            growth = _growth(tokenizer.get(stage), steps, factors)
        if growth > MAX_GROWTH:
            expected = f"expected at most {MAX_GROWTH} times"
            raise BadInput(f"{stage} makes a text up to {growth:.4g} times as long; {expected}")
    with _reading("model"):
        model = tokenizer.get("model") or {}
        names = [name if isinstance(name, str) else name[0] for name in model.get("vocab") or ()]
        names += [token["content"] for token in tokenizer.get("added_tokens") or ()]
        names += [value for value in model.values() if isinstance(value, str)]
        longest = max(map(len, names), default=0)
    if longest > MAX_NAME:
        raise BadInput(f"a token has {longest:,} letters; expected at most {MAX_NAME:,}")


@contextmanager
def _reading(part: str) -> Iterator[None]:
    """Turn the errors of a part that is not as it should be into BadInput."""
    try:
        yield
    except BadInput:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise BadInput(f"{part} cannot be read ({type(error).__name__}: {str(error)[:80]})") from None


def _growth(step: Step | None, steps: str, factors: Mapping[str, Callable[[Step], float]]) -> float:
    """Return the factor of a step; those of a sequence, whose parts are under the key ``steps``, are multiplied."""
    if step is None:
        return 1
    kind = step["type"]
    if kind == "Sequence":
        return math.prod(_growth(part, steps, factors) for part in step[steps])
    if kind not in factors:
        raise BadInput(f"{steps}: unknown type {kind!r}; expected one of {', '.join(sorted(factors))}")
    return max(1.0, factors[kind](step))


def _letters(text: str) -> int:
    return len(normalize("NFKD", text))


def _replaced(step: Step) -> float:
    """Return the factor of a replacement. An expression may match between any two letters."""
    pattern = step["pattern"].get("String")
    return _letters(step["content"]) / _letters(pattern) if pattern else 1 + _letters(step["content"])


def _decoded(step: Step) -> float:
    """Return the factor of a replacement in what is decoded: nothing could interrupt an expression that backtracks."""
    if "String" not in step["pattern"]:
        raise BadInput("decoder replaces a regular expression; expected a String")
    return _replaced(step)


def _charsmap(step: Step) -> float:
    """Return the length of the longest replacement of a compiled map: a trie after its size, then the replacements."""
    data = b64decode(step["precompiled_charsmap"] or "")
    texts = data[4 + int.from_bytes(data[:4], "little") :].decode(errors="replace")
    return max(map(_letters, texts.split("\0")))


def _templates(step: Step) -> float:
    """Return the largest number of copies of a text and special tokens in a template."""

    def size(piece: Step) -> int:
        return 1 if "Sequence" in piece else len(step["special_tokens"][piece["SpecialToken"]["id"]]["ids"])

    return max(sum(map(size, step["single"])), sum(map(size, step["pair"])))


def _by(*names: str, factor: float = 1) -> dict[str, Callable[[Step], float]]:
    return dict.fromkeys(names, lambda _: factor)


_BYTES = _by("ByteLevel", factor=24)
"""A letter has at most 4 bytes, whose letters decompose into 3 at most; and each word may get a blank."""
_NORMALIZERS = {
    **_by("Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Strip", "StripAccents"),
    **_by("BertNormalizer", factor=3),  # blanks around Chinese letters
    **_BYTES,
    "Precompiled": _charsmap,
    "Prepend": lambda step: 1 + _letters(step["prepend"]),  # to each part between two added tokens
    "Replace": _replaced,
}
_PRE_TOKENIZERS = {
    **_by("BertPreTokenizer", "CharDelimiterSplit", "Digits", "FixedLength", "Punctuation", "Split"),
    **_by("UnicodeScripts", "Whitespace", "WhitespaceSplit"),
    **_BYTES,
    "Metaspace": lambda step: 2 * _letters(step["replacement"]),  # for a blank, and before each word
}
_DECODERS = {
    **_by("ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Strip"),
    **_by("BPEDecoder", "CTC", "WordPiece", factor=2),  # a blank for the end of a word
    "Replace": _decoded,
}
_PROCESSORS = {
    **_by("ByteLevel"),
    **_by("BertProcessing", "RobertaProcessing", factor=5),  # up to four tokens around a pair
    "TemplateProcessing": _templates,
}
_STAGES: Final = {
    "normalizer": ("normalizers", _NORMALIZERS),
    "pre_tokenizer": ("pretokenizers", _PRE_TOKENIZERS),
    "post_processor": ("processors", _PROCESSORS),
    "decoder": ("decoders", _DECODERS),
}
