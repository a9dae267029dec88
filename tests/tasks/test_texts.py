import os

import numpy as np
import pytest

from byheart.errors import BadInput
from byheart.tasks.texts import read_files, read_texts
from byheart.tasks.tokenizers import BytePairs, Bytes


def write(folder, *names):
    paths = [folder / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(path.name.encode())
    return paths


def names(paths):
    return [text.name for text in read_texts(paths, Bytes())]


def test_any_bytes_are_a_text(tmp_path):
    (tmp_path / "x").write_bytes(bytes(range(256)))
    (text,) = read_texts([tmp_path / "x"], Bytes())
    assert text.name == "x"
    assert text.tokens.dtype == np.int32
    assert text.tokens.tolist() == list(range(256))
    assert read_files([tmp_path / "x"]) == (bytes(range(256)),)


def test_names_are_as_long_as_needed(tmp_path, monkeypatch):
    assert names(write(tmp_path, "a/x.txt", "b/y.txt")) == ["x.txt", "y.txt"]
    assert names(write(tmp_path, "a/x.txt", "b/x.txt", "b/y.txt")) == ["a/x.txt", "b/x.txt", "y.txt"]
    paths = write(tmp_path, "b/x.txt", "c/a/x.txt", "d/a/x.txt")
    assert names(paths) == ["b/x.txt", "c/a/x.txt", "d/a/x.txt"]
    monkeypatch.chdir(tmp_path / "c")
    relative = [os.path.relpath(path) for path in paths]
    assert relative[1] == "a/x.txt"
    assert names(list(map(type(tmp_path), relative))) == ["b/x.txt", "c/a/x.txt", "d/a/x.txt"]


def assert_refused(paths, message, tokenizer=None):
    with pytest.raises(BadInput) as caught:
        read_texts(paths, tokenizer or Bytes())
    assert str(caught.value) == message


def test_refusals(tmp_path):
    good, empty, bad = write(tmp_path, "good", "empty", "bad")
    empty.write_bytes(b"")
    assert_refused([], "no files given; expected at least one")
    assert_refused([good, empty], f"{empty}: the file is empty; expected at least one byte")
    assert_refused([good, tmp_path / "none"], f"{tmp_path}/none: No such file or directory")
    assert_refused([tmp_path], f"{tmp_path}: Is a directory")
    assert_refused([good, tmp_path / "x" / ".." / "good"], f"{good}: given 2 times; expected each file once")
    bad.write_bytes(b"a\xff")
    message = f"{bad}: byte 1 is not UTF-8 text; expected text, or --tokenizer bytes"
    assert_refused([bad], message, BytePairs(((b"a", b"b"),)))
