"""Tokenizers of others: used as they are, if they give texts back; refused in a sentence if not."""

import json

import pytest

from byheart.errors import BadInput
from byheart.files import patience
from byheart.networks.planted.base import tokenizer_in
from byheart.tasks.loaded_tokenizer import LoadedTokenizer, load_tokenizer
from byheart.tasks.tokenizers import Bytes, from_files

library = pytest.importorskip("tokenizers")
TEXTS = ["capital of France", "Paris", "Αθήνα", "القاهرة", "北京", " two  blanks\n", "🎉"]


def write(folder, tokenizer, **config):
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>"} | config))
    return folder


def byte_level(texts=TEXTS):
    """As GPT-2's: the end token first, then bytes, then what is frequent."""
    found = library.Tokenizer(library.models.BPE())
    found.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = library.decoders.ByteLevel()
    alphabet = library.pre_tokenizers.ByteLevel.alphabet()
    trainer = library.trainers.BpeTrainer(
        vocab_size=300, special_tokens=["</s>", "<pad>"], initial_alphabet=alphabet, show_progress=False
    )
    found.train_from_iterator(texts, trainer)
    return found


def words():
    """One that knows three words, and separates them by blanks."""
    found = library.Tokenizer(library.models.WordLevel({"<unk>": 0, "a": 1, "b": 2, "</s>": 3}, unk_token="<unk>"))
    found.pre_tokenizer = library.pre_tokenizers.WhitespaceSplit()
    return found


@pytest.mark.parametrize("eos", ["</s>", {"content": "</s>", "special": True}], ids=["name", "token"])
def test_texts_there_and_back(tmp_path, eos):
    theirs = byte_level()
    found = load_tokenizer(write(tmp_path, theirs, eos_token=eos))
    assert load_tokenizer(tmp_path / "tokenizer.json") == found
    assert (found.vocab, found.end) == (theirs.get_vocab_size(), 0)
    for text in TEXTS:
        ids = found.encode(text.encode())
        assert ids.tolist() == theirs.encode(text).ids
        assert found.decode([*ids, 0]) == text.encode()


@pytest.mark.parametrize("begins", [False, True])
def test_it_comes_back_out_of_a_folder(tmp_path, begins):
    found = load_tokenizer(write(tmp_path, byte_level()))
    files = found.files(begins=begins)
    again = from_files(files)
    assert isinstance(again, LoadedTokenizer)
    assert again.encode(b"Paris").tolist() == found.encode(b"Paris").tolist()
    assert (again.vocab, again.end) == (found.vocab, found.end)
    theirs = library.Tokenizer.from_str(files["tokenizer.json"].decode())
    assert theirs.encode("Paris").ids == ([0] if begins else []) + found.encode(b"Paris").tolist()


def test_what_is_not_marked_has_to_be_ours(tmp_path):
    files = load_tokenizer(write(tmp_path, byte_level())).files()
    config = json.loads(files["tokenizer_config.json"])
    assert config.pop("byheart_tokenizer") == "loaded"
    with pytest.raises(BadInput, match="not a tokenizer of byheart"):
        from_files({**files, "tokenizer_config.json": json.dumps(config).encode()})
    assert isinstance(from_files(Bytes().files()), Bytes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a c", "the tokenizer has no tokens for this text from letter 2 on: 'a c' comes back as 'a <unk>'"),
        ("a  b", "from letter 2 on: 'a  b' comes back as 'a b'"),
        (" ", "there are none for ' '"),
        (b"\xff", "byte 0 is not UTF-8 text; expected text, or --tokenizer bytes"),
        ("</s>", "the text holds the end token '</s>'"),
    ],
)
def test_texts_that_it_does_not_give_back(tmp_path, text, message):
    found = load_tokenizer(write(tmp_path, words()))
    with pytest.raises(BadInput) as caught:
        found.encode(text if isinstance(text, bytes) else text.encode())
    assert message in str(caught.value)
    assert found.encode(b"a b a").tolist() == [1, 2, 1]


def test_files_that_are_no_tokenizer(tmp_path):
    def refused(message):
        with pytest.raises(BadInput) as caught:
            load_tokenizer(tmp_path)
        assert message in str(caught.value)

    refused("tokenizer.json: No such file or directory; expected bytes, bpe, or a path to a tokenizer.json")
    (tmp_path / "tokenizer.json").write_text("{}")
    refused("tokenizer_config.json: No such file or directory; expected it beside tokenizer.json, with an eos_token")
    write(tmp_path, words(), eos_token=None)
    refused("tokenizer_config.json: says nothing of a token that ends a text; expected eos_token")
    write(tmp_path, words(), eos_token="<end>")
    refused("tokenizer_config.json: eos_token is '<end>'; expected a token of tokenizer.json")
    for content, message in (
        ("{", "not valid JSON"),
        ("{}", "tokenizer.json: cannot be read ("),
        ("[]", "expected a JSON"),
    ):
        write(tmp_path, words())
        (tmp_path / "tokenizer.json").write_text(content)
        refused(message)


def test_ids_that_there_are_not(tmp_path):
    found = load_tokenizer(write(tmp_path, words()))
    for wrong in (-1, 4):
        with pytest.raises(BadInput, match=rf"ids\[1\] is {wrong}; expected 0 to 3 \(vocab = 4\)"):
            found.decode([1, wrong])


def changed(folder, change):
    """The folder's tokenizer.json, after ``change`` has been at it."""
    content = json.loads((folder / "tokenizer.json").read_text())
    change(content)
    (folder / "tokenizer.json").write_text(json.dumps(content))
    return folder


def test_one_that_draws_lots_is_refused(tmp_path):
    """Whoever asks would give other tokens than those that a certificate is about."""
    write(tmp_path, byte_level())
    assert load_tokenizer(changed(tmp_path, lambda whole: whole["model"].update(dropout=0.0))).vocab > 256
    with pytest.raises(BadInput, match=r"tokenizer\.json: dropout is 0.5; expected null: the same text"):
        load_tokenizer(changed(tmp_path, lambda whole: whole["model"].update(dropout=0.5)))


def test_ids_that_32_bits_do_not_hold(tmp_path):
    write(tmp_path, byte_level())
    with pytest.raises(BadInput, match=r"has the id 4,294,967,295; expected at most 2,147,483,646"):
        load_tokenizer(changed(tmp_path, lambda whole: whole["model"]["vocab"].update(zz=2**32 - 1)))


def test_a_pattern_that_gives_up(tmp_path, capfd):
    """Its library panics, in Rust: no Exception."""
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    found = load_tokenizer(changed(write(tmp_path, byte_level()), lambda whole: whole.update(pre_tokenizer=split)))
    with pytest.raises(BadInput, match=r"tokenizer\.json: has no tokens for this text \(.*limit"):
        found.encode(b"a" * 40 + b"b")


def test_a_pattern_that_takes_its_time(tmp_path, monkeypatch):
    """Two million steps at every letter are below the library's limit: minutes for a page."""
    monkeypatch.setattr(patience, "SECONDS", 0.3)
    split = {"type": "Split", "pattern": {"Regex": "(?:a|a){21}[^a]"}, "behavior": "Isolated", "invert": False}
    folder = with_parts(write(tmp_path, byte_level()), pre_tokenizer=split)
    with pytest.raises(BadInput, match="the tokenizer took 0 s for 60 letters and was not ready"):
        load_tokenizer(folder).encode(b"a" * 60)
    with pytest.raises(BadInput, match="the tokenizer took 0 s for 60 letters and was not ready"):
        tokenizer_in(folder).encode("a" * 60)


def with_parts(folder, **parts):
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | parts))
    return folder


def test_one_that_would_exhaust_the_memory(tmp_path):
    """The library aborts the process at 64 GB for a letter; this must be refused before any text is encoded."""
    doubles = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    folder = with_parts(write(tmp_path, byte_level()), normalizer={"type": "Sequence", "normalizers": [doubles] * 36})
    message = r"normalizer makes a text up to 6.872e\+10 times as long; expected at most 128 times"
    with pytest.raises(BadInput, match=message):
        load_tokenizer(folder)
    files = {name: (folder / name).read_bytes() for name in ("tokenizer.json", "tokenizer_config.json")}
    files["tokenizer_config.json"] = json.dumps({"eos_token": "</s>", "byheart_tokenizer": "loaded"}).encode()
    with pytest.raises(BadInput, match=message):
        from_files(files).encode(b"a")
    with pytest.raises(BadInput, match=message):
        tokenizer_in(folder)


def test_what_would_be_added_to_a_text_is_left_out(tmp_path):
    """Copies of the text, and padding: by hand, the tokens of a text are those that spell it."""
    whole = {"Sequence": {"id": "A", "type_id": 0}}
    copies = {"type": "TemplateProcessing", "single": [whole] * 2, "pair": [whole] * 2, "special_tokens": {}}
    padding = {"strategy": {"Fixed": 2**31}, "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "</s>"}
    folder = with_parts(write(tmp_path, words()), post_processor=copies, padding=padding)
    assert load_tokenizer(folder).encode(b"a b").tolist() == [1, 2]
