"""``build(construction, task, seed=…)``: run a construction and compare its network's parameter count with its plan."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from byheart.constructions.built import Built
from byheart.constructions.construction import Construction, Made, settings_from
from byheart.constructions.registry import find, is_built_in
from byheart.errors import BadInput, check_seed
from byheart.progress import Report
from byheart.tasks import Task


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
