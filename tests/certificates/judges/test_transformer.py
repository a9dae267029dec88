"""Certificates of float Transformers: right networks get one; changed words, labels and tokens do not."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import byheart
from byheart.certificates import certify, controls, judge, read, recheck, write
from byheart.certificates.judges import transformer
from byheart.compiler import CompilerSettings
from byheart.constructions import Built
from byheart.errors import BadInput
from byheart.executors import Workplace
from byheart.networks.transformer import GatedBlocks, Spec
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays
from byheart.tasks import NextToken, SeqToSeq, random_next_token
from byheart.tasks.contexts import Contexts
from byheart.tasks.windows import task_contexts

QUESTIONS, LABELS = 800, 16
WORDS = "table.W_out"


@pytest.fixture(scope="module", params=["float32-24", "float32-31", "float64-53", "bfloat16-8"])
def compiled(request: pytest.FixtureRequest) -> Built:
    precision, words = request.param.split("-")
    rng = np.random.default_rng(0)
    task = random_next_token(examples=QUESTIONS, length=4, vocab=60, labels=LABELS, rng=rng)
    return byheart.compile(task, window=4, settings=CompilerSettings(precision, int(words)))


def with_words(compiled: Built, change: Callable[[torch.Tensor], torch.Tensor]) -> TransformerNetwork:
    network = compiled.network
    assert isinstance(network, TransformerNetwork)
    return network.with_tensor(WORDS, change(network.weights[WORDS]))


def near_chance(right: int, checked: int = QUESTIONS, labels: int = LABELS) -> bool:
    """Within five standard deviations of guessing."""
    mean = checked / labels
    return abs(right - mean) < 5 * np.sqrt(mean)


def test_a_right_network(compiled: Built) -> None:
    certificate = certify(compiled, compiled.questions)
    assert certificate.certified
    assert (certificate.checked, certificate.examples, certificate.errors) == (QUESTIONS, QUESTIONS, 0)
    assert certificate.counterexample is None
    assert certificate.smallest_margin is not None
    assert certificate.smallest_margin > 0
    assert certificate.method == f"{compiled.network.spec.precision}, exhaustive; every step proved to be exact"
    assert certificate.weights == compiled.network.fingerprint
    assert certificate.task == compiled.questions.fingerprint


def test_progress(compiled: Built) -> None:
    steps: list[tuple[int, int]] = []
    judge(compiled.network, compiled.questions, report=lambda done, total: steps.append((done, total)))
    assert steps[-1] == (QUESTIONS, QUESTIONS)


def test_shuffled_words(compiled: Built) -> None:
    order = torch.randperm(compiled.network.weights[WORDS].numel(), generator=torch.Generator().manual_seed(0))
    module = with_words(compiled, lambda words: words.flatten()[order].view_as(words))
    certificate = certify(module, compiled.questions)
    assert not certificate.certified
    assert near_chance(QUESTIONS - certificate.errors)
    assert certificate.counterexample is not None
    assert certificate.smallest_margin is None
    assert certificate.weights != compiled.network.fingerprint


def test_an_empty_table(compiled: Built) -> None:
    certificate = certify(with_words(compiled, torch.zeros_like), compiled.questions)
    assert not certificate.certified
    assert certificate.errors > QUESTIONS / 2


def test_words_off_by_one(compiled: Built) -> None:
    module = with_words(compiled, lambda words: torch.nextafter(words, torch.full_like(words, torch.inf)))
    assert not certify(module, compiled.questions).certified


def test_shuffled_labels(compiled: Built) -> None:
    lie = replace(compiled.questions, labels=np.random.default_rng(1).permutation(compiled.questions.labels))
    certificate = certify(compiled, lie)
    assert not certificate.certified
    assert near_chance(QUESTIONS - certificate.errors)
    assert certificate.errors == (lie.labels != compiled.questions.labels).sum()
    first = int((lie.labels != compiled.questions.labels).argmax())
    assert certificate.counterexample is not None
    assert certificate.counterexample.example == first
    assert certificate.counterexample.expected == lie.labels[first]
    assert certificate.counterexample.got == str(compiled.questions.labels[first])


def test_swapped_tokens(compiled: Built) -> None:
    """Contexts that it was not given: right by chance only."""
    tokens = compiled.questions.tokens.reshape(-1, 4)[:, [0, 1, 3, 2]]
    kept = tokens[:, 2] != tokens[:, 3]
    labels = compiled.questions.labels
    swapped = task_contexts(NextToken(tokens=tokens[kept], labels=labels[kept], vocab=60, label_count=LABELS), window=4)
    certificate = certify(compiled, swapped)
    assert not certificate.certified
    assert near_chance(len(swapped) - certificate.errors, len(swapped))


@pytest.mark.parametrize("seed", range(3))
def test_both_lies_are_found(compiled: Built, seed: int) -> None:
    lies = controls(compiled.network, compiled.questions, np.random.default_rng(seed))
    assert [lie.name for lie in lies] == ["shuffled answers", "perturbed weight"]
    for lie in lies:
        assert lie.found is True
        assert "answers wrong" in lie.detail
    assert near_chance(QUESTIONS - lies[0].verdict.errors)
    assert judge(compiled.network, compiled.questions).certified


def test_one_bit_of_one_weight(compiled: Built) -> None:
    """Exactly one entry differs; it was not 0, and is finite; bfloat16 still holds it."""
    changed, place = transformer.perturbed(compiled.network, np.random.default_rng(0), 0)
    pairs = zip(compiled.network.tensors(), changed.tensors(), strict=True)
    differ = [
        (name, one[one != other], other[one != other]) for (name, one), (_, other) in pairs if (one != other).any()
    ]
    [(name, [before], [after])] = differ
    assert name in place
    assert before != 0
    assert np.isfinite(after)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("examples", "length", "vocab", "labels"), [(2, 1, 2, 2), (3, 2, 5, 3), (5, 3, 10, 2), (30, 3, 2000, 300)]
)
def test_no_control_of_a_right_network_fails(examples: int, length: int, vocab: int, labels: int) -> None:
    """With few questions a lie may be true by chance, and embeddings may be larger than the table: not a failure."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        task = random_next_token(examples=examples, length=length, vocab=vocab, labels=labels, rng=rng)
        lies = controls(byheart.compile(task, seed=seed).network, task, np.random.default_rng(seed))
        assert [lie.name for lie in lies if lie.found is False] == []


def test_one_label_leaves_nothing_to_lie_about() -> None:
    task = NextToken(tokens=[[0], [1]], labels=[0, 0])
    lies = controls(byheart.compile(task).network, task, np.random.default_rng(0))
    assert all(lie.found is not False for lie in lies)
    assert lies[0].found is None


def test_the_end_of_a_text_is_asked_for() -> None:
    built = byheart.compile("aaaa", window=8)
    assert certify(built, built.questions.with_answers(np.full(4, 97))).errors == 1, "the last one is the end"


def test_to_disk_and_back(compiled: Built, tmp_path: Path) -> None:
    certificate = certify(compiled, compiled.questions)
    write(certificate, tmp_path / "c.json")
    assert read(tmp_path / "c.json") == certificate


# ── By hand ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def contexts_of(tokens: list[int], labels: list[int]) -> Contexts:
    return task_contexts(NextToken(tokens=[[token] for token in tokens], labels=labels, vocab=3, label_count=3))


def copying(scale: float, *, tied: bool = False) -> TransformerNetwork:
    """Three tokens; the label is the token, by a margin of ``scale``, or all logits are equal."""
    spec = Spec(3, 3, 1, 3, "float32", embeds=(0, 1, 2), unembeds=(0, 1, 2), sublayers=())
    one = np.eye(3, dtype=np.float32)
    tensors = {"embedding.W_E": one, "unembedding.W_U": one * np.float32(0 if tied else scale)}
    return from_arrays(spec, tensors | {"unembedding.b_U": np.zeros(3, np.float32)})


def test_margins() -> None:
    certificate = certify(copying(0.25), contexts_of([0, 1, 2], [0, 1, 2]))
    assert certificate.certified
    assert certificate.smallest_margin == 0.25


def test_a_tie_is_wrong() -> None:
    """argmax would say 0, which happens to be right; but no logit is the largest."""
    certificate = certify(copying(1, tied=True), contexts_of([0, 1], [0, 0]))
    assert not certificate.certified
    assert certificate.errors == 2


def test_inexact_logits_are_noticed() -> None:
    """1/3 is rounded: the labels are right, but another order may give other logits: nothing is certified."""
    ffn = GatedBlocks("third", "relu", reads=(0,), writes=(0,), units=1, bias=False)
    spec = Spec(2, 2, 1, 1, "float32", embeds=(0,), unembeds=(0,), sublayers=(ffn,))
    tensors = {
        "embedding.W_E": [[1], [3]],
        "third.W_in": [[[1 / 3]]],
        "third.W_out": [[[1 / 7]]],
        "unembedding.W_U": [[0], [1]],
        "unembedding.b_U": [2, 0],
    }
    module = from_arrays(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})
    task = NextToken(tokens=[[0], [1]], labels=[0, 1])
    certificate = certify(module, task_contexts(task))
    assert not certificate.certified
    assert (certificate.errors, certificate.undecided, certificate.checked) == (0, 2, 2)
    assert certificate.method == "float32, exhaustive; 2 not proved to be exact"


def test_inexact_logits_of_other_labels_are_noticed() -> None:
    """Neither the label nor the margin depends on the third label's logit; it must be exact all the same."""
    ffn = GatedBlocks("third", "relu", reads=(0,), writes=(1,), units=1, bias=False)
    spec = Spec(2, 3, 1, 2, "float32", embeds=(0,), unembeds=(0, 1), sublayers=(ffn,))
    tensors = {
        "embedding.W_E": [[1], [3]],
        "third.W_in": [[[1 / 3]]],
        "third.W_out": [[[1 / 7]]],
        "unembedding.W_U": [[0, 0], [1, 0], [0, 1]],
        "unembedding.b_U": [2, 0, -100],
    }
    module = from_arrays(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})
    certificate = certify(module, task_contexts(NextToken(tokens=[[0], [1]], labels=[0, 1], label_count=3)))
    assert (certificate.errors, certificate.undecided) == (0, 2)
    assert certificate.method == "float32, exhaustive; 2 not proved to be exact"


def test_a_folder_is_certified_by_the_same_function(tmp_path: Path) -> None:
    """``byheart.certify`` knows what a folder holds."""
    rng = np.random.default_rng(5)
    task = random_next_token(examples=200, length=4, vocab=20, labels=7, rng=rng)
    byheart.compile(task).save(tmp_path / "net")
    assert byheart.certify(tmp_path / "net", task).certified
    wrong = byheart.certify(tmp_path / "net", task.with_labels((task.labels + 1) % 7))
    assert not wrong.certified
    assert wrong.counterexample is not None
    with pytest.raises(BadInput, match="next-token"):
        byheart.certify(tmp_path / "net", SeqToSeq(tokens=[[0, 1]], labels=[[0, 1]]))


def test_what_is_not_finite_is_never_right() -> None:
    """Finite weights whose logits overflow to infinity: the label's is +inf, the others' are finite, or nan."""
    largest = float(np.finfo(np.float32).max)
    spec = Spec(2, 2, 1, 1, "float32", embeds=(0,), unembeds=(0,), sublayers=())
    for other in (0.0, largest):
        tensors = {
            "embedding.W_E": [[1], [largest]],
            "unembedding.W_U": [[other], [largest]],
            "unembedding.b_U": [0, 0],
        }
        network = from_arrays(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})
        verdict = judge(network, NextToken(tokens=[[1]], labels=[1], vocab=2))
        assert (verdict.certified, verdict.errors) == (False, 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(bad: float) -> None:
    spec = Spec(2, 2, 1, 1, "float32", embeds=(0,), unembeds=(0,), sublayers=())
    tensors = {"embedding.W_E": [[1], [2]], "unembedding.W_U": [[0], [1]], "unembedding.b_U": [0, bad]}
    with pytest.raises(BadInput, match="b_U has entries that are not finite"):
        from_arrays(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})


def test_texts_in_python(tmp_path: Path) -> None:
    """Text, named texts, paths; the built network, the loaded one and the folder; and the re-check of each."""
    text = "It was the best of times, it was the worst of times"
    built = byheart.compile(text)
    built.save(tmp_path / "net")
    (tmp_path / "text").write_text(text)
    write(certify(built, text), tmp_path / "c.json")
    for subject in (built, built.network, byheart.load(tmp_path / "net"), tmp_path / "net", str(tmp_path / "net")):
        for given in (text, text.encode(), {"any": text}, tmp_path / "text", [tmp_path / "text"]):
            assert recheck(tmp_path / "c.json", subject, given).certified
    assert not certify(built, text.replace("best", "west")).certified


def test_an_edited_network_says_so() -> None:
    """What is right the user's file says, and what the user gives beside it; never the folder."""
    fixtures = Path(__file__).parents[2] / "fixtures" / "0.1.0"
    plain = certify(fixtures / "edited", fixtures / "a.txt")
    assert (plain.certified, plain.errors) == (False, 1)
    assert plain.found == "1 answer differs from the file: its folder says that it was edited"
    given = certify(fixtures / "edited", fixtures / "a.txt", edits={"of wisdom": "!"})
    assert given.certified
    assert given.found == "1 answer differs from the file"
    assert given.statement.endswith("adds; the labels of 1 are not those of the file.")
    both = certify(fixtures / "edited", fixtures / "a.txt", edits={"best": "!"})
    assert (both.certified, both.errors) == (False, 2)
    assert both.found.startswith("1 answer differs from the file, 2 answers differ from what was asked for: its")


def test_no_folder_rewrites_the_questions(tmp_path: Path) -> None:
    """A network of one text, edited on paper into another: its folder lists every letter that differs."""
    one, other = "It was the best of times", "It is the worst of tunes"
    built = byheart.compile({"text": one})
    tokens = zip(range(len(one) - 1), other[1:].encode(), strict=True)
    edits = [{"text": "text", "token": token, "label": label, "was": 0} for token, label in tokens]
    liar = replace(built.network, about={**built.network.about, "edits": edits})
    byheart.networks.save(liar, tmp_path / "net")
    assert not certify(tmp_path / "net", other).certified
    assert not certify(tmp_path / "net", {"text": other}).certified
    assert certify(tmp_path / "net", one).certified


def test_where_questions_are_asked() -> None:
    """The last two tokens decide, in five examples: three questions, which stand for all five."""
    task = NextToken([[0, 1, 2], [1, 1, 2], [2, 1, 2], [0, 0, 2], [0, 0, 0]], [1, 1, 1, 0, 2])
    certificate = certify(byheart.compile(task, window=2), task)
    assert (certificate.checked, certificate.examples, certificate.stands_for) == (3, 3, 5)
    assert certificate.summary.startswith("3 of 3 answers right (asked in 5 places), float32")
    whole = certify(byheart.compile(task, window=3), task)
    assert (whole.checked, whole.stands_for) == (5, 5)
    assert whole.summary.startswith("5 of 5 answers right, float32")


def test_contexts_shorter_than_what_the_network_sees() -> None:
    """Asked by windows of 1 token, a network that sees 4 is asked in every place, and must be right in all."""
    task = random_next_token(examples=100, length=4, vocab=8, labels=5, rng=np.random.default_rng(0))
    network = byheart.compile(task, window=4).network
    short = task_contexts(task.with_labels(task.tokens[:, -1] % 5), window=1)
    verdict = judge(network, short)
    assert verdict.checked == len(short) == 8
    last = task.tokens[:, -1]
    assert verdict.errors == len(np.unique(last[task.labels != last % 5]))


def test_what_a_network_says_it_sees_is_not_believed() -> None:
    """With window 1 in its spec, a network that sees 4 tokens would be asked few of its questions."""
    task = random_next_token(examples=200, length=4, vocab=8, labels=5, rng=np.random.default_rng(0))
    network = byheart.compile(task, window=4).network
    liar = TransformerNetwork(replace(network.spec, window=1), network.weights)
    first = {int(last): int(label) for last, label in zip(task.tokens[::-1, -1], task.labels[::-1], strict=True)}
    lie = task.with_labels([first[int(last)] for last in task.tokens[:, -1]])
    assert 0 < judge(network, lie).errors == judge(liar, lie).errors
    assert judge(liar, lie).checked == 200
    assert judge(liar, task).certified


def test_opposite_logits_in_float64_are_noticed() -> None:
    """2²⁵ + 1 − 2²⁵ is 0 in float32 and 1 in float64: both logits change their signs, and the answer changes."""
    parts = [GatedBlocks(name, "relu", reads=(1,), writes=(0,), units=1, bias=False) for name in ("add", "sub")]
    spec = Spec(1, 2, 1, 2, "float32", embeds=(0, 1), unembeds=(0,), sublayers=tuple(parts))
    tensors = {
        "embedding.W_E": [[2.0**25, 1]],
        "add.W_in": [[[1]]],
        "add.W_out": [[[1]]],
        "sub.W_in": [[[1]]],
        "sub.W_out": [[[-(2.0**25)]]],
        "unembedding.W_U": [[-1], [1]],
        "unembedding.b_U": [0.5, -0.5],
    }
    network = from_arrays(spec, {name: np.array(tensor, np.float32) for name, tensor in tensors.items()})
    verdict = judge(network, NextToken([[0]], [0], label_count=2))
    assert (verdict.certified, verdict.errors, verdict.undecided) == (False, 0, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"act": "gelu"}, "act is 'gelu', up is 'none'; expected"),
        ({"up": "both"}, "act is 'relu', up is 'both'; expected"),
        ({"name": "a.b"}, "a sublayer is called 'a.b'; expected a name of its own"),
        ({"name": "embedding"}, "two parts have one name; expected different ones"),
    ],
)
def test_a_spec_that_lies_about_itself_is_refused(changes: dict[str, str], message: str) -> None:
    given = {"name": "one", "act": "relu", "reads": (0,), "writes": (0,), "units": 1}
    with pytest.raises(BadInput, match=message):
        Spec(2, 2, 1, 1, "float32", embeds=(0,), unembeds=(0,), sublayers=(GatedBlocks(**(given | changes)),))
    with pytest.raises(BadInput, match="bfloat16 names nope; expected W_out of feed-forward sublayers"):
        Spec(2, 2, 1, 1, "float32", embeds=(0,), unembeds=(0,), sublayers=(), bfloat16=("nope",))


def test_what_is_not_proved_is_said() -> None:
    """One answer, which no flipped bit makes wrong: it is found by what is no longer exact, and that is said."""
    text = "x"
    lie = controls(byheart.compile(text).network, text, np.random.default_rng(0))[1]
    assert lie.found is True
    assert lie.detail.endswith("0 of 1 answers wrong, 1 undecided")
    assert lie.verdict.counterexample is not None
    assert lie.verdict.counterexample.got == "256, not proved to be exact"


def test_a_device_gives_the_same_verdict(compiled: Built) -> None:
    """Here on the CPU, by the way that GPUs go."""
    contexts = compiled.questions
    asking = contexts.tokens, contexts.starts, contexts.places
    wrong = with_words(compiled, lambda words: -words)
    for network, right in ((compiled.network, QUESTIONS), (wrong, None)):
        ((_, once, doubtful),) = transformer.answer_on_gpu(torch.device("cpu"), network, *asking, None)
        ((_, here, here_doubtful),) = transformer.answer_in_parts(network, *asking, Workplace(), None)
        assert once.labels.tolist() == here.labels.tolist()
        assert once.margins.tolist() == here.margins.tolist()
        assert doubtful.tolist() == here_doubtful.tolist()
        assert right is None or (once.labels == contexts.labels).sum() == right


def test_devices_that_cannot_be_used(compiled: Built) -> None:
    with pytest.raises(BadInput, match="device is 'meta'; expected cpu or cuda"):
        certify(compiled, compiled.questions, device="meta")
    assert certify(compiled, compiled.questions, device="cpu").certified
    with pytest.raises(BadInput, match="expected one of them: a device works here"):
        judge(compiled.network, compiled.questions, executor=Workplace("processes"), device="cuda")
