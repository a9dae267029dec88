"""Kim, Kim & Mozafari 2023, "Provable Memorization Capacity of Transformers": Õ(d + n + √(nN)), seq-to-seq.

**Letters.** N sequences of n tokens, C labels; a token has a code z ∈ [1, P]. The stream is two integers wide: q, which
says where the token stands among those that are still to be read, and the id.

**Rounds** of hardmax attention read a sequence from its largest code down. Write m_1 > m_2 > … for the different codes
of the sequence, m_0 = P + 1, and let q = z − m_{t−1} before round t, so that q < 0 for the tokens still to be read.

* *attend*: the score of j is q_j times −q_k > 0, so every position sees the largest q: −δ_t, where δ_t = m_{t−1} − m_t.
  It adds δ_t to its q, now z − m_t, and a_t·δ_t to its id. 8 parameters.
* *retire*: q ← q − 2P·relu(q + 1) moves the tokens with q = 0, just read, below all others. 5 parameters.

When all tokens are retired, the rounds begin again with the largest, which shows as δ > P. So if the number of rounds
is at least the number of different tokens in a sequence, the digits δ_1, δ_2, … determine the set of its tokens. With
``ids="digits"`` (the paper's way: a_t = B^{R−t}, B > 2P) the id *is* the number with these digits, n·log₂B bits long.
With ``ids="hashed"`` (ours) the a_t are random, and ids stay short.

**Repeated tokens.** The rounds do not count the occurrences of a token. If tokens repeat (never with ``positions``), a
token that is retired in round t adds a random c_t to its own id, in the same unit, and one layer of uniform attention
behind the rounds adds 2·Σ_j id_j: Σ_t c_t times the number of occurrences of the t-th largest token. (For token ids,
whose own codes φ are a random table, uniform attention alone suffices, without any rounds:
:mod:`byheart.constructions.kajitsuka_sato_2025`.)

**Label stage.** The id, which consists of the own code and the digits, is folded to a key
(:mod:`.gadgets.modular_hash`: six parameters per bit, so 6·log₂B per round for "digits") and looked up
(:mod:`.gadgets.lookup`). Codes and modulus are drawn until all questions with different labels have different keys.
Only the time is random; the result is certain. (:mod:`.gadgets.modular_hash` estimates the number of draws for random
coefficients; digits are not random, so their success depends on Q alone. After a few hundred draws without success Q
grows.)

**Forms.** Seq-to-seq. *Sequence classification*: next-token tasks, one label per sequence, where the lookup has N keys
instead of nN (the paper treats it too; :mod:`byheart.bounds` has its seq-to-seq bound only). With ``positions`` order
matters. *Language modelling* (``causal``): position k sees only the tokens up to k, and gives the label that follows.
Then the rounds go by position: with p = k + 1 in the stream the score p_k·(2t·p_j − p_j²) is largest at p_j = t, or at
k itself if k has not seen t, and no token needs to be retired: 16 parameters per round.

``width="constant"`` is the theorem as stated: the lookup finds a key's group by a chain of layers instead of one wide
layer, and no layer is wider than four units, except for the d numbers that the input layer reads.

Hypotheses, checked: tokens are finite, and inputs that the form cannot tell apart have one label. Separation is not
needed, see :mod:`.gadgets.vectors`. All of it is exact.
"""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.construction import PREFIXES, SEQUENCES, TOKENS, Construction, Made, Theorem
from byheart.constructions.gadgets import lookup, modular_hash, vectors
from byheart.constructions.gadgets.demand import (
    TYPICAL_GRID_BITS,
    Setting,
    grid_bits,
    most_questions,
    pad_keys,
    positioned_ids,
    select_keys,
    setting_of,
)
from byheart.constructions.gadgets.hypotheses import check_table, consistent, labelled
from byheart.constructions.plan import Blocks, Part, Plan, TokenwiseShape, network_for, plan_of
from byheart.networks.exact import (
    Affine,
    Block,
    Embedding,
    FeedForward,
    HardmaxAttention,
    Layer,
    Positions,
    Residual,
    UniformAttention,
    integers,
)
from byheart.progress import Report
from byheart.sizes import Size
from byheart.tasks import NextToken, SeqToSeq, Task, prefixes
from byheart.tasks.arrays import Ids
from byheart.tasks.distinct import count_tokens
from byheart.tasks.theorems import sequence_hypotheses

NAME = "kim-2023"
_DRAWS = 300
"""Number of draws of codes per reader."""
_READINGS = 4
"""Number of readers to try before the room for codes grows."""
_GROWTH = 8
"""Number of sizes of that room to try."""


@dataclass(frozen=True)
class KimSettings:
    """Settings for how the network reads a sequence."""

    positions: bool = False
    """Give every position a code of its own, so that order matters (causal networks have them anyway)."""
    causal: bool = False
    """Language modelling: a position sees the tokens up to itself only, in their order."""
    ids: Literal["digits", "hashed"] = "digits"
    """Sequence ids hold every digit, as in the paper, or a random combination of them, which is shorter."""
    width: lookup.Width = "free"
    """Width that makes the network smallest (free), or constant, as in the paper."""

    @property
    def ordered(self) -> bool:
        """True if equal tokens differ by their positions."""
        return self.positions or self.causal


@dataclass(frozen=True)
class KimDemand:
    """The numbers that determine the size of the network.

    ``questions`` is the number of different inputs of the label stage, ``rounds`` the largest number of different
    tokens in a sequence, and ``growth`` the number of times that the room for codes grew. ``repeats`` is True if a
    sequence has a token twice.
    """

    setting: Setting
    size: Size
    settings: KimSettings
    questions: int
    rounds: int
    repeats: bool
    grid_bits: int
    growth: int = 0

    @property
    def width(self) -> int:
        """Width of the stream: (q, id), or (p, p², code, id)."""
        return 4 if self.settings.causal else 2

    @property
    def token_modulus(self) -> int:
        """Smallest modulus for the hash of a vector, so large that few tokens of a sequence collide."""
        smallest = modular_hash.SMALLEST_ALONE if self.size.dim == 1 else modular_hash.SMALLEST
        return max(smallest, 4 * self.size.examples * self.size.length**2) << (2 * self.growth)

    @property
    def token_folds(self) -> int:
        """Number of folds that reduce a vector's hash to its modulus."""
        return 0 if self.size.dim is None else modular_hash.folds_needed(vectors.ratio(self.size.dim, self.grid_bits))

    @property
    def codes(self) -> int:
        """P: tokens (or tokens at their positions) have the codes 1 to P."""
        tokens = self.size.vocab if self.size.dim is None else modular_hash.largest_key(self.token_modulus) + 1
        return tokens * (self.size.length if self.settings.positions and not self.settings.causal else 1)

    @property
    def largest_digit(self) -> int:
        """Largest value of a digit."""
        return self.codes if self.settings.causal else 2 * self.codes

    @property
    def label_modulus(self) -> int:
        """Smallest Q, for the largest number of questions of a task of this size, so independent of the task."""
        questions = most_questions(self.size, self.setting, positions=self.settings.ordered)
        return modular_hash.question_modulus(questions, self.size.labels) << self.growth

    @property
    def label_folds(self) -> int:
        """Number of folds that reduce an id: own code, position code, marks, digits, and 2n such ids if counted."""
        own = (1 if self.size.dim is None else modular_hash.largest_key(self.token_modulus) + 1) + 1
        if self.settings.ids == "hashed":
            digits = self.rounds * self.largest_digit
        else:
            digits = (self.largest_digit + 1) ** self.rounds // self.label_modulus + 1
        if not self.repeats:
            return modular_hash.folds_needed(own + digits)
        return modular_hash.folds_needed((1 + 2 * self.size.length) * (own + self.rounds + digits))

    @property
    def label_stage(self) -> lookup.Lookup:
        """Lookup from keys to labels."""
        limits, largest = lookup.Limits(width=self.settings.width), modular_hash.largest_key(self.label_modulus)
        return lookup.design(self.questions, self.size.labels, largest, limits=limits)


def demand(task: Task, settings: KimSettings) -> KimDemand:
    """Return the task's demand on the network."""
    checked = labelled(NAME, task)
    ids = positioned_ids(task, settings.positions)
    different = np.bincount(count_tokens(ids).sequence)
    size, questions = checked.size, checked.size.examples
    if isinstance(checked, SeqToSeq):
        questions = len(np.unique(prefixes(checked))) if settings.causal else int(different.sum())
    rounds = size.length if settings.causal else int(different.max())
    repeats = not settings.causal and bool((different < size.length).any())
    return KimDemand(setting_of(checked), size, settings, questions, rounds, repeats, grid_bits(task))


def worst_demand(size: Size, setting: Setting, settings: KimSettings) -> KimDemand:
    """Return the largest demand of a task of ``size``, with vectors on the typical grid."""
    questions = most_questions(size, setting, positions=settings.ordered)
    rounds = size.length if settings.ordered else min(size.length, size.vocab)
    repeats, bits = not settings.ordered and size.length > 1, TYPICAL_GRID_BITS if size.dim is not None else 0
    return KimDemand(setting, size, settings, questions, rounds, repeats, bits)


def plan(demand: KimDemand) -> Plan:
    """Plan the network's tensors.

    >>> size = Size(examples=200, length=8, labels=10, vocab=64)
    >>> [plan(worst_demand(size, "seq-to-seq", KimSettings(ids=ids))).dense for ids in ("digits", "hashed")]
    [3901, 3739]
    """
    size, width = demand.size, demand.width
    parts: list[Part] = []
    if size.dim is None:
        parts.append(("embedding", (("W_E", (size.vocab, width)),)))
    else:
        parts.append(("projection", TokenwiseShape((("hash", 1, size.dim),))))
        parts.append(
            ("token_code", TokenwiseShape((*modular_hash.fold_shapes(1, demand.token_folds), ("codes", width, 1))))
        )
    if demand.settings.ordered:
        parts.append(("positions", (("W_pos", (size.length, width)),)))
    row, column = (1, width), (width, 1)
    for t in range(1, demand.rounds + 1):
        parts.append((f"rounds.{t}", (("W_Q", row), ("W_K", row), ("W_V", row), ("W_O", column))))
        if t < demand.rounds and not demand.settings.causal:
            parts.append((f"retire.{t}", Blocks((("retire", 1, width),))))
    if demand.repeats:
        parts.append(("count", (("W_V", row), ("W_O", column))))
    parts.append(
        (
            "label",
            TokenwiseShape((*modular_hash.fold_shapes(width, demand.label_folds), *demand.label_stage.shape.layers)),
        )
    )
    attention = demand.rounds + demand.repeats
    return plan_of(parts, input_width=max(width, size.dim or 1), extra_depth=attention + (size.dim is None))


def build(task: Task, settings: KimSettings, rng: np.random.Generator, report: Report | None = None) -> Made:
    """Build a network that has memorized ``task``."""
    checked = consistent(NAME, task, positions=settings.positions, causal=settings.causal)
    initial = demand(task, settings)
    for growth in range(_GROWTH):
        sizes = replace(initial, growth=growth)
        for _ in range(_READINGS):
            reader = _read_tokens(checked, sizes, rng)
            keyed = _keyed(checked, sizes, reader, rng)
            if keyed is not None:
                codes, keys, answers, draws = keyed
                network = network_for(checked, _layers(sizes, reader, codes, keys, answers))
                chosen = {"modulus": codes.Q, "draws": draws, "rounds": sizes.rounds, "growth": growth}
                return Made(network, plan(sizes), chosen)
    raise RuntimeError(f"{NAME}: no draw of codes told the questions apart; please report this task")


@dataclass(frozen=True, eq=False)
class _Codes:
    """The random parts of ids: the modulus Q, own codes (a table, or slope · number + offset), a_t, and marks c_t."""

    Q: int
    own: Ids
    slope: int
    offset: int
    positions: Ids
    digits: list[int]
    marks: Ids


@dataclass(frozen=True, eq=False)
class _Read:
    """Results of the rounds: δ_1, …, δ_R of every sequence [N, R]; if causal, the codes themselves [N, n].

    ``retired`` [R − 1, N, n] is True for tokens that were read in a round.
    """

    digits: Ids
    retired: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Ids:
    """Token ids, with numbers [N, n] and own codes from a ``table`` of all ids."""

    tokens: Ids
    table: Ids

    @property
    def numbers(self) -> Ids:
        return self.table[self.tokens]

    def own(self, codes: _Codes) -> Ids:
        return codes.own[self.tokens]

    def front(self, step: int, start: int, zeros: list[int], codes: _Codes) -> list[Layer]:
        rows = [[*zeros, step * int(z) + start, int(phi)] for z, phi in zip(self.table, codes.own, strict=True)]
        return [Embedding(integers(rows))]


@dataclass(frozen=True, eq=False)
class _Vectors:
    """Vectors, with numbers [N, n] from a hash that layers compute; an own code is slope · number + offset."""

    numbers: Ids
    project: Affine
    folding: list[Affine]

    def own(self, codes: _Codes) -> Ids:
        return (
            modular_hash.multiply(self.numbers % codes.Q, np.array([codes.slope]), codes.Q) + codes.offset
        ) % codes.Q

    def front(self, step: int, start: int, zeros: list[int], codes: _Codes) -> list[Layer]:
        W, b = [[entry] for entry in (*zeros, step, codes.slope)], [*zeros, start, codes.offset]
        last = Affine(integers(W), integers(b), role="codes", relu=False)
        return [FeedForward((self.project,), name="projection"), FeedForward((*self.folding, last), name="token_code")]


_Reader: TypeAlias = _Ids | _Vectors
"""Reader of tokens: their numbers, their own codes modulo Q [N, n], and the layers from a token to both."""


def _read_tokens(task: NextToken | SeqToSeq, sizes: KimDemand, rng: np.random.Generator) -> _Reader:
    """Return a reader that puts ids in random order, or hashes and folds vectors."""
    if task.tokens is not None:
        check_table(task)
        return _Ids(task.tokens, rng.permutation(task.vocab))
    assert task.vectors is not None
    N, n, d = task.vectors.shape
    Q = modular_hash.draw_modulus(sizes.token_modulus, rng)
    hashes, project = vectors.draw_hash(vectors.from_floats(task.vectors.reshape(-1, d)), sizes.grid_bits, Q, rng)
    return _Vectors(
        modular_hash.fold(hashes, Q).reshape(N, n), project, modular_hash.fold_layers([1], 0, Q, sizes.token_folds)
    )


def _draw(sizes: KimDemand, reader: _Reader, rng: np.random.Generator) -> _Codes:
    Q = modular_hash.draw_modulus(sizes.label_modulus, rng)
    R, base = sizes.rounds, sizes.largest_digit + 1
    if sizes.settings.ids == "digits":
        digits = [base ** (R - t) for t in range(1, R + 1)]
    else:
        digits = rng.integers(0, Q, size=R).tolist()
    positions = rng.integers(0, Q, size=sizes.size.length) * int(sizes.settings.ordered)
    slope, offset = (int(value) for value in rng.integers(0, Q, size=2))
    own = rng.integers(0, Q, size=len(reader.table) if isinstance(reader, _Ids) else 0)
    marks = rng.integers(0, Q, size=R - 1) * int(sizes.repeats)
    return _Codes(Q, own, slope, offset, positions, digits, marks)


def _keyed(
    task: NextToken | SeqToSeq, sizes: KimDemand, reader: _Reader, rng: np.random.Generator
) -> tuple[_Codes, Ids, Ids, int] | None:
    """Draw until all questions with different labels have different keys: the codes, the keys and their answers."""
    read, labels = _read(sizes, reader.numbers), task.labels.ravel()
    for draws in range(1, _DRAWS):
        codes = _draw(sizes, reader, rng)
        ids = _ids(sizes, reader, codes, read)
        keys = modular_hash.fold(ids[:, -1] if isinstance(task, NextToken) else ids.ravel(), codes.Q)
        chosen = select_keys(keys, labels)
        if chosen is not None and len(chosen) <= sizes.questions:
            return codes, *pad_keys(keys[chosen], labels[chosen], sizes.questions), draws
    return None


def _read(sizes: KimDemand, numbers: Ids) -> _Read:
    """Run the rounds as the network will."""
    if sizes.settings.causal:
        return _Read(numbers + 1, np.zeros((0, *numbers.shape), np.bool_))
    q, P = _first(sizes, numbers), sizes.codes
    digits, retired = [], []
    for _ in range(sizes.rounds):
        largest = q.max(axis=1, keepdims=True)
        digits.append(-largest[:, 0])
        q = q - largest
        retired.append(q == 0)
        q -= 2 * P * np.maximum(q + 1, 0)
    return _Read(np.stack(digits, axis=1), np.stack(retired)[:-1])


def _first(sizes: KimDemand, numbers: Ids) -> Ids:
    """Return q = z − (P + 1), the stream in front of the first round."""
    if not sizes.settings.positions:
        return numbers - sizes.codes
    n = sizes.size.length
    return n * numbers + np.arange(n) - sizes.codes


def _ids(sizes: KimDemand, reader: _Reader, codes: _Codes, read: _Read) -> Ids:
    """Compute the ids behind the rounds [N, n], modulo Q."""
    Q = codes.Q
    a = np.array([digit % Q for digit in codes.digits], dtype=np.int64)
    digits = modular_hash.multiply(read.digits % Q, a, Q)
    ids = reader.own(codes) + codes.positions
    if sizes.settings.causal:
        # Rounds behind its own position show a token itself, again and again.
        rest = (int(a.sum()) - np.cumsum(a)) % Q
        causal_ids: Ids = ids + np.cumsum(digits, axis=1) + modular_hash.multiply(read.digits % Q, rest, Q)
        return causal_ids % Q
    ids = np.asarray(ids + digits.sum(axis=1, keepdims=True), np.int64) % Q
    if not sizes.repeats:
        return ids
    marked: Ids = np.tensordot(codes.marks, read.retired.astype(np.int64), axes=1)
    ids = (ids + marked) % Q
    counted_ids: Ids = ids + 2 * (ids.sum(axis=1, keepdims=True) % Q)
    return counted_ids % Q


def _layers(sizes: KimDemand, reader: _Reader, codes: _Codes, keys: Ids, answers: Ids) -> tuple[Layer, ...]:
    stage = [*modular_hash.fold_layers([0] * (sizes.width - 1) + [1], 0, codes.Q, sizes.label_folds)]
    stage += sizes.label_stage.layers(keys, integers(answers))
    layers = [*_front(sizes, reader, codes), *_rounds(sizes, codes)]
    if sizes.repeats:
        row, column = integers([[0, sizes.size.length]]), integers([[0], [2]])
        layers.append(UniformAttention(W_V=row, W_O=column, name="count"))
    return (*layers, FeedForward(tuple(stage), name="label"))


def _front(sizes: KimDemand, reader: _Reader, codes: _Codes) -> list[Layer]:
    """Return the layers from tokens to (q, id), or to (p, p², code, id)."""
    n, causal = sizes.size.length, sizes.settings.causal
    placed = sizes.settings.positions and not causal
    step, start = (n, -sizes.codes) if placed else (1, 1 if causal else -sizes.codes)
    layers = reader.front(step, start, [0, 0] if causal else [], codes)
    if causal:
        layers.append(Positions(integers([[k + 1, (k + 1) ** 2, 0, int(codes.positions[k])] for k in range(n)])))
    elif placed:
        layers.append(Positions(integers([[k, int(codes.positions[k])] for k in range(n)])))
    return layers


def _rounds(sizes: KimDemand, codes: _Codes) -> list[Layer]:
    layers: list[Layer] = []
    for t, a in enumerate(codes.digits, start=1):
        if sizes.settings.causal:
            # p_k·(2t·p_j − p_j²) is largest at p_j = t, or at the last position that is seen; its code is read.
            rows = [[1, 0, 0, 0]], [[2 * t, -1, 0, 0]], [[0, 0, 1, 0]], [[0], [0], [0], [a]]
        else:
            # The score of j is −q_k·q_j; the largest q_j = −δ is subtracted from q, and a·δ added to the id.
            rows = [[-1, 0]], [[1, 0]], [[1, 0]], [[-1], [-a]]
        W_Q, W_K, W_V, W_O = (integers(matrix) for matrix in rows)
        layers.append(HardmaxAttention(W_Q, W_K, W_V, W_O, causal=sizes.settings.causal, name=f"rounds.{t}"))
        if t < sizes.rounds and not sizes.settings.causal:
            # Tokens with q = 0 have been read: q ← −2P puts them below all others, which are at −P or above; they are
            # marked, so that uniform attention can count them.
            away = integers([[-2 * sizes.codes], [int(codes.marks[t - 1])]])
            retire = Block(integers([[1, 0]]), integers([1]), away, role="retire")
            layers.append(Residual((retire,), name=f"retire.{t}"))
    return layers


_LIMITS = "constant width, n rounds of hardmax attention"
_READ = "only the paper's abstract was at hand for this result"
THEOREMS = (
    Theorem(
        "memorization",
        says="N sequences with a label for every token are memorized with Õ(d + n + √(nN)) parameters",
        assumes="(r, δ)-separated tokens, equal questions have equal answers",
        limits="constant width, n rounds of hardmax attention with ids of n digits",
        task=TOKENS,
        stated={"width": "constant"},
        ours={"ids": "hashed"},
        differs="width 4; tokens are told apart as they are, whatever r and δ",
    ),
    Theorem(
        "memorization with positions",
        says="with positional codes a sequence's order may matter: Õ(d + n + √(nN)) parameters again",
        assumes="(r, δ)-separated tokens, one answer to every sequence",
        limits=_LIMITS,
        task=TOKENS,
        stated={"width": "constant", "positions": True},
        ours={"ids": "hashed", "positions": True},
        differs=_READ,
    ),
    Theorem(
        "sequence classification",
        says="N sequences with one label each are memorized by the same network, with fewer keys to look up",
        assumes="(r, δ)-separated tokens, no two sequences are permutations of each other",
        limits=_LIMITS,
        task=SEQUENCES,
        stated={"width": "constant"},
        ours={"ids": "hashed"},
        differs=_READ,
    ),
    Theorem(
        "language modelling",
        says="a label after every prefix of N sequences, with attention that does not see later tokens",
        assumes="(r, δ)-separated tokens, one answer to every prefix",
        limits="n rounds of causal hardmax attention",
        task=PREFIXES,
        ours={"causal": True},
        differs=_READ,
    ),
)
CONSTRUCTION = Construction(
    name=NAME,
    paper="Kim, Kim & Mozafari 2023",
    summary="n rounds of hardmax attention read a sequence into its id: Õ(n + √(nN))",
    settings=KimSettings,
    build=build,
    covers=("next-token", "seq-to-seq"),
    plan=lambda size, setting, settings: plan(worst_demand(size, setting, settings)),
    orders={"seq-to-seq": "Õ(d + n + √(nN))"},
    theorems=THEOREMS,
    hypotheses=lambda task, s: sequence_hypotheses(NAME, task, positions=s.positions, causal=s.causal),
    colour="#1b8a7a",
    dash=(0, (8, 3)),
    flags="--ids hashed",
)
