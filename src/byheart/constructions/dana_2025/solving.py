"""Draw attention, and solve for the values that give its stream the targets: a linear system, and a change of basis."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from byheart.constructions.gadgets.encoder import Encoder, divergence
from byheart.constructions.gadgets.linear_system import Factored
from byheart.networks.softmax import SoftmaxNetwork, attention, embedded, evaluate
from byheart.sizes import Size
from byheart.tasks.arrays import Floats, Ids

SINGULAR = 1e9
"""Largest condition number of a change of basis that is used."""
TAME = 1e-4
"""Omitted contexts are not moved along directions that need weights larger than 1/TAME."""
SLIGHT = 1e-5
"""Size, relative to the weights, of the change that makes the paper's change of basis regular; it is part of γ."""
DRAWN = ("W_E", "W_pos", "W_Q", "W_K", "W_V")
"""Names of the weights that features depend on."""


@dataclass(frozen=True)
class DanaShape:
    """The dimensions of a network."""

    d: int
    d_h: int
    H: int
    query: int
    """Width of queries and keys."""


def draw(
    tokens: Ids, size: Size, shape: DanaShape, W_U: Floats, sharpness: float, rng: np.random.Generator
) -> SoftmaxNetwork:
    """Draw the primed network: all weights random, W_O zero, and scores spread by ``sharpness`` in each head."""
    d, d_h, H = shape.d, shape.d_h, shape.H
    network = SoftmaxNetwork(
        W_E=rng.standard_normal((size.vocab, d)),
        W_pos=rng.standard_normal((size.length, d)),
        W_Q=rng.standard_normal((H, d, shape.query)),
        W_K=rng.standard_normal((H, d, shape.query)),
        W_V=rng.standard_normal((H, d, d_h)) / np.sqrt(d),
        W_O=np.zeros((H, d_h, d)),
        W_U=W_U,
        skip=True,
    )
    vectors, query = embedded(network, (tokens, None))
    scores = np.einsum("hdk,hek,te->thd", network.W_K, network.W_Q, query, optimize=True) @ vectors.transpose(0, 2, 1)
    spread = scores.std(axis=2).mean(axis=0)
    # Heads differ in sharpness, up to a factor of two either way: in few dimensions they differ in little else.
    target = sharpness * 2.0 ** rng.uniform(-1, 1, H)
    scale = np.where(spread > 0, target / np.where(spread > 0, spread, 1), 1)
    return network.with_tensor("W_Q", network.W_Q * scale[:, None, None])


def features(network: SoftmaxNetwork, tokens: Ids) -> Floats:
    """Return F [N, d + H·d_h]: the last token's vector beside the heads' values."""
    return Passed.through(network, tokens).features


def difference_rank(network: SoftmaxNetwork, tokens: Ids) -> int:
    """Return the rank of x_s − x_n over all contexts and positions: a head adds no more to the features' rank.

    It is that of their d × d Gram matrix, summed over the positions.
    """
    vectors, query = embedded(network, (tokens, None))
    moves = (vectors[:, s] - query for s in range(vectors.shape[1]))
    return int(np.linalg.matrix_rank(np.sum([move.T @ move for move in moves], axis=0), hermitian=True))


@dataclass(frozen=True, eq=False)
class Passed:
    """The intermediate values of a network up to its features, kept for the gradient."""

    network: SoftmaxNetwork
    tokens: Ids
    vectors: Floats
    """Vectors x [N, n, d]."""
    weights: Floats
    """Attention weights a [N, H, n]."""
    averages: Floats
    """Averages of the heads [N, H, d]."""
    features: Floats
    """Features F [N, d + H·d_h]."""

    @classmethod
    def through(cls, network: SoftmaxNetwork, tokens: Ids) -> "Passed":
        """Compute the features of contexts [N, n] with all intermediate values."""
        vectors, query = embedded(network, (tokens, None))
        weights = attention(network, vectors, query)
        averages = weights @ vectors
        values = np.einsum("thd,hdk->thk", averages, network.W_V)
        return cls(network, tokens, vectors, weights, averages, np.hstack([query, values.reshape(len(tokens), -1)]))

    def back(self, slope: Floats) -> dict[str, Floats]:
        """Return the gradient in the weights DRAWN of a function whose gradient in the features is ``slope`` [N, F]."""
        network, x = self.network, self.vectors
        assert network.W_E is not None
        H, d, d_h = network.W_V.shape
        query, values = slope[:, :d].copy(), slope[:, d:].reshape(-1, H, d_h)
        averages = np.einsum("thk,hdk->thd", values, network.W_V, optimize=True)
        vectors = self.weights.transpose(0, 2, 1) @ averages
        weights = averages @ x.transpose(0, 2, 1)
        scores = self.weights * (weights - (self.weights * weights).sum(axis=2, keepdims=True))
        queries = np.einsum("ths,tsd,hdk->thk", scores, x, network.W_K, optimize=True)
        keys = scores[..., None] * np.einsum("td,hdk->thk", x[:, -1], network.W_Q, optimize=True)[:, :, None]
        query += np.einsum("thk,hdk->td", queries, network.W_Q, optimize=True)
        vectors += np.einsum("thsk,hdk->tsd", keys, network.W_K, optimize=True)
        vectors[:, -1] += query
        W_E = np.zeros_like(network.W_E)
        np.add.at(W_E, self.tokens, vectors)
        return {
            "W_E": W_E,
            "W_pos": vectors.sum(axis=0),
            "W_Q": np.einsum("td,thk->hdk", x[:, -1], queries, optimize=True),
            "W_K": np.einsum("tsd,thsk->hdk", x, keys, optimize=True),
            "W_V": np.einsum("thd,thk->hdk", self.averages, values, optimize=True),
        }


@dataclass(frozen=True, eq=False)
class OtherContexts:
    """Contexts [R, n] that are not held, and their targets."""

    tokens: Ids
    targets: Floats
    """Targets of the stream [R, d]."""
    likelihoods: Floats = field(default_factory=lambda: np.zeros(0))
    """Probabilities of the contexts [R]; empty for labels."""
    probabilities: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """Distributions of the answers [R, C]; empty for labels."""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def left_out(self) -> float:
        """Total probability of the contexts, if they have distributions."""
        return float(self.likelihoods.sum())

    @property
    def uniform(self) -> float:
        """Divergence of the contexts from uniform answers, times their probability."""
        return divergence(np.zeros_like(self.probabilities), self.probabilities, self.likelihoods)

    def divergence(self, network: SoftmaxNetwork) -> float:
        """Return the divergence of the contexts from the network's answers, times their probability."""
        return divergence(evaluate(network, (self.tokens, None)), self.probabilities, self.likelihoods)


@dataclass(frozen=True, eq=False)
class Asked:
    """The demands on the stream: W_U [d, C], the held contexts and their targets, and the other contexts."""

    W_U: Floats
    tokens: Ids
    targets: Floats
    others: OtherContexts
    encoder: Encoder | None = None


@dataclass(frozen=True, eq=False)
class SolvedNetwork:
    """A network that answers the held contexts, and the drawn network that it comes from."""

    network: SoftmaxNetwork
    drawn: SoftmaxNetwork
    factored: Factored
    """Factored features of the held contexts."""
    basis: float
    """Condition number of the change of basis."""

    @property
    def roughness(self) -> float:
        """Magnification of rounding errors: by the features, and by the change of basis in both keys and queries."""
        return self.factored.condition * self.basis**2


def labels_as_targets(labels: Ids, label_count: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return W_U [d, C] and the targets [N, d] of ``labels``."""
    if d == 2:
        angles = 2 * np.pi * np.arange(label_count) / label_count
        rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    elif d == 1:
        rows = np.array([[1.0], [-1.0]])[:label_count]
    else:
        rows = rng.standard_normal((label_count, d))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    noise = rng.standard_normal((len(labels), d))
    noise *= _smallest_difference(rows) / 8 / np.linalg.norm(noise, axis=1, keepdims=True)
    targets: Floats = rows[labels] * rng.uniform(1, 2, (len(labels), 1)) + noise
    return rows.T.copy(), targets


def _smallest_difference(rows: Floats) -> float:
    """Return the smallest distance of two rows; 1 if there is one row."""
    products = rows @ rows.T
    np.fill_diagonal(products, -1.0)
    return float(np.sqrt(max(2 - 2 * products.max(), 1e-12))) if len(rows) > 1 else 1.0


def fits(
    drawn: SoftmaxNetwork, factored: Factored, asked: Asked, rng: np.random.Generator, *, near: bool = True
) -> Iterator[SolvedNetwork]:
    """Yield networks with the drawn attention that answer the held contexts and have a regular change of basis.

    One uses the paper's W_O, the W of least norm. With ``near`` and more features than held contexts, another uses a W
    that brings the other contexts nearer.
    """
    targets, others = _spanning(asked.targets, drawn, rng), asked.others
    if len(others) and not near:
        paper = Spread.of(factored, features(drawn, asked.tokens), features(drawn, others.tokens))
        yield from () if paper is None else _rebased(drawn, factored, paper.solve(targets), rng, slight=True)
        return
    W = factored.solve(targets)
    if len(others) and factored.rank < len(W):
        nearer = W + _towards(features(drawn, others.tokens), others.targets, W, factored)
        yield from _rebased(drawn, factored, nearer, rng)
    if not len(others) or others.left_out or factored.rank == len(W):
        yield from _rebased(drawn, factored, W, rng, slight=others.left_out > 0)


def _rebased(
    drawn: SoftmaxNetwork, factored: Factored, W: Floats, rng: np.random.Generator, *, slight: bool = False
) -> Iterator[SolvedNetwork]:
    """Yield the network with values W [F, d]; its change of basis is the skip connection's block M, if regular."""
    H, d, d_h = drawn.W_V.shape
    if np.linalg.cond(W[:d]) > SINGULAR:
        size = np.abs(W).max() * (SLIGHT if slight else 1.0)
        W = W + factored.invisible(size * rng.standard_normal(W.shape))
    M, condition = W[:d], float(np.linalg.cond(W[:d]))
    if condition > SINGULAR:
        return
    assert drawn.W_E is not None
    assert drawn.W_pos is not None
    W_Q, W_K, W_V = (np.asarray(np.linalg.solve(M, W), np.float64) for W in (drawn.W_Q, drawn.W_K, drawn.W_V))
    W_O, W_E, W_pos = W[d:].reshape(H, d_h, d), drawn.W_E @ M, drawn.W_pos @ M
    network = replace(drawn, W_E=W_E, W_pos=W_pos, W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O)
    yield SolvedNetwork(network, drawn, factored, condition)


def _towards(others: Floats, targets: Floats, W: Floats, factored: Factored) -> Floats:
    """Return the change of W that moves features ``others`` nearest to ``targets`` and keeps all held contexts."""
    free = factored.invisible(others.T).T
    left, singular, right = np.linalg.svd(free, full_matrices=False)
    firm = singular > TAME * np.linalg.norm(others, 2)
    return np.asarray(right[firm].T @ ((left[:, firm].T @ (targets - others @ W)) / singular[firm, None]), np.float64)


def _spanning(targets: Floats, drawn: SoftmaxNetwork, rng: np.random.Generator) -> Floats:
    """Return targets that span R^d; if needed, add random vectors in the kernel of W_U."""
    d = targets.shape[1]
    if np.linalg.matrix_rank(targets) == d:
        return targets
    assert drawn.W_U is not None
    left, singular, _ = np.linalg.svd(drawn.W_U)
    kernel = left[:, int((singular > 1e-12 * singular[0]).sum()) :]
    size = max(1.0, float(np.abs(targets).max()))
    noise: Floats = size * rng.standard_normal((len(targets), kernel.shape[1])) @ kernel.T
    return targets + noise


@dataclass(frozen=True, eq=False)
class Spread:
    """The paper's W_O, and the factor by which it spreads to omitted contexts.

    Let T contexts be held, and let the columns of Φᵀ be the features of all contexts, projected on the span of those of
    held contexts (W_V may contain the projection): Φᵀ = UΣV with T singular values that are not zero. With P₁ for the
    held contexts (and for all T directions), P₂ for the omitted ones,

        W_Oᵀ = E P₁ᵀ(P₁VP₁ᵀ)⁻¹Σ⁻¹Uᵀ,        W_OᵀΦᵀ = E P₁ᵀ(P₁VP₁ᵀ)⁻¹V:

    The outputs are exactly E on the held contexts, and E times B = (P₁VP₁ᵀ)⁻¹P₁VP₂ᵀ on the others. So the logits of the
    others are off by WE[B; −I], whose columns have norms of at most C‖WE‖₂, C = √(1 + ‖B‖₂²). This W_O lies in the span
    of the held contexts' features, so it has the least norm; with as many features as held contexts, it is unique.
    """

    left: Floats
    """Matrix UΣ⁻¹ [F, T]."""
    inner: Floats
    """Matrix P₁VP₁ᵀ [T, T]."""
    others: Floats
    """Matrix B [T, R]."""

    @classmethod
    def of(cls, factored: Factored, held: Floats, others: Floats) -> "Spread | None":
        """Compute from independent features [T, F] and the others' [R, F]; None if P₁VP₁ᵀ is singular in float64."""
        count = len(held)
        inside = others - factored.invisible(others.T).T
        V, singular, U = (part[..., :count] for part in _svd(np.vstack([held, inside])))
        inner = V[:count].T
        if np.linalg.cond(inner) > 1 / np.finfo(np.float64).eps:
            return None
        return cls(U / singular, inner, np.asarray(np.linalg.solve(inner, V[count:].T), np.float64))

    def solve(self, targets: Floats) -> Floats:
        """Return W [F, k], the transpose of W_O, for the targets [T, k] of the held contexts."""
        return np.asarray(self.left @ np.linalg.solve(self.inner.T, targets), np.float64)

    @property
    def constant(self) -> float:
        """Constant C = √(1 + ‖B‖₂²)."""
        return float(np.sqrt(1 + np.linalg.norm(self.others, 2) ** 2)) if self.others.size else 1.0


def _svd(features: Floats) -> tuple[Floats, Floats, Floats]:
    """Return V, the singular values, and U of features = VΣUᵀ, with directions in columns."""
    V, singular, U = np.linalg.svd(features, full_matrices=False)
    return V, singular, U.T
