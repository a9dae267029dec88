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
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from byheart.bounds import Kind
from byheart.bounds.counting import bits_needed
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
