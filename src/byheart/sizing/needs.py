"""Parameters and bytes that hold the data; each number has one kind and a source.

- *Proved*, needed: by counting, no shape of fewer parameters of b bits holds every dataset of this size, whatever its
  answers, or all orders of these answers. For a single dataset nothing is proved: lzma's output is shorter.
- *Proved*, enough: the parameters of the smallest construction whose plan is proved for every task of the size.
- *Fitted*: compiled networks, whose shape is planned as ``byheart compile`` plans it, at the load that could be solved
  so far. Solving may need a larger table: ``high`` is the largest that a table has grown to. Stock models may grow too.
  Constructions whose plan is expected, not proved, are of this kind.
- *Measured*: random labels or facts that trained networks held. A text is not random: the bits to hold lie between
  those of the best compressor and those of order 0. The interval covers both, and the interval of the rate.
- *Order only*: no sizes. ``byheart bounds`` has them.

A model has room by one of these numbers if the share of it that the data take is at most 1.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from byheart.bounds import Kind
from byheart.bounds.counting import bits_needed, most
from byheart.bounds.trained_capacity import ALLEN_ZHU_LI_BITS, MORRIS_BITS
from byheart.compiler.compile import check_ids
from byheart.compiler.layouts import CompilerSettings
from byheart.compiler.rectangular.recipe import ASKED, memory_for
from byheart.constructions.planner import PlannedSize, check_size, planned
from byheart.constructions.registry import find
from byheart.errors import BadInput
from byheart.sizes import Size
from byheart.sizing.data import Data
from byheart.tasks.entropies import log2_arrangements

STORED = 32
"""Bits per parameter of a compiled network, and the default for a trained one."""
GROWN = 1.14
"""Largest ratio of compiled to planned parameters, measured on 60 networks (10 to 20,000 questions, random labels and
text, two seeds). 53 of them had exactly the planned number."""
TRIED = 6 * 10**7
"""Largest number of questions for which plans were compared with compiled networks."""
_ARCHITECTURES = {"uniform": "Llama", "experts": "Qwen2-MoE"}


@dataclass(frozen=True)
class Need:
    """Parameters that are needed, or that are enough; None and a reason if there is no number."""

    what: str
    kind: Kind
    says: Literal["needed", "enough", "held"]
    parameters: int | None
    source: str
    bits: int | None = None
    """b, bits per parameter; None: as many as needed."""
    low: int | None = None
    high: int | None = None
    reason: str = ""

    @property
    def bytes(self) -> int | None:
        """Bytes of all parameters."""
        return None if self.parameters is None or self.bits is None else math.ceil(self.parameters * self.bits / 8)


@dataclass(frozen=True)
class Rate:
    """Bits per parameter that a trained network held, with an interval if one was measured."""

    name: str
    bits: float
    source: str
    low: float | None = None
    high: float | None = None


RATES = (
    Rate("Morris et al. 2025", MORRIS_BITS, "random sequences, GPTs of 5·10⁵ to 1.5·10⁹ parameters"),
    Rate("Allen-Zhu & Li 2024", ALLEN_ZHU_LI_BITS, "facts in sentences, each seen 1,000 times"),
    Rate("our lab, largest", 3.77, "random labels, a GPT of 37,855 parameters, best of 6 runs: benchmarks/baseline.py"),
    Rate("our lab, ladder", 3.06, "random labels, GPTs of 79,743 parameters: byheart lab capacity", 2.98, 3.14),
)
"""Published rates, and the rates that our lab measured."""


def needs(data: Data, bits: Sequence[int], stored: int = STORED) -> list[Need]:
    """Return all known numbers, counting at each of ``bits``. Trained parameters take ``stored`` bits each."""
    return [*_counted(data, bits), *_exact(data), _rectangular(data), *_stock(data), *_trained(data, stored)]


def _counted(data: Data, bits: Sequence[int]) -> Iterator[Need]:
    """Apply the pigeonhole principle to two sets of datasets."""
    N, C = data.size.examples, data.size.labels
    every = f"pigeonhole: C^N labellings, N = {N:,}, C = {C:,}"
    these = "pigeonhole: N! / ∏ n_c! orders of these answers"
    for b in bits:
        labellings = math.ceil(bits_needed(N, C) / b)
        yield Need(f"every labelling, {b} bits per parameter", "proved", "needed", labellings, every, b)
    for b in bits:
        orders = math.ceil(log2_arrangements(data.occurrences) / b)
        yield Need(f"these answers in any order, {b} bits per parameter", "proved", "needed", orders, these, b)


def _exact(data: Data) -> Iterator[Need]:
    """Yield the smallest construction whose plan is proved, and the smallest of all if it is another."""
    N, n, C = data.size.examples, data.size.length, data.size.labels
    vocab = data.size.vocab + (data.bytes is not None)  # one more token stands for those missing before a text
    try:
        size = check_size(Size(N, n, C, vocab))
    except BadInput as error:
        yield Need("exact", "proved", "enough", None, "byheart build", reason=str(error))
        return
    rows = planned(size, "next-token", positions=True, fewest="in-all")
    proved = next((row for row in rows if not row.expected), None)
    if proved is not None:
        yield _construction(proved, "proved")
    if rows and rows[0].expected:
        yield _construction(rows[0], "fitted")


def _construction(row: PlannedSize, kind: Kind) -> Need:
    flags = " --positions" if find(row.construction).leaves_open("positions") else ""
    flags += " --fewest in-all" if row.fewest == "in-all" else ""
    source = f"plan of byheart build {row.construction}{flags}"
    return Need(f"exact, weights of any length, {row.construction}", kind, "enough", row.parameters, source)


def _rectangular(data: Data) -> Need:
    """Return the smaller of the two ways to fill words."""
    from byheart.compiler.rectangular.attempt import planned_spec

    name, counts, reason = "compiled, rectangular", dict[int, int](), ""
    for words in (24, 31):
        try:
            check_ids(data.contexts)
            spec = planned_spec(data.contexts, CompilerSettings(words=words), times=data.times)
        except BadInput as error:
            reason = str(error)
            continue
        counts[words] = sum(math.prod(shape) for shape in spec.shapes().values())
    if not counts:
        return Need(name, "fitted", "enough", None, "byheart compile", reason=reason)
    words = min(counts, key=lambda words: counts[words])
    source = f"plan of byheart compile --words {words}"
    if data.size.examples > TRIED:
        memory, asked = (size / 2**30 for size in (memory_for(data.size.examples), ASKED * data.size.examples))
        estimate = f"{memory:,.0f} GiB of memory, and {asked:,.0f} GiB there or on the disk"
        source += f"; never tried with that many questions, compiling would take about {estimate}"
    largest = math.ceil(GROWN * counts[words])
    return Need(name, "fitted", "enough", counts[words], source, STORED, counts[words], largest)


def _stock(data: Data) -> Iterator[Need]:
    """Yield every layout that is a stock model."""
    from byheart.compiler.stock.architectures import ARCHITECTURES
    from byheart.compiler.stock.recipe import planned_parameters

    for name, architecture in ARCHITECTURES.items():
        need = partial(Need, f"compiled, stock {_ARCHITECTURES[name]}", "fitted", "enough")
        source = f"plan of byheart compile --layout {name}"
        if data.looked_at is not None:
            yield need(None, source, reason="not planned from a sample")
            continue
        try:
            check_ids(data.contexts)
            yield need(planned_parameters(architecture, data.contexts), source, STORED)
        except BadInput as error:
            yield need(None, source, reason=str(error))


def _trained(data: Data, stored: int) -> Iterator[Need]:
    for rate in RATES:
        low, high = rate.high or rate.bits, rate.low or rate.bits
        bits = f"{rate.bits:g}" + (f" ({rate.low:g} to {rate.high:g})" if rate.low else "")
        yield Need(
            f"trained, {bits} bits per parameter",
            "measured",
            "held",
            math.ceil(data.bits / rate.bits),
            f"{rate.name}: {rate.source}",
            stored,
            math.ceil(data.fewest.bits / low),
            math.ceil(data.bits / high),
        )


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
