import pytest
import torch

from byheart.errors import BadInput
from byheart.lab.ensemble import train
from byheart.lab.experiment import key
from byheart.papers.mahdavi_2024 import (
    EXPERIMENTS,
    MahdaviConfig,
    data,
    groups,
    members,
    saturated_heads,
    steps,
    work,
)


def config(**changes):
    return MahdaviConfig(
        **{"answers": "labels", "context": "fixed", "examples": 24, "length": 3, "heads": 2, "head_dim": 8}
        | {"seed": 0, "steps": 30, "labels": 5, "batch": 8, "evaluate_every": 10}
        | changes
    )


def test_the_paper_has_342_runs_and_37_6_million_steps_a_seed():
    first = [config for make in EXPERIMENTS.values() for config in make("paper").configs if config.seed == 0]
    assert len(first) == 342
    assert sum(config.steps for config in first) == 37_574_920
    assert len([config for make in EXPERIMENTS.values() for config in make("paper").configs]) == 6 * 342


def test_steps_are_500_epochs_or_50000():
    assert steps(25_600) == 50_000
    assert steps(25_601) == 50_001
    assert steps(40_000) == 78_125


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_smoke_runs(name):
    made = EXPERIMENTS[name]("smoke")
    assert made.name == name
    rows = [row for group in made.groups(made.configs) for row in made.work(group, "cpu", None)]
    assert len(rows) == len(made.configs)
    for config, row in zip(made.configs, rows, strict=True):
        assert row["loss"] >= row["best_loss"] > 0
        assert (row["accuracy"] is None) == (config.answers == "targets")
        assert ("saturated_heads" in row) == (not config.stop)


def test_scales_differ_in_steps_and_seeds_only():
    short, paper = (EXPERIMENTS["mahdavi-2024-classification-head-dim-fixed"](scale) for scale in ("short", "paper"))
    assert {config.steps for config in short.configs} == {50_000}
    assert {config.steps for config in paper.configs} == {300_000}
    assert (len(short.configs), len(paper.configs)) == (36 * 2, 36 * 6)
    assert {c.head_dim for c in short.configs} == {c.head_dim for c in paper.configs} == {*range(10, 61, 5), 64}
    with pytest.raises(BadInput, match="scale is 'huge'"):
        EXPERIMENTS["mahdavi-2024-saturation"]("huge")


def test_data_are_uniform_and_the_seeds_own():
    examples, constants = data(config(examples=2000, labels=100))
    assert constants["contexts"].shape == (3, 64)
    assert examples["queries"].shape == (2000, 64)
    assert examples["queries"].min() >= 0
    assert examples["queries"].mean().item() == pytest.approx(0.5, abs=0.01)
    assert examples["answers"].unique().tolist() == list(range(100))
    own, nothing = data(config(context="random", answers="targets"))
    assert own["contexts"].shape == (24, 3, 64)
    assert not nothing
    assert own["answers"].is_floating_point()
    again, _ = data(config(examples=2000, labels=100))
    other, _ = data(config(examples=2000, labels=100, seed=1))
    assert torch.equal(again["queries"], examples["queries"])
    assert not torch.equal(other["queries"], examples["queries"])


def test_models_that_differ_in_heads_share_their_data():
    one, two, other = members([config(), config(heads=1), config(seed=1)])
    assert one.examples is two.examples
    assert one.examples is not other.examples


def test_jobs_are_what_a_gpu_trains_side_by_side():
    few = [config(heads=heads, head_dim=d_h) for heads in (1, 5, 10) for d_h in (8, 64)]
    more = [config(examples=40, length=length) for length in (2, 3)]
    assert groups([*few, *more]) == [few, more]


def test_stacks_are_of_one_number_of_heads_and_one_length():
    families = {
        config(heads=H, length=n, head_dim=d_h).architecture.family
        for H in (1, 2)
        for n in (3, 4)
        for d_h in (8, 12, 30)
    }
    assert len(families) == 2 * 2 * 2


def test_training_ends_when_all_labels_are_right():
    easy = config(examples=4, batch=4, steps=3000, evaluate_every=20)
    (row,) = work([easy])
    assert row["accuracy"] == 1
    assert row["steps"] < 3000
    assert row["steps"] % 20 == 0


def test_the_best_is_the_least_loss_on_the_way():
    changes = {"learning_rate": 0.5, "steps": 40, "evaluate_every": 5}
    (outcome,) = train(members([config(**changes)]))
    (row,) = work([config(**changes)])
    assert row["best_loss"] == pytest.approx(min(loss for _, loss, _ in outcome.history))


def test_saturated_heads_are_counted_for_every_example():
    (member,) = members([config(stop=False)])
    (row,) = work([config(stop=False)])
    weights = {name: tensor.float() for name, tensor in member.architecture.init(torch.Generator()).items()}
    assert saturated_heads(member, weights).tolist() == [0] * 24
    weights["W_K"] *= 1e6
    assert saturated_heads(member, weights).tolist() == [2] * 24
    counts = [int(number) for number in row["examples_by_saturated_heads"].split()]
    assert len(counts) == 3
    assert sum(counts) == 24
    assert row["saturated_heads"] == pytest.approx((counts[1] + 2 * counts[2]) / 24)


def test_dimensions_of_zeros_change_nothing_and_stay_zeros():
    small, large = config().architecture, config(head_dim=11).architecture
    joined = small.join(large)
    assert (joined.heads, joined.head_dim) == (small.heads, 11)
    first = small.init(torch.Generator().manual_seed(0))
    padded = {name: torch.zeros(1, *shape, dtype=torch.float64) for name, shape in joined.shapes.items()}
    for name, tensor in first.items():
        padded[name][(0, *(slice(size) for size in tensor.shape))] = tensor
    padded = {name: tensor.requires_grad_() for name, tensor in padded.items()}
    examples, constants = data(config())
    batch = {"queries": examples["queries"][None].double(), "contexts": constants["contexts"][None].double()}
    out = joined.outputs(padded, batch)
    alone = small.outputs({name: tensor[None] for name, tensor in first.items()}, batch)
    torch.testing.assert_close(out, alone, rtol=1e-12, atol=1e-12)
    out.square().sum().backward()
    for name, tensor in first.items():
        inside = torch.zeros_like(padded[name], dtype=torch.bool)
        inside[(0, *(slice(size) for size in tensor.shape))] = True
        assert padded[name].grad[~inside].abs().sum() == 0
        assert padded[name].grad[inside].abs().sum() > 0


def test_a_config_says_what_it_expects():
    with pytest.raises(BadInput, match="context 'own'; expected"):
        config(context="own")
    with pytest.raises(BadInput, match="heads is 0"):
        config(heads=0)
    assert key(config()) != key(config(seed=1))
