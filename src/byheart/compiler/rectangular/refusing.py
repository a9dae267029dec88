"""Refuse contexts that were never memorized: a print of the whole context beside every label.

Beside the label of a question, the table holds b = ``refuse`` bits of a second hash of its context, the *print*. The
network also computes the print from the context at hand, with weights of its own, and compares the two. If they differ,
it answers with an additional token, *unknown*. (Prints that do not fit beside a label, and whole contexts, are kept in
a store: :mod:`.storing`.)

1. *Print*: one digit for every 10 bits; each digit is a sum of the window modulo a prime (:mod:`.front`).
2. *Comparing*: m = Σ |digit read − digit computed|, an integer. This takes two units per digit.
3. *Refusing*: Y becomes −1 if m > 0. No label's code is below 0. The line of *unknown*, −2·Y − 1, is above all other
   lines at Y = −1, and below the first label's line, which is 0, for Y ≥ 0.

The window is longer than every sequence of the questions, so two contexts look the same only if they are the same from
their very beginning. Every question is answered (certified, like all answers). Any other context reads words that
answer other questions, or free bits that were drawn at random. These are its own print with probability 2^−b *if the
hash acts like a random function*, which is measured and not proved.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.layouts import Refuse
from byheart.compiler.rectangular import front
from byheart.compiler.rectangular.wiring import SHARP, Wiring
from byheart.errors import BadInput
from byheart.networks.transformer import GatedBlocks
from byheart.networks.transformer.spec import Features
from byheart.tasks.contexts import Contexts
from byheart.tasks.windows import MAX_WINDOW

DEFAULT = 20
"""Default number of bits of a print, if there is room for them."""
MOST = 64
"""Largest number of bits of a print."""
DIGIT = 10
"""Largest number of bits of a print's digit."""


def decided(refuse: Refuse, label_bits: int, word: int) -> int | Literal["key"] | None:
    """Return ``refuse`` with "auto" as a number. Raise BadInput if it is invalid, or if words have no room for prints.

    >>> decided("auto", 8, 24), decided("auto", 8, 53), decided("key", 8, 24), decided(None, 8, 24)
    (16, 20, 'key', None)
    """
    if refuse is None or refuse == "key":
        return refuse
    room = word - label_bits
    bits = min(DEFAULT, room) if refuse == "auto" else refuse
    if bits == room == 0:
        got = f"labels take {label_bits} bits of a word of {word}"
        raise BadInput(f"refuse is 'auto', and {got}; expected a number of bits, key, or a wider --precision")
    if type(bits) is not int or not 1 <= bits <= MOST:
        raise BadInput(f"refuse is {refuse!r}; expected 1 to {MOST} bits, or key" + ", or auto" * (refuse is True))
    return bits


def beside(refuse: int | Literal["key"] | None, label_bits: int, word: int) -> int:
    """Return the bits of a print beside a label of ``label_bits`` if a word has room for both; otherwise 0.

    >>> beside(16, 8, 24), beside(17, 8, 24), beside("key", 8, 24), beside(None, 8, 24)
    (16, 0, 0, 0)
    """
    return refuse if isinstance(refuse, int) and refuse <= word - label_bits else 0


def digits(bits: int) -> tuple[int, ...]:
    """Return the bits of each digit of a print, the first digit first.

    >>> digits(0), digits(8), digits(21)
    ((), (8,), (7, 7, 7))
    """
    count = -(-bits // DIGIT)
    return tuple(bits * (k + 1) // count - bits * k // count for k in range(count))


def moduli(bits: int) -> tuple[int, ...]:
    """Return a prime for each digit of a print, below 2^bits of the digit; different ones as far as there are any.

    >>> moduli(8), moduli(20), moduli(4)
    ((251,), (1021, 1019), (13,))
    """
    chosen: list[int] = []
    for width in digits(bits):
        primes = [number for number in range(1 << width, 1, -1) if _is_prime(number)]
        chosen.append(next((prime for prime in primes if prime not in chosen), primes[0]))
    return tuple(chosen)


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def joined(values: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Return the prints [N] whose digits are ``values`` [N, digits].

    >>> joined(np.array([[3, 1]]), 20).tolist()
    [3073]
    """
    prints = np.zeros(len(values), np.int64)
    for width, digit in zip(digits(bits), values.T, strict=True):
        prints = (prints << width) + digit
    return prints


def with_whole_prompts(contexts: Contexts, window: int | None) -> Contexts:
    """Return the contexts in a window that shows where each sequence begins, so that no other context looks like it.

    ``window`` is the user's, or None. ``contexts`` are in that window, or in the largest one.
    """
    longest = contexts.longest
    if longest >= (MAX_WINDOW if window is None else window):
        got = f"the longest prompt with its completion has {longest:,} tokens, and to refuse others all are looked at"
        fewer = f"fewer than {MAX_WINDOW:,}" if window is None else f"a --window of {longest + 1} or more, or none"
        raise BadInput(f"{got}; expected {fewer}")
    return replace(contexts, window=front.sees(longest + 1) if window is None else window)


def add_check(wiring: Wiring, read: Features, computed: Features, Y: Features) -> Features:
    """Add features that hold Y if the digits ``read`` equal the context's ``computed`` ones; otherwise −1 and zeros."""
    (difference,) = wiring.features(1)
    pairs = tuple(feature for both in zip(read, computed, strict=True) for feature in both)
    compare = GatedBlocks("compare", "relu", pairs, (difference,) * len(read), units=2, groups=len(read), bias=False)
    wiring.add(compare, W_in=[[1.0, -1.0], [-1.0, 1.0]], W_out=1.0)
    return add_known(wiring, (difference,), Y)


def add_known(wiring: Wiring, difference: Features, Y: Features) -> Features:
    """Add features that hold Y if ``difference``, an integer, is 0; −1 and zeros if it is more."""
    out, count = wiring.features(len(Y)), len(Y)
    gate = GatedBlocks("known", "sigmoid", difference, out, units=count + 1, up="dense", up_reads=Y, up_bias=True)
    sign = np.append(np.full(count, -1.0), 1.0)
    wiring.add(
        gate,
        W_gate=SHARP * sign[:, None],
        b_gate=-SHARP / 2 * sign,
        W_up=np.eye(count + 1, count),
        b_up=np.eye(1, count + 1, count),
        W_out=np.concatenate([np.eye(count), -np.eye(count, 1)], axis=1),
    )
    return out
