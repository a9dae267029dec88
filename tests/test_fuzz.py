"""The fuzzer finds what is planted; and a few thousand cases, each time the same ones, find nothing."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from byheart import certify, compile
from byheart.networks import folders

pytest.importorskip("transformers")
pytest.importorskip("matplotlib")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are watched through /proc")


@pytest.fixture(scope="module")
def fuzz() -> Any:
    sys.path.insert(0, str(Path(__file__).parents[1]))  # as for python -m tests.fuzz
    try:
        from tests.fuzz import __main__ as module
    finally:
        sys.path.pop(0)
    return module


@pytest.fixture(scope="module")
def known(fuzz: Any) -> Any:
    """One network and its task: the others take a while to build. What children need of it is imported by now."""
    from tests.fuzz.seeds import FIXTURES, _network

    assert certify(FIXTURES / "causal", FIXTURES / "causal.jsonl").certified
    return [_network("causal", FIXTURES / "causal", [FIXTURES / "causal.jsonl"])]


@pytest.fixture(scope="module")
def reciting(fuzz: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A network that recites a few letters."""
    from tests.fuzz.seeds import FIXTURES, _network

    folder = tmp_path_factory.mktemp("reciting") / "net"
    compile(FIXTURES / "c.txt").save(folder)
    assert certify(folder, FIXTURES / "c.txt").certified
    return [_network("reciting", folder, [FIXTURES / "c.txt"])]


def found(fuzz: Any, known: Any, mode: str = "files", count: int = 20) -> set[str]:
    return {outcome.found for outcome in fuzz.outcomes(known, 0, range(count), mode)} - {""}


def test_nothing_planted(fuzz: Any, known: Any) -> None:
    assert found(fuzz, known) == set()
    assert found(fuzz, known, mode="flips") == set()


def test_nothing_is_certified_that_is_not_what_runs(fuzz: Any, reciting: Any) -> None:
    """Folders in other words are certified, often enough, and transformers and verify.py say the same of them."""
    outcomes = list(fuzz.outcomes(reciting, 0, range(40), "used"))
    assert [outcome for outcome in outcomes if outcome.found] == []
    assert sum(outcome.changed for outcome in outcomes) >= 10


def test_what_does_not_run_is_found(fuzz: Any, reciting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: certificates for folders in any form."""
    monkeypatch.setattr("byheart.certificates.certifying.check_closed", lambda *_: None)
    lies = found(fuzz, reciting, mode="used", count=70)
    assert any("and verify.py says" in lie for lie in lies)
    assert any("and transformers says" in lie for lie in lies)


def test_the_same_numbers_give_the_same_cases(fuzz: Any, known: Any) -> None:
    one, same, other = (fuzz.case(known, seed, 5) for seed in (3, 3, 4))
    assert one == same
    assert (one.files, one.command) != (other.files, other.command)


def test_a_lie_is_found(fuzz: Any, known: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("byheart.certificates.verdict.Verdict.certified", True)
    assert any("certified, and" in finding for finding in found(fuzz, known, mode="flips"))


def test_a_crash_is_found(fuzz: Any, known: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "name_in", lambda _: 1 // 0)
    assert any("exit code 70" in finding and "ZeroDivisionError" in finding for finding in found(fuzz, known))


def test_what_dies_waits_or_grows_is_found(fuzz: Any, known: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "name_in", lambda _: os.kill(os.getpid(), 9))
    assert "the process died: 9" in found(fuzz, known, count=3)
    with monkeypatch.context() as hurried:
        hurried.setattr("tests.fuzz.workers.SECONDS", 1.0)
        hurried.setattr(folders, "name_in", lambda _: os.read(os.pipe()[0], 1))
        assert "the process did not end within 1 seconds" in found(fuzz, known, count=3)
    monkeypatch.setattr(folders, "name_in", lambda _: bytearray(1 << 33))
    assert any(finding.startswith("it grew: ") for finding in found(fuzz, known, count=3))


def test_what_is_removed_is_found(fuzz: Any, known: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "name_in", lambda _: Path("precious.txt").unlink(missing_ok=True))
    assert any("precious.txt was changed, made or removed" in finding for finding in found(fuzz, known))


@pytest.mark.slow
def test_cases_of_every_kind(fuzz: Any) -> None:
    """Damaged files and flipped weights, one after the other: what they damage takes a while to build."""
    for count, mode in ((250, "files"), (125, "flips")):
        outcomes = fuzz.fuzzed(count, 2026, mode=mode, workers=2)
        assert [outcome for outcome in outcomes if outcome.found] == []
        assert len(outcomes) == count
        assert mode == "files" or sum(outcome.changed for outcome in outcomes) > count // 10, (
            "flips that change answers"
        )
