"""Refusing for certain: an index, a store with an entry for every question, and a comparison.

A print beside the label (:mod:`.refusing`) is a sum of six words, and what another context adds up to is anybody's
guess. Here the table is an *index* only: it holds the number of every question. The *store* has the question's entry
under that number, by row and column, so that one entry is read, or none (zeros): something of the context that was
memorized, in some *lanes*, and the code of its label. The network works the lanes out from what it is asked, too, and
says *unknown* unless all of them are the entry's.

- *Key*: the context itself. Every token that was memorized has a *digit* of its own, 1 ≤ |c| ≤ a; all other tokens
  share one; 0 is for what lies before the beginning. d of them are one lane, Σ c_i·A^i with A = 2a + 1: no two rows of
  digits have the same sum. The window is a token longer than every memorized sequence. So **no context is answered
  that was not memorized**: equal lanes have equal digits, which are equal tokens, from the beginning on. That holds
  whatever the index says.
- *Print*: R sums modulo the prime p = ``PRIME`` of 8 digits each, then of 8 such sums each, and so on, in L layers;
  their weights are drawn evenly from 0 to p − 1, apart from all else. Two contexts that differ anywhere have one sum in
  common with probability 1/p a layer, so the whole print with **probability (L/p)^R ≤ 2^−b** at most. Neither index nor
  entries' numbers depend on these weights: a context that was chosen without a look at them is answered wrongly no more
  often, and no "if" is needed. Zeros are the print of an empty context, which nobody asks about.

Lanes of the context stand in the stream times −1, and those of the entry are added to them; differences that are not 0
are counted. All values are integers that the format holds, for every context, and nothing is rounded.
"""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code
from byheart.compiler.rectangular.dimensions import MOST_ROWS
from byheart.compiler.rectangular.front import reduce, spans_of
from byheart.compiler.rectangular.table import one_hot
from byheart.compiler.rectangular.wiring import Wiring
from byheart.errors import BadInput
from byheart.networks.transformer import GatedBlocks
from byheart.networks.transformer.spec import Features

if TYPE_CHECKING:
    from byheart.networks.transformer.transformer_network import TransformerNetwork

PRIME = 1021
"""8·(p − 1)² < 2²³: no sum of a print is rounded."""
MOST_COLUMNS = 1 << 11
"""As rows: their squares must be exact."""
MOST_LANES = 512
"""Of a key: a head of attention brings each, and has a bias for all of them."""
APART = 1 << 32
"""Ends the seed of the weights of prints, so that they are drawn apart from all else."""
STORE = "store.W_out"
"""The tensor that holds the entries: [1, lanes·columns, rows]."""


@dataclass(frozen=True, eq=False)
class Alphabet:
    """A digit for every token."""

    digits: NDArray[np.int64]
    """[ω]."""
    largest: int
    """a."""

    def together(self, bits: int) -> int:
        """d: of how many digits all sums Σ c_i·A^i are below 2^bits, with either sign.

        >>> alphabet(np.arange(200), 258).together(23), alphabet(np.arange(26), 258).together(23)
        (3, 4)
        """
        return math.floor((bits + 1) / math.log2(2 * self.largest + 1))


def alphabet(memorized: NDArray[np.integer], vocab: int) -> Alphabet:
    """Digits 1, −1, 2, −2, … for tokens that occur in what is memorized, and the next one for all others.

    >>> alphabet(np.array([7, 3, 7]), 9).digits.tolist()
    [2, 2, 2, 1, 2, 2, 2, -1, 2]
    """
    used = np.unique(memorized)
    order = np.arange(len(used) + 1)
    values = (order // 2 + 1) * np.where(order % 2, -1, 1)
    digits = np.full(vocab, values[-1])
    digits[used] = values[:-1]
    return Alphabet(digits, int(np.abs(values).max()))


def sums_of_print(bits: int, window: int) -> int:
    """R: how many sums make (L/p)^R ≤ 2^−bits; an even number, two for a lane.

    >>> sums_of_print(17, 64), sums_of_print(40, 64), sums_of_print(40, 65)
    (2, 6, 6)
    """
    layers = len(spans_of(window))
    return 2 * math.ceil(bits / math.log2(PRIME / layers) / 2)


@dataclass(frozen=True)
class Store:
    """What the entries hold, and how many there are."""

    bits: int | None
    """b, of a print; None for whole keys."""
    word: int
    """Bits of the integers whose differences the format holds, but for the sign."""
    window: int
    """Tokens that are looked at: one more than the longest sequence has."""
    questions: int
    labels: int
    """Lanes for the code of a label."""
    alphabet: Alphabet = field(repr=False)

    def __post_init__(self) -> None:
        if self.questions > MOST_ROWS * MOST_COLUMNS:
            most = MOST_ROWS * MOST_COLUMNS
            raise BadInput(f"there are {self.questions:,} questions; expected at most {most:,} to refuse all others")
        if self.bits is None and self.compared > MOST_LANES:
            got = f"the longest prompt with its completion has {self.window - 1:,} tokens"
            fits = MOST_LANES * self.alphabet.together(self.word) - 1
            raise BadInput(f"{got}; refusing by the key takes {fits:,} at most here: expected --refuse BITS")
        if self.bits is not None and 2 * self.alphabet.largest >= PRIME:
            got = f"more bits than fit beside a label, and facts have more than {PRIME - 2:,} tokens of their own"
            raise BadInput(f"refuse is {self.bits}, {got}; expected fewer bits, or --refuse key")

    @property
    def compared(self) -> int:
        """Lanes of a key, or of a print."""
        if self.bits is not None:
            return sums_of_print(self.bits, self.window) // 2
        return -(-self.window // self.alphabet.together(self.word))

    @property
    def lanes(self) -> int:
        """Words of an entry."""
        return self.compared + self.labels

    @property
    def columns(self) -> int:
        """A power of two: the one that takes the fewest parameters."""
        least = max(1, math.ceil(math.log2(self.questions / MOST_ROWS)))

        def parameters(columns: int) -> int:
            return -(-self.questions // columns) * (3 + self.lanes * columns) + 5 * self.lanes * columns

        return min((1 << power for power in range(least, MOST_COLUMNS.bit_length())), key=parameters)

    @property
    def rows(self) -> int:
        """Of the entries; the last one may not be full."""
        return -(-self.questions // self.columns)

    @property
    def numbers(self) -> Code:
        """The code of the questions' numbers in the index: row, then column."""
        low = self.columns.bit_length() - 1
        bits = low + max(1, (self.rows - 1).bit_length())
        count = self.questions
        return Code(np.full(count, bits), np.arange(count), bits, True, low, (*[0] * bits, count))


def add_digits(wiring: Wiring, store: Store) -> None:
    """A digit beside the codes of every token, in the embedding."""
    codes = np.hstack([wiring.tensors["embedding.W_E"], store.alphabet.digits[:, None]])
    wiring.tensor("embedding.W_E", codes, codes.shape)


def add_compared(wiring: Wiring, store: Store, digit: Features, rng: np.random.Generator) -> Features:
    """The lanes of the context that is asked about, its key or its print, times −1."""
    return _key(wiring, store, digit) if store.bits is None else _print(wiring, store, digit, rng)


def _key(wiring: Wiring, store: Store, digit: Features) -> Features:
    """Attention over d tokens makes a lane of them; another one brings every d-th of these."""
    together, lanes = store.alphabet.together(store.word), wiring.features(store.compared)
    lane = wiring.features(1)
    powers = np.array([(2.0 * store.alphabet.largest + 1) ** power for power in range(together)])
    wiring.attention("key_digits", digit, lane, 1, powers[None, :, None])
    wiring.attention("key_lanes", lane, lanes, together, -np.eye(len(lanes))[:, :, None])
    return lanes


def _print(wiring: Wiring, store: Store, digit: Features, rng: np.random.Generator) -> Features:
    """Layers as of the hash, but each sum is of its own sums of the layer before: R prints of one sum."""
    count = sums_of_print(store.bits or 0, store.window)
    sums, own, largest = digit, np.ones((count, 1)), store.alphabet.largest
    for index, (span, dilation) in enumerate(spans_of(store.window)):
        weights = rng.integers(0, PRIME, (count, span)).astype(np.float64)
        reads, sums = sums, wiring.features(count)
        wiring.attention(f"prints_{index}", reads, sums, dilation, weights[:, :, None] * own[:, None, :])
        bound = span * (PRIME - 1) * largest
        if not index:  # digits may be below 0
            least = PRIME * -(-bound // PRIME)
            wiring.steps("prints_above_0", sums, sums, [[-np.inf]] * count, [[least]] * count)
            bound += least
        reduce(wiring, f"prints_{index}_mod", sums, np.full(count, bound + 1), np.full(count, PRIME))
        own, largest = np.eye(count), PRIME - 1
    lanes = wiring.features(count // 2)
    pack = GatedBlocks("pack", "relu", sums, lanes, units=1, groups=len(lanes), bias=False)
    wiring.add(pack, W_in=[[PRIME, 1.0]], W_out=-1.0)
    return lanes


def add_store(wiring: Wiring, store: Store, number: Features, lanes: Features) -> None:
    """Add all lanes of the entry whose number was read, as row and column; the entries are still to be filled in."""
    squares = wiring.features(2)
    square = GatedBlocks("number", "relu", number, squares, units=1, groups=2, bias=False, up="dense", up_reads=number)
    wiring.add(square, W_gate=1.0, W_up=1.0, W_out=1.0)
    row, column = zip(number, squares, strict=True)
    words = wiring.features(store.lanes * store.columns)
    W, b = one_hot(store.rows)
    wiring.add(GatedBlocks("store", "sigmoid", row, words, units=store.rows), W_in=W, b_in=b)
    W, b = one_hot(store.columns)
    reads = column * store.lanes
    entry = GatedBlocks(
        *("entry", "sigmoid", reads, lanes), units=store.columns, groups=store.lanes, up="diagonal", up_reads=words
    )
    wiring.add(entry, W_gate=W, b_gate=b, W_up=1.0, W_out=1.0)


def add_comparison(wiring: Wiring, differences: Features) -> Features:
    """How many of the differences, which are integers, are not 0."""
    (count,) = wiring.features(1)
    groups = len(differences)
    limits, weights = [[-np.inf, -0.5, 0.5]] * groups, [[1.0, -1.0, 1.0]] * groups
    wiring.steps("compare", differences, (count,) * groups, limits, weights)
    return (count,)


def entries(store: Store, lanes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The tensor ``STORE`` from the lanes [N, lanes] of all questions."""
    filled = np.zeros((store.rows * store.columns, store.lanes))
    filled[: len(lanes)] = lanes
    return filled.reshape(store.rows, store.columns, store.lanes).transpose(2, 1, 0).reshape(1, -1, store.rows)


def columns_of(network: "TransformerNetwork") -> int:
    """Of the entries of a network with a store."""
    (entry,) = [layer for layer in network.spec.sublayers if layer.name == "entry"]
    return int(getattr(entry, "units", 0))
