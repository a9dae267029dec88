"""Demand, plan and build of the folding construction."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.construction import SEQUENCES, TOKENS, Construction, Made, Reading, Theorem
from byheart.constructions.folding.design import WEIGHT, FoldingSizes, design, slack
from byheart.constructions.folding.features import (
    DependentKeys,
    FoldingKeys,
    Gates,
    ShiftDigits,
    draw_gates,
    draw_positions,
)
from byheart.constructions.folding.fronts import HASH_LEVELS, LEVELS, FoldingFront, draw_codes
from byheart.constructions.folding.layers import fold_parts, label_layers
from byheart.constructions.gadgets.demand import (
    TYPICAL_GRID_BITS,
    Setting,
    TaskQuestions,
    collect_questions,
    grid_bits,
    most_questions,
    select_keys,
)
from byheart.constructions.gadgets.hypotheses import consistent
from byheart.constructions.plan import Blocks, Part, Plan, TokenwiseShape, network_for, plan_of
from byheart.errors import BadInput
from byheart.networks.exact import ExactNetwork, Layer, UniformAttention, integers
from byheart.progress import Report
from byheart.sizes import Size
from byheart.tasks import NextToken, SeqToSeq, Task
from byheart.tasks.arrays import Ids, chunks
from byheart.tasks.distinct import count_tokens

NAME = "folding"
_DRAWS = 200
"""Number of draws before more words are the better hope."""
_TRIALS, _GOOD = 24, 3
"""Number of draws of codes at a level, and of good ones among them for which the level is chosen."""
_FAILURES = 6
"""Number of draws with unsolvable systems before the number of words grows."""
_FEW = 1 << 12
"""Number of questions that are compared first."""
MOST_LABELS = 1 << 60
"""Largest number of labels: words are solved for in 64 bits."""
_GROWTH = 20
"""Number of times that the number of words may grow by a fifth."""
SHORTEST = 4
"""Shortest sequence for codes that are functions of one integer: sums of fewer are not random enough."""


@dataclass(frozen=True)
class FoldingSettings(Reading):
    """Settings for how the network reads a sequence, and for the count to minimize."""

    fewest: Literal["without-embedding", "in-all"] = "without-embedding"
    """Count to minimize: parameters besides the embedding table, or all. For all of them the table may have one integer
    per token, which a small network spreads."""


@dataclass(frozen=True)
class FoldingDemand:
    """The front with its level, the number of questions, and the largest squared norm of their coefficients."""

    front: FoldingFront
    questions: int
    spread: int
    fewest: str = "without-embedding"

    def sizes(self, growth: int = 0) -> FoldingSizes:
        """Compute every size behind the codes.

        Codes that are functions of one integer are less random than tables, so they start with more words.
        """
        return _sizes(self, growth)

    @property
    def cost(self) -> int:
        """Number of parameters to minimize: all, or those besides the embedding table."""
        sizes = self.sizes()
        return self.front_cost(sizes.dim) + sizes.dense

    def front_cost(self, dim: int) -> int:
        """Return the part of ``cost`` in front of the attention, for ``dim`` columns."""
        return self.front.cost(dim, table=self.fewest == "in-all")


@lru_cache(maxsize=64)
def _sizes(demand: FoldingDemand, growth: int) -> FoldingSizes:
    front, reach = demand.front, demand.front.reach(demand.spread)
    growth += 1 if front.vectors or front.narrow else 0
    return design(demand.questions, front.size.labels, reach, front.dims, growth=growth, front=demand.front_cost)


def demand(asked: TaskQuestions, settings: FoldingSettings) -> FoldingDemand:
    """Count the demands of a task's questions; the level is determined by trial, with a separate generator."""
    task = asked.task
    fronts = _fronts(task.size, "seq-to-seq" if isinstance(task, SeqToSeq) else "next-token", settings, grid_bits(task))
    levels = HASH_LEVELS if task.vectors is not None else LEVELS
    spread, demands = _spread(asked.ids), []
    for front in fronts:
        rng = np.random.default_rng(0)
        leveled = (replace(front, level=level) for level in levels)
        chosen = next((front for front in leveled if _tells_apart(front, asked, rng)), None)
        if chosen is not None:
            demands.append(FoldingDemand(chosen, len(asked.places), spread, settings.fewest))
    if not demands:
        raise BadInput(f"{NAME}: no codes tell the questions of this task apart; is it consistent?")
    return min(demands, key=lambda demand: demand.cost)


def _fronts(size: Size, setting: Setting, settings: FoldingSettings, bits: int) -> list[FoldingFront]:
    """Return the fronts to choose from, at the lowest level.

    A table of one integer per token only serves sums of several codes: if single tokens are questions, their codes are
    too dependent.
    """
    wide = FoldingFront(size, settings.positions, setting == "seq-to-seq", 1, bits)
    sums = setting == "next-token" and size.dim is None and size.length >= SHORTEST and not settings.positions
    return [wide, replace(wide, narrow=True)] if sums and settings.fewest == "in-all" else [wide]


def _tells_apart(front: FoldingFront, asked: TaskQuestions, rng: np.random.Generator) -> bool:
    """Return True if three of 24 draws of codes tell all questions with different labels apart.

    If draws fail more often, the build would soon have more words, which do not help; a higher level does.
    """
    draws = (draw_codes(front, asked.task, asked.first, front.dims[0], rng)[0] for _ in range(_TRIALS))
    good = (codes for codes in draws if _apart(asked, codes, front.own) is not None)
    return len(list(islice(good, _GOOD))) == _GOOD


def worst_demand(size: Size, setting: Setting, settings: FoldingSettings) -> FoldingDemand:
    """Return a demand that no task of this size (with vectors on the typical grid) is expected to exceed.

    It is not a bound: see the package's docstring, "Random and certain".
    """
    questions = most_questions(size, setting, positions=settings.positions)
    if size.dim is not None:
        level = next((v for v in HASH_LEVELS if 1 << v >= 2 * questions * size.length), HASH_LEVELS[-1])
    else:
        level = next((q for q in LEVELS if (2 * q + 1) ** 4 >= questions**2), LEVELS[-1])
    bits, spread = TYPICAL_GRID_BITS if size.dim is not None else 0, (WEIGHT * size.length + 1) ** 2
    fronts = (replace(front, level=level) for front in _fronts(size, setting, settings, bits))
    return min(
        (FoldingDemand(front, questions, spread, settings.fewest) for front in fronts), key=lambda demand: demand.cost
    )


def plan(demand: FoldingDemand, growth: int = 0) -> Plan:
    """Plan the network's tensors."""
    sizes = demand.sizes(growth)
    D = sizes.dim
    parts: list[Part] = [
        *demand.front.parts(D),
        ("attention", (("W_V", (D, D)), ("W_O", (D, D)))),
        ("words", sizes.gates),
        *fold_parts("level", sizes.first_folds),
    ]
    if sizes.stages:
        parts.append(("first_shift", TokenwiseShape((("copy", 2, 1), ("shift", 2, 2)))))
        if sizes.stages > 1:
            parts.append(("shift", Blocks((("shift", 2, 2),) * (sizes.stages - 1))))
        parts.append(("drop", TokenwiseShape((("drop", 1, 2),))))
    parts += fold_parts("fold", sizes.last_folds)
    if sizes.label_bits:
        parts.append(("start", TokenwiseShape((("start", 2, 1),))))
        parts.append(("digits", Blocks((("digit", 2, 2),) * sizes.label_bits)))
        parts.append(("label", TokenwiseShape((("answer", 1, 2),))))
    else:
        parts.append(("label", sizes.stairs))
    embedded = demand.front.size.dim is None
    return plan_of(parts, input_width=max(D, demand.front.size.dim or 1), extra_depth=2 if embedded else 1)


def build(task: Task, settings: FoldingSettings, rng: np.random.Generator, report: Report | None = None) -> Made:
    """Build a network that has memorized ``task``."""
    from byheart.constructions.folding.words import solve

    checked = consistent(NAME, task, positions=settings.positions)
    asked = collect_questions(checked, positions=settings.positions)
    task_demand = demand(asked, settings)
    if checked.label_count > MOST_LABELS:
        raise BadInput(f"{NAME}: there are {checked.label_count:,} labels; expected at most {MOST_LABELS:,}")
    for growth in range(_GROWTH):
        sizes = task_demand.sizes(growth)
        for failures in range(_FAILURES):
            drawn = _draw(task_demand.front, asked, sizes, rng)
            if drawn is None:
                break
            try:
                words = solve(drawn.questions, sizes, rng, report)
            except DependentKeys:
                continue
            label = label_layers(sizes, (drawn.centre, drawn.halvings), drawn.gates, drawn.positions, words)
            network = _assemble(checked, drawn, label)
            chosen = {"growth": growth, "failures": failures, **_account(sizes, len(drawn.questions.label))}
            return Made(network, plan(task_demand, growth), chosen)
    raise RuntimeError(
        f"{NAME}: no draw was good, with up to {1.2**_GROWTH:.1f} times the words; please report this task"
    )


def _account(sizes: FoldingSizes, questions: int) -> dict[str, object]:
    """Itemize the parameters behind the codes, with the load and the ratio to √(N log₂C)."""
    folds = 2 * sizes.folds
    return {
        "load": round(questions / (sizes.words * sizes.digits), 4),
        "words": sizes.words,
        "folds": folds,
        "overhead": sizes.dense - sizes.words - folds,
        "constant": round(sizes.dense / math.sqrt(questions * math.log2(max(2, sizes.labels))), 3),
        "radix": sizes.radix,
    }


@dataclass(frozen=True, eq=False)
class _Drawn:
    front: list[Layer]
    centre: Ids
    halvings: Ids
    gates: Gates
    positions: ShiftDigits
    questions: FoldingKeys
    own: int


def _draw(front: FoldingFront, asked: TaskQuestions, sizes: FoldingSizes, rng: np.random.Generator) -> _Drawn | None:
    """Draw codes that tell the questions apart, gates and a position hash within the planned limits, or return None."""
    for _ in range(_DRAWS):
        codes, layers = draw_codes(front, asked.task, asked.first, sizes.dim, rng)
        apart = _apart(asked, codes, front.own)
        if apart is None:
            continue
        raw, chosen = apart
        centre = np.sort(raw, axis=0)[len(raw) // 2]
        halvings = _common_halvings(raw - centre)
        u = (raw - centre) >> halvings
        if int(np.abs(u).max()) > sizes.reach or int(np.abs(u).sum(axis=1).max()) >= sizes.sum_limit:
            continue
        gates = draw_gates(u, sizes, rng)
        if gates is None:
            continue
        placed = draw_positions(gates.sums(u), sizes, rng, limit=sizes.words - slack(sizes.radix, sizes.words))
        if placed is not None:
            positions, shifts = placed
            open_gates = partial(_open, gates, u)
            questions = FoldingKeys(u, open_gates, sizes.digits - 1 - shifts, asked.labels[chosen])
            return _Drawn(layers, centre, halvings, gates, positions, questions, front.own)
    return None


def _open(gates: Gates, u: Ids, chosen: Ids) -> NDArray[np.bool_]:
    return gates.open(u[chosen])


def _common_halvings(u: Ids) -> Ids:
    """Return the exponent of the largest power of two that divides all entries of each column.

    Digits depend on parities, so a common factor of two (if all tokens of every sequence are equal, say) must go.
    """
    common = np.bitwise_or.reduce(u, axis=0)
    return np.array([(int(c) & -int(c)).bit_length() - 1 if c else 0 for c in common], dtype=np.int64)


def _assemble(task: NextToken | SeqToSeq, drawn: _Drawn, label: list[Layer]) -> ExactNetwork:
    size, D = task.size, drawn.questions.u.shape[1]
    eye = np.eye(D, dtype=np.int64)
    mixed = WEIGHT * eye * (np.arange(D) >= drawn.own)
    attention = UniformAttention(W_V=integers(size.length * eye), W_O=integers(mixed))
    return network_for(task, (*drawn.front, attention, *label))


def _apart(asked: TaskQuestions, codes: Ids, own: int) -> tuple[Ids, Ids] | None:
    """Return all different u [K, D] and their questions; None if two questions with equal u have different labels.

    If there are such questions, a few thousand mostly contain two. So larger and larger parts are compared.
    """
    count = _FEW
    while True:
        part = asked.begin(count)
        u = _hashes(part, codes, own)
        chosen = _distinct(part, u)
        if chosen is None:
            return None
        if count >= len(asked.token):
            return u[chosen], chosen
        count *= 8


def _hashes(asked: TaskQuestions, codes: Ids, own: int) -> Ids:
    """Return u = own code + WEIGHT · Σ codes for every question [K, D]; in the first ``own`` columns only the code."""
    from byheart.constructions.folding.loops import code_sums

    total: Ids = code_sums(asked.ids, codes)
    total[:, :own] = 0
    return codes[asked.token] + WEIGHT * total[asked.sequence]


def _spread(ids: Ids) -> int:
    """Return an upper bound, close to the maximum, of |WEIGHT·counts + own|² over the questions."""
    squares, most = 0, 0
    for part in chunks(ids):
        counts = count_tokens(part)
        squares = max(squares, int(np.bincount(counts.sequence, weights=counts.count.astype(np.float64) ** 2).max()))
        most = max(most, int(counts.count.max()))
    return int(WEIGHT**2 * squares + 2 * WEIGHT * most + 1)


def _distinct(asked: TaskQuestions, u: Ids) -> Ids | None:
    """Return indices of questions with different u, or None if two questions with equal u have different labels.

    Rows are compared through a linear hash modulo 2⁶⁴: equal rows have equal hashes, and different rows with equal
    hashes would only cost another draw.
    """
    mix = np.random.default_rng(1).integers(-(1 << 62), 1 << 62, size=u.shape[1])
    return select_keys(u @ mix, asked.labels)


THEOREMS = (
    Theorem(
        "theorem (docs/folding.md)",
        says="K questions take 2√(2·K·log₂R/λ) parameters and lower-order terms, R ≥ C the radix, λ the load",
        assumes="sequences over a finite vocabulary, distinct up to permutation; a good draw, which is checked",
        limits="one layer of uniform attention, then layers of one unit with a skip connection",
        task=SEQUENCES,
        ours={},
    ),
    Theorem(
        "seq-to-seq",
        says="the same with K ≤ nN, the different tokens of all sequences",
        assumes="permuted sequences ask for permuted labels; a good draw, which is checked",
        limits="one layer of uniform attention, then layers of one unit with a skip connection",
        task=TOKENS,
        ours={},
    ),
)
CONSTRUCTION = Construction(
    name=NAME,
    summary="no keys, only labels: 2√2·√(N log₂C/λ) parameters and lower-order terms, λ the load (ours)",
    settings=FoldingSettings,
    build=build,
    covers=("next-token", "seq-to-seq"),
    plan=lambda size, setting, settings: replace(plan(worst_demand(size, setting, settings)), expected=True),
    orders=dict.fromkeys(("next-token", "seq-to-seq"), "ours"),
    theorems=THEOREMS,
    colour="#b3123f",
)
