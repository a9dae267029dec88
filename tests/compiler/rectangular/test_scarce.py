"""Where memory is scarce, what is asked lies in files: the same networks and certificates, bit for bit."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.files.test_room import in_file, mapped

from byheart.certificates import certify
from byheart.compiler import compile
from byheart.compiler.rectangular.shelf import Shelf
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.executors import Workplace
from byheart.files import memory
from byheart.tasks import Facts, NextToken, save
from byheart.tasks.contexts import Contexts
from byheart.tasks.questions import as_contexts
from byheart.tasks.tokenizers import Bytes

ARRAYS = ("tokens", "places", "labels")


@pytest.fixture(params=["texts", "task", "facts"])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """Read anew: texts that begin alike and repeat each other; a task with equal examples; facts with equal ends."""
    rng = np.random.default_rng(1)
    if request.param == "texts":
        part = bytes(rng.integers(97, 101, 60).tolist())
        for name, end in (("a", b"x" + part), ("b", b"y" + part + b"z"), ("c", b"!")):
            (tmp_path / f"{name}.txt").write_bytes(part + end + bytes(rng.integers(97, 123, 150).tolist()))
        return lambda: [tmp_path / f"{name}.txt" for name in "abc"]
    if request.param == "task":
        tokens = rng.integers(0, 300, (400, 3))
        tokens[200:300] = tokens[:100]
        save(NextToken(tokens, tokens.sum(axis=1) % 300), tmp_path / "t.npz")
        return lambda: tmp_path / "t.npz"
    facts = [{"prompt": f"{a} plus {b} is", "completion": str(a + b)} for a in range(9) for b in range(9)]
    (tmp_path / "facts.jsonl").write_text("".join(f"{json.dumps(fact)}\n" for fact in facts))
    return lambda: Facts.read(tmp_path / "facts.jsonl")


def told(built: Built, **options: Any) -> dict[str, Any]:
    """What a certificate says, and nothing that depends on the day."""
    found = asdict(certify(built.network, built.questions, **options))
    return {name: value for name, value in found.items() if name != "seconds"}


def compiled(given: Any, **options: Any) -> tuple[str, dict[str, Any], Contexts]:
    """The network's fingerprint, its certificate, and what was asked."""
    built = compile(given, **options)
    assert isinstance(built.questions, Contexts)
    return built.network.fingerprint, told(built), built.questions


@pytest.mark.parametrize("shards", [1, 2])
def test_files_give_what_memory_gives(
    given: Callable[[], Any], shards: int, scarce: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = compiled(given(), shards=shards, keep=Shelf(tmp_path / "parts"))
    with monkeypatch.context() as plenty:
        plenty.setattr(memory, "MIN_MAPPED_BYTES", 1 << 24)
        after = compiled(given(), shards=shards)
    assert before[:2] == after[:2]
    assert before[1]["certified"]
    assert before[2].fingerprint == after[2].fingerprint
    assert [in_file(getattr(before[2], name)) for name in ARRAYS] == [True] * 3, "or nothing was tested"
    assert not any(in_file(getattr(after[2], name)) for name in ARRAYS)
    assert not [*scarce.iterdir()]


@pytest.mark.slow
@pytest.mark.parametrize("given", ["texts"], indirect=True)
def test_processes_are_sent_what_lies_in_files(given: Callable[[], Any], scarce: Path) -> None:
    both = Workplace("processes", 2)
    built = compile(given(), shards=2, executor=both)
    assert told(built, executor=both) == told(built)
    assert told(built)["certified"]
    assert both.peaks


def test_lies_are_found_in_files_too(given: Callable[[], Any], scarce: Path) -> None:
    built = compile(given())
    assert isinstance(built.questions, Contexts)
    lie = built.questions.with_answers((built.questions.labels + 1) % built.questions.label_count)
    found = certify(built.network, lie, count=True)
    assert (found.right, found.errors) == (0, len(lie))
    assert found.count is not None
    assert found.count.named_wrong == f"0-{len(lie) - 1}"


def refused(tmp_path: Path, name: str) -> Callable[[], Any]:
    """Something that goes wrong on the way."""
    (tmp_path / "a.txt").write_bytes(b"abcab")
    (tmp_path / "b.txt").write_bytes(b"abcabc")
    np.savez(tmp_path / "t.npz", tokens=[[1, 2], [1, 2]], labels=[0, 1])
    ways = {
        "is the beginning of": lambda: as_contexts([tmp_path / "a.txt", tmp_path / "b.txt"], tokenizer=Bytes()),
        "agree on the last 2 tokens": lambda: as_contexts([tmp_path / "a.txt"], tokenizer=Bytes(), window=2),
        "are equal, but ask for": lambda: as_contexts(tmp_path / "t.npz"),
    }
    return ways[name]


@pytest.mark.parametrize("problem", ["is the beginning of", "agree on the last 2 tokens", "are equal, but ask for"])
def test_nothing_is_left_of_what_went_wrong(problem: str, tmp_path: Path, scarce: Path) -> None:
    with pytest.raises(BadInput, match=problem) as caught:
        refused(tmp_path, problem)()
    caught.value.__traceback__ = caught.value.__context__ = None
    del caught
    assert not [*scarce.iterdir()]
    assert not Path("/proc/self/maps").exists() or not mapped(scarce)
