import errno
import os

import numpy as np
import pytest

import byheart
from byheart.errors import BadInput
from byheart.tasks.texts import encode_texts, read_files
from byheart.tasks.tokenizers import BytePairs, Bytes


def write(folder, *names):
    paths = [folder / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(path.name.encode())
    return paths


def names(paths):
    return list(read_files(paths))


def test_any_bytes_are_a_text(tmp_path):
    (tmp_path / "x").write_bytes(bytes(range(256)))
    read = read_files([tmp_path / "x"])
    assert read == {"x": bytes(range(256))}
    (text,) = encode_texts(read, Bytes())
    assert text.name == "x"
    assert text.tokens.dtype == np.uint8
    assert text.tokens.tolist() == list(range(256))


def test_files_keep_their_order(tmp_path):
    paths = write(tmp_path, "b", "c", "a")
    assert list(read_files(paths).items()) == [("b", b"b"), ("c", b"c"), ("a", b"a")]
    assert [text.name for text in encode_texts(read_files(paths), Bytes())] == ["b", "c", "a"]


def test_names_are_as_long_as_needed(tmp_path, monkeypatch):
    assert names(write(tmp_path, "a/x.txt", "b/y.txt")) == ["x.txt", "y.txt"]
    assert names(write(tmp_path, "a/x.txt", "b/x.txt", "b/y.txt")) == ["a/x.txt", "b/x.txt", "y.txt"]
    paths = write(tmp_path, "b/x.txt", "c/a/x.txt", "d/a/x.txt")
    assert names(paths) == ["b/x.txt", "c/a/x.txt", "d/a/x.txt"]
    monkeypatch.chdir(tmp_path / "c")
    relative = [os.path.relpath(path) for path in paths]
    assert relative[1] == "a/x.txt"
    assert names(list(map(type(tmp_path), relative))) == ["b/x.txt", "c/a/x.txt", "d/a/x.txt"]


def assert_refused(message, read, *given):
    with pytest.raises(BadInput) as caught:
        read(*given)
    assert str(caught.value) == message


def test_a_folder_is_all_files_below_it(tmp_path):
    """In the order of their names, but for empty and hidden ones."""
    for name in ("b", "a/c", "a/.hidden", ".git/x", "a/empty"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"" if name == "a/empty" else name.encode())
    assert read_files([tmp_path]) == {"b": b"b", "c": b"a/c"}
    assert read_files([tmp_path / "a" / ".hidden"]) == {".hidden": b"a/.hidden"}, "one that is named is read"


def test_a_folder_of_which_something_cannot_be_read_is_refused(tmp_path, monkeypatch):
    """Or a network would be certified to know it all, without what is in there."""
    write(tmp_path, "a", "closed/b")
    listed = os.scandir

    def refusing(path):
        if os.path.basename(path) == "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert_refused(f"{tmp_path}/closed: Permission denied", read_files, [tmp_path])


def test_refused_files(tmp_path):
    good, empty = write(tmp_path, "good", "empty")
    empty.write_bytes(b"")
    assert_refused("no files given; expected at least one", read_files, [])
    assert_refused(f"{empty}: the file is empty; expected at least one byte", read_files, [good, empty])
    assert_refused(f"{tmp_path}/none: No such file or directory", read_files, [good, tmp_path / "none"])
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "empty").write_bytes(b"")
    nothing = f"{tmp_path}/folder: holds no texts; expected at least one file that is not empty"
    assert_refused(nothing, read_files, [good, tmp_path / "folder"])
    twice = [good, tmp_path / "x" / ".." / "good"]
    assert_refused(f"{good}: given 2 times; expected each file once", read_files, twice)


def test_refused_texts():
    pytest.importorskip("tokenizers")
    pairs = BytePairs(((b"a", b"b"),))
    assert_refused("b: the text is empty; expected at least one byte", encode_texts, {"a": b"x", "b": b""}, Bytes())
    message = "bad: byte 1 is not UTF-8 text; expected text, or --tokenizer bytes"
    assert_refused(message, encode_texts, {"good": b"a", "bad": b"a\xff"}, pairs)


def test_a_network_is_no_text(tmp_path):
    byheart.compile("to be or not to be").save(tmp_path / "net")
    with pytest.raises(BadInput, match="net: holds a network; expected texts"):
        read_files([tmp_path / "net"])
    assert list(read_files([tmp_path / "net" / "config.json"])) == ["config.json"]
