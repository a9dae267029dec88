"""Tables by hand: words of all three in the same places, each seen by its class alone, and in its block alone."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn.functional import linear, silu

from byheart.compiler.stock.architectures import ExpertSizes, LayerSizes
from byheart.compiler.stock.dimensions import CODES, DOWN, GATE, LANES, REACH, RESERVED, UP, StreamMap, _grids
from byheart.compiler.stock.spread import SQUARE, powers, spread
from byheart.compiler.stock.table import (
    ALPHA,
    BIG,
    DOWN_UNIT,
    FOUND,
    GATE_UNIT,
    POISON,
    TAU,
    UP_UNIT,
    negative,
    swiglus,
)
from byheart.compiler.stock.units import HUGE, ONE, StockLayer, norm, ones

SIZES = ExpertSizes(48, (7, 7), (9, 5), 92, 3, 15, 15)
LAYERS = LayerSizes(48, (7, 7), (9, 5), 92, 3, 92, 10)
Q = {UP: 0.0, DOWN: -1.0, GATE: 1.0}
READ = [0, 8, 14, 20, 27, 33]
"""One column of each lane."""
ROWS = (3 * 7 + 1, 49 + 8 * 5 + 0)
"""Digits (0, −2), and (4, −2): the farthest."""


@pytest.fixture(scope="module")
def at() -> StreamMap:
    found = StreamMap(48)
    spread(SIZES, found, 1)
    return found


@pytest.fixture(scope="module")
def tables() -> NDArray[np.int64]:
    """The largest words, and random ones."""
    rng = np.random.default_rng(0)
    shape = (3, SIZES.rows, SIZES.words)
    low = np.broadcast_to(-(negative(SIZES).astype(np.int64) << 22), shape)
    up, down = (low + rng.integers(0, 1 << 22, size=shape) for _ in range(2))
    gate = rng.integers(0, 1 << 16, size=shape)
    largest = low + ((1 << 22) - 1) * (low == 0)
    up[0], down[0], gate[0] = largest[0], largest[0], (1 << 16) - 1
    return np.stack([up, down, gate])


def stream(at: StreamMap, kind: int, block: int) -> torch.Tensor:
    """What the question's block finds, by the table in its module's docstring."""
    found = torch.zeros(48)
    found[: ones(48)] = 1
    found[at.q], found[at.total] = Q[kind], (block - 1) * UP_UNIT
    for (x, y, s), (i, j) in zip(at.address, ((0, -2), (4, -2)), strict=True):
        found[x], found[y], found[s] = i, j, i**2 + j**2
    found[at.columns] = POISON if kind == DOWN else 0.0
    found[[at.columns[number] for number in READ]] = FOUND[kind]
    return found


def in_any_order(row: torch.Tensor, weights: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Term by term, in a random order."""
    total = torch.zeros(len(weights))
    for feature in rng.permutation(len(row)).tolist():
        total = total + row[feature] * weights[:, feature]
    return total


@pytest.mark.parametrize("kind", [UP, DOWN, GATE])
@pytest.mark.parametrize("block", [0, 2])
def test_each_table_is_seen_by_its_class_alone(at: StreamMap, tables: NDArray[np.int64], kind: int, block: int) -> None:
    named = {part: torch.tensor(value[block]).float() for part, value in swiglus(SIZES, at, tables).items()}
    found, rng = stream(at, kind, block), np.random.default_rng(0)
    words = tables[kind, block][:, READ]
    others = [row for row in range(SIZES.rows) if row not in ROWS]
    for _ in range(5):
        gate = in_any_order(found, named["gate"], rng)
        up = in_any_order(found, named["up"], rng)
        assert (silu(gate)[others] == 0).all()
        for row in ROWS:
            total = float(words[row].sum())
            assert float(silu(gate)[row]) == {UP: ALPHA, DOWN: 2 * ALPHA, GATE: 64 * total}[kind]
            assert float(up[row]) == {UP: total * 2.0**-56, DOWN: -TAU, GATE: TAU}[kind]
        added = in_any_order(silu(gate) * up, named["down"], rng)
        after = found + added
        total = float(words[list(ROWS)].sum())
        if kind == DOWN:
            wanted = words[list(ROWS)].sum(axis=0) * DOWN_UNIT
            assert after[[at.columns[number] for number in READ]].tolist() == wanted.tolist()
            unread = [column for number, column in enumerate(at.columns) if number not in READ]
            assert (after[unread] == POISON).all()
        elif kind == GATE:
            assert float(after[at.total]) == total * GATE_UNIT
        else:
            assert float(after[at.total]) == (total + block - 1) * UP_UNIT


@pytest.mark.parametrize("expert", range(3))
def test_the_router_chooses_the_expert(at: StreamMap, tables: NDArray[np.int64], expert: int) -> None:
    router = torch.tensor(SIZES.feed_forward(at, tables, 9)[9]["mlp.gate.weight"]).float()
    probabilities = linear(stream(at, UP, expert), router).softmax(0)
    assert int(probabilities.argmax()) == expert
    assert probabilities.max() == 1


def attended(layer: StockLayer, found: torch.Tensor) -> torch.Tensor:
    """What attention to the same token adds."""
    after = found.clone()
    for what, adds in zip(layer.V, layer.adds, strict=True):
        value = sum(weight * float(found[feature]) for feature, weight in what.items())
        for feature, weight in adds.items():
            after[feature] += weight * value
    return after


@pytest.mark.parametrize("kind", [UP, DOWN, GATE])
@pytest.mark.parametrize("block", range(3))
def test_other_layers_are_silent(at: StreamMap, tables: NDArray[np.int64], kind: int, block: int) -> None:
    """The squares go 4, 1, 0 for the last of three blocks, 1, 0, 1 for the second, 0, 1, 4 for the first."""
    named = {part: torch.tensor(value).float() for part, value in swiglus(LAYERS, at, tables).items()}
    found, rng = stream(at, kind, 1), np.random.default_rng(0)
    e = block - 1
    found[at.number], rows = e, [found[s].item() for _, _, s in at.address]
    for x, y, s in at.address:  # as the layer before leaves them
        found[s] += SQUARE * (found[x] + found[y]) + e**2 + 2 * e
    for number, layer in enumerate(LAYERS.table_layers(at)):
        found = attended(layer, found)
        assert [found[s].item() - row for (_, _, s), row in zip(at.address, rows, strict=True)] == [
            (block - number) ** 2
        ] * 2
        gate = in_any_order(found, named["gate"][number], rng)
        assert torch.isfinite(in_any_order(found, named["up"][number], rng)).all()
        if number == block:
            assert np.flatnonzero(silu(gate).numpy()).tolist() == list(ROWS)
        else:
            assert gate.max() < -128


def test_words_survive_rmsnorm() -> None:
    """The smallest one is still a normal number after 1/rms, whatever the width."""
    for width in (48, 64, 80, 96, 112, 128, 192, 256):
        plain, _ = norm(width)
        assert DOWN_UNIT / plain >= torch.finfo(torch.float32).tiny
        row = torch.zeros(width)
        row[: ones(width)], row[-1], row[-2], row[-3] = HUGE, DOWN_UNIT, 12 * 2.0**16 * GATE_UNIT, POISON
        normed = row * torch.rsqrt(row.pow(2).mean() + 1e-6) * plain
        assert normed[ones(width) :].tolist() == row[ones(width) :].tolist()


def test_bounds() -> None:
    """What the module's docstring says of its numbers."""
    assert BIG > LANES << 16
    assert 64 * (BIG - (LANES << 16)) > 128
    assert 64 * BIG - 2 * ALPHA > 128
    for a, b in _grids():
        reach = (a // 2) ** 2 + (b // 2) ** 2
        assert reach <= REACH
        assert 2 * reach * BIG + (LANES + 1) * (1 << 16) <= 1 << 24
    assert 2.0**22 * DOWN_UNIT < POISON * 2.0**-25


def test_powers_of_two(at: StreamMap) -> None:
    """Eleven units, all their values positive: exact in every order."""
    for o in range(22):
        row = np.zeros(48)
        row[ONE], row[at.offset] = 1.0, o - 11
        values = []
        for gate, up, down in powers(at):
            on = sum(row[feature] * weight for feature, weight in gate.items())
            assert on <= 0 or on >= 128
            by = sum(row[feature] * weight for feature, weight in up.items())
            values.append(max(0.0, on) * by * down[at.scale])
        assert min(values) >= 0
        assert all(value * 2.0**21 % 1 == 0 for value in values)
        assert sum(values) == 2.0**-o


def test_columns_have_features_of_their_own(at: StreamMap) -> None:
    assert len(set(at.columns)) == SIZES.words == len(at.columns)
    assert set(at.columns) <= set(range(ones(48) + RESERVED, 48))
    assert len(at.codes) == CODES
