"""``byheart size``: what is printed, as JSON too, and what is refused, in one line each."""

import json
import re
from pathlib import Path

import pytest

from .conftest import Run

TEXT = "It was the best of times, it was the worst of times, it was the age of wisdom"
GPT2 = {"model_type": "gpt2", "vocab_size": 101, "n_positions": 7, "n_embd": 24, "n_layer": 3, "n_head": 4}


@pytest.fixture
def book(work: Path) -> Path:
    path = work / "book.txt"
    path.write_text(TEXT)
    return path


def folder(work: Path, **changes: object) -> Path:
    (work / "model").mkdir()
    (work / "model" / "config.json").write_text(json.dumps(GPT2 | changes))
    return work / "model"


def test_a_text(book: Path, run: Run) -> None:
    said = run("size", book, "--all")
    assert (said.code, said.err) == (0, "")
    for words in ("77 bytes", "bits of the texts after lzma", "Proved", "Fitted", "Measured", "compiled, rectangular"):
        assert words in said.out
    assert "room" not in said.out
    assert f"byheart bounds --examples 77 --length {run('size', book, '--json').json['window']} " in said.out


def test_a_few_lines_end_in_a_sentence(book: Path, run: Run) -> None:
    lines = run("size", book).out.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("book.txt: 77 bytes, 77 questions, ")
    assert re.fullmatch(r"About [\d,]+ parameters compiled, \d+ to \d+ trained\.", lines[-2])
    for parameters, end in (
        (10**6, r"room for [\d,]+ such texts compiled, [\d,]+ to [\d,]+ trained"),
        (9, "too small"),
    ):
        found = run("size", book, "--parameters", parameters).out.splitlines()[-2]
        assert re.search(rf"A model of {parameters:,} (has|is) {end}\.$", found)


def test_as_json(book: Path, run: Run) -> None:
    found = run("size", book, "--parameters", 1000, "--bits", 8, "--json").json
    assert (found["bytes"], found["questions"], found["estimate"]) == (77, 77, False)
    assert found["room"]["verdict"].startswith("It has room")
    assert {need["kind"] for need in found["needs"]} == {"proved", "fitted", "measured"}
    assert all((need["parameters"] is None) == bool(need["reason"]) for need in found["needs"])
    assert {need["bits"] for need in found["needs"] if need["says"] == "needed"} == {8}


def test_a_model_by_its_config_alone(book: Path, work: Path, run: Run) -> None:
    said = run("size", book, "--model", folder(work, torch_dtype="float16"), "--all")
    assert said.code == 0
    assert "model (gpt2, 24,312 parameters), 16 bits each" in said.out
    assert "It has room: the data take " in said.out


def test_bits_that_nobody_said_are_assumed_and_it_is_said(book: Path, work: Path, run: Run) -> None:
    silent = folder(work)
    assert (
        "parameters), 32 bits each (assumed; --bits B says otherwise): "
        in run("size", book, "--all", "--model", silent).out
    )
    assert "parameters), 8 bits each: " in run("size", book, "--all", "--model", silent, "--bits", 8).out
    assert run("size", book, "--parameters", 1000, "--json").json["room"]["assumed"] is True
    (silent / "config.json").write_text(json.dumps(GPT2 | {"dtype": "float7"}))
    refused = run("size", book, "--model", silent)
    assert refused.code == 2
    assert "config.json: dtype is 'float7'; expected float64, float32, " in refused.complaint


def test_a_picture(book: Path, work: Path, run: Run) -> None:
    pytest.importorskip("matplotlib")
    assert "drew" in run("size", book, "--plot", work / "size.png").out
    assert (work / "size.png").stat().st_size > 10_000
    odd = work / "$^{$ [red].txt"
    odd.write_text(TEXT)
    assert "$^{$ [red].txt: 77 bytes" in run("size", odd, "--plot", work / "odd.png").out
    assert "book.txt: expected a picture's name" in run("size", book, "--plot", book).complaint
    assert book.read_text() == TEXT


def test_no_column_mixes_kinds(book: Path, run: Run) -> None:
    """Of a model, every row has its share in the column of its kind, and in no other."""
    out = run("size", book, "--parameters", 1000, "--all").out
    table = out[out.index("how much of it") :].splitlines()
    heading = next(line for line in table if "measured" in line)
    ends = {name: heading.index(name) + len(name) for name in ("proved", "fitted", "measured")}
    for begins, column in (("counting", "proved"), ("compiled", "fitted"), ("trained", "measured")):
        for row in (line for line in table if line.strip().startswith(begins)):
            filled = [name for name, end in ends.items() if row[end - 1] == "%"]
            assert filled == [column], row


def test_bad_input(book: Path, work: Path, run: Run) -> None:
    empty, bare = work / "empty.txt", work / "bare"
    empty.write_bytes(b"")
    bare.mkdir()
    assert "no data given; expected texts, a folder of texts, a task, or --facts FILE" in run("size").complaint
    assert "empty.txt: the file is empty" in run("size", empty).complaint
    assert "empty.txt: the file is empty" in run("size", book, empty).complaint
    assert "bare: holds no texts" in run("size", bare).complaint
    assert "nowhere.txt: No such file" in run("size", work / "nowhere.txt").complaint
    assert "bare/config.json: no such file" in run("size", book, "--model", bare).complaint
    assert "config.json: no such file" in run("size", book, "--model", book).complaint
    assert "parameters is 0; expected a whole number from 1 to 10¹⁸" in run("size", book, "--parameters", 0).complaint
    assert len(run("size", book, "--parameters", "9" * 4000).complaint) < 120
    assert "are both given" in run("size", book, "--parameters", 1, "--model", bare).complaint
    assert "sample is 0; expected 1 to" in run("size", book, "--sample", 0).complaint
    assert "bits is [0]; expected whole numbers" in run("size", book, "--bits", 0).complaint
    assert (
        "model_type is 'bert'; expected a causal"
        in run("size", book, "--model", folder(work, model_type="bert")).complaint
    )
    assert run("size", book, "--parameters", 0, "--json").json["error"].startswith("parameters is 0")


def test_tasks_of_other_kinds_are_refused(work: Path, run: Run) -> None:
    run("task", "random", "--seq-to-seq", "--examples", 5, "--length", 2, "-o", work / "s.npz")
    assert "the task is seq-to-seq; expected next-token" in run("size", work / "s.npz").complaint
