"""A theorem as a construction runs it: what it says, of which networks, and which settings build it to the letter.

Most constructions build something smaller than their paper does. A :class:`Theorem` names both: the settings under
which the network is the one that the theorem speaks of, and, where they differ, those that make it smaller. Both are
built and certified on one task, which anybody can draw again (``byheart theorems``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from byheart.tasks.random_tasks import RandomTask

SEQUENCES = RandomTask(examples=100, length=6, vocab=30, labels=4)
"""Sequences with a label each: what most theorems are shown on."""
MANY_SEQUENCES = RandomTask(examples=1000, length=6, vocab=30, labels=4)
"""Ten times as many: limits begin to show."""
TOKENS = RandomTask(examples=100, length=6, vocab=30, labels=4, seq_to_seq=True)
"""The same sizes with a label for every token."""
VECTORS = RandomTask(examples=100, length=6, vocab=30, labels=4, dim=4)
"""The same sizes with vectors as tokens."""
TOKEN_VECTORS = RandomTask(examples=100, length=6, vocab=30, labels=4, dim=4, seq_to_seq=True)
"""The same with a label for every token."""
POINTS = RandomTask(examples=100, length=1, vocab=None, labels=4, dim=4)
"""As many single vectors."""
QUERIES = RandomTask(examples=31, length=8, dim=16, query="own", real=True, target_dim=3)
"""Contexts of vectors with a query and three real numbers each."""
ASSOCIATIONS = RandomTask(examples=42, length=2, vocab=10, labels=10)
"""As many pairs of tokens as four dimensions and ten heads of attention hold."""
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
    """Where it stands: "Theorem 1"."""
    says: str
    """What it states, in one line, in our letters."""
    assumes: str
    """What it assumes of the data."""
    limits: str
    """What it promises about the network: width, depth, heads, bits."""
    task: RandomTask | None = None
    """The task on which it is shown; None for statements that no one network shows."""
    stated: Mapping[str, object] | None = None
    """Settings that build the network which the theorem speaks of; None: not built that way."""
    ours: Mapping[str, object] | None = None
    """Settings that build our own, smaller one; None: there is no other."""
    judged: Mapping[str, str] = field(default_factory=dict)
    """What is promised, where that is less than every answer: options of certify, and what was chosen for each."""
    shown_by: str = ""
    """The command that shows it, where that is not ``byheart build``."""
    paper: str = ""
    """Authors and year, where they are not those of the construction that shows it."""
    differs: str = ""
    """In what the network built "as stated" still differs from the paper's; empty: in nothing that we know of."""

    def __post_init__(self) -> None:
        if (self.task is None) != (self.stated is None and self.ours is None) or (self.task is None) != bool(
            self.shown_by
        ):
            raise ValueError(f"{self.name}: expected settings to build with on a task, or a command that shows it")

    @property
    def forms(self) -> dict[str, Mapping[str, object]]:
        """The ways in which it is built: "as stated", "ours"."""
        ways = {"as stated": self.stated, "ours": self.ours}
        return {form: settings for form, settings in ways.items() if settings is not None}


def limited(assumes: str) -> tuple[Theorem, Theorem]:
    """Fewer layers, or fewer bits, for more parameters: the same trade for points and for sequences."""
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
            says="with b ≤ √N bits a weight, Õ(N/b) parameters",
            assumes=assumes,
            limits="b bits a weight",
            task=MANY_SEQUENCES,
            stated={"bits": 31},
            differs=shown_on,
        ),
    )


def flags(settings: Mapping[str, object]) -> str:
    """Settings as the command line takes them.

    >>> flags({"width": "constant", "model_dim": 10, "positions": True})
    '--width constant --model-dim 10 --positions'
    """
    words = []
    for name, value in settings.items():
        flag = f"--{name.replace('_', '-')}"
        words.append(flag if value is True else f"{flag} {value}")
    return " ".join(words)
