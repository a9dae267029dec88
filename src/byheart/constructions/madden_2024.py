"""Madden, Fox & Thrampoulidis 2024: one decoder layer interpolates N next-token distributions with O(ωN) parameters.

The model: z = W_Oᵀ W_Vᵀ Σ_s softmax_s(x_nᵀ W_Q W_Kᵀ x_s) x_s, one head, no skip connection; then N units
tanh(W_inᵀ z + b_in) and W_U. Letters: their n is our N, their ζ our ω.

1. *Attention is injective*: for almost all weights, z differs for any two different contexts
   (:mod:`byheart.bounds.madden_2024` has the argument, in dimension one). The weights are drawn, and of a few draws
   the one with the widest smallest gap is taken, along one direction if d > 1. A gap of zero is refused.
2. *The units are independent*: sort the contexts by z. The threshold of unit i lies between contexts i − 1 and i, and
   the unit is so steep that it is ±1 to rounding on all contexts. The N × N matrix of units is −1 above the diagonal
   and +1 on and below it, and its inverse has entries ±½ on two diagonals and in a corner.
3. *One solve* gives W_U with logits log p_t, for all N contexts. Zero probabilities, which softmax reaches only in the
   limit, are replaced by ``floor``: with ω tokens that costs at most ω·floor nats.

A next-token task has labels only: then the logits are 1 for the label and 0 for the others, with C columns of W_U.

With d = 1 these are ωN + 2N + ω + n + 4 parameters, as in the bound; any model needs at least N(ω − 1). The build
checks that contexts with different answers differ, and that their z differ in floating point. The certificate states
from the saved weights how near the loss comes to the entropy of the data.
"""

from dataclasses import dataclass, replace

import numpy as np

from byheart.bounds.madden_2024 import needed
from byheart.constructions.construction import DISTRIBUTIONS, Construction, Made, Theorem
from byheart.constructions.gadgets.hypotheses import over_ids
from byheart.constructions.gadgets.linear_system import check_system
from byheart.constructions.plan import Part, Plan
from byheart.errors import BadInput
from byheart.networks.softmax import SoftmaxNetwork, attention, embedded
from byheart.progress import Report
from byheart.sizes import Size
from byheart.tasks import NextToken, NextTokenDistribution, Task
from byheart.tasks.arrays import Floats, Ids
from byheart.tasks.distinct import distinct
from byheart.tasks.theorems import Hypothesis, one_answer

NAME = "madden-2024"
DRAWS = 64
"""Number of random attention heads to choose from."""
STEEP = 40.0
"""Difference of a unit's argument between the two contexts next to its threshold; tanh 20 is 1 in float64."""
CLOSE = 1e-11
"""Smallest gap between two z, relative to their range, that the rounding of float64 leaves intact."""


@dataclass(frozen=True)
class MaddenSettings:
    """Settings for the sizes of the network, and the replacement of zero probabilities."""

    model_dim: int = 1
    """d: dimension of the stream."""
    head_dim: int | None = None
    """d_h: dimension of the head, at most d (default: d)."""
    floor: float = 1e-12
    """Probability that replaces zero, at most 1e-3."""


@dataclass(frozen=True)
class MaddenDemand:
    """Sizes of the task that determine the size of the network."""

    size: Size
    contexts: int
    """Number of different contexts."""


def worst_demand(size: Size) -> MaddenDemand:
    """Return the largest demand of a next-token task of ``size``."""
    if size.dim is not None:
        raise BadInput(f"{NAME} reads token ids; the tokens are vectors of dimension {size.dim}")
    return MaddenDemand(size, size.examples)


def plan(demand: MaddenDemand, settings: MaddenSettings) -> Plan:
    """Plan every tensor's shape."""
    d, d_h = _dimensions(settings)
    size, N = demand.size, demand.contexts
    read, write = (1, d, d_h), (1, d_h, d)
    parts: tuple[Part, ...] = (
        ("embedding", (("W_E", (size.vocab, d)),)),
        ("positions", (("W_pos", (size.length, d)),)),
        ("attention", (("W_Q", read), ("W_K", read), ("W_V", read), ("W_O", write))),
        ("units", (("W_in", (d, N)), ("b_in", (N,)))),
        ("unembedding", (("W_U", (N, size.labels)),)),
    )
    return Plan(parts, depth=4, width=max(d, N, size.labels))


def _dimensions(settings: MaddenSettings) -> tuple[int, int]:
    d = settings.model_dim
    d_h = d if settings.head_dim is None else settings.head_dim
    if not 1 <= d_h <= d:
        raise BadInput(f"model_dim is {d} and head_dim {d_h}; expected 1 ≤ d_h ≤ d")
    if not 0 < settings.floor <= 1e-3:
        raise BadInput(f"floor is {settings.floor}; expected more than 0 and at most 1e-3")
    return d, d_h


def build(task: Task, settings: MaddenSettings, rng: np.random.Generator, report: Report | None = None) -> Made:
    """Build a network that has memorized ``task``."""
    d, d_h = _dimensions(settings)
    checked, tokens = over_ids(NAME, task)
    kept = distinct(tokens).first
    check_system(NAME, len(kept))
    planned = plan(MaddenDemand(task.size, len(kept)), settings)
    planned.check_memory(NAME)
    drawn, direction, numbers, gap = _injective(tokens[kept], task.size, (d, d_h), rng)
    if gap < CLOSE:
        raise BadInput(f"{NAME}: in {DRAWS} draws attention left two contexts {gap:.2g} apart; take a larger model_dim")
    thresholds, slopes = _units(numbers)
    hidden = np.tanh(np.outer(numbers, slopes) - thresholds * slopes)
    logits = _logits(checked, settings.floor)[kept]
    inverse = np.linalg.inv(hidden)
    W_U = inverse @ logits
    W_U += inverse @ (logits - hidden @ W_U)
    network = replace(drawn, W_in=np.outer(direction, slopes), b_in=-thresholds * slopes, W_U=W_U)
    condition = float(np.linalg.norm(hidden, 1) * np.linalg.norm(inverse, 1))
    short = {"smallest_gap": float(f"{gap:.3g}"), "condition": float(f"{condition:.3g}")}
    chosen: dict[str, object] = {"contexts": len(kept), **short}
    if isinstance(checked, NextTokenDistribution):
        chosen["needed_by_any_model"] = needed(len(kept), task.size.labels)
    return Made(network, planned, chosen)


def hypotheses(task: Task, _: MaddenSettings) -> list[Hypothesis]:
    """Check the theorem's hypotheses on a task."""
    if not isinstance(task, NextTokenDistribution) or task.tokens is None:
        raise BadInput(f"{NAME} is about next-token distributions over token ids; the task is {task.kind}")
    zeros = int((task.probabilities == 0).sum())
    reason = f"{zeros:,} of {task.probabilities.size:,} are 0: approached, not reached" if zeros else "all are"
    return [
        one_answer(task, positions=True, what="context"),
        Hypothesis.decided("every probability is positive", not zeros, reason),
    ]


def _logits(task: NextTokenDistribution | NextToken, floor: float) -> Floats:
    """Return the target logits [N, C]: log p, or 1 for the label and 0 for all others."""
    if isinstance(task, NextToken):
        indicators: Floats = (task.labels[:, None] == np.arange(task.label_count)).astype(np.float64)
        return indicators
    return np.log(np.maximum(task.probabilities, floor))


def _injective(
    tokens: Ids, size: Size, dimensions: tuple[int, int], rng: np.random.Generator
) -> tuple[SoftmaxNetwork, Floats, Floats, float]:
    """Draw heads, and return the best with a direction [d], the contexts' z along it [N], and their smallest gap.

    The gap is relative to the range of the contexts' z.
    """
    d, d_h = dimensions
    best: tuple[SoftmaxNetwork, Floats, Floats, float] | None = None
    for _ in range(DRAWS):
        network = SoftmaxNetwork(
            W_E=rng.standard_normal((size.vocab, d)),
            W_pos=rng.standard_normal((size.length, d)),
            W_Q=rng.standard_normal((1, d, d_h)) / (d * np.sqrt(d_h)),  # scores of size 1, so that no token wins
            W_K=rng.standard_normal((1, d, d_h)),
            W_V=rng.standard_normal((1, d, d_h)),
            W_O=rng.standard_normal((1, d_h, d)),
        )
        vectors, query = embedded(network, (tokens, None))
        z = (attention(network, vectors, query) @ vectors)[:, 0] @ network.W_V[0] @ network.W_O[0]
        direction = np.ones(1) if d == 1 else rng.standard_normal(d)
        numbers = z @ direction
        ordered = np.sort(numbers)
        gap = float(np.diff(ordered).min() / (ordered[-1] - ordered[0])) if len(tokens) > 1 else 1.0
        if best is None or gap > best[3]:
            best = network, direction, numbers, gap
    assert best is not None
    return best


def _units(numbers: Floats) -> tuple[Floats, Floats]:
    """Return thresholds and slopes [N] of units: one below all numbers, and one between each pair of neighbours."""
    ordered = np.sort(numbers)
    gaps = np.concatenate([[1.0], np.diff(ordered)])
    return ordered - gaps / 2, STEEP / gaps


THEOREMS = (
    Theorem(
        "upper bound",
        says="one decoder layer with N units interpolates any N next-token distributions: O(ωN) parameters",
        assumes="different contexts, positive probabilities (zeros are raised to 1e-12)",
        limits="one head, one hidden layer of N units with an analytic activation (here tanh)",
        task=DISTRIBUTIONS,
        stated={},
    ),
    Theorem(
        "lower bound",
        says="whatever interpolates any N distributions has at least N(ω − 1) parameters",
        assumes="outputs depend smoothly on the parameters",
        limits="none",
        shown_by="byheart build madden-2024, which prints what is needed",
    ),
    Theorem(
        "empirical setting",
        says="the same for distributions counted in documents: the loss is at least their entropy, and comes near it",
        assumes="contexts and next tokens counted in documents",
        limits="one head, one hidden layer of N units",
        shown_by="python benchmarks/attention.py madden",
        differs="only the paper's abstract was at hand for this result",
    ),
)
CONSTRUCTION = Construction(
    name=NAME,
    paper="Madden, Fox & Thrampoulidis 2024",
    summary="one decoder layer with N units: any N next-token distributions, ωN parameters",
    kind="softmax",
    settings=MaddenSettings,
    build=build,
    covers=("next-token",),
    plan=lambda size, _, settings: plan(worst_demand(size), settings),
    orders={"next-token-distribution": "ωN + 2N + ω + n + 4"},
    hypotheses=hypotheses,
    theorems=THEOREMS,
    colour="#b5648f",
)
