import math

import numpy as np
import pytest
import torch

from byheart.errors import BadInput
from byheart.papers.madden_2024 import (
    EXPERIMENTS,
    MaddenConfig,
    contexts,
    experiment,
    groups,
    member_of,
    stories,
    work,
)

TEXTS = (
    "a b c d e f g h i j",
    "a b c d e f g h i k",
    "a b x d e f g h i k and so on",
)


def test_every_beginning_is_a_context_with_the_counts_of_what_follows():
    found = contexts(stories(TEXTS, 3))
    assert found.counts.sum() == 3 * 9
    assert (
        len(found.tokens) == 9 + 0 + 7
    )  # the second story differs in its last token only, the third from the third on
    by_length = dict(zip(found.lengths.tolist(), found.counts, strict=True))
    assert sorted(by_length) == list(range(1, 10))
    first = found.counts[found.lengths.tolist().index(1)]
    assert first.max() == 3
    assert (first > 0).sum() == 1


def test_a_context_is_found_where_it_first_ends():
    found = contexts(stories(TEXTS, 3))
    assert found.stories[:, :3].tolist() == [[0, 1, 2], [0, 1, 2], [0, 1, 11]]
    assert found.places.tolist() == [*range(9), *range(20, 27)]
    assert found.tokens[[0, 2, 9]].tolist() == [[0] * 9, [0, 1, 2, *[0] * 6], [0, 1, 11, *[0] * 6]]


def test_the_entropy_is_worked_by_hand():
    found = contexts(stories(TEXTS, 3))
    # Places: behind "a b", c twice and x once; behind "a … i" (c), j and k. All others are certain.
    third = (3 * (math.log(3) - 2 / 3 * math.log(2)) + 2 * math.log(2)) / 27
    assert found.entropy == pytest.approx(third, rel=1e-12)


def test_stories_are_different_and_long_enough():
    assert len(stories([TEXTS[0], TEXTS[0], "short", TEXTS[2]], 2)) == 2
    with pytest.raises(BadInput, match="2 different stories of 10 tokens; expected at least 3"):
        stories([TEXTS[0], TEXTS[0], TEXTS[2]], 3)


def test_frozen_attention_is_computed_once_for_all_widths():
    data = contexts(stories(TEXTS, 3))
    narrow, wide, other = (member_of(MaddenConfig(3, m, True, seed), data) for m, seed in ((4, 0), (16, 0), (4, 1)))
    assert narrow.examples is wide.examples, "z does not depend on m, and is shared"
    assert not torch.equal(narrow.examples["attended"], other.examples["attended"]), "but on the seed"
    for member in (wide, other):
        drawn = member.architecture.init(torch.Generator().manual_seed(member.seed))
        weights = {name: tensor[None] for name, tensor in drawn.items()}
        batch = {name: part[None] for name, part in (data.examples | data.constants).items()}
        z = member.architecture.attended(weights, batch)
        assert torch.equal(member.examples["attended"], z[0])


def test_the_loss_is_a_mean_over_tokens_and_stays_above_the_entropy():
    configs = [MaddenConfig(3, m, frozen=False, steps=1, learning_rate=1e-12) for m in (4, 16)]
    rows = work(configs, texts=TEXTS)
    data = contexts(stories(TEXTS, 3))
    for config, row in zip(configs, rows, strict=True):
        member = member_of(config, data)
        first = member.architecture.init(torch.Generator().manual_seed(0))
        weights = {name: tensor[None] for name, tensor in first.items()}
        batch = {name: part[None] for name, part in (member.examples | member.constants).items()}
        logits = member.architecture.outputs(weights, batch)[0]
        expected = -(logits.log_softmax(dim=-1).numpy() * data.counts).sum() / 27
        assert row["loss"] == pytest.approx(expected, rel=1e-5)
        assert row["excess"] == pytest.approx(row["loss"] - data.entropy)
        assert row["parameters"] == row["vocab"] * (17 + config.hidden) + 1088 + 17 * config.hidden


@pytest.mark.slow
def test_enough_units_reach_the_entropy():
    configs = [MaddenConfig(3, 32, frozen=frozen, steps=1000, learning_rate=3e-3) for frozen in (False, True)]
    rows = work(configs, texts=TEXTS)
    assert all(0 <= row["relative_excess"] + 1e-6 < 0.05 for row in rows)
    assert all(row["entropy"] > 0.1 for row in rows)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_smoke_runs(name):
    made = EXPERIMENTS[name]("smoke")
    assert made.name == name
    rows = [row for group in made.groups(made.configs) for row in made.work(group, "cpu", None)]
    assert len(rows) == len(made.configs)
    assert all(np.isfinite(row["loss"]) for row in rows)


def test_the_paper_has_80_runs_a_setting():
    made = experiment("paper", frozen=True)
    assert len(made.configs) == 80
    assert {config.steps for config in made.configs} == {50_000}
    assert [len(group) for group in groups(made.configs)] == [8] * 10
