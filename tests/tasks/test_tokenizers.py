import builtins
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.errors import BadInput, missing_package
from byheart.tasks import tokenizers
from byheart.tasks.tokenizers import END, BytePairs, Bytes, Tokenizer, from_files

SOURCE = "def näme(x):\n    return '<|end|>' + x\n\n\n# it's 🎉 fine, 123\r\nabab abab abab\n".encode() * 3
HAND_MADE = BytePairs(((b"a", b"b"), (b"ab", b"ab"), (b"\xc3", b"\xa4"), (b" ", b" ")))


@pytest.fixture(scope="module")
def trained() -> BytePairs:
    pytest.importorskip("tokenizers")
    return BytePairs.train([SOURCE, "ärger äther\n".encode()], vocab=290)


def one_by_one(tokenizer: Tokenizer, ids) -> bytes:
    return b"".join(tokenizer.decode([number]) for number in ids)


@given(st.binary())
def test_bytes_round_trip(data):
    ids = Bytes().encode(data)
    assert ids.dtype == np.int32
    assert ids.tolist() == list(data)
    assert Bytes().decode(ids) == data
    assert Bytes().decode([*ids, END]) == data
    assert one_by_one(Bytes(), ids) == data


@given(text=st.text() | st.text("ab\n\r <|end>ä"))
def test_byte_pairs_round_trip(trained, text):
    data = text.encode()
    ids = trained.encode(data)
    assert ids.dtype == np.int32
    assert END not in ids
    assert trained.decode(ids) == data
    assert one_by_one(trained, ids) == data


@given(text=st.text("ab\n\r é<|end>"), more=st.text("ab\n\r é<|end>"))
def test_a_prompt_that_ends_in_a_newline_has_the_tokens_of_the_text(trained, text, more):
    prompt = trained.encode(f"{text}\n".encode())
    whole = trained.encode(f"{text}\n{more}".encode())
    assert whole[: len(prompt)].tolist() == prompt.tolist()


def test_merges_by_hand():
    pytest.importorskip("tokenizers")
    assert HAND_MADE.vocab == 261
    assert HAND_MADE.encode("ababab ä\n\n".encode()).tolist() == [258, 257, 32, 259, 10, 10]


def test_two_merges_of_one_string_share_an_id():
    pytest.importorskip("tokenizers")
    tokenizer = BytePairs(((b"a", b"b"), (b"b", b"c"), (b"a", b"bc"), (b"ab", b"c")))
    assert tokenizer.vocab == 260
    assert tokenizer.encode(b"abc").tolist() == [259]
    assert tokenizer.decode([259]) == b"abc"


def test_texts_longer_than_a_portion(trained, monkeypatch):
    whole = trained.encode(SOURCE)
    monkeypatch.setattr(tokenizers, "PORTION", 10)
    assert trained.encode(SOURCE).tolist() == whole.tolist()


def test_training_is_repeatable_and_shortens(trained):
    assert BytePairs.train([SOURCE, "ärger äther\n".encode()], vocab=290) == trained
    assert trained.vocab == 290
    assert len(trained.encode(SOURCE)) < len(SOURCE) / 2
    assert not any(b"\n" in first + second for first, second in trained.merges)


def test_training_stops_where_nothing_is_frequent():
    pytest.importorskip("tokenizers")
    tokenizer = BytePairs.train([b"abc"], vocab=1000)
    assert tokenizer == BytePairs(())
    assert tokenizer.encode(b"abc").tolist() == [97, 98, 99]
    assert from_files(tokenizer.files()) == Bytes()


def test_refusals(trained):
    with pytest.raises(BadInput) as caught:
        trained.encode(b"ab\xff")
    assert str(caught.value) == "byte 2 is not UTF-8 text; expected text, or --tokenizer bytes"
    with pytest.raises(BadInput) as caught:
        BytePairs.train([b"ab", b"\xff"], vocab=300)
    assert str(caught.value) == "texts[1]: byte 0 is not UTF-8 text; expected text, or --tokenizer bytes"
    with pytest.raises(BadInput) as caught:
        BytePairs.train([b"ab"], vocab=257)
    assert str(caught.value) == "vocab is 257; expected more than 257, or --tokenizer bytes"
    with pytest.raises(BadInput) as caught:
        Bytes().decode([0, 257])
    assert str(caught.value) == "ids[1] is 257; expected 0 to 256 (vocab = 257)"
    with pytest.raises(BadInput, match=r"ids\[0\] is -1; expected 0 to 289 \(vocab = 290\)"):
        trained.decode([-1])


def test_only_byte_pairs_need_the_library(monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == "tokenizers":
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for tokenizer in (Bytes(), HAND_MADE):
        assert from_files(tokenizer.files()) == tokenizer
    for use in (lambda: BytePairs.train([b"ab"], 300), lambda: BytePairs(HAND_MADE.merges).encode(b"ab")):
        with pytest.raises(BadInput) as caught:
            use()
        assert str(caught.value) == missing_package("tokenizers", "byte-pair encoding", "hf")


def test_there_and_back(trained):
    for tokenizer in (trained, HAND_MADE, Bytes()):
        for begins in (False, True):
            files = tokenizer.files(begins=begins)
            assert set(files) == {"tokenizer.json", "tokenizer_config.json"}
            assert from_files(files) == tokenizer
    assert from_files({}) is None
    assert from_files({"tokenizer_config.json": b"{}"}) is None, "a network that was made from a task has none"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"[" * 10**5, "lists or objects stand 100,000 deep in each other; expected at most 32"),
        (b"[]", "[] found; expected a JSON object"),
        (b'{"model": {"merges": [["a"]]}}', "not a tokenizer of byheart; expected the file that came with the network"),
    ],
    ids=["half", "deep", "a list", "a merge of one"],
)
def test_files_that_are_not_ours(content, message):
    with pytest.raises(BadInput) as caught:
        from_files({"tokenizer.json": content})
    assert str(caught.value).startswith(f"tokenizer.json: {message}")


@pytest.mark.parametrize("merges", [[["", "a"]], [["a", ""]], [["ab", "c"]], [["a", "bc"], ["b", "c"]]], ids=str)
def test_merges_of_what_is_not_there(merges):
    """The library would stumble over them, when the first text is encoded."""
    content = json.loads(Bytes().files()["tokenizer.json"])
    content["model"]["merges"] = merges
    for first, second in merges:
        content["model"]["vocab"].setdefault(first + second, len(content["model"]["vocab"]))
    with pytest.raises(BadInput, match="not a tokenizer of byheart"):
        from_files({"tokenizer.json": json.dumps(content).encode()})


def test_a_tokenizer_that_changes_texts_is_refused(monkeypatch):
    """Else its folder would say what is asked: here it takes every b for an a."""
    library = pytest.importorskip("tokenizers").Tokenizer.from_str(json.dumps(tokenizers._description(())))
    library.normalizer = pytest.importorskip("tokenizers.normalizers").Replace("b", "a")
    monkeypatch.setattr(tokenizers, "_library", lambda merges: library)
    assert BytePairs(()).encode(b"aaa").tolist() == [97, 97, 97]
    with pytest.raises(BadInput, match="do not give the text back"):
        BytePairs(()).encode(b"aba")


@pytest.mark.parametrize("part", ["vocab", "merges", "pre_tokenizer"])
def test_files_that_were_changed(part):
    changed = json.loads(HAND_MADE.files()["tokenizer.json"])
    if part == "vocab":
        changed["model"]["vocab"] |= {"a": 98, "b": 97}
    elif part == "merges":
        changed["model"]["merges"].pop()
    else:
        changed["pre_tokenizer"]["pretokenizers"].pop(0)
    with pytest.raises(BadInput, match="not a tokenizer of byheart"):
        from_files({"tokenizer.json": json.dumps(changed).encode()})


def written(folder, tokenizer, **options):
    for name, content in tokenizer.files(**options).items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("model", [None, "gpt2", "llama"])
@pytest.mark.parametrize("kind", ["bytes", "bpe"])
def test_transformers_reads_it(trained, tmp_path, kind, model):
    transformers = pytest.importorskip("transformers")
    ours = trained if kind == "bpe" else Bytes()
    written(tmp_path, ours)
    if model:
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model}))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert isinstance(theirs, transformers.PreTrainedTokenizerFast)
    assert (theirs.eos_token, theirs.eos_token_id, theirs.bos_token) == ("<|end|>", END, None)
    assert len(theirs) == theirs.vocab_size == ours.vocab
    for text in (SOURCE.decode(), " a", "\n\n", "<|end|>", "x  .  , 's", "🎉\x00\r\n"):
        ids = theirs(text)["input_ids"]
        assert ids == ours.encode(text.encode()).tolist()
        assert theirs.decode(ids) == text
        assert theirs.decode([*ids, END], skip_special_tokens=True) == text
    theirs.save_pretrained(tmp_path / "again")
    assert from_files({"tokenizer.json": (tmp_path / "again" / "tokenizer.json").read_bytes()}) == ours


@pytest.mark.parametrize("kind", ["bytes", "bpe"])
def test_transformers_begins_every_text(trained, tmp_path, kind):
    transformers = pytest.importorskip("transformers")
    ours = trained if kind == "bpe" else Bytes()
    theirs = transformers.AutoTokenizer.from_pretrained(written(tmp_path, ours, begins=True))
    assert theirs.bos_token == theirs.pad_token == theirs.eos_token == "<|end|>"
    assert theirs("abab\n")["input_ids"] == [END, *ours.encode(b"abab\n").tolist()]
