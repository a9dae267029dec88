"""What is no plain file of bounded size, or not strict JSON, is refused before anything is made of it."""

import json
import os
from pathlib import Path

import pytest

from byheart.errors import BadInput
from byheart.files import memory, untrusted
from byheart.files.untrusted import MAX_DEPTH, parse_object, read_bytes, read_json, read_lines, read_text


def test_a_plain_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x00\xff" * 1000)
    assert read_bytes(tmp_path / "a") == b"\x00\xff" * 1000
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert read_bytes(tmp_path / "link", max_bytes=2000) == b"\x00\xff" * 1000


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/tty"])
def test_devices(device: str) -> None:
    with pytest.raises((BadInput, OSError)):  # a process without a terminal has no /dev/tty
        read_bytes(Path(device))


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="pipe: is no file; expected one that can be read as a whole"):
        read_bytes(tmp_path / "pipe")


def test_what_is_not_there_and_folders(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_bytes(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        read_bytes(tmp_path)


def test_sizes_are_known_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terabyte of holes, and a machine of a gigabyte."""
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 1 << 40)
    with pytest.raises(BadInput, match=r"sparse: has 1,099,511,627,776 bytes; expected at most 5"):
        read_bytes(path, max_bytes=5)
    monkeypatch.setattr(memory, "available", lambda: 1 << 30)
    expected = r"sparse would take 3,072\.0 GiB of memory; expected at most 0\.8 GiB, 80 % of what is available"
    with pytest.raises(BadInput, match=expected):
        read_bytes(path, memory_per_byte=3)


def test_texts(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("né")
    assert read_text(tmp_path / "a") == "né"
    (tmp_path / "a").write_bytes(b"n\xff")
    with pytest.raises(BadInput, match=r"a: not UTF-8 text \(invalid start byte at byte 1\)"):
        read_text(tmp_path / "a")


REFUSED = {
    "": "not valid JSON",
    "{": "not valid JSON",
    "[1]": r"\[1\] found; expected a JSON object",
    '{"a": NaN}': "NaN found; expected finite numbers",
    '{"a": -Infinity}': "-Infinity found; expected finite numbers",
    '{"a": 1e999}': "1e999 found; expected finite numbers",
    '{"a": 9223372036854775808}': "9223372036854775808 found; expected numbers that 64 bits hold",
    '{"a": -9223372036854775809}': "-9223372036854775809 found",
    '{"a": ' + "9" * 5000 + "}": r"9{16}… \(5,000 digits\) found; expected numbers that 64 bits hold",
    '{"a": 1, "b": {"c": 1, "c": 2}}': "the key 'c' stands there twice",
    '{"a": "\\ud800"}': "half a surrogate pair found",
    '{"\\udfff": 1}': "half a surrogate pair found",
    '{"a": ' + "[" * 3000 + "]" * 3000 + "}": "stand 3,001 deep in each other; expected at most 32",
    '{"a": ' * 100_000: "stand 100,000 deep in each other",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20])
def test_json_that_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=REFUSED[text]) as caught:
        parse_object(text.encode())
    assert len(str(caught.value)) < 200
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(BadInput, match=rf"^{tmp_path}/a\.json: cannot be read \(.*{REFUSED[text]}"):
        read_json(tmp_path / "a.json")


def test_json_that_is_read() -> None:
    deep = json.loads("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))
    value = {"deep": deep, "pair": "😀", "small": -(2**63), "large": 2**63 - 1, "real": 5e-324, "brackets": "[" * 99}
    assert parse_object(json.dumps(value).encode()) == value
    assert parse_object(json.dumps(value, ensure_ascii=False).encode()) == value
    strings = {"a": '\\"[', "b": '"' + "{" * 50, "c": "\\"}
    assert parse_object(json.dumps(strings).encode()) == strings, "brackets in strings do not count"


def test_an_open_string_of_quotes_takes_no_time() -> None:
    """As many beginnings of strings as there are characters: a search that goes back would take hours."""
    with pytest.raises(BadInput, match="not valid JSON"):
        parse_object(b'{"a": "' + b'\\"' * 10**6 + b"[" * 40)


def test_large_files_are_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.touch()
    os.truncate(path, untrusted.MAX_JSON_BYTES + 1)
    with pytest.raises(BadInput, match=r"config\.json: has 67,108,865 bytes; expected at most 67,108,864"):
        read_json(path)


def test_lines_one_at_a_time(tmp_path, monkeypatch):
    """As Python's own, with their numbers; also where they are longer than what is read at once."""
    path = tmp_path / "a"
    for content in (b"", b"\n", b"a\n\nb", b"abcdefg\nhi\n", b"abcdefgh", b"abcd\nabcdefg\r\n\n"):
        path.write_bytes(content)
        for long in (4, 1 << 20):
            monkeypatch.setattr(untrusted, "LONG_LINE", long)
            assert [*read_lines(path, memory_per_byte=1, kept_per_byte=1)] == [
                *enumerate(content.splitlines(keepends=True), 1)
            ]


def test_a_line_longer_than_memory_has_room_for(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"short\n" + b"x" * 1000)
    monkeypatch.setattr(untrusted, "LONG_LINE", 100)
    monkeypatch.setattr(memory, "available", lambda: 2000)
    found = read_lines(tmp_path / "a", memory_per_byte=8, kept_per_byte=1)
    assert next(found) == (1, b"short\n")
    with pytest.raises(BadInput, match=r"a line 2, of at least 0\.0 MiB, would take"):
        next(found)
    assert next(read_lines(tmp_path / "a", memory_per_byte=1, kept_per_byte=2))[0] == 1, (
        "on the disk there is room for what is left of it"
    )
    monkeypatch.setattr(memory, "_disk_space", lambda: 0)
    with pytest.raises(BadInput, match=r"a would take"):
        next(read_lines(tmp_path / "a", memory_per_byte=1, kept_per_byte=2))
