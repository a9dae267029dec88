"""The map in CONTRIBUTING.md: the ways of the data are the calls that happen, and the files that it names exist."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import byheart
from byheart.cli.main import main
from byheart.tasks import random_next_token, save
from byheart.tasks.tokenizers import Bytes

ROOT = Path(__file__).parents[1]
SOURCE = Path(byheart.__file__).parent
MAP = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FARTHEST = 5
"""Largest number of calls from a command to its mathematics."""

Call = tuple[str, str]
"""File and function."""


def ways() -> dict[str, list[Call]]:
    """Return the ways of the data, by command."""
    blocks = re.findall(r"^    byheart (.*)\n((?:      → .*\n)+)", MAP, re.MULTILINE)
    return {command: re.findall(r"→ (\S+) +(\w+)", calls) for command, calls in blocks}


def is_walked(command: Sequence[str], way: list[Call]) -> bool:
    """Run a command; return True if the calls of ``way``, and no others, once led from the first to the last."""
    seen: set[tuple[Call, ...]] = set()
    names = {str(SOURCE / file): file for file, _ in way}

    def look(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and (names.get(code.co_filename), code.co_name) == way[-1]:
            seen.add(calls_to(frame))

    with pytest.raises(SystemExit) as end, profiling(look):
        main(list(command))
    assert not end.value.code, command
    assert seen, f"{way[-1]} was never called"
    return tuple(way) in {calls[-len(way) :] for calls in seen}


@contextmanager
def profiling(look: Callable[[FrameType, str, object], None]) -> Iterator[None]:
    """Call ``look`` at every call and return of a function."""
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


def calls_to(frame: FrameType | None) -> tuple[Call, ...]:
    """Return the functions of ours on the stack, the outermost first."""
    calls: list[Call] = []
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(SOURCE):
            calls.append((path.relative_to(SOURCE).as_posix(), frame.f_code.co_name))
        frame = frame.f_back
    return tuple(reversed(calls))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the five commands need."""
    transformers = pytest.importorskip("transformers")
    from byheart.networks.planted.base import quiet

    place = tmp_path_factory.mktemp("map")
    save(random_next_token(examples=20, length=5, vocab=6, labels=4, rng=np.random.default_rng(0)), place / "t.npz")
    (place / "book.txt").write_text("The cat sat on the mat. The dog sat on the cat. " * 3, encoding="utf-8")
    (place / "facts.jsonl").write_text('{"prompt": "The key is", "completion": " 3."}\n', encoding="utf-8")
    sizes = {"n_positions": 96, "n_embd": 32, "n_layer": 2, "n_head": 2, "bos_token_id": 256, "eos_token_id": 256}
    with quiet():
        config = transformers.GPT2Config(vocab_size=Bytes.vocab, **sizes)
        transformers.GPT2LMHeadModel(config).save_pretrained(place / "model")
    for name, data in Bytes().files().items():
        (place / "model" / name).write_bytes(data)
    return place


def test_five_ways_are_drawn() -> None:
    assert [command.split()[0] for command in ways()] == ["build", "compile", "certify", "plant", "lab"]
    for command, way in ways().items():
        assert way[0][1] == "run", command
        assert 2 <= len(way) - 1 <= FARTHEST, command


@pytest.mark.parametrize("command", ways())
def test_the_way_is_what_happens(
    command: str, place: Path, monkeypatch: pytest.MonkeyPatch, threads_as_before: None
) -> None:
    monkeypatch.chdir(place)
    if command.startswith("certify") and not (place / "net").exists():
        with pytest.raises(SystemExit):
            main(["build", "folding", "--task", "t.npz", "-o", "net"])
    assert is_walked(command.split(), ways()[command])


def test_a_way_with_a_call_left_out_is_not_walked(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    way = next(way for command, way in ways().items() if command.startswith("build"))
    assert not is_walked(["build", "folding", "--task", "t.npz", "-o", "shorter"], [*way[:1], *way[2:]])


def test_the_files_that_it_names_exist() -> None:
    named = re.findall(r"`(?:byheart/)?([\w./]+(?:/|\.py|\.csv))`", MAP)
    assert [name for name in named if not any((root / name).exists() for root in (SOURCE, ROOT))] == []
    assert len(named) > 30
    for way in ways().values():
        for file, name in way:
            assert re.search(rf"def {name}\b", (SOURCE / file).read_text(encoding="utf-8")), (file, name)
