"""What ``byheart.build`` returns."""

from dataclasses import dataclass, field
from typing import Any

from byheart.networks import Account
from byheart.networks.kinds import AnyNetwork
from byheart.tasks import Task


@dataclass(frozen=True, eq=False)
class Built:
    """A network that has memorized a task, its parameters counted, and what was chosen on the way."""

    construction: str
    settings: Any
    network: AnyNetwork
    account: Account
    seconds: float
    seed: int
    questions: Task
    chosen: dict[str, object] = field(default_factory=dict)
