"""Tokenizers that would exhaust the memory are refused by their file; the well-known ones are not."""

import json
import sys
from base64 import b64encode
from unicodedata import normalize

import pytest

from byheart.errors import BadInput
from byheart.files.tokenizer_growth import check_growth

library = pytest.importorskip("tokenizers")
D, N, P, R = library.decoders, library.normalizers, library.pre_tokenizers, library.processors
CHARSMAP = (0).to_bytes(4, "little") + b"a\0" + "ﷺ".encode() + b"\0"


def described(**parts):
    tokenizer = library.Tokenizer(library.models.WordLevel({"a": 0}, unk_token="a"))
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    return json.loads(tokenizer.to_str())


def precompiled(charsmap):
    return {"type": "Precompiled", "precompiled_charsmap": b64encode(charsmap).decode()}


KNOWN = {
    "gpt-2": described(
        pre_tokenizer=P.ByteLevel(), decoder=D.ByteLevel(), post_processor=R.ByteLevel(trim_offsets=False)
    ),
    "roberta": described(
        pre_tokenizer=P.ByteLevel(add_prefix_space=True),
        decoder=D.ByteLevel(),
        post_processor=R.RobertaProcessing(("</s>", 2), ("<s>", 0)),
    ),
    "llama": described(
        normalizer=N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")]),
        decoder=D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]),
        post_processor=R.TemplateProcessing("<s> $A", "<s> $A <s> $B", [("<s>", 1)]),
    ),
    "qwen": described(
        normalizer=N.NFC(),
        pre_tokenizer=P.Sequence([P.Split(library.Regex(r"\p{N}"), "isolated"), P.ByteLevel(False, use_regex=False)]),
        decoder=D.ByteLevel(),
    ),
    "bert": described(
        normalizer=N.BertNormalizer(),
        pre_tokenizer=P.BertPreTokenizer(),
        decoder=D.WordPiece(),
        post_processor=R.BertProcessing(("[SEP]", 2), ("[CLS]", 1)),
    ),
    "t5": described(pre_tokenizer=P.Sequence([P.WhitespaceSplit(), P.Metaspace()]), decoder=D.Metaspace())
    | {"normalizer": precompiled(CHARSMAP)},
    "albert": described(pre_tokenizer=P.Metaspace(), decoder=D.Metaspace())
    | {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
                {"type": "NFKD"},
                {"type": "StripAccents"},
                {"type": "Lowercase"},
                precompiled(CHARSMAP),
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            ],
        }
    },
}


@pytest.mark.parametrize("name", KNOWN)
def test_well_known_tokenizers_pass(name):
    check_growth(KNOWN[name])


DOUBLES = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
ADDS = {"type": "Replace", "pattern": {"Regex": "x*"}, "content": "a"}
TWICE = [{"Sequence": {"id": "A", "type_id": 0}}] * 2
HOSTILE = {
    "doubling": {"normalizer": {"type": "Sequence", "normalizers": [DOUBLES] * 36}},
    "nested": {
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Sequence", "normalizers": [DOUBLES, ADDS]}] * 18}
    },
    "a long prefix": {"normalizer": {"type": "Prepend", "prepend": "a" * 1000}},
    "letters that decompose": {"normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "ﷺ" * 8}},
    "no letters": {"normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "a" * 200}},
    "a compiled map": {"normalizer": precompiled(CHARSMAP + b"a" * 1000)},
    "bytes of bytes": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}] * 2}},
    "blanks": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "BertNormalizer"}] * 5}},
    "words": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Metaspace", "replacement": "_"}] * 8}},
    "decoding": {"decoder": {"type": "Sequence", "decoders": [DOUBLES] * 36}},
    "copies": {
        "post_processor": {
            "type": "Sequence",
            "processors": [{"type": "TemplateProcessing", "single": TWICE, "pair": TWICE, "special_tokens": {}}] * 36,
        }
    },
    "many special tokens": {
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "a", "type_id": 0}}],
            "pair": [],
            "special_tokens": {"a": {"id": "a", "ids": [0] * 1000, "tokens": ["a"] * 1000}},
        }
    },
}
BROKEN = [7, {}, {"type": "New"}, {"type": "Replace"}, {"type": "Sequence"}, {"type": ["Replace"]}]


@pytest.mark.parametrize("name", HOSTILE)
def test_growth_is_bounded(name):
    with pytest.raises(BadInput, match="times as long; expected at most 128 times"):
        check_growth(HOSTILE[name])


def test_expressions_in_a_decoder_are_refused():
    """The library holds Python's lock while it decodes, so that nothing could interrupt it."""
    for decoder in (ADDS, {"type": "Sequence", "decoders": [ADDS | {"content": ""}]}):
        with pytest.raises(BadInput, match="decoder replaces a regular expression; expected a String"):
            check_growth({"decoder": decoder})


@pytest.mark.parametrize("step", BROKEN, ids=str)
@pytest.mark.parametrize("stage", ["normalizer", "pre_tokenizer", "post_processor", "decoder"])
def test_unknown_steps_are_refused(stage, step):
    with pytest.raises(BadInput, match=r"cannot be read|unknown type"):
        check_growth({stage: step})


def test_tokens_are_not_too_long():
    name = "a" * 5000
    for parts in (
        {"model": {"vocab": {name: 0}}},
        {"model": {"vocab": [[name, 0.0]]}},
        {"model": {"end_of_word_suffix": name}},
        {"added_tokens": [{"content": name}]},
    ):
        with pytest.raises(BadInput, match="a token has 5,000 letters; expected at most 4,096"):
            check_growth(parts)
    for parts in ({"model": {"vocab": 5}}, {"model": [7]}, {"added_tokens": [7]}):
        with pytest.raises(BadInput, match="model cannot be read"):
            check_growth({"model": {"vocab": {}}} | parts)


def test_every_type_of_the_library_has_a_factor():
    from byheart.files import tokenizer_growth

    for module, (_, factors) in zip((N, P, R, D), tokenizer_growth._STAGES.values(), strict=True):
        base = {"Normalizer", "PreTokenizer", "PostProcessor", "Decoder", "DecodeStream", "Sequence"}
        kinds = {name for name, kind in vars(module).items() if isinstance(kind, type)} - base
        assert kinds == set(factors)


def test_no_unicode_form_adds_letters_after_decomposition():
    """For every letter: at most 18 of it, and lowercasing adds none."""
    letters = [chr(k) for k in range(sys.maxunicode + 1) if not 0xD800 <= k < 0xE000]
    forms = [len(normalize("NFKD", letter)) for letter in letters]
    assert max(forms) == 18
    assert all(len(normalize("NFKD", c.lower())) <= n for c, n in zip(letters, forms, strict=True))
    alphabet = P.ByteLevel.alphabet()
    assert max(len(normalize("NFKD", letter)) for letter in alphabet) == 3
