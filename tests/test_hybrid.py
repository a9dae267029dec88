"""examples/hybrid.py: networks that are trained around a construction, or from one on."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import byheart
from byheart.constructions import dana_2025, mahdavi_2024
from byheart.errors import BadInput
from byheart.lab.ensemble import Training, train
from byheart.lab.sources import load
from byheart.networks.softmax import evaluate
from byheart.papers.experiments import source
from byheart.tasks import random_distribution, random_next_token, random_queries

EXAMPLE = Path(__file__).parents[1] / "examples" / "hybrid.py"
_spec = importlib.util.spec_from_file_location("hybrid", EXAMPLE)
hybrid = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = hybrid
_spec.loader.exec_module(hybrid)
ATTENTION, member_from = hybrid.ATTENTION, hybrid.member_from


def queries(labels=4, shared=True, examples=13):
    rng = np.random.default_rng(0)
    return random_queries(examples=examples, length=4, dim=6, labels=labels, shared=shared, rng=rng)


def bigrams():
    return random_next_token(examples=20, length=2, vocab=9, labels=9, rng=np.random.default_rng(1))


def built(task):
    if task.kind.startswith("query"):
        return byheart.build("mahdavi-2024", task, settings=mahdavi_2024.MahdaviSettings(heads=4)).network
    return byheart.build("dana-2025", task, settings=dana_2025.DanaSettings(model_dim=4)).network


def trained(member, **options):
    (outcome,) = train([member], dtype=torch.float64, keep_weights=True, **options)
    return outcome


def plan(steps=1, learning_rate=1e-15, loss="cross-entropy", batch=20):
    return Training(batch=batch, steps=steps, learning_rate=learning_rate, loss=loss)


def inputs(task):
    return (task.vectors, task.queries) if task.kind.startswith("query") else (task.tokens, None)


@pytest.mark.parametrize("task", [queries(), queries(shared=False), bigrams()], ids=["shared", "own", "tokens"])
def test_a_construction_is_right_before_it_is_trained(task):
    network = built(task)
    member = member_from(network, task, plan(batch=len(task.answers)), start="construction")
    weights = {name: tensor[None] for name, tensor in member.initial.items()}
    batch = {name: tensor[None] for name, tensor in (member.examples | member.constants).items()}
    found = member.architecture.outputs(weights, batch)[0].numpy()
    np.testing.assert_allclose(found, evaluate(network, inputs(task)), rtol=1e-9, atol=1e-9)
    assert member.architecture.parameters == sum(tensor.size for _, tensor in network.by_name().items())
    assert trained(member).accuracy == 1


def test_training_goes_on_from_a_construction_and_moves_everything():
    task = queries()
    network = built(task)
    outcome = trained(member_from(network, task, plan(20, 1e-6, batch=13), start="construction"))
    assert outcome.accuracy == 1
    for name, tensor in network.by_name().items():
        assert not np.array_equal(outcome.weights[name].numpy(), tensor)


@pytest.mark.parametrize("task", [queries(), bigrams()], ids=["shared", "tokens"])
def test_frozen_attention_stays_and_the_rest_is_drawn_anew_and_learns(task):
    network = built(task)
    training = plan(600, 3e-2, batch=len(task.answers))
    member = member_from(network, task, training, start="frozen-attention", seed=3)
    assert member.frozen == ATTENTION & {name for name, _ in network.by_name().items()}
    outcome = trained(member)
    for name, tensor in network.by_name().items():
        same = np.array_equal(outcome.weights[name].numpy(), tensor)
        assert same == (name in ATTENTION)
    before = trained(member_from(network, task, plan(batch=len(task.answers)), start="frozen-attention", seed=3))
    assert outcome.loss < before.loss
    assert outcome.accuracy > before.accuracy


def test_the_trained_part_may_be_wider():
    task = queries()
    member = member_from(built(task), task, plan(400, 3e-2, batch=13), start="frozen-attention", widths=(3, 16))
    shapes = dict(member.architecture.shapes)
    assert (shapes["W_V"], shapes["W_O"], shapes["W_U"]) == ((4, 6, 3), (4, 3, 16), (16, 4))
    assert trained(member).accuracy == 1


def test_real_targets_are_learned_as_such():
    task = queries(labels=None)
    network = built(task)
    start = trained(member_from(network, task, plan(loss="mean-square", batch=13), start="construction"))
    assert start.loss < 1e-12
    drawn = member_from(network, task, plan(300, 3e-2, "mean-square", 13), start="frozen-attention")
    assert trained(drawn).loss < 0.05


def test_the_control_knows_nothing_of_the_construction():
    task = bigrams()
    member = member_from(built(task), task, plan(), start="random")
    assert not member.initial
    assert not member.frozen


def test_distributions_count_by_their_weights():
    rng = np.random.default_rng(0)
    task = random_distribution(examples=6, length=2, vocab=5, rng=rng)
    network = byheart.build("dana-2025", task, settings=dana_2025.DanaSettings(model_dim=4)).network
    outcome = trained(member_from(network, task, plan(batch=6), start="construction"))
    logits = torch.tensor(evaluate(network, (task.tokens, None))).log_softmax(dim=1).numpy()
    expected = -(task.likelihoods[:, None] * task.probabilities * logits).sum()
    assert outcome.loss == pytest.approx(expected, rel=1e-9)


def test_what_does_not_fit_is_refused():
    task = queries()
    network = built(task)
    with pytest.raises(BadInput, match="start is 'nothing'; expected frozen-attention"):
        member_from(network, task, plan(), start="nothing")
    with pytest.raises(BadInput, match="drawn anew"):
        member_from(network, task, plan(), start="construction", widths=(1, 8))
    with pytest.raises(BadInput, match="mean-square for real targets only"):
        member_from(network, task, plan(loss="mean-square"), start="construction")
    with pytest.raises(BadInput, match="k is 8; expected 4"):
        member_from(built(bigrams()), bigrams(), plan(), start="frozen-attention", widths=(1, 8))


def test_the_example_is_an_experiment_of_ones_own() -> None:
    """examples/hybrid.py, a few steps: a construction that is trained on knows nearly everything from the start."""
    experiment = load(source(str(EXAMPLE), "smoke"))
    assert len(experiment.groups(experiment.configs)) == 6
    chosen = [
        replace(c, steps=2) for c in experiment.configs if c.examples == 75 and c.way == "generic" and c.seed == 0
    ]
    rows = dict(zip([c.start for c in chosen], experiment.work(chosen, "cpu", None), strict=True))
    assert rows["construction"]["accuracy"] > 0.9
    assert rows["random"]["accuracy"] < 0.5
