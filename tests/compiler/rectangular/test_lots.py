"""Lots: equally full, turned, told by the network as they are solved for; and what they are good for."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from byheart import certify
from byheart.compiler import CompilerSettings, edit
from byheart.compiler.layouts import NAME, Resources, Unsolvable
from byheart.compiler.rectangular import lots, shards
from byheart.compiler.rectangular.attempt import attempt
from byheart.compiler.rectangular.dimensions import TableSizes, stretches_for
from byheart.compiler.rectangular.front import add_front
from byheart.compiler.rectangular.recipe import first_recipe
from byheart.compiler.rectangular.shelf import Shelf
from byheart.compiler.rectangular.solve import solve
from byheart.compiler.rectangular.wiring import Wiring
from byheart.constructions.built import Built
from byheart.constructions.gadgets import parities
from byheart.errors import BadInput
from byheart.networks.transformer.transformer_network import TransformerNetwork
from byheart.tasks import random_next_token
from byheart.tasks.contexts import Contexts
from byheart.tasks.windows import task_contexts

SIZES = TableSizes(24, 0, columns=6, starts=24, margin=3, aligned=8, exponent_share=0, shards=3, stretches=2)
"""Rows 0 … 29 in two stretches of 15 starts, three offsets: six lots in each of three shards."""


def test_by_hand() -> None:
    """Twelve routes with a question each, six lots of two: the first begins 0.618 lots from the beginning, or 0.236."""
    counts = np.ones(12, np.int64)
    assert lots.cut_shard(counts, SIZES, 0).tolist() == [1, 3, 5, 7, 9, 11]
    assert lots.cut_shard(counts, SIZES, 1).tolist() == [0, 2, 4, 6, 8, 10]
    assert lots.lots_of(np.arange(12) + 40, SIZES, 0).tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 0]


@pytest.mark.parametrize("turn", range(lots.TURNS))
def test_equally_full(turn: int) -> None:
    """To one route, however uneven the routes are, and wherever they lie."""
    rng = np.random.default_rng(turn)
    routes = rng.integers(5, 3000, 9000) + rng.integers(0, 900, 9000)
    full = np.bincount(lots.lots_of(routes, SIZES, turn), minlength=6)
    assert full.max() - full.min() <= 2 * np.bincount(routes).max()
    found = {tuple(lots.lots_of(routes, SIZES, other)) for other in range(lots.TURNS)}
    assert len(found) == lots.TURNS


def test_the_network_says_what_is_solved_for() -> None:
    """Shard, offset and start of every question, by the sublayer and by the routes of a shard, turned differently."""
    wiring, turns = Wiring(np.dtype("float32")), [0, 4, 1]
    front = add_front(wiring, SIZES, 64, 8, np.random.default_rng(0))
    routes = np.random.default_rng(1).integers(0, SIZES.routes, 2000)
    counts = np.bincount(routes, minlength=SIZES.routes)
    cuts = shards.cut(counts, 3)
    told = {**wiring.tensors, **lots.lot_tensors(wiring.tensors, SIZES, counts, cuts, turns)}
    stream = torch.zeros(wiring.stream, len(routes))
    for layer in wiring.sublayers:
        if layer.name in (lots.SHARD, lots.LOTS):
            names = (f"{layer.name}.{name}" for name in ("W_in", "b_in", "W_out"))
            W_in, b_in, W_out = (torch.from_numpy(told[name][0]) for name in names)
            stream[layer.reads[0]] = torch.from_numpy(routes).float()
            stream[[*layer.writes]] += W_out @ torch.sigmoid(W_in @ stream[[*layer.reads]] + b_in[:, None])
            offset, start = stream[[*layer.writes[-2:]]].numpy()
    shard = stream[front.route[0]].numpy()
    for number, turn in enumerate(turns):
        own = (routes >= cuts[number]) & (routes < cuts[number + 1])
        assert (shard[own] == number).all()
        expected = lots.lots_of(routes[own], SIZES, turn)
        assert (offset[own] * 2 + start[own] / SIZES.stretch == expected).all()
        assert lots.turn_of(told, SIZES, number, routes[own]) == turn
    with pytest.raises(BadInput, match="not the recipe of this network"):
        lots.turn_of({**told, "shard.W_out": told["shard.W_out"] + 9999}, SIZES, 0, routes[routes < cuts[1]])


def compiled(shard_count: int, keep: Shelf | None = None) -> Built:
    """1,600 questions of 4 bits, in lots though they are few."""
    task = random_next_token(examples=1600, length=8, vocab=64, labels=16, rng=np.random.default_rng(0))
    contexts = task_contexts(task, 8)
    recipe = first_recipe(contexts, CompilerSettings(shards=shard_count))
    sizes = replace(recipe.sizes, stretches=2, starts=recipe.sizes.starts + recipe.sizes.starts % 2)
    assert sizes.lots_fit
    network, choices = attempt(replace(recipe, sizes=sizes), contexts, Resources(shelf=keep))
    return Built(NAME, recipe.settings, network, 0.0, 0, contexts, choices)


@pytest.mark.parametrize("shard_count", [1, 3])
def test_every_answer(shard_count: int) -> None:
    built = compiled(shard_count)
    certificate = certify(built, built.questions)
    assert certificate.certified
    assert certificate.errors == 0


def test_a_shard_without_a_solution_is_turned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only that one; the others are as they were. Whoever goes on, and whoever edits, finds out how often."""
    before, solved = compiled(3), []

    def fails(*given: object, **named: object) -> object:
        solved.append(1)
        if len(solved) == 2:
            raise Unsolvable("as told", dependent=7)
        return solve(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(shards, "solve", fails)
    built = compiled(3, Shelf(tmp_path / "net.parts"))
    monkeypatch.undo()
    shelf = Shelf(tmp_path / "net.parts")
    assert compiled(3, shelf).network.fingerprint == built.network.fingerprint
    assert shelf.found == 3
    assert [note["turn"] for note in built.network.about["shards"]] == [0, 1, 0]
    assert certify(built, built.questions).certified
    assert isinstance(before.network, TransformerNetwork)
    assert isinstance(built.network, TransformerNetwork)
    old, new = dict(before.network.tensors()), dict(built.network.tensors())
    assert {name for name in old if not np.array_equal(old[name], new[name])} == {
        "shard.W_out",
        "table.W_out.1",
    }
    contexts = built.questions
    assert isinstance(contexts, Contexts)
    for question in range(20):
        label = (int(contexts.labels[question]) + 1) % 16
        edited = edit(built.network, contexts, int(contexts.places[question]), label).built
        assert isinstance(edited.network, TransformerNetwork)
        if not np.array_equal(dict(edited.network.tensors())["table.W_out.1"], new["table.W_out.1"]):
            break
    wanted = contexts.labels.copy()
    wanted[question] = label
    assert edited.network.about["shards"][1]["turn"] == 1
    assert certify(edited, contexts.with_answers(wanted)).certified


def test_a_hash_that_is_to_blame_is_not_turned(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def fails(*_: object, **__: object) -> object:
        tried.append(1)
        raise Unsolvable("as told", dependent=400)

    monkeypatch.setattr(shards, "solve", fails)
    with pytest.raises(Unsolvable, match="as told"):
        compiled(3)
    assert len(tried) <= 3, "each shard once"


def dependent(stretches: int, seed: int) -> int:
    """Of a system of 17 columns and 102 rows, filled to 0.99 at places that are drawn: equations that depend on others.

    Each of so many stretches has its share; with 0 of them, chance has its way.
    """
    rng, columns, rows = np.random.default_rng([seed, stretches]), 17, 102
    count = int(0.99 * 6 * columns * rows)
    within = rng.random(count) if not stretches else (np.arange(count) % stretches + rng.random(count)) / stretches
    start = np.clip((within * rows).astype(np.int64) - 3, 0, rows - 7)
    at = start[:, None] + rng.integers(0, 7, (count, 2))
    at = at[np.argsort(at.min(axis=1), kind="stable")]
    column = rng.integers(0, columns + 1, (count, 6))
    cells = (np.repeat(at, 3, axis=1) * 6 + np.arange(6)) * columns + column
    base = at.min(axis=1) * 6 * columns >> 6
    return parities.reduce_band(
        np.where(column < columns, cells, -1), base, 6 * columns * rows, 7 * 6 * columns // 64 + 2
    ).dependent


def test_what_stretches_are_good_for() -> None:
    """At 0.99 some draws leave a stretch of rows too full for its band; with as many stretches as planned, none."""
    planned = stretches_for(102, 17, 3)
    assert planned == 2
    without = [dependent(0, seed) for seed in range(60)]
    assert sum(found > 6 for found in without) >= 4
    assert max(dependent(planned, seed) for seed in range(60)) <= 6
