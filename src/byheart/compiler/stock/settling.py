"""Find a hash under which no bit plane is asked for too many bits, and no two questions contradict each other.

Attention looks back only at the first four codes of a token. If one of the other codes of a token is shifted, the codes
of the questions that end in it are shifted by as much, and nothing else changes. This moves a few questions to other
blocks, classes and offsets. Shifts that leave planes less crowded are kept, until no plane is asked for more bits than
it has. Chance alone would leave three standard deviations of every table unused; this leaves about half of that.

Two questions that read the same words (*twins*) ask for the same sum. They contradict each other if both ask for a bit
and want different ones. Then the columns of all questions that end like one of the two are shifted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code
from byheart.compiler.layouts import Unsolvable
from byheart.compiler.stock.address import Addresses, addresses, ask, move, shelving, stride_of
from byheart.compiler.stock.dimensions import BITS, CODES, GROUPS, LANES, SPARE, StockSizes
from byheart.compiler.stock.front import CARRIED, GRAIN, Hash, Tokens, distances, draw, draw_codes, hashed
from byheart.tasks.contexts import MISSING, Contexts

Integers = NDArray[np.int64]
SHIFTS = 5000
"""Number of shifts that are tried per repair."""
REPAIRS = 30
"""Number of times that contradictions are repaired."""
_PORTION = 1 << 18
"""Number of questions whose words are found at a time."""


def settle(contexts: Contexts, code: Code, sizes: StockSizes, rng: np.random.Generator) -> tuple[Hash, Addresses]:
    """Return a hash that leaves every question its bits, and the questions' addresses; raise Unsolvable."""
    stride = stride_of(code)
    words, lengths = code.words[contexts.labels], code.lengths[contexts.labels]
    hashing = draw(Tokens(contexts).count, len(distances(contexts.window)), rng)
    moving = Moving(hashing, hashed(contexts, hashing), contexts.tokens[contexts.places].astype(np.int64))
    crowds = Crowds(sizes, stride, lengths[moving.order])
    for _ in range(REPAIRS):
        _even_out(moving, crowds, rng)
        address = addresses(moving.codes, sizes, stride)
        pairs = contradicting(address, words, lengths, sizes)
        if not len(pairs):
            return hashing, address
        for first, second in pairs.tolist():
            if moving.last[first] != moving.last[second]:
                moving.shift(moving.last[first], slice(CARRIED, CODES), _even(rng, CODES - CARRIED))
            else:
                _redraw(hashing, contexts, [first, second], rng)
                moving.renew(hashed(contexts, hashing))
    raise Unsolvable("two questions that read the same words contradict each other")


@dataclass(eq=False)
class Moving:
    """Codes that may be shifted: those of tokens, and with them those of the questions that end in the token."""

    hashing: Hash
    codes: Integers
    """[N, CODES]: codes of every question."""
    last: Integers
    """[N]: the last token of every question."""

    def __post_init__(self) -> None:
        self.order = np.argsort(self.last, kind="stable")
        self.tokens, starts = np.unique(self.last[self.order], return_index=True)
        spans = zip(starts, [*starts[1:], len(self.last)], strict=True)
        self.spans = dict(zip(self.tokens.tolist(), (slice(*span) for span in spans), strict=True))
        self.renew(self.codes)

    def renew(self, codes: Integers) -> None:
        """Replace all codes."""
        self.codes[:] = codes
        self.shelved = np.ascontiguousarray(codes[self.order, -3:])
        """[N, 3]: the last three codes, sorted by last tokens, so that the questions of one token are neighbours."""

    def members(self, token: int) -> Integers:
        """Return the questions that end in a token."""
        return self.order[self.spans[int(token)]]

    def shift(self, token: int, which: slice | int, by: Integers | int) -> None:
        """Shift some of the codes that attention does not look back at; ``by`` is even, so that codes stay odd."""
        members = self.members(token)
        self.codes[members, which] = _wrapped(self.codes[members, which] + by)
        self.hashing.codes[token, which] = _wrapped(self.hashing.codes[token, which] + by)
        self.shelved[self.spans[int(token)]] = self.codes[members, -3:]


class Crowds:
    """Counts the questions per bit plane of each table, and the excess. ``lengths`` [N] are those of code words."""

    def __init__(self, sizes: StockSizes, stride: int, lengths: Integers) -> None:
        self.sizes, self.shelving, self.lengths = sizes, shelving(sizes, stride), lengths

    def asked(self, codes: Integers) -> Integers:
        """Return the number of questions per plane [blocks, tables, planes], for their last three codes [N, 3]."""
        asked = np.zeros((self.sizes.blocks, len(BITS), max(BITS)), dtype=np.int64)
        ask(asked, codes, self.lengths, self.shelving)
        return asked

    def moved(self, asked: Integers, which: slice, before: Integers, after: Integers) -> Integers:
        """Return the numbers after the codes of the questions ``which`` have changed."""
        result = asked.copy()
        move(result, before, after, self.lengths[which], self.shelving)
        return result

    def excess(self, asked: Integers) -> int:
        """Return 0 if every plane has room, and more the fuller the planes are."""
        return int((np.maximum(0, asked - (self.sizes.cells - SPARE)) ** 2).sum())


def _even_out(moving: Moving, crowds: Crowds, rng: np.random.Generator) -> None:
    """Shift codes until every plane has room; raise Unsolvable."""
    asked = crowds.asked(moving.shelved)
    excess = crowds.excess(asked)
    for _ in range(SHIFTS):
        if not excess:
            return
        token, which = int(rng.choice(moving.tokens)), int(rng.integers(3))
        by = int(_even(rng, 1)[0]) >> int(rng.integers(0, 8)) & ~1
        span = moving.spans[token]
        before = moving.shelved[span]
        after = before.copy()
        after[:, which] = _wrapped(after[:, which] + by)
        moved = crowds.moved(asked, span, before, after)
        if (less := crowds.excess(moved)) <= excess:
            moving.shift(token, CODES - 3 + which, by)
            asked, excess = moved, less
    if excess:
        raise Unsolvable("a bit plane is asked for more bits than it has")


def _even(rng: np.random.Generator, count: int) -> Integers:
    """Draw even shifts of codes, in units of 2^−GRAIN."""
    shifts: Integers = 2 * rng.integers(-(1 << (GRAIN - 2)), 1 << (GRAIN - 2), size=count)
    return shifts


def _wrapped(codes: Integers) -> Integers:
    half = 1 << (GRAIN - 1)
    wrapped: Integers = ((codes + half) & (2 * half - 1)) - half
    return wrapped


def contradicting(address: Addresses, words: Integers, lengths: Integers, sizes: StockSizes) -> Integers:
    """Return pairs [k, 2] of questions that read the same words and ask for different bits of their sum."""
    keys = np.random.default_rng(0).integers(1, 1 << 62, size=GROUPS * LANES + 1)
    key = (len(BITS) * address.block + address.kind) * keys[-1]
    for start in range(0, len(key), _PORTION):
        part = slice(start, start + _PORTION)
        key[part] += address.cells(sizes, part) @ keys[:-1]
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(np.diff(key[order]) == 0)
    pairs = np.stack([order[same], order[same + 1]], axis=1)
    wanted = [[_wanted(address, words, lengths, question) for question in pair] for pair in pairs.tolist()]
    clash = [any(second.get(plane, bit) != bit for plane, bit in first.items()) for first, second in wanted]
    contradictions: Integers = pairs[np.array(clash, dtype=bool)]
    return contradictions


def _wanted(address: Addresses, words: Integers, lengths: Integers, question: int) -> dict[int, int]:
    """Return the bits that a question asks for, by bit plane."""
    length, bits = int(lengths[question]), BITS[address.kind[question]]
    first = int(address.offset[question]) - 1
    return {(first - place) % bits: int(words[question]) >> (length - 1 - place) & 1 for place in range(length)}


def _redraw(hashing: Hash, contexts: Contexts, pair: list[int], rng: np.random.Generator) -> None:
    """Draw the codes of a token anew at which the windows of two questions differ."""
    windows = contexts.windows(np.array(pair))
    tokens = np.unique(windows[:, windows[0] != windows[1]])
    hashing.codes[rng.choice(tokens[tokens != MISSING])] = draw_codes(1, rng)[0]
