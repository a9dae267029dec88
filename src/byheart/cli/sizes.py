"""Sizes given on the command line instead of a task file."""

from dataclasses import dataclass
from typing import Literal

from byheart.size import Size


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
    """What is memorized: one label a sequence, or one a token."""
    positions: bool = False
    """Networks with positional codes."""

    @property
    def size(self) -> Size:
        """As the rest of the package knows it."""
        from byheart.constructions.planner import check_size

        return check_size(Size(self.examples, self.length, self.labels, self.vocab, self.dim))


@dataclass(frozen=True)
class LetterFlags:
    """What some bounds need beyond the sizes; unlike the bounds' own letters, these are checked when they are used."""

    model_dim: int | None = None
    """d, where the model chooses it (tokens are ids)."""
    head_dim: int | None = None
    """d_h: rows of a head's query and key maps."""
    value_dim: int | None = None
    """d_v: rows of a head's value map."""
    bits: int | None = 32
    """b: bits that store one parameter."""
    radius: float | None = None
    """r: largest norm of a token."""
    separation: float | None = None
    """δ: smallest distance between two different tokens."""
    depth: int | None = None
    """L: layers of a feed-forward network."""
    robustness: float | None = None
    """ρ: radius that must be right around a point, over half the separation."""
