"""A hash that leaves every question its bits: no bit plane is asked too much, and no two questions contradict each other.

Two questions that read the same words (*twins*) ask for the same sum: they contradict each other where both ask for a
bit and want different ones. The codes of a single token are drawn anew then, one that only one of the two has; only the
few questions that see this token move.
"""

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.reciting.codes import Code
from byheart.constructions.reciting.experts.address import Addresses, addresses, stride_of
from byheart.constructions.reciting.experts.sizes import BITS, CODES, SPARE, Sizes
from byheart.constructions.reciting.sizes import Unsolvable
from byheart.constructions.reciting.uniform.address import Hash, draw, draw_codes, hashed
from byheart.constructions.reciting.uniform.looking import distances
from byheart.tasks.contexts import MISSING, Contexts

Integers = NDArray[np.int64]
STEPS = 30


def settled(
    contexts: Contexts, code: Code, sizes: Sizes, vocab: int, first: int, rng: np.random.Generator
) -> tuple[Hash, Addresses]:
    """A hash that will do, and where questions read; raises Unsolvable."""
    looks, stride = distances(contexts.window), stride_of(code)
    hashing = draw(vocab, len(looks), rng, CODES)
    for _ in range(STEPS):
        found = addresses(hashed(contexts, hashing, looks, first), sizes, stride)
        refuse_crowds(found, code.lengths[contexts.labels], sizes)
        pairs = contradicting(found, code.words[contexts.labels], code.lengths[contexts.labels], sizes)
        if not len(pairs):
            return hashing, found
        for pair in pairs:
            _move(hashing, contexts, pair, rng)
    raise Unsolvable("two questions that read the same words contradict each other")


def refuse_crowds(found: Addresses, lengths: Integers, sizes: Sizes) -> None:
    """Unsolvable if a bit plane is asked more questions than it has bits, but for a few."""
    most = max(BITS)
    shelf = len(BITS) * found.expert + found.kind
    kinds = np.zeros((len(BITS) * sizes.experts, most, most + 1), dtype=np.int64)
    np.add.at(kinds, (shelf, found.offset, lengths), 1)
    for kind, bits in enumerate(BITS):
        part = kinds[kind :: len(BITS)]
        longer = part[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]
        for plane in range(bits):
            # The code word's bit at a distance below the offset is asked of the plane there.
            asked = sum(longer[:, (plane + 1 + bit) % bits, bit + 1] for bit in range(bits))
            if asked.max() > sizes.cells - SPARE:
                raise Unsolvable("a bit plane is asked more questions than it has bits")


def contradicting(found: Addresses, words: Integers, lengths: Integers, sizes: Sizes) -> Integers:
    """[k, 2]: pairs of questions that read the same words, and want different bits of their sum."""
    cells = found.cells(sizes)
    keys = np.random.default_rng(0).integers(1, 1 << 62, size=cells.shape[1] + 1)
    key = cells @ keys[:-1] + (len(BITS) * found.expert + found.kind) * keys[-1]
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(np.diff(key[order]) == 0)
    pairs = np.stack([order[same], order[same + 1]], axis=1)
    wanted = [tuple(_wanted(found, words, lengths, question) for question in pair) for pair in pairs.tolist()]
    clash = [any(there.get(plane, bit) != bit for plane, bit in here.items()) for here, there in wanted]
    return pairs[np.array(clash, dtype=bool)]


def _wanted(found: Addresses, words: Integers, lengths: Integers, question: int) -> dict[int, int]:
    """The bits that a question asks for, by bit plane."""
    length, bits = int(lengths[question]), BITS[found.kind[question]]
    first = int(found.offset[question]) - 1
    return {(first - place) % bits: int(words[question]) >> (length - 1 - place) & 1 for place in range(length)}


def _move(hashing: Hash, contexts: Contexts, pair: Integers, rng: np.random.Generator) -> None:
    """Draw the codes of one token anew that only one of two questions sees, or at other places."""
    one, other = contexts.windows(pair)
    differ = np.unique(one[(one != other) & (one != MISSING)])
    if not len(differ):
        differ = np.unique(other[(one != other) & (other != MISSING)])
    hashing.codes[rng.choice(differ)] = draw_codes(1, rng, CODES)[0]
