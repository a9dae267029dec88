"""Certificates: what they say, that they come back from their file, and that they speak of one network and one task."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byheart import networks
from byheart.certificates import Certificate, Counterexample, certify, read, recheck, write
from byheart.certificates import certificate as module
from byheart.constructions import build
from byheart.errors import BadInput
from byheart.networks.exact import Embedding, ExactNetwork, integers
from byheart.tasks import NextToken, SeqToSeq

TASK = NextToken(tokens=[[0, 1], [1, 1], [2, 0]], labels=[1, 0, 1])
NETWORK = build("interpolate", TASK).network


def broken() -> ExactNetwork:
    """One bit of the code of token 2, which occurs in example 2 alone."""
    embedding = NETWORK.layers[0]
    assert isinstance(embedding, Embedding)
    table = embedding.W_E.copy()
    table[2, 0] ^= 1
    return replace(NETWORK, layers=(replace(embedding, W_E=integers(table)), *NETWORK.layers[1:]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    networks.save(NETWORK, tmp_path / "net")
    return tmp_path / "net"


def test_what_it_says() -> None:
    found = certify(NETWORK, TASK)
    assert found.certified
    assert (found.checked, found.examples, found.errors, found.smallest_margin) == (3, 3, 0, 0.5)
    assert found.method == "exact, exhaustive (limbs)"
    assert "every sequence" in found.statement
    assert found.weights == NETWORK.fingerprint
    assert found.task == TASK.fingerprint
    assert {"python", "byheart", "numpy", "numba", "python-flint"} <= set(found.versions)
    assert certify(NETWORK, TASK, evaluator="flint").method == "exact, exhaustive (flint)"


def test_seq_to_seq_counts_answers_and_examples() -> None:
    task = SeqToSeq(tokens=[[0, 1, 2], [3, 1, 0]], labels=[[0, 1, 2], [0, 0, 1]])
    found = certify(build("kajitsuka-sato-2025", task).network, task)
    assert (found.checked, found.examples) == (6, 2)
    assert "every position" in found.statement


def test_a_folder_is_loaded(folder: Path) -> None:
    assert certify(folder, TASK).weights == certify(str(folder), TASK).weights == NETWORK.fingerprint


@pytest.mark.parametrize("labels", [[1, 0, 1], [1, 0, 0]], ids=["certified", "not certified"])
def test_round_trip(tmp_path: Path, labels: list[int]) -> None:
    written = certify(NETWORK, TASK.with_labels(labels))
    write(written, tmp_path / "c.json")
    assert read(tmp_path / "c.json") == written
    assert isinstance(json.loads((tmp_path / "c.json").read_text()), dict)


def test_a_changed_bit_is_found_and_the_example_named() -> None:
    found = certify(broken(), TASK)
    assert not found.certified
    assert found.errors == 1
    assert found.counterexample is not None
    assert (found.counterexample.example, found.counterexample.expected) == (2, 1)
    assert found.counterexample.got != "1"


def test_recheck(tmp_path: Path, folder: Path) -> None:
    write(certify(NETWORK, TASK), tmp_path / "c.json")
    before = (tmp_path / "c.json").read_bytes()
    for network in (NETWORK, folder, str(folder)):
        assert recheck(tmp_path / "c.json", network, TASK).certified
    assert (tmp_path / "c.json").read_bytes() == before


def test_recheck_believes_nothing(tmp_path: Path) -> None:
    """A certificate that was never true, with the right fingerprints: the check is done again."""
    forged = replace(certify(NETWORK, TASK.with_labels([0, 0, 1])), certified=True, errors=0, counterexample=None)
    write(forged, tmp_path / "c.json")
    assert not recheck(tmp_path / "c.json", NETWORK, TASK.with_labels([0, 0, 1])).certified


def test_recheck_refuses_another_task(tmp_path: Path) -> None:
    write(certify(NETWORK, TASK), tmp_path / "c.json")
    other = TASK.with_labels([1, 1, 1])
    message = rf"c\.json: is about task {TASK.fingerprint[:12]}…; this task is {other.fingerprint[:12]}…"
    with pytest.raises(BadInput, match=message):
        recheck(tmp_path / "c.json", NETWORK, other)


def test_recheck_refuses_other_weights(tmp_path: Path) -> None:
    write(certify(NETWORK, TASK), tmp_path / "c.json")
    ours, theirs = NETWORK.fingerprint[:12], broken().fingerprint[:12]
    with pytest.raises(BadInput, match=rf"c\.json: is about weights {ours}…; this network has {theirs}…"):
        recheck(tmp_path / "c.json", broken(), TASK)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "7", '"x"', "{}", '{"format": "byheart-certificate-2"}',
        '{"format": "byheart-certificate-1"}', '{"format": "byheart-certificate-1", "counterexample": 3}',
        '{"format": "byheart-certificate-1", "counterexample": {"example": 1}}', "\udcff",
    ],
)  # fmt: skip
def test_what_is_no_certificate(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadInput, match=r"c\.json: not a certificate"):
        read(tmp_path / "c.json")


@pytest.mark.parametrize("field", ["task", "weights"])
def test_fingerprints_of_the_wrong_type(tmp_path: Path, field: str) -> None:
    write(replace(certify(NETWORK, TASK), **{field: 5}), tmp_path / "c.json")
    with pytest.raises(BadInput, match=r"c\.json"):
        recheck(tmp_path / "c.json", NETWORK, TASK)


def test_no_certificate_yet(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"c\.json: no such file; certify the network first"):
        recheck(tmp_path / "c.json", NETWORK, TASK)
    with pytest.raises(BadInput, match="not a certificate"):
        read(tmp_path)


def test_writing_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.json"
    write(certify(NETWORK, TASK), path)
    before = path.read_bytes()

    def half(_: object, file, **__: object) -> None:
        file.write('{"certified": tr')
        raise KeyboardInterrupt

    monkeypatch.setattr(module.json, "dump", half)
    with pytest.raises(KeyboardInterrupt):
        write(certify(NETWORK, TASK.with_labels([0, 0, 0])), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["c.json"]


def test_json_holds_everything() -> None:
    found = certify(NETWORK, TASK.with_labels([0, 0, 1]))
    fields = json.loads(json.dumps(found.as_json()))
    assert set(fields) == set(Certificate.__dataclass_fields__)
    assert fields["counterexample"] == {"example": 0, "position": None, "expected": 0, "got": "1", "where": ""}
    assert Counterexample(**fields["counterexample"]) == found.counterexample
    assert np.isfinite(fields["smallest_margin"])


def test_nothing_to_write_to(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "missing" / "c.json", tmp_path / "folder"):
        with pytest.raises(BadInput, match=path.name):
            write(certify(NETWORK, TASK), path)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_nothing_but_a_certificate_is_replaced(tmp_path: Path) -> None:
    task = NextToken(tokens=[[0], [1]], labels=[1, 0])
    certificate = certify(build("interpolate", task), task)
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "folder").mkdir()
    for name, message in (
        ("thesis.tex", "not a certificate"),
        ("folder", "is no file"),
        ("no/c.json", "does not exist"),
    ):
        with pytest.raises(BadInput, match=message):
            write(certificate, tmp_path / name)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    write(certificate, tmp_path / "c.json")
    write(certificate, tmp_path / "c.json")
    (tmp_path / "any").touch()
    assert (tmp_path / "c.json").stat().st_mode == (tmp_path / "any").stat().st_mode


def test_a_certificate_that_claims_more_is_refused(tmp_path):
    true = certify(NETWORK, TASK)
    write(replace(true, checked=10**6), tmp_path / "c.json")
    with pytest.raises(BadInput, match=f"claims 1,000,000 answers; there are {true.checked}"):
        recheck(tmp_path / "c.json", NETWORK, TASK)
    for more in ({"examples": 10**9}, {"stands_for": 10**9}, {"at_least": 10**6}, {"radius": 1.0}):
        write(replace(true, **more), tmp_path / "c.json")
        with pytest.raises(BadInput, match=": claims "):
            recheck(tmp_path / "c.json", NETWORK, TASK)
