"""``build(construction, task, seed=…)``: run a construction, count what it built, hold the count against its plan."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from byheart.constructions.built import Built
from byheart.constructions.construction import Construction, settings_from
from byheart.constructions.registry import find
from byheart.errors import BadInput
from byheart.progress import Report
from byheart.tasks import Task


def build(
    construction: str | Path | Construction,
    task: Task,
    *,
    seed: int = 0,
    settings: Any = None,
    report: Report | None = None,
    **given: object,
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
    if seed < 0:
        raise BadInput(f"seed is {seed}; expected 0 or more")
    settings = settings_from(chosen.settings, chosen.name, settings, given)
    start = time.perf_counter()
    made = chosen.build(task, settings, np.random.default_rng(seed), report)
    seconds = time.perf_counter() - start
    account = made.network.account
    if not made.plan.agrees_with(account):
        raise AssertionError(
            f"{chosen.name}: built {account.dense} parameters, planned {made.plan.dense}: a mistake in the construction"
        )
    allowed = getattr(settings, "bits", None)
    if allowed is not None and account.max_bits > allowed:
        raise BadInput(
            f"{chosen.name}: hashing these tokens needs weights of {account.max_bits} bits; got bits={allowed}"
        )
    return Built(chosen.name, settings, made.network, seconds, seed, task, made.chosen)
