"""The explorer: one page, without a server, on which networks run and bounds move.

1. ``reciting``: compiled networks of short texts, or of one's own, evaluated in the browser in float32: the hash of a
   prompt, the rows and columns, the words that are read, the bits that come out; every bit is a switch. Short texts
   are compiled in the page, too.
2. ``bounds``: every bound and every true count as sliders move N, n, ω, C and the precision.
3. ``exact``: exact networks on five sequences, layer by layer, in integers.

The scripts in ``templates/`` are plain JavaScript. ``network.js``, ``characters.js``, ``compile.js``, ``bounds.js``
and ``exact.js`` compute and touch no page, so that tests run them without a browser and hold them against PyTorch,
:mod:`byheart.compiler`, :mod:`byheart.bounds` and :mod:`byheart.networks.exact`.
"""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from byheart.errors import BadInput
from byheart.explore import bounds, exact, reciting
from byheart.networks import Network
from byheart.report.svg import palette
from byheart.tasks import Facts

__all__ = ["explorer"]

SCRIPTS = (
    "network.js",
    "bounds.js",
    "exact.js",
    "characters.js",
    "compile.js",
    "elements.js",
    "picture.js",
    "recite.js",
    "curves.js",
    "layers.js",
)


def explorer(own: Sequence[tuple[str, Network]] = (), facts: Facts | None = None) -> str:
    """Return the page as text; ``own`` are compiled networks by name, shown before those that come with it.

    ``facts`` are listed beside networks that were compiled from them. Raise BadInput if a network cannot be shown.
    """
    shown = [_shown(name, network, facts) for name, network in own]
    if facts is not None and not any(network["facts"] for network in shown):
        raise BadInput("facts are given, and no network that was compiled from facts; expected its folder too")
    networks = [*shown, *reciting.examples()]
    data: dict[str, Any] = {"networks": networks, "bounds": bounds.shown(), "exact": exact.shown()}
    colours = palette(data["bounds"]["colours"].values())
    page = _templates().get_template("page.html")
    return str(page.render(data=_inert(data), palette=colours, scripts=SCRIPTS))


def _shown(name: str, network: Network, facts: Facts | None) -> dict[str, Any]:
    try:
        return reciting.shown(name, network, facts)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from error


def _inert(data: dict[str, Any]) -> str:
    r"""Encode data as JSON that cannot end its script element, whatever names are in a network's folder.

    >>> _inert({"name": "</script>"})
    '{"name":"\\u003c/script>"}'
    """
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


@cache
def _templates() -> Any:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined

    loader = ChoiceLoader([PackageLoader("byheart.explore"), PrefixLoader({"report": PackageLoader("byheart.report")})])
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
