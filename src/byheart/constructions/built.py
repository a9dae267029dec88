"""Build a network that has memorized a task, compare it with its plan, and keep it with its account and its choices."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from byheart import networks
from byheart.constructions.construction import Construction, Made, settings_from
from byheart.constructions.registry import find, is_built_in
from byheart.errors import BadInput, check_seed
from byheart.networks import Account, Network
from byheart.progress import Report
from byheart.tasks import Questions, Task
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

    def recite(
        self, prompt: str | bytes | None = None, *, text: str | None = None, tokens: int | None = None
    ) -> str | None:
        """Return what the network says: a text from its beginning, or what follows a prompt, a fact's completion."""
        return networks.recite(self.network, prompt, text=text, tokens=tokens)

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


def build(
    construction: str | Path | Construction,
    task: Task,
    *,
    seed: int = 0,
    settings: Any = None,
    report: Report | None = None,
    **options: object,
) -> Built:
    """Build a construction's network for ``task``; the same seed gives the same network everywhere.

    The construction is one of :data:`~byheart.constructions.CONSTRUCTIONS` by name, a
    :class:`~byheart.constructions.Construction`, or a user's file that defines one. Its settings are given one by one
    (``heads=20``) or all together.

    >>> from byheart.tasks import NextToken
    >>> task = NextToken(tokens=[[0, 1], [1, 1], [2, 0]], labels=[1, 0, 1])
    >>> [build("kajitsuka-sato-2025", task, positions=positions).account.dense for positions in (False, True)]
    [69, 115]
    """
    chosen = find(construction)
    if not isinstance(task, Task):
        raise BadInput(f"expected a task such as byheart.tasks.NextToken(…); got {type(task).__name__}")
    check_seed(seed)
    settings = settings_from(chosen.settings, chosen.name, settings, options)
    start = time.perf_counter()
    try:
        made = chosen.build(task, settings, np.random.default_rng(seed), report)
    except Exception as error:
        if isinstance(error, BadInput) or is_built_in(chosen):
            raise
        raise BadInput(f"{chosen.name}: its build failed: {type(error).__name__}: {error}") from error
    seconds = time.perf_counter() - start
    if not isinstance(made, Made):
        raise BadInput(f"{chosen.name}: its build returned {type(made).__name__}; expected byheart.constructions.Made")
    account = made.network.account
    if not made.plan.agrees_with(account):
        sizes = "{} parameters, depth {}, width {}"
        counted, planned = (sizes.format(shape.dense, shape.depth, shape.width) for shape in (account, made.plan))
        mistake = f"{chosen.name}: built {counted}, planned {planned}: a mistake in the construction"
        raise AssertionError(mistake) if is_built_in(chosen) else BadInput(mistake)
    allowed = getattr(settings, "bits", None)
    if allowed is not None and account.max_bits > allowed:
        raise BadInput(
            f"{chosen.name}: hashing these tokens needs weights of {account.max_bits} bits; got bits={allowed}"
        )
    return Built(chosen.name, settings, made.network, seconds, seed, task, made.chosen)
