"""Questions in pieces: the verdict is that of one process, whatever the pieces."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byheart.certificates import Verdict, judge
from byheart.certificates.judges import exact, transformer
from byheart.compiler import compile
from byheart.constructions import build
from byheart.errors import BadInput
from byheart.executors import Local, Workplace
from byheart.networks.softmax import SoftmaxNetwork
from byheart.networks.transformer.answers import answers
from byheart.tasks import QueryTargets, random_next_token, random_seq_to_seq


class Three(Local):
    workers = 3


class Pieces(Workplace):
    """Tasks for three workers, all of them done here."""

    def open(self, *shared: Any) -> Three:
        return Three(*shared)


PIECES = Pieces("processes")


def told(verdict: Verdict) -> dict[str, Any]:
    """All but the time that it took."""
    assert verdict.outcomes is not None
    found = {name: value for name, value in asdict(replace(verdict, outcomes=None)).items() if name != "seconds"}
    return {**found, "codes": verdict.outcomes.codes.tolist(), "others": [*verdict.outcomes.others]}


@pytest.mark.parametrize("lies", [0, 1, 40])
def test_slices_of_an_exact_network_add_up(lies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "FEWEST", 1)
    rng = np.random.default_rng(0)
    task = random_seq_to_seq(examples=40, length=3, vocab=20, labels=5, rng=rng)
    network = build("folding", task).network
    labels = task.labels.copy()
    labels.ravel()[: 3 * lies : 3] += 1
    task = task.with_labels(labels % 5)
    said: list[tuple[int, int]] = []
    found = judge(network, task, executor=PIECES, report=lambda *steps: said.append(steps))
    assert told(found) == told(judge(network, task))
    assert (found.checked, found.errors, found.certified) == (120, lies, not lies)
    assert found.seconds > 0
    assert [done for done, _ in said] == [*range(4, 41, 4)], "ten slices of four"
    assert told(judge(network, task, executor=PIECES, evaluator="flint")) == told(
        judge(network, task, evaluator="flint")
    )


@pytest.fixture(scope="module")
def recited(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two texts, one of them so repetitive that contexts have 64 tokens."""
    folder: Path = tmp_path_factory.mktemp("texts")
    rng = np.random.default_rng(0)
    part = bytes(rng.integers(97, 101, 40).tolist())
    (folder / "a.txt").write_bytes(b"x" + part + b"y" + part + b"z" + bytes(rng.integers(97, 123, 500).tolist()))
    (folder / "b.txt").write_bytes(bytes(rng.integers(65, 91, 300).tolist()))
    return compile([folder / "a.txt", folder / "b.txt"])


def test_stretches_of_texts_give_what_whole_texts_give(recited: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    network, contexts = recited.network, recited.questions
    assert network.spec.sees > 40
    cut = [*transformer.stretches(contexts.tokens, contexts.starts, contexts.places, network.spec.sees, 100)]
    assert len(cut) > 8
    monkeypatch.setattr(transformer, "TOKENS", 100)
    monkeypatch.setattr(transformer, "SEEN", 1)
    shuffled = contexts.with_answers(np.random.default_rng(0).permutation(contexts.labels))
    for asked in (contexts, shuffled):
        assert told(judge(network, asked, executor=PIECES)) == told(judge(network, asked))
    assert judge(network, contexts, executor=PIECES).certified
    # A stretch that begins later than the network sees is answered otherwise somewhere.
    blind = [*transformer.stretches(contexts.tokens, contexts.starts, contexts.places, 2, 100)]
    labels = [answers(network.module, one.tokens, one.starts, one.places).labels for one in blind]
    assert (np.concatenate(labels) != contexts.labels).any()


def test_what_is_not_cut_is_refused() -> None:
    one = np.ones((1, 1, 1))
    task = QueryTargets(contexts=[[0.0], [1.0]], queries=[[0.0], [1.0]], targets=[0.5, 0.7310585])
    with pytest.raises(BadInput, match="executor is an option for an exact network or a float Transformer"):
        judge(SoftmaxNetwork(W_Q=one, W_K=one, W_V=one, W_O=one), task, executor=PIECES)


@pytest.mark.slow
def test_two_processes_say_the_same_of_both_kinds(recited: Any) -> None:
    task = random_next_token(examples=300, length=4, vocab=20, labels=5, rng=np.random.default_rng(0))
    network = build("folding", task).network
    both = Workplace("processes", 2)
    assert told(judge(network, task, executor=both)) == told(judge(network, task))
    assert told(judge(recited.network, recited.questions, executor=both)) == told(
        judge(recited.network, recited.questions)
    )
    assert both.peaks


@pytest.mark.slow
def test_compiled_code_proves_the_same_in_a_process(recited: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import alone

    asked = recited.network, recited.questions
    expected = told(judge(*asked))
    monkeypatch.setattr(transformer, "answered", alone.answered_alone)
    assert judge(*asked, executor=PIECES).undecided == len(recited.questions), "it is PyTorch's turn"
    monkeypatch.setattr(transformer, "FEW", 0)
    for where in (PIECES, Workplace("processes", 1)):
        assert told(judge(*asked, executor=where)) == expected
