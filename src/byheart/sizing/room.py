"""Whether a model has room for the data, by each kind of number."""

from collections.abc import Sequence
from dataclasses import dataclass

from byheart.bounds import Kind
from byheart.bounds.counting import bits_needed, most
from byheart.sizing.data import Data
from byheart.sizing.needs import RATES, Need


@dataclass(frozen=True)
class ShareOfModel:
    """The share of the model that the data take: above 1, they do not fit. A range has ``low`` and ``high``."""

    what: str
    kind: Kind
    share: float
    source: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Room:
    """A model at hand, and the share of it that the data take."""

    name: str
    parameters: int
    bits: int
    """b, bits per parameter."""
    held: tuple[ShareOfModel, ...]
    assumed: bool = False
    """True if neither config.json nor the caller states b."""

    @property
    def trained(self) -> tuple[float, float]:
        """The smallest and the largest share at trained rates."""
        rows = [row for row in self.held if row.kind == "measured"]
        return min(row.low or row.share for row in rows), max(row.high or row.share for row in rows)

    @property
    def verdict(self) -> str:
        """A sentence about trained rates. Counting and compiled networks are in the table.

        >>> row = ShareOfModel("trained", "measured", 0.5, "", low=0.1, high=0.5)
        >>> Room("m", 1000, 32, (row,)).verdict
        'It has room: the data take 10 % to 50 % of its capacity at trained rates.'
        """
        least, largest = self.trained
        taken = f"{percent(least)} to {percent(largest)} of its capacity"
        if largest <= 1:
            return f"It has room: the data take {taken} at trained rates."
        if least > 1:
            return f"It is too small at trained rates, by a factor of {_factor(least)} to {_factor(largest)}."
        return f"It may be too small: the data take {taken} at trained rates."


def room(data: Data, needs: Sequence[Need], name: str, parameters: int, bits: int, *, assumed: bool = False) -> Room:
    """Compare the data with the model ``name``, whose ``parameters`` have ``bits`` bits each."""
    N, C = data.size.examples, data.size.labels
    holds = f"at most {most(parameters, C, bits):,}" if C > 1 else "any number"
    every = f"it holds every labelling of {holds} questions"
    rows = [
        ShareOfModel(f"counting, {bits} bits per parameter", "proved", bits_needed(N, C) / (parameters * bits), every)
    ]
    rows += [
        ShareOfModel(need.what, need.kind, need.parameters / parameters, need.source)
        for need in needs
        if need.kind == "fitted" and need.parameters is not None and need.bits is not None
    ]
    for rate in RATES:
        low, high = data.fewest.bits / (rate.high or rate.bits), data.bits / (rate.low or rate.bits)
        shares = (value / parameters for value in (low, high))
        share = data.bits / rate.bits / parameters
        rows.append(ShareOfModel(f"trained, {rate.bits:g} bits per parameter", "measured", share, rate.name, *shares))
    return Room(name, parameters, bits, tuple(rows), assumed)


def percent(share: float) -> str:
    """Format a share for people.

    >>> percent(0.4127), percent(0.00031), percent(12), percent(1e-9)
    ('41 %', '0.031 %', '1,200 %', 'under 0.001 %')
    """
    percent = 100 * share
    if percent < 0.001:
        return "under 0.001 %"
    return f"{percent:,.0f} %" if percent >= 10 else f"{percent:.2g} %"


def _factor(share: float) -> str:
    return f"{share:,.0f}" if share >= 10 else f"{share:.1f}"
