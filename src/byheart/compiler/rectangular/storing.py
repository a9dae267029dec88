"""Refuse with proof: an index, a store with an entry for every question, and a comparison.

A print beside the label (:mod:`.refusing`) is a sum of six words, and nothing is proved about the sums that other
contexts read. Here the table is only an *index*: it holds the number of every question. The *store* holds an entry
under each number, by row and column, so that a context reads one entry or none (zeros). An entry consists of *lanes*,
computed from the memorized context, and the code of its label. The network computes the same lanes from the context at
hand, and answers *unknown* unless all of them equal the entry's. There are two kinds of lanes:

- *Key*: the context itself. **No context is answered that was not memorized**, whatever the index says:

  1. Every memorized token has a *digit* of its own, 1 ≤ |c| ≤ a. All other tokens share one digit. 0 stands for places
     before the beginning.
  2. d digits make one lane, Σ c_i·A^i with A = 2a + 1. Different digits give different sums.
  3. The window is one token longer than every memorized sequence. Equal lanes therefore mean equal digits, and equal
     tokens from the beginning on.

- *Print*: R sums modulo the prime p = ``PRIME``. Two contexts have the same print with **probability at most
  (L/p)^R ≤ 2^−b**:

  1. In the first of L layers, a sum is over 8 digits; in each later layer, over 8 sums of the layer before. Weights are
     drawn evenly from 0 to p − 1, independently of everything else.
  2. Contexts that differ anywhere have equal sums in one layer with probability 1/p, and in one of L layers with
     probability at most L/p. All R sums are equal with probability at most (L/p)^R.
  3. Neither the index nor the numbers of entries depend on these weights. So the bound holds, without any assumption,
     for every context that was chosen without looking at the weights.
  4. Zeros are the print of the empty context, which is never a prompt.

The context's lanes are in the stream times −1, and the entry's lanes are added to them. The differences that are not 0
are counted. For every context all values are integers that the format holds, and nothing is rounded.
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
"""Modulus p of a print's sums: 8·(p − 1)² < 2²³, so no sum is rounded."""
MOST_COLUMNS = 1 << 11
"""Largest number of columns of entries: like those of rows, the squares of their numbers must be exact."""
MOST_LANES = 512
"""Largest number of lanes of a key: each takes a head of attention, with a bias for every lane."""
APART = 1 << 32
"""Last number of the seed of prints' weights: it makes them independent of everything else."""
STORE = "store.W_out"
"""The tensor that holds the entries: [1, lanes·columns, rows]."""


@dataclass(frozen=True, eq=False)
class Alphabet:
    """A digit for every token."""

    digits: NDArray[np.int64]
    """[ω]: the digit of each token."""
    largest: int
    """a, the largest absolute value of a digit."""

    def together(self, bits: int) -> int:
        """Return d, the number of digits per lane: all sums Σ c_i·A^i of d digits are between −2^bits and 2^bits.

        >>> alphabet(np.arange(200), 258).together(23), alphabet(np.arange(26), 258).together(23)
        (3, 4)
        """
        return math.floor((bits + 1) / math.log2(2 * self.largest + 1))


def alphabet(memorized: NDArray[np.integer], vocab: int) -> Alphabet:
    """Assign the digits 1, −1, 2, −2, … to the tokens in ``memorized``, and the next one to all other tokens.

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
    """Return R, the number of sums with which (L/p)^R ≤ 2^−bits. It is even, because a lane holds two sums.

    >>> sums_of_print(17, 64), sums_of_print(40, 64), sums_of_print(40, 65)
    (2, 6, 6)
    """
    layers = len(spans_of(window))
    return 2 * math.ceil(bits / math.log2(PRIME / layers) / 2)


@dataclass(frozen=True)
class Store:
    """The shape of a store: the lanes of its entries, and their number."""

    bits: int | None
    """b, the bits of a print; None for keys."""
    word: int
    """Bits of the integers whose differences the format holds, without the sign."""
    window: int
    """Number of tokens that are compared: one more than the longest sequence has."""
    questions: int
    labels: int
    """Number of lanes for the code of a label."""
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
        """Number of lanes of a key, or of a print."""
        if self.bits is not None:
            return sums_of_print(self.bits, self.window) // 2
        return -(-self.window // self.alphabet.together(self.word))

    @property
    def lanes(self) -> int:
        """Number of words of an entry."""
        return self.compared + self.labels

    @property
    def columns(self) -> int:
        """Number of columns of entries: the power of two that takes the fewest parameters."""
        least = max(1, math.ceil(math.log2(self.questions / MOST_ROWS)))

        def parameters(columns: int) -> int:
            return -(-self.questions // columns) * (3 + self.lanes * columns) + 5 * self.lanes * columns

        return min((1 << power for power in range(least, MOST_COLUMNS.bit_length())), key=parameters)

    @property
    def rows(self) -> int:
        """Number of rows of entries; the last one may be partly empty."""
        return -(-self.questions // self.columns)

    @property
    def numbers(self) -> Code:
        """The code of the questions' numbers in the index: row, then column."""
        low = self.columns.bit_length() - 1
        bits = low + max(1, (self.rows - 1).bit_length())
        count = self.questions
        return Code(np.full(count, bits), np.arange(count), bits, True, low, (*[0] * bits, count))


def add_digits(wiring: Wiring, store: Store) -> None:
    """Add every token's digit to the embedding, beside its codes."""
    codes = np.hstack([wiring.tensors["embedding.W_E"], store.alphabet.digits[:, None]])
    wiring.tensor("embedding.W_E", codes, codes.shape)


def add_compared(wiring: Wiring, store: Store, digit: Features, rng: np.random.Generator) -> Features:
    """Add the lanes of the context at hand, its key or its print, times −1."""
    return _key(wiring, store, digit) if store.bits is None else _print(wiring, store, digit, rng)


def _key(wiring: Wiring, store: Store, digit: Features) -> Features:
    """Add a key: one attention layer joins d tokens to a lane, and another one collects every d-th lane."""
    together, lanes = store.alphabet.together(store.word), wiring.features(store.compared)
    lane = wiring.features(1)
    powers = np.array([(2.0 * store.alphabet.largest + 1) ** power for power in range(together)])
    wiring.attention("key_digits", digit, lane, 1, powers[None, :, None])
    wiring.attention("key_lanes", lane, lanes, together, -np.eye(len(lanes))[:, :, None])
    return lanes


def _print(wiring: Wiring, store: Store, digit: Features, rng: np.random.Generator) -> Features:
    """Add a print: layers as in the hash, except that each sum reads only its own sum of the layer before."""
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
    """Add a feature that counts the differences that are not 0. All of them are integers."""
    (count,) = wiring.features(1)
    groups = len(differences)
    limits, weights = [[-np.inf, -0.5, 0.5]] * groups, [[1.0, -1.0, 1.0]] * groups
    wiring.steps("compare", differences, (count,) * groups, limits, weights)
    return (count,)


def entries(store: Store, lanes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the tensor ``STORE`` for the lanes [N, lanes] of all questions."""
    filled = np.zeros((store.rows * store.columns, store.lanes))
    filled[: len(lanes)] = lanes
    return filled.reshape(store.rows, store.columns, store.lanes).transpose(2, 1, 0).reshape(1, -1, store.rows)


def columns_of(network: "TransformerNetwork") -> int:
    """Return the number of columns of entries in a network with a store."""
    (entry,) = [layer for layer in network.spec.sublayers if layer.name == "entry"]
    return int(getattr(entry, "units", 0))
