"""The codes that the construction computes with are those that the front's layers give, exactly."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from byheart.constructions.folding.fronts import KINKS, OWN, FoldingFront, draw_codes
from byheart.constructions.gadgets import vectors
from byheart.constructions.gadgets.demand import positioned_ids
from byheart.networks.exact import (
    Affine,
    Embedding,
    ExactNetwork,
    FeedForward,
    Layer,
    Positions,
    integers,
    reference,
)
from byheart.networks.exact.evaluate import evaluate
from byheart.tasks import NextToken, SeqToSeq, Task, random_next_token, random_seq_to_seq


def front_of(task: Task, positions: bool, level: int) -> FoldingFront:
    bits = 0 if task.vectors is None else vectors.from_floats(task.vectors.reshape(-1, task.vectors.shape[2])).bits
    return FoldingFront(task.size, positions, isinstance(task, SeqToSeq), level, bits)


def drawn(
    task: Task, positions: bool, level: int, dim: int, seed: int, *, narrow: bool = False
) -> tuple[FoldingFront, np.ndarray, list[Layer]]:
    """The front, the codes of all tokens where they stand [N, n, D], and the layers."""
    front, ids = replace(front_of(task, positions, level), narrow=narrow), positioned_ids(task, positions)
    first = np.unique(ids, return_index=True)[1]
    codes, layers = draw_codes(front, task, first, dim, np.random.default_rng(seed))
    assert codes.shape == (len(first), dim)
    return front, codes[ids], layers


def computed(layers: list[Layer], task: Task, dim: int) -> np.ndarray:
    """[N, n, D], one column of the stream at a time."""
    columns = []
    for column in range(dim):
        row = [[int(k == column) for k in range(dim)]]
        end = FeedForward((Affine(integers(row), integers([0]), relu=False, role="column"),), name="end")
        size = task.size
        network = ExactNetwork(
            (*layers, end),
            inputs="tokens" if size.dim is None else "vectors",
            outputs="every",
            length=size.length,
            dim=size.dim or 1,
        )
        columns.append(evaluate(network, task.inputs))
        few = task.inputs[:2]
        assert (reference.evaluate(network, few) == columns[-1][:2]).all()
    return np.stack(columns, axis=2)


MAKE = {"next-token": random_next_token, "seq-to-seq": random_seq_to_seq}
KINDS = [
    pytest.param(
        kind, positions, dim, vocab, id=f"{kind}-{'vectors' if dim else 'ids'}{'+positions' * positions}-{vocab}"
    )
    for kind, positions, (dim, vocab) in product(MAKE, (False, True), [(None, 20), (3, 20), (2, None), (1, None)])
]


@pytest.mark.parametrize(("kind", "positions", "dim", "vocab"), KINDS)
@pytest.mark.parametrize("level", [8, 20])
def test_codes_are_what_the_layers_compute(
    kind: str, positions: bool, dim: int | None, vocab: int | None, level: int
) -> None:
    task = MAKE[kind](examples=8, length=5, vocab=vocab, labels=3, dim=dim, rng=np.random.default_rng(level))
    _, codes, layers = drawn(task, positions, level, 6, seed=1)
    assert (computed(layers, task, 6) == codes).all()


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("dim", [None, 3])
@pytest.mark.parametrize("kind", MAKE)
def test_parts_are_the_layers_shapes(kind: str, positions: bool, dim: int | None) -> None:
    task = MAKE[kind](examples=8, length=5, vocab=20, labels=3, dim=dim, rng=np.random.default_rng(0))
    front, _, layers = drawn(task, positions, 8, 7, seed=2)
    planned = []
    for name, part in front.parts(7):
        shapes = [(f"{name}.{key}", shape) for key, shape in (part if isinstance(part, tuple) else part.tensors())]
        planned.extend(shapes)
    network = ExactNetwork(
        tuple(layers), inputs="vectors" if dim else "tokens", outputs="every", length=5, dim=dim or 1
    )
    assert planned == [(name, tensor.shape) for name, tensor in network.tensors()]


@pytest.mark.parametrize("level", [1, 20])
def test_one_integer_a_token(level: int) -> None:
    task = random_next_token(examples=8, length=5, vocab=20, labels=3, rng=np.random.default_rng(0))
    front, codes, layers = drawn(task, False, level, 6, seed=1, narrow=True)
    assert (computed(layers, task, 6) == codes).all()
    network = ExactNetwork(tuple(layers), inputs="tokens", outputs="every", length=5)
    planned = [
        (f"{name}.{key}", shape)
        for name, part in front.parts(6)
        for key, shape in (part if isinstance(part, tuple) else part.tensors())
    ]
    assert planned == [(name, tensor.shape) for name, tensor in network.tensors()]
    assert planned[0] == ("embedding.W_E", (20, 1))
    # Eight kinks of two parameters, and six columns that read all of them.
    assert front.cost(6, table=False) == 16 + 6 * 9
    assert front.cost(6, table=True) == 20 + 16 + 6 * 9


WILD = [1e-300, 1e300, -1e-300, 5e-324, -5e-324, 0.0, -0.0, 1.0, float(np.nextafter(1.0, 2.0)), -1.0]


@pytest.mark.parametrize("positions", [False, True])
def test_wild_vectors(positions: bool) -> None:
    task = NextToken(vectors=np.array(WILD)[:, None, None] * np.ones((1, 2, 1)), labels=np.zeros(len(WILD), dtype=int))
    _, codes, layers = drawn(task, positions, 12, 6, seed=3)
    assert (computed(layers, task, 6) == codes).all()


def test_ids_with_positions_by_hand() -> None:
    """z + relu(−3z): z where z ≥ 0, −2z below: order within the sequence changes the sum of codes."""
    task = NextToken(tokens=[[0, 1], [1, 0]], labels=[0, 1])
    _, codes, (table, places, code) = drawn(task, True, 5, 6, seed=4)
    assert isinstance(table, Embedding)
    assert isinstance(places, Positions)
    assert isinstance(code, FeedForward)
    assert code.residual
    for sequence, tokens in enumerate(task.tokens.tolist()):
        for k, token in enumerate(tokens):
            z = [int(a) + int(b) for a, b in zip(table.W_E[token], places.W_pos[k], strict=True)]
            assert codes[sequence, k].tolist() == [x if x >= 0 else -2 * x for x in z]
    assert max(abs(int(w)) for w in table.W_E.ravel()) <= 5


@pytest.mark.parametrize("kind", MAKE)
def test_untouched_columns_are_as_large_as_sums(kind: str) -> None:
    """Seq-to-seq: two columns of codes about 3·√n times as large; next-token: none."""
    task = MAKE[kind](examples=300, length=16, vocab=200, labels=2, rng=np.random.default_rng(0))
    front, codes, _ = drawn(task, False, 50, 7, seed=5)
    assert front.own == (OWN if kind == "seq-to-seq" else 0)
    assert np.abs(codes[:, :, front.own :]).max() == 50
    if front.own:
        assert np.abs(codes[:, :, :OWN]).max() == pytest.approx(50 * 13, rel=0.05)
        assert front.scales(7).tolist() == [13, 13, 1, 1, 1, 1, 1]


def test_columns_of_vectors_have_different_parities() -> None:
    """All parities alike would leave the systems modulo 2 with one column instead of D."""
    task = random_next_token(examples=300, length=1, vocab=None, labels=2, dim=2, rng=np.random.default_rng(0))
    _, codes, layers = drawn(task, False, 20, 8, seed=6)
    assert len({tuple(column) for column in (codes[:, 0] % 2).T.tolist()}) >= 5
    assert len(layers[-1].layers[0].W) == 2 * KINKS


def test_a_vector_and_its_negative_have_different_codes() -> None:
    vectors = np.random.default_rng(0).standard_normal((20, 1, 3))
    task = NextToken(vectors=np.concatenate([vectors, -vectors]), labels=[0] * 20 + [1] * 20)
    _, codes, layers = drawn(task, False, 24, 6, seed=7)
    assert len({tuple(row) for row in codes[:, 0].tolist()}) == 40
    assert (computed(layers, task, 6) == codes).all()
