"""The result of every construction: a network that has memorized its questions, counted and ready to be saved."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from html import escape
from pathlib import Path
from typing import Any

from byheart import networks
from byheart.errors import BadInput
from byheart.networks import Account, Network
from byheart.tasks import Questions
from byheart.tasks.contexts import Contexts


@dataclass(frozen=True, eq=False, repr=False)
class Built:
    """A network that has memorized its questions, with its parameter count and the choices of its construction."""

    construction: str
    settings: Any
    network: Network
    seconds: float
    seed: int
    questions: Questions
    """Memorized questions and answers."""
    chosen: Mapping[str, object] = field(default_factory=dict)
    """Choices that the construction made, by name."""

    @property
    def account(self) -> Account:
        """Count of the network's parameters."""
        return self.network.account

    @property
    def bits(self) -> float | None:
        """Bits that all answers hold, by their order-0 entropy; None if they are not labels that follow contexts."""
        return self.questions.order0_bits if isinstance(self.questions, Contexts) else None

    @property
    def about(self) -> dict[str, Any]:
        """Values that ``config.json`` records beside the weights."""
        settings = asdict(self.settings) if is_dataclass(self.settings) else self.settings  # type: ignore[arg-type]
        made = {"construction": self.construction, "settings": settings, "seed": self.seed}
        return {**self.network.about, **made, "task": self.questions.fingerprint, "chosen": dict(self.chosen)}

    def save(self, folder: Path | str) -> None:
        """Write the network to ``folder``, whole or not at all; :func:`byheart.load` reads it."""
        networks.save(self.network, folder, self._noted())

    def write(self, folder: Path) -> None:
        """Write the network's files into ``folder``, which is new."""
        networks.write(self.network, folder, self._noted())

    def _noted(self) -> dict[str, Any]:
        """Return ``about``, or raise BadInput if JSON cannot hold it: a user's construction may choose anything."""
        about = self.about
        try:
            json.dumps(about, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise BadInput(f"{self.construction}: what it has chosen cannot be written as JSON: {error}") from error
        return about

    def __repr__(self) -> str:
        count, kind = self.questions.size.examples, self.questions.kind
        noun = kind if isinstance(self.questions, Contexts) else f"{kind} examples"
        examples = "1 example" if count == 1 else f"{count:,} {noun}"
        return f"<Built: {self.construction}, {self.account.dense:,} parameters for {examples}>"

    def _repr_html_(self) -> str:
        chosen = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.chosen.items())
        return f"<p>{escape(repr(self)[1:-1])}</p>{self.account._repr_html_()}<p>{escape(chosen)}</p>"
