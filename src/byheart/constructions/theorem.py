"""A theorem as a construction runs it: its statement, and the settings that build its network to the letter.

Most constructions build something smaller than their paper does. A :class:`Theorem` names both: the settings that
build the network of the theorem, and, if they differ, the settings that make it smaller. Both networks are built and
certified on one task, which anybody can draw again (``byheart theorems``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from byheart.tasks.random_tasks import RandomTask

SEQUENCES = RandomTask(examples=100, length=6, vocab=30, labels=4)
"""Sequences with a label each, the task of most theorems."""
MANY_SEQUENCES = RandomTask(examples=1000, length=6, vocab=30, labels=4)
"""Ten times as many sequences, at which limits on depth and bits begin to show."""
TOKENS = RandomTask(examples=100, length=6, vocab=30, labels=4, seq_to_seq=True)
"""Sequences of the same sizes with a label for every token."""
VECTORS = RandomTask(examples=100, length=6, vocab=30, labels=4, dim=4)
"""Sequences of the same sizes with vectors as tokens."""
TOKEN_VECTORS = RandomTask(examples=100, length=6, vocab=30, labels=4, dim=4, seq_to_seq=True)
"""Sequences of vectors with a label for every token."""
POINTS = RandomTask(examples=100, length=1, vocab=None, labels=4, dim=4)
"""A hundred single vectors with a label each."""
QUERIES = RandomTask(examples=31, length=8, dim=16, query="own", real=True, target_dim=3)
"""Contexts of vectors with a query and three real numbers each."""
ASSOCIATIONS = RandomTask(examples=42, length=2, vocab=10, labels=10)
"""The 42 pairs of tokens that four dimensions and ten heads of attention hold."""
PAIRS = RandomTask(examples=400, length=2, vocab=20, labels=20, shape="every")
"""All pairs of tokens, more than attention can hold."""
BIGRAMS = RandomTask(examples=36, length=2, vocab=6, distribution=True, shape="every")
"""All pairs of tokens with a distribution of the next token each."""
DISTRIBUTIONS = RandomTask(examples=30, length=4, vocab=10, distribution=True)
"""Contexts with a distribution of the next token each."""


@dataclass(frozen=True)
class Theorem:
    """One statement of a paper."""

    name: str
    """Number of the theorem in its paper, such as "Theorem 1"."""
    says: str
    """Statement in one line, in our letters."""
    assumes: str
    """Assumptions about the data."""
    limits: str
    """Promises about the network: width, depth, heads, bits."""
    task: RandomTask | None = None
    """Task on which it is shown; None for statements that no single network shows."""
    stated: Mapping[str, object] | None = None
    """Settings that build the theorem's network; None: not built that way."""
    ours: Mapping[str, object] | None = None
    """Settings that build our own, smaller network; None: there is no other."""
    judged: Mapping[str, str] = field(default_factory=dict)
    """Options of certify and the choices that give their values, if less than every right answer is promised."""
    shown_by: str = ""
    """Command that shows it, if that is not ``byheart build``."""
    paper: str = ""
    """Authors and year, if they are not those of the construction that shows it."""
    differs: str = ""
    """Difference between the network built "as stated" and the paper's; empty: none that we know of."""

    def __post_init__(self) -> None:
        if (self.task is None) != (self.stated is None and self.ours is None) or (self.task is None) != bool(
            self.shown_by
        ):
            raise ValueError(f"{self.name}: expected settings to build with on a task, or a command that shows it")

    @property
    def forms(self) -> dict[str, Mapping[str, object]]:
        """Settings by form: "as stated" and "ours"."""
        ways = {"as stated": self.stated, "ours": self.ours}
        return {form: settings for form, settings in ways.items() if settings is not None}


def limited(assumes: str) -> tuple[Theorem, Theorem]:
    """Return the two theorems that trade parameters for fewer layers or fewer bits, for points and for sequences."""
    shown_on = "shown on token ids, which are a distance of 1 apart"
    return (
        Theorem(
            "depth",
            says="with depth L ≤ √N, Õ(N/L) parameters",
            assumes=assumes,
            limits="depth L",
            task=MANY_SEQUENCES,
            stated={"depth": 31},
            differs=shown_on,
        ),
        Theorem(
            "bits",
            says="with b ≤ √N bits per weight, Õ(N/b) parameters",
            assumes=assumes,
            limits="b bits per weight",
            task=MANY_SEQUENCES,
            stated={"bits": 31},
            differs=shown_on,
        ),
    )


def flags(settings: Mapping[str, object]) -> str:
    """Return settings as the command line takes them.

    >>> flags({"width": "constant", "model_dim": 10, "positions": True})
    '--width constant --model-dim 10 --positions'
    """
    words = []
    for name, value in settings.items():
        flag = f"--{name.replace('_', '-')}"
        words.append(flag if value is True else f"{flag} {value}")
    return " ".join(words)
