"""What a network that was compiled with ``--refuse`` does with all other contexts, as commands tell it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from byheart.errors import BadInput
from byheart.networks.about import Refusal, refuse_of

if TYPE_CHECKING:
    from byheart.networks import Network
    from byheart.tasks import Questions


@dataclass(frozen=True)
class RefusalStatus:
    """How other contexts are refused, and why that is not proved, where it ought to be."""

    refusal: Refusal
    doubt: str

    def __str__(self) -> str:
        rate = f"NOT proved, {self.doubt}" if self.doubt else self.refusal.rate
        return f"any other context: unknown, token {self.refusal.token}; {rate}"

    def as_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {**self.refusal._asdict(), "proved": self.refusal.proves and not self.doubt, "doubt": self.doubt}


def others_of(network: "Network", questions: "Questions") -> RefusalStatus | None:
    """Of a network that refuses what is none of these questions; what it says of that is checked if it can be."""
    from byheart.tasks.contexts import Contexts

    try:
        refusal = refuse_of(network)
    except BadInput:  # it says nothing that could be true
        return None
    if refusal is None or not isinstance(questions, Contexts):
        return None
    if not refusal.proves:
        return RefusalStatus(refusal, "")
    from byheart.compiler.silence import doubt

    return RefusalStatus(refusal, doubt(network, questions))  # type: ignore[arg-type]  # no other kind refuses
