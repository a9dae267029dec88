import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from byheart.errors import BadInput
from byheart.lab import ensemble
from byheart.lab import stack as stacks
from byheart.lab.adam import learning_rates
from byheart.lab.ensemble import Member, Training, train
from byheart.lab.models.dana import AttentionOnly
from byheart.lab.stack import Stack

CPU = torch.device("cpu")
NETWORK = AttentionOnly(vocab=6, model_dim=4, head_dim=4, heads=3)
TRAINING = Training(
    batch=8, steps=40, learning_rate=0.02, last_learning_rate=0.001, schedule="linear-by-epoch", last_batches=10
)


@dataclass(frozen=True)
class Linear:
    """The smallest architecture: outputs W x + b, with a constant added."""

    inputs: int
    outputs_: int

    @property
    def parameters(self):
        return (self.inputs + 1) * self.outputs_

    def init(self, generator):
        return {
            "W": torch.randn(self.inputs, self.outputs_, generator=generator, dtype=torch.float64),
            "b": torch.zeros(self.outputs_, dtype=torch.float64),
        }

    def outputs(self, weights, batch):
        outputs = batch["x"] @ weights["W"] + weights["b"].unsqueeze(1)
        return outputs + batch["shift"].unsqueeze(1) if "shift" in batch else outputs


def drawn(seed, examples=24, vocab=6):
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(vocab, (examples, 2), generator=generator)
    return {"tokens": tokens, "answers": torch.randint(vocab, (examples,), generator=generator)}


def member(seed, *, examples=24, network=NETWORK, **changes):
    return Member(network, replace(TRAINING, **changes), seed, drawn(seed, examples))


def points(seed, examples=20, real=False):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(examples, 3, generator=generator)
    answers = (
        torch.randn(examples, 2, generator=generator) if real else torch.randint(2, (examples,), generator=generator)
    )
    return {"x": x, "answers": answers}


def agree(one, other):
    assert math.isclose(one.loss, other.loss, rel_tol=1e-9)
    assert (one.accuracy, one.last_accuracy, one.steps) == (other.accuracy, other.last_accuracy, other.steps)
    for name, tensor in one.weights.items():
        torch.testing.assert_close(tensor, other.weights[name], rtol=1e-7, atol=1e-9)


def test_a_member_trains_beside_others_as_it_does_alone():
    """Others with more and fewer examples, steps and rates, more heads: the same weights in the end."""
    members = [
        member(0),
        member(1, examples=31, learning_rate=0.05),
        member(2, steps=25, schedule="constant"),
        member(3, network=replace(NETWORK, heads=5)),
        member(4, schedule="warm-up-cosine"),
        member(5, betas=(0.8, 0.99)),
        member(6, largest_norm=0.1),
    ]
    together = train(members, dtype=torch.float64, keep_weights=True)
    for own, outcome in zip(members, together, strict=True):
        agree(outcome, *train([own], dtype=torch.float64, keep_weights=True))


def test_more_members_than_fit_at_once_are_trained_in_chunks(monkeypatch):
    members = [member(seed) for seed in range(5)]
    together = train(members, dtype=torch.float64, keep_weights=True)
    monkeypatch.setattr(ensemble, "MEMBERS_AT_ONCE_ON_CPU", 2)
    for one, other in zip(together, train(members, dtype=torch.float64, keep_weights=True), strict=True):
        agree(one, other)


def test_members_that_are_padded_train_as_in_their_own_size():
    networks = [NETWORK, replace(NETWORK, heads=7)]
    members = [member(seed, network=network) for seed, network in enumerate(networks)]
    (joined, which), *rest = ensemble._buckets(members, join=True)
    assert (joined, which, rest) == (networks[1], [0, 1], [])
    stack = Stack(members, joined, CPU, torch.float64, graph=False)
    stack.advance(40)
    for index, own in enumerate(members):
        alone = Stack([own], own.architecture, CPU, torch.float64, graph=False)
        alone.advance(40)
        for name, tensor in alone.weights_of(0).items():
            torch.testing.assert_close(stack.weights_of(index)[name], tensor, rtol=1e-7, atol=1e-9)
    assert not stack.weights["0.W_V"][0, NETWORK.heads :].any()


@pytest.mark.parametrize("largest_norm", [None, 0.05])
def test_adam_is_that_of_torch(largest_norm):
    data = points(0)
    training = Training(
        batch=20,
        steps=30,
        learning_rate=0.1,
        last_learning_rate=0.01,
        schedule="warm-up-cosine",
        betas=(0.9, 0.99),
        warm_up=0.2,
        largest_norm=largest_norm,
    )
    own = Member(Linear(3, 2), training, 0, data)
    [outcome] = train([own], dtype=torch.float64, keep_weights=True)
    weights = {name: t.requires_grad_() for name, t in own.architecture.init(torch.Generator().manual_seed(0)).items()}
    optimizer = torch.optim.Adam(weights.values(), betas=(0.9, 0.99))
    for rate in learning_rates(training, 20, np.arange(30.0)):
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        logits = data["x"].double() @ weights["W"] + weights["b"]
        torch.nn.functional.cross_entropy(logits, data["answers"]).backward()
        if largest_norm is not None:
            length = torch.cat([tensor.grad.flatten() for tensor in weights.values()]).norm()
            assert length > largest_norm, "or nothing is scaled down"
            for tensor in weights.values():
                tensor.grad *= largest_norm / length
        optimizer.step()
    for name, tensor in weights.items():
        torch.testing.assert_close(outcome.weights[name], tensor.detach(), rtol=1e-10, atol=1e-12)


def test_a_member_that_is_good_enough_leaves_and_the_others_go_on():
    easy = Member(NETWORK, replace(TRAINING, steps=400, evaluate_every=20, stop_at=1.0), 0, drawn(0, examples=8))
    hard = Member(NETWORK, replace(TRAINING, steps=100, evaluate_every=20, stop_at=1.0), 1, _contradictory())
    first, second = train([easy, hard], dtype=torch.float64, keep_weights=True)
    assert first.accuracy == 1.0
    assert first.steps < 100
    assert first.last_accuracy is None
    assert [step for step, _, _ in second.history] == [20, 40, 60, 80, 100]
    agree(first, *train([easy], dtype=torch.float64, keep_weights=True))
    agree(second, *train([hard], dtype=torch.float64, keep_weights=True))


def _contradictory():
    data = drawn(1)
    return {"tokens": data["tokens"].zero_(), "answers": data["answers"]}


def test_last_accuracy_is_the_mean_over_the_last_batches():
    own = member(0)
    stack = Stack([own], NETWORK, CPU, torch.float32, graph=False)
    _, accuracies = stack.advance(40, measure=True)
    [outcome] = train([own])
    assert outcome.last_accuracy == pytest.approx(accuracies[-10:].mean().item())


def test_accuracy_is_measured_on_what_is_asked_for():
    examples, other = drawn(0), drawn(5, examples=1500)
    own = Member(NETWORK, TRAINING, 0, examples, measured_on=other)
    [outcome] = train([own], keep_weights=True, dtype=torch.float64)
    weights = {name: tensor[None] for name, tensor in outcome.weights.items()}
    outputs = NETWORK.outputs(weights, {name: tensor[None] for name, tensor in other.items()})
    assert outcome.accuracy == (outputs[0].argmax(dim=-1) == other["answers"]).double().mean().item()


def test_frozen_tensors_stay_and_initial_ones_are_where_training_starts():
    start = torch.full((3, 2), 0.5, dtype=torch.float64)
    training = Training(batch=5, steps=3, learning_rate=0.1)
    own = Member(Linear(3, 2), training, 0, points(0), initial={"W": start}, frozen=frozenset({"W"}))
    [outcome] = train([own], dtype=torch.float64, keep_weights=True)
    assert torch.equal(outcome.weights["W"], start)
    assert outcome.weights["b"].abs().min() > 0


def test_real_answers_have_a_loss_and_no_accuracy():
    training = Training(batch=20, steps=300, learning_rate=0.05, loss="mean-square", last_batches=5)
    data = points(0, real=True)
    [outcome] = train([Member(Linear(3, 2), training, 0, data)], dtype=torch.float64)
    x = torch.cat([data["x"], torch.ones(20, 1)], dim=1).double()
    best = torch.linalg.lstsq(x, data["answers"].double()).solution
    assert outcome.loss == pytest.approx((x @ best - data["answers"]).square().mean().item(), rel=1e-3)
    assert outcome.accuracy is None
    assert outcome.last_accuracy is None


def test_constants_belong_to_their_member():
    training = Training(batch=20, steps=1, learning_rate=1e-12)
    shifts = [torch.tensor([0.0, 100.0]), torch.tensor([100.0, 0.0])]
    data = points(0)
    members = [Member(Linear(3, 2), training, 0, data, constants={"shift": shift}) for shift in shifts]
    ones = data["answers"].double().mean().item()
    assert [outcome.accuracy for outcome in train(members)] == pytest.approx([ones, 1 - ones])


def test_data_that_members_share_is_stored_once():
    data = drawn(0)
    stack = Stack(
        [Member(NETWORK, TRAINING, seed, data) for seed in range(3)], NETWORK, CPU, torch.float32, graph=False
    )
    assert len(stack.rows.tensors["answers"]) == 24
    assert stack.measured is stack.rows


def test_summed_and_mean_cross_entropy_have_the_same_direction():
    outcomes = [
        train([Member(Linear(3, 2), Training(batch=20, steps=50, learning_rate=0.01, loss=loss), 0, points(0))])[0]
        for loss in ("cross-entropy", "summed-cross-entropy")
    ]
    assert outcomes[0].loss == pytest.approx(outcomes[1].loss, rel=1e-5)


def test_a_stream_of_batches_goes_over_the_ends_of_epochs():
    own = member(0, examples=20)
    stack = Stack([own], NETWORK, CPU, torch.float32, graph=False)
    stack._prepare(5)
    assert torch.equal(stack.places[:5].flatten()[:20].sort().values, torch.arange(20))
    assert torch.equal(stack.places[:5].flatten()[20:40].sort().values, torch.arange(20))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"examples": {"x": torch.zeros(2, 3)}}, "examples have x; expected 'answers' among them"),
        ({"examples": {"x": torch.zeros(2, 3), "answers": torch.zeros(3)}}, r"tensors of \[2, 3\] rows"),
        ({"measured_on": {"answers": torch.zeros(3)}}, r"measured_on has \['answers'\]; expected \['answers', 'x'\]"),
        ({"frozen": frozenset({"V"})}, "frozen has 'V'; expected tensors of W, b"),
        ({"frozen": frozenset({"W", "b"})}, "all tensors are frozen"),
        ({"initial": {"W": torch.zeros(2, 2)}}, r"initial has 'W' \[2, 2\]; expected tensors of W \[3, 2\], b \[2\]"),
    ],
)
def test_members_refuse(changes, message):
    fine = {"architecture": Linear(3, 2), "training": TRAINING, "seed": 0, "examples": points(0)}
    with pytest.raises(BadInput, match=message):
        train([Member(**fine | changes)])


def test_members_are_measured_on_their_own_examples_only(monkeypatch):
    """One with few examples beside one with more than are measured at a time: the same as each alone."""
    monkeypatch.setattr(stacks, "ROWS_MEASURED_AT_ONCE", 4)
    members = [member(0), member(1, examples=7)]
    together = Stack(members, NETWORK, CPU, torch.float64, graph=False)
    loss, right = together.measure()
    for index, own in enumerate(members):
        alone = Stack([own], NETWORK, CPU, torch.float64, graph=False).measure()
        assert torch.allclose(torch.stack([loss[index], right[index]]), torch.cat(alone), rtol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_stacks_side_by_side_train_as_one_after_the_other(monkeypatch):
    members = [member(seed, network=replace(NETWORK, model_dim=dim)) for dim in (3, 4, 5) for seed in range(2)]
    together = train(members, device="cuda", dtype=torch.float64)
    monkeypatch.setattr(ensemble, "SIDE_BY_SIDE", 1)
    for one, other in zip(together, train(members, device="cuda", dtype=torch.float64), strict=True):
        assert one.history == other.history


@pytest.mark.parametrize("shared", [True, False])
def test_whole_batches_of_counts_train_as_others_do(shared):
    """In closed form, on a batch that is cut once, as by autograd beside a member that has more examples."""
    data = [points(seed, examples=13 if seed == 3 else 12) for seed in range(4)]
    for one in data:
        one["answers"] = torch.nn.functional.one_hot(one["answers"], 2) * 3.0 + 1.0
    training = Training(batch=12, steps=30, learning_rate=0.05, loss="summed-cross-entropy")
    members = [Member(Linear(3, 2), training, seed, data[0 if shared else seed]) for seed in range(3)]
    closed = Stack(members, Linear(3, 2), CPU, torch.float64, graph=False)
    more = Member(Linear(3, 2), training, 3, data[3])
    plain = Stack([*members, more], Linear(3, 2), CPU, torch.float64, graph=False)
    assert closed.counted is not None
    assert (closed.whole["x"].stride(0) == 0) == shared, "what is shared is there once"
    assert plain.whole is plain.counted is None
    torch.testing.assert_close(closed.advance(20)[0], plain.advance(20)[0][:, :3], rtol=1e-9, atol=0)
    closed.keep([2, 0])
    plain.keep([2, 0, 3])
    torch.testing.assert_close(closed.advance(10)[0], plain.advance(10)[0][:, :2], rtol=1e-9, atol=0)
    torch.testing.assert_close(closed.flat, plain.flat[:2], rtol=1e-9, atol=1e-12)
