"""Sizes given on the command line instead of a task file."""

from dataclasses import dataclass
from typing import Literal

from byheart.bounds import Letters
from byheart.sizes import Size


@dataclass(frozen=True)
class SizeFlags:
    """The sizes of a task that need not exist."""

    examples: int = 1000
    """N: sequences."""
    length: int = 32
    """n: tokens in a sequence."""
    vocab: int = 200
    """ω: different tokens."""
    labels: int = 10
    """C: different labels."""
    dim: int | None = None
    """d: tokens are vectors of this dimension instead of ids."""
    setting: Literal["next-token", "seq-to-seq"] = "next-token"
    """What is memorized: one label per sequence, or one per token."""
    positions: bool = False
    """Networks with positional codes."""

    @property
    def size(self) -> Size:
        """As the rest of the package knows it."""
        from byheart.constructions.planner import check_size

        return check_size(Size(self.examples, self.length, self.labels, self.vocab, self.dim))


@dataclass(frozen=True)
class LetterFlags(Letters):
    """What some bounds need beyond the sizes."""

    bits: int | None = 32
    """b: bits that store one parameter."""

    def __post_init__(self) -> None:
        """Nothing yet: on the command line letters are checked when they are used."""
