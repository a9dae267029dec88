"""``build(name, task, seed=…)``: run a construction, count what it built, and hold the count against its plan."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byheart.constructions import (
    dana_2025,
    folding,
    interpolate,
    kajitsuka_sato_2024,
    kajitsuka_sato_2025,
    kim_2023,
    madden_2024,
    mahdavi_2024,
    vardi_2022,
)
from byheart.constructions.built import Built
from byheart.constructions.gadgets.demand import Setting, worst_demand
from byheart.constructions.plan import Plan
from byheart.errors import BadInput
from byheart.networks import Network
from byheart.progress import Report
from byheart.size import Size
from byheart.tasks import Task


@dataclass(frozen=True)
class Construction:
    """A construction as the rest of the package sees it."""

    name: str
    summary: str
    settings: type[Any]
    settings_for: tuple[Setting, ...]
    """The settings of the theory ("next-token", "seq-to-seq") that it covers at any size of a task."""
    plan_task: Callable[[Task, Any, int], Plan]
    """The plan for a task; the number is how often the construction had to grow (0 unless it says otherwise)."""
    plan_size: Callable[[Size, Setting, Any], Plan]
    build: Callable[[Task, Any, np.random.Generator, Report | None], tuple[Network, dict[str, object]]]

    def settings_with(self, *, positions: bool) -> Any:
        """Default settings, with or without positions where the construction leaves that open."""
        chosen = {"positions": positions} if "positions" in self.settings.__dataclass_fields__ else {}
        return self.settings(**chosen)


def _no_plan(size: Size, setting: Setting, _: object) -> Plan:
    """For constructions that need more of a task than its size."""
    raise BadInput(f"no plan for {setting} tasks of {size.examples} examples")


_BOTH: tuple[Setting, ...] = ("next-token", "seq-to-seq")
CONSTRUCTIONS: dict[str, Construction] = {
    construction.name: construction
    for construction in (
        Construction(
            interpolate.NAME,
            "the plain one-hidden-layer interpolator: 3 parameters a label, every table's baseline",
            interpolate.Settings,
            _BOTH,
            lambda task, s, _: interpolate.plan(interpolate.demand(task, s), s),
            lambda size, setting, s: interpolate.plan(worst_demand(size, setting, positions=s.positions), s),
            lambda task, s, rng, _: interpolate.build(task, s, rng),
        ),
        Construction(
            vardi_2022.NAME,
            "a ReLU network without attention on the whole sequence as one point: Õ(√N) (Vardi et al. 2022)",
            vardi_2022.Settings,
            ("next-token",),
            lambda task, s, _: vardi_2022.plan(vardi_2022.demand(task, s)),
            lambda size, _, s: vardi_2022.plan(vardi_2022.worst_demand(size, s)),
            lambda task, s, rng, _: vardi_2022.build(task, s, rng),
        ),
        Construction(
            kajitsuka_sato_2025.NAME,
            "FFN · uniform attention · FFN: Õ(√N) next-token, Õ(√(nN)) seq-to-seq (Kajitsuka & Sato 2025)",
            kajitsuka_sato_2025.Settings,
            _BOTH,
            lambda task, s, _: kajitsuka_sato_2025.plan(kajitsuka_sato_2025.demand(task, s), s),
            lambda size, setting, s: kajitsuka_sato_2025.plan(worst_demand(size, setting, positions=s.positions), s),
            lambda task, s, rng, _: kajitsuka_sato_2025.build(task, s, rng),
        ),
        Construction(
            kim_2023.NAME,
            "n rounds of hardmax attention read a sequence into its id: Õ(n + √(nN)) (Kim, Kim & Mozafari 2023)",
            kim_2023.Settings,
            _BOTH,
            lambda task, s, growth: kim_2023.plan(replace(kim_2023.demand(task, s), growth=growth)),
            lambda size, setting, s: kim_2023.plan(kim_2023.worst_demand(size, setting, s)),
            lambda task, s, rng, _: kim_2023.build(task, s, rng),
        ),
        Construction(
            kajitsuka_sato_2024.NAME,
            "one layer, one softmax head of rank one, 2nN units (Kajitsuka & Sato 2024)",
            kajitsuka_sato_2024.Settings,
            _BOTH,
            lambda task, s, _: kajitsuka_sato_2024.plan(kajitsuka_sato_2024.demand(task, s)),
            lambda size, setting, s: kajitsuka_sato_2024.plan(kajitsuka_sato_2024.worst_demand(size, setting, s)),
            lambda task, s, rng, _: kajitsuka_sato_2024.build(task, s, rng),
        ),
        Construction(
            folding.NAME,
            "no keys, only labels: about 3.5·√(N log₂C) parameters (ours; the smallest)",
            folding.Settings,
            _BOTH,
            lambda task, s, growth: folding.plan(folding.demand(task, s), growth),
            lambda size, setting, s: folding.plan(folding.worst_demand(size, setting, s)),
            folding.build,
        ),
        Construction(
            mahdavi_2024.NAME,
            "one attention layer on contexts with queries: H(min(n, d_h) − 1) + 1 examples (Mahdavi et al. 2024)",
            mahdavi_2024.Settings,
            (),
            lambda task, s, _: mahdavi_2024.plan(mahdavi_2024.sizes(task, s)),
            _no_plan,
            lambda task, s, rng, _: mahdavi_2024.build(task, s, rng),
        ),
        Construction(
            dana_2025.NAME,
            "attention alone, any context length: H·d_h + d associations, or distributions (Dana et al. 2025)",
            dana_2025.Settings,
            ("next-token",),
            lambda task, s, _: dana_2025.plan(dana_2025.demand(task, s), s),
            lambda size, _, s: dana_2025.plan(dana_2025.worst_demand(size), s),
            lambda task, s, rng, _: dana_2025.build(task, s, rng),
        ),
        Construction(
            madden_2024.NAME,
            "one decoder layer with N units: any N next-token distributions, ωN parameters (Madden et al. 2024)",
            madden_2024.Settings,
            ("next-token",),
            lambda task, s, _: madden_2024.plan(madden_2024.demand(task), s),
            lambda size, _, s: madden_2024.plan(madden_2024.worst_demand(size), s),
            lambda task, s, rng, _: madden_2024.build(task, s, rng),
        ),
    )
}


def build(name: str, task: Task, *, seed: int = 0, settings: Any = None, report: Report | None = None) -> Built:
    """Build the construction ``name`` for ``task``; the same seed gives the same network everywhere.

    >>> from byheart.tasks import NextToken
    >>> built = build("kajitsuka-sato-2025", NextToken(tokens=[[0, 1], [1, 1], [2, 0]], labels=[1, 0, 1]))
    >>> built.account.dense
    69
    """
    if name not in CONSTRUCTIONS:
        raise BadInput(f"no construction is called {name!r}; there are {', '.join(CONSTRUCTIONS)}")
    if seed < 0:
        raise BadInput(f"seed is {seed}; expected 0 or more")
    construction = CONSTRUCTIONS[name]
    settings = construction.settings() if settings is None else settings
    start = time.perf_counter()
    network, chosen = construction.build(task, settings, np.random.default_rng(seed), report)
    seconds = time.perf_counter() - start
    growth = chosen.get("growth", 0)
    assert isinstance(growth, int)
    account, plan = network.account, construction.plan_task(task, settings, growth)
    if not plan.agrees_with(account):
        raise AssertionError(f"{name}: built {account.dense} parameters, planned {plan.dense}; please report this")
    allowed = getattr(settings, "bits", None)
    if allowed is not None and account.max_bits > allowed:
        raise BadInput(f"{name}: hashing these tokens needs weights of {account.max_bits} bits; got bits={allowed}")
    return Built(name, settings, network, seconds, seed, task, chosen)
