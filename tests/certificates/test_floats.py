"""Certificates of float Transformers: right networks get one; changed words, labels and tokens do not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import byheart
from byheart.certificates import Certificate, read, write
from byheart.certificates.floats import certify_transformer, controls, judge_transformer
from byheart.constructions.reciting import Compiled, Settings, compile_task, compile_text
from byheart.errors import BadInput
from byheart.networks.transformer import FeedForward, Spec, store
from byheart.tasks import NextToken, SeqToSeq, random_next_token
from byheart.tasks.contexts import Contexts, task_contexts

QUESTIONS, LABELS = 800, 16


@pytest.fixture(scope="module", params=["float32-24", "float32-31", "float64-53", "bfloat16-8"])
def compiled(request: pytest.FixtureRequest) -> Compiled:
    precision, words = request.param.split("-")
    rng = np.random.default_rng(0)
    task = random_next_token(examples=QUESTIONS, length=4, vocab=60, labels=LABELS, rng=rng)
    return compile_task(task, window=4, settings=Settings(precision, int(words))).compiled


def with_words(compiled: Compiled, change: object) -> torch.nn.Module:
    module = compiled.module()
    words = dict(module.named_parameters())["table.W_out"]
    with torch.no_grad():
        words.copy_(change(words))  # type: ignore[operator]
    return module


def near_chance(right: int, checked: int = QUESTIONS, labels: int = LABELS) -> bool:
    """Within five standard deviations of guessing."""
    mean = checked / labels
    return abs(right - mean) < 5 * np.sqrt(mean)


def test_a_right_network(compiled: Compiled) -> None:
    certificate = certify_transformer(compiled.module(), compiled.contexts)
    assert certificate.certified
    assert (certificate.checked, certificate.examples, certificate.errors) == (QUESTIONS, QUESTIONS, 0)
    assert certificate.counterexample is None
    assert certificate.smallest_margin is not None
    assert certificate.smallest_margin > 0
    expected = {"float64": "float64, exhaustive"}
    same = "float32, exhaustive; the same logits in float64"
    assert certificate.method == expected.get(compiled.spec.precision, same)
    assert certificate.weights == store.fingerprint(compiled.spec, compiled.tensors)
    assert certificate.task == compiled.contexts.fingerprint


def test_once_is_said_to_be_once(compiled: Compiled) -> None:
    certificate = certify_transformer(compiled.module(), compiled.contexts, twice=False)
    assert certificate.certified
    assert certificate.method == f"{compiled.spec.precision}, exhaustive"


def test_progress(compiled: Compiled) -> None:
    steps: list[tuple[int, int]] = []
    judge_transformer(compiled.module(), compiled.contexts, report=lambda done, total: steps.append((done, total)))
    assert steps[-1] == (QUESTIONS, QUESTIONS)


def test_shuffled_words(compiled: Compiled) -> None:
    order = torch.randperm(compiled.tensors["table.W_out"].size, generator=torch.Generator().manual_seed(0))
    module = with_words(compiled, lambda words: words.flatten()[order].view_as(words))
    certificate = certify_transformer(module, compiled.contexts)
    assert not certificate.certified
    assert near_chance(QUESTIONS - certificate.errors)
    assert certificate.counterexample is not None
    assert certificate.smallest_margin is None
    assert certificate.weights != store.fingerprint(compiled.spec, compiled.tensors)


def test_an_empty_table(compiled: Compiled) -> None:
    certificate = certify_transformer(with_words(compiled, torch.zeros_like), compiled.contexts)
    assert not certificate.certified
    assert certificate.errors > QUESTIONS / 2


def test_words_off_by_one(compiled: Compiled) -> None:
    module = with_words(compiled, lambda words: torch.nextafter(words, torch.full_like(words, torch.inf)))
    assert not certify_transformer(module, compiled.contexts).certified


def test_shuffled_labels(compiled: Compiled) -> None:
    lie = replace(compiled.contexts, labels=np.random.default_rng(1).permutation(compiled.contexts.labels))
    certificate = certify_transformer(compiled.module(), lie)
    assert not certificate.certified
    assert near_chance(QUESTIONS - certificate.errors)
    assert certificate.errors == (lie.labels != compiled.contexts.labels).sum()
    first = int((lie.labels != compiled.contexts.labels).argmax())
    assert certificate.counterexample is not None
    assert certificate.counterexample.example == first
    assert certificate.counterexample.expected == lie.labels[first]
    assert certificate.counterexample.got == str(compiled.contexts.labels[first])


def test_swapped_tokens(compiled: Compiled) -> None:
    """Contexts that it was not given: right by chance only."""
    tokens = compiled.contexts.tokens.reshape(-1, 4)[:, [0, 1, 3, 2]]
    kept = tokens[:, 2] != tokens[:, 3]
    labels = compiled.contexts.labels
    swapped = task_contexts(NextToken(tokens=tokens[kept], labels=labels[kept], vocab=60, label_count=LABELS), window=4)
    certificate = certify_transformer(compiled.module(), swapped)
    assert not certificate.certified
    assert near_chance(len(swapped) - certificate.errors, len(swapped))


def test_all_four_lies_are_found(compiled: Compiled) -> None:
    lies = controls(compiled.module(), compiled.contexts, np.random.default_rng(0))
    assert [lie.name for lie in lies] == ["shuffled labels", "shuffled words", "words off by one", "swapped tokens"]
    for lie in lies:
        assert lie.found is True
        assert lie.detail.endswith("answers wrong")
    assert near_chance(QUESTIONS - lies[0].verdict.errors)
    assert near_chance(QUESTIONS - lies[1].verdict.errors)
    assert judge_transformer(compiled.module(), compiled.contexts).verdict.certified


@pytest.mark.parametrize(
    ("examples", "length", "vocab", "labels"), [(2, 1, 2, 2), (3, 2, 5, 3), (5, 3, 10, 2), (30, 3, 2000, 300)]
)
def test_no_control_of_a_right_network_fails(examples: int, length: int, vocab: int, labels: int) -> None:
    """With few questions a lie may be true by chance, and embeddings may be larger than the table: not a failure."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        task = random_next_token(examples=examples, length=length, vocab=vocab, labels=labels, rng=rng)
        compiled = compile_task(task, seed=seed).compiled
        lies = controls(compiled.module(), compiled.contexts, np.random.default_rng(seed))
        assert [lie.name for lie in lies if lie.found is False] == []


def test_one_label_leaves_nothing_to_lie_about() -> None:
    compiled = compile_text("aaaa", window=8).compiled
    questions = replace(compiled.contexts, labels=np.full(len(compiled.contexts), 97))
    same = compile_task(NextToken(tokens=[[0], [1]], labels=[0, 0])).compiled
    lies = controls(same.module(), same.contexts, np.random.default_rng(0))
    assert all(lie.found is not False for lie in lies)
    assert lies[0].found is None
    assert certify_transformer(compiled.module(), questions).errors == 1, "the last one is the end"


def test_to_disk_and_back(compiled: Compiled, tmp_path: Path) -> None:
    certificate = certify_transformer(compiled.module(), compiled.contexts)
    write(certificate, tmp_path / "c.json")
    again: Certificate = read(tmp_path / "c.json")
    assert again == certificate


# ── By hand ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def contexts_of(tokens: list[int], labels: list[int]) -> Contexts:
    return task_contexts(NextToken(tokens=[[token] for token in tokens], labels=labels, vocab=3, label_count=3))


def copying(scale: float, *, tied: bool = False) -> torch.nn.Module:
    """Three tokens; the label is the token, by a margin of ``scale``, or all logits are equal."""
    spec = Spec(3, 3, 1, 3, "float32", embeds=(0, 1, 2), unembeds=(0, 1, 2), sublayers=())
    one = np.eye(3, dtype=np.float32)
    tensors = {"embedding.W_E": one, "unembedding.W_U": one * np.float32(0 if tied else scale)}
    return store.as_module(spec, tensors | {"unembedding.b_U": np.zeros(3, np.float32)})


def test_margins() -> None:
    certificate = certify_transformer(copying(0.25), contexts_of([0, 1, 2], [0, 1, 2]))
    assert certificate.certified
    assert certificate.smallest_margin == 0.25


def test_a_tie_is_wrong() -> None:
    """argmax would say 0, which happens to be right; but no logit is the largest."""
    certificate = certify_transformer(copying(1, tied=True), contexts_of([0, 1], [0, 0]))
    assert not certificate.certified
    assert certificate.errors == 2


def test_inexact_logits_are_noticed() -> None:
    """1/3 is rounded otherwise in float64: same labels, other logits, and the certificate says so."""
    ffn = FeedForward("third", "relu", reads=(0,), writes=(0,), units=1, bias=False)
    spec = Spec(2, 2, 1, 1, "float32", embeds=(0,), unembeds=(0,), sublayers=(ffn,))
    tensors = {
        "embedding.W_E": [[1], [3]],
        "third.W_in": [[[1 / 3]]],
        "third.W_out": [[[1 / 7]]],
        "unembedding.W_U": [[0], [1]],
        "unembedding.b_U": [2, 0],
    }
    module = store.as_module(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})
    task = NextToken(tokens=[[0], [1]], labels=[0, 1])
    certificate = certify_transformer(module, task_contexts(task))
    assert certificate.certified
    assert certificate.method == "float32, exhaustive; float64 gives OTHER logits: not exact"


def test_inexact_logits_of_other_labels_are_noticed() -> None:
    """Neither the label nor the margin depends on the third label's logit; it is compared all the same."""
    ffn = FeedForward("third", "relu", reads=(0,), writes=(1,), units=1, bias=False)
    spec = Spec(2, 3, 1, 2, "float32", embeds=(0,), unembeds=(0, 1), sublayers=(ffn,))
    tensors = {
        "embedding.W_E": [[1], [3]],
        "third.W_in": [[[1 / 3]]],
        "third.W_out": [[[1 / 7]]],
        "unembedding.W_U": [[0, 0], [1, 0], [0, 1]],
        "unembedding.b_U": [2, 0, -100],
    }
    module = store.as_module(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})
    certificate = certify_transformer(module, task_contexts(NextToken(tokens=[[0], [1]], labels=[0, 1], label_count=3)))
    assert certificate.smallest_margin == 1
    assert certificate.method == "float32, exhaustive; float64 gives OTHER logits: not exact"


def test_a_folder_is_certified_by_the_same_function(tmp_path: Path) -> None:
    """``byheart.certify`` knows what a folder holds."""
    rng = np.random.default_rng(5)
    task = random_next_token(examples=200, length=4, vocab=20, labels=7, rng=rng)
    compile_task(task).save(tmp_path / "net")
    assert byheart.certify(tmp_path / "net", task).certified
    wrong = byheart.certify(tmp_path / "net", task.with_labels((task.labels + 1) % 7))
    assert not wrong.certified
    assert wrong.counterexample is not None
    with pytest.raises(BadInput, match="next-token"):
        byheart.certify(tmp_path / "net", SeqToSeq(tokens=[[0, 1]], labels=[[0, 1]]))
