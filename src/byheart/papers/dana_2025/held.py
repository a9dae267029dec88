"""Number of associations that attention alone holds: proved of trained networks, beside what a theorem promises.

One layer of attention (Dana, Pydi & Chevaleyre 2025) is trained on all ω² contexts of two tokens, with random answers.
These numbers stand beside each other for each number of heads:

- *trained*: right answers of one network after gradient descent, proved from its saved weights, one by one;
- *promised*: H·d_h + d, which some weights hold whatever the answers are (their Corollary 1);
- *built*: right answers of the network that ``byheart build dana-2025 --hold`` makes of that proof, with the same sizes
  and for the same task, proved likewise: the promised ones, and others by luck;
- *guessed*: the number with the commonest answer, and the mean number of right uniform guesses, one in ω;
- *counting*: the most associations for which W parameters of 32 bits could reach *every* labelling
  (:mod:`byheart.bounds.counting`). The bounds of :mod:`byheart.bounds.vc` are for ReLU networks, which these are not.

A trained network is a fact about one seed and bounds nothing: another may hold more, or fewer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from byheart.bounds import counting
from byheart.bounds.dana_2025 import capacity
from byheart.papers.curves import Rows, check_columns

BITS = 32
"""Bits of a trained parameter."""
QUOTED_HEADS = 20
"""Number of heads of the network that the finding quotes, if the table has it."""


@dataclass(frozen=True)
class MemorizedCount:
    """A trained network, and how many of its ``examples`` it gets right: a row of the table ``held``."""

    vocab: int
    model_dim: int
    head_dim: int
    heads: int
    parameters: int
    examples: int
    measured: int
    """Right answers in floats, while it was trained."""
    right: int
    """Answers proved right."""
    built: int
    """Answers proved right of the network that was built."""
    constant: int
    """Examples with the commonest answer."""

    @property
    def promised(self) -> int:
        """H·d_h + d, or all examples if there are fewer."""
        return min(capacity(self.heads, self.head_dim, self.model_dim), self.examples)

    @property
    def guessed(self) -> float:
        """Mean number of right uniform guesses."""
        return self.examples / self.vocab

    @property
    def most(self) -> int:
        """Largest number of associations that counting allows these parameters."""
        return counting.most(self.parameters, self.vocab, BITS)

    def cells(self) -> dict[str, int | float]:
        """Return a row of a table for people."""
        return {
            "H": self.heads,
            "parameters": self.parameters,
            "asked for": self.examples,
            "trained, measured": self.measured,
            "trained, proved": self.right,
            "promised: H·d_h + d": self.promised,
            "built, proved": self.built,
            "commonest answer": self.constant,
            "uniform guesses": self.guessed,
            f"counting, {BITS} bits": self.most,
        }

    def in_words(self) -> str:
        """Return the finding as a sentence.

        >>> MemorizedCount(50, 10, 10, 20, 9020, 2500, 1837, 1837, 267, 70).in_words()
        'Of 2,500 associations 9,020 parameters (H = 20) hold 1,837 after training, proved one by one; the theorem \
promises 210, the network that its proof builds holds 267, the commonest answer gets 70. Counting allows 51,142.'
        """
        return (
            f"Of {self.examples:,} associations {self.parameters:,} parameters (H = {self.heads}) hold {self.right:,} "
            f"after training, proved one by one; the theorem promises {self.promised:,}, the network that its proof "
            f"builds holds {self.built:,}, the commonest answer gets {self.constant:,}. Counting allows {self.most:,}."
        )


def held_of(rows: Rows) -> list[MemorizedCount]:
    """Return the rows of a table, fewest heads first."""
    names = [field.name for field in fields(MemorizedCount)]
    check_columns(rows, *names)
    return sorted(
        (MemorizedCount(**{name: int(row[name]) for name in names}) for row in rows), key=lambda held: held.heads
    )


def quoted(table: Sequence[MemorizedCount]) -> MemorizedCount:
    """Return the network that the finding quotes: that of :data:`QUOTED_HEADS` heads, or else of most."""
    return next((held for held in table if held.heads == QUOTED_HEADS), table[-1])
