"""The explorer's page: one file that loads nothing, from the templates and the numbers of this room."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from byheart.errors import BadInput
from byheart.explore import bounds, exact, reciting
from byheart.networks import Network
from byheart.report.svg import palette

SCRIPTS = ("network.js", "bounds.js", "exact.js", "elements.js", "recite.js", "curves.js", "layers.js")


def explorer(own: Sequence[tuple[str, Network]] = ()) -> str:
    """Return the text of the page; ``own`` are compiled networks by name, shown before those that come with it.

    Raises BadInput if a network cannot be shown.
    """
    networks = [*(_own(name, network) for name, network in own), *reciting.examples()]
    data: dict[str, Any] = {"networks": networks, "bounds": bounds.shown(), "exact": exact.shown()}
    colours = palette(data["bounds"]["colours"].values())
    page = _templates().get_template("page.html")
    return str(page.render(data=_inert(data), palette=colours, scripts=SCRIPTS))


def _own(name: str, network: Network) -> dict[str, Any]:
    try:
        return reciting.shown(name, network)
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
