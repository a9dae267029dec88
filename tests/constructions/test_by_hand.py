"""Each construction on three sequences, with the draws written down: every number in the text can be checked by hand.

Sequences [0, 1], [1, 1], [2, 0] with labels 1, 0, 1. The generator is told to draw the modulus 131 and the codes
u(0) = 5, u(1) = 7, u(2) = 11. Behind the attention the last token holds u + 2Σ: 7 + 2·12 = 31, 7 + 2·14 = 35 and
5 + 2·16 = 37. All are below 131/2, so folding leaves them as they are.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from byheart.constructions import Construction, interpolate, kajitsuka_sato_2025, vardi_2022
from byheart.constructions.gadgets.contextual import LookupSizes, coded_tokens
from byheart.constructions.gadgets.demand import demand_of
from byheart.networks import count
from byheart.networks.exact import Embedding, ExactNetwork, FeedForward, Flatten, UniformAttention
from byheart.tasks import NextToken, SeqToSeq, random_seq_to_seq

TASK = NextToken(tokens=[[0, 1], [1, 1], [2, 0]], labels=[1, 0, 1])
STREAM = [31, 35, 37]

Through = Callable[..., list[list[Fraction]]]


def made(construction: Construction, task: NextToken, draws: Any) -> tuple[ExactNetwork, dict[str, object]]:
    """What it makes of these draws, by its plan, and what it chose."""
    found = construction.build(task, construction.settings(), draws, None)
    assert isinstance(found.network, ExactNetwork)
    assert found.plan.agrees_with(count(found.network))
    return found.network, found.chosen


def test_interpolate(scripted: Callable[..., object], through: Through) -> None:
    """The zigzag through (31, 1), (35, 0), (37, 1) of test_interpolation, behind the table and the attention."""
    network, chosen = made(interpolate.CONSTRUCTION, TASK, scripted(131, np.array([5, 7, 11])))
    embedding, attention, label = network.layers
    assert isinstance(embedding, Embedding)
    assert embedding.W_E.tolist() == [[5], [7], [11]]
    assert isinstance(attention, UniformAttention)
    assert attention.W_V.tolist() == [[2]]
    assert attention.W_O.tolist() == [[2]]
    assert isinstance(label, FeedForward)
    assert [layer.b.tolist() for layer in label.layers] == [[0, -131, -143], [-61]]
    assert [through(label.layers, [z])[-1] for z in STREAM] == [[1], [0], [1]]
    assert chosen["modulus"] == 131
    assert chosen["draws"] == 1


def test_kajitsuka_sato(scripted: Callable[..., object], through: Through) -> None:
    """The stream is at most 2·2 + 1 = 5 times Q: 4 folds, for 2·5 ≤ 2⁴. Then three groups of one key each.

    One key a group costs 8·3 − 2 + 17 = 39, less than any slot with its 43 or more. κ = 2z + y = 63, 70, 75; groups
    begin at keys 35 and 37. In all 3 for the table, 2 for the attention, 4 + 3·6 + 3 = 25 for the folds: 69.
    """
    network, chosen = made(kajitsuka_sato_2025.CONSTRUCTION, TASK, scripted(131, np.array([5, 7, 11])))
    label = network.layers[-1]
    assert isinstance(label, FeedForward)
    assert [layer.role for layer in label.layers] == ["fold"] * 4 + ["key", "steps", "groups", "read", "answer"]
    assert [layer.b.tolist()[1] for layer in label.layers[:4]] == [-131 * 8, -131 * 4, -131 * 2, -131]
    steps, groups = label.layers[5:7]
    assert steps.b.tolist() == [0, 1 - 35, -35, 1 - 37, -37]
    assert groups.W.tolist() == [[2, 63 - 70, 70 - 63, 70 - 75, 75 - 70], [0] * 5]
    assert groups.b.tolist() == [2 - 63, 0]
    for z, y in zip(STREAM, TASK.labels, strict=True):
        values = through(label.layers, [z])
        assert values[4] == [z]  # folded
        assert values[6] == [2 - y, 0]  # e = 2z + 2 − κ
        assert values[-1] == [y]
    assert sum(tensor.size for _, tensor in network.tensors()) == 69
    assert chosen == {"modulus": 131, "draws": 1}


def test_kajitsuka_sato_draws_again(scripted: Callable[..., object]) -> None:
    """Codes 0, 0, 0 give all three sequences the key 0, which asks for labels 1 and 0: drawn again."""
    draws = scripted(131, np.array([0, 0, 0]), 137, np.array([5, 7, 11]))
    _, chosen = made(kajitsuka_sato_2025.CONSTRUCTION, TASK, draws)
    assert chosen == {"modulus": 137, "draws": 2}


def test_vardi(scripted: Callable[..., object], through: Through) -> None:
    """v = (3, 60) hashes the points to 60, 63 and 6; ids of 2 bits, so s ≤ 2·2²·Q: 4 folds.

    Folded at 131, these stay as they are: keys 6, 60, 63 with labels 1, 1, 0.
    """
    network, chosen = made(vardi_2022.CONSTRUCTION, TASK, scripted(131, np.array([3, 60]), 0))
    flatten, label = network.layers
    assert isinstance(flatten, Flatten)
    assert isinstance(label, FeedForward)
    assert [layer.role for layer in label.layers][:6] == ["hash"] + ["fold"] * 4 + ["key"]
    assert label.layers[0].W.tolist() == [[3, 60]]
    assert label.layers[0].b.tolist() == [0]
    for point, key, y in zip(TASK.tokens.tolist(), [60, 63, 6], [1, 0, 1], strict=True):
        values = through(label.layers, point)
        assert values[0] == values[5] == [key]
        assert values[-1] == [y]
    assert label.layers[6].b.tolist() == [0, 1 - 60, -60, 1 - 63, -63]
    assert chosen == {"modulus": 131, "draws": 1}


def test_vardi_on_small_ids_needs_no_hash(through: Through) -> None:
    """A single id below 4 is its own key: nothing is drawn. Keys 0, 2, 3 with labels 2, 0, 1; one key a group."""
    task = NextToken(tokens=[[2], [0], [3]], labels=[0, 2, 1])
    network, chosen = made(vardi_2022.CONSTRUCTION, task, None)
    (label,) = network.layers
    assert isinstance(label, FeedForward)
    assert [layer.role for layer in label.layers] == ["steps", "groups", "read", "answer"]
    assert label.layers[0].b.tolist() == [0, 1 - 2, -2, 1 - 3, -3]
    assert [through(label.layers, [z])[-1] for z in range(4)] == [[2], [0], [0], [1]]
    assert chosen == {}


@pytest.mark.parametrize("engine", [interpolate.INTERPOLATION, kajitsuka_sato_2025.extraction()], ids=["i", "k"])
@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("dim", [None, 2])
def test_token_codes(engine: object, positions: bool, dim: int | None, answers: Callable[..., list[Fraction]]) -> None:
    """In front of the attention of a seq-to-seq network stands u = code·2^B + hash for every token.

    The hash is below 2^B; the code is that of a marked token, 0 for all others; tokens of one sequence differ in it.
    """
    if dim is None and not positions:
        return  # token ids have their codes in the table
    sizes = {"examples": 6, "length": 4, "vocab": 7, "labels": 3, "dim": dim}
    task: SeqToSeq = random_seq_to_seq(**sizes, rng=np.random.default_rng(0))
    plan = LookupSizes(demand_of(task, positions=positions), engine)
    front = coded_tokens(task, plan, np.random.default_rng(1))
    codes = np.arange(100, 100 + len(front.marked))
    u = front.values(codes, None)
    assert plan.own_bits > 0
    assert (front.hashes < 1 << plan.own_bits).all()
    wanted = np.zeros(len(front.hashes), dtype=np.int64)
    wanted[front.marked] = codes
    assert (u >> plan.own_bits).tolist() == wanted.tolist()
    assert (u & ((1 << plan.own_bits) - 1)).tolist() == front.hashes.tolist()
    kind = "tokens" if dim is None else "vectors"
    network = ExactNetwork(tuple(front.layers(codes)), inputs=kind, outputs="every", length=4, dim=dim or 1)
    for row, sequence in zip(front.ids, task.inputs, strict=True):
        assert answers(network, sequence.tolist()) == u[row].tolist()
        assert len(set(u[row].tolist())) == len(set(row.tolist()))
