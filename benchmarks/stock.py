"""Compile stock models from random labels: bits per parameter, with every answer asked through transformers.

    python benchmarks/stock.py
    python benchmarks/stock.py --examples 1000000 --asked 50000
    python benchmarks/stock.py --refinements

C = 256, contexts of 8 tokens out of 256. Exits with 1 if an answer is wrong. Needs the extra "hf". With --refinements,
nothing is compiled; the script only counts what a refined table of experts would hold.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from tables import OUT, table

from byheart.compiler import CompilerSettings, compile
from byheart.compiler.stock import architectures, dimensions
from byheart.compiler.stock.architectures import ExpertSizes, dense
from byheart.compiler.stock.read import _selected, reading
from byheart.compiler.stock.recipe import deviations
from byheart.constructions import Built
from byheart.tasks import NextToken, random_next_token

BATCH = 2048
LAYOUTS = ("uniform", "experts")


def twice(at: Any, units: int, powers: list[Any], longest: int, *, layered: bool) -> Any:
    """Return all layers after the table if columns were selected twice: for the high bits, and for the low bits."""
    return reading(at, units, [*powers, *(_selected(at, column) for column in at.columns)], longest, layered=layered)


def without(count: int) -> Callable[[int, int], tuple[int, int]]:
    """Return a function for units and layers that counts ``count`` fewer layers."""
    return lambda width, steps: (dense(width, steps)[0], dense(width, steps)[1] - count)


WIDER, FULL = {"dimensions.BITS": (22, 24, 16)}, {"dimensions.SPARE": 0, "deviations": 0.0}
REFINEMENTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "24-bit words in W_down, if that were free": WIDER,
    "24-bit words in W_down, columns selected twice": {**WIDER, "architectures.reading": twice},
    "18-bit words in W_gate, if that were free": {"dimensions.BITS": (22, 22, 18)},
    "tables without a gap (load 1)": FULL,
    "one layer less": {"architectures.dense": without(1)},
    "three layers less": {"architectures.dense": without(3)},
}
"""Changes of the accounting, by the refinement's name."""


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "layouts", nargs="*", choices=[*LAYOUTS, []], metavar="LAYOUT", help="layouts to compile (default: both)"
    )
    parser.add_argument("--examples", type=int, default=100_000, help="N")
    parser.add_argument("--asked", type=int, help="number of questions to ask (default: all)")
    parser.add_argument("--refinements", action="store_true", help="count what refinements would gain")
    parser.add_argument("--tiny", action="store_true", help="compile small models, to see that everything runs")
    given = parser.parse_args()
    if given.tiny:
        given.examples = 300
    return given


def planned(N: int, changes: dict[str, Any]) -> float:
    """Return the bits per parameter of the network of experts that is planned for N questions with these changes."""
    rooms = {"dimensions": dimensions, "architectures": architectures}
    with ExitStack() as changed:
        for name, value in changes.items():
            room, _, part = name.partition(".")
            if part:
                changed.enter_context(patch.object(rooms[room], part, value))
        if "architectures.reading" in changes:
            changed.callback(dense.cache_clear)
            dense.cache_clear()
        sizes = ExpertSizes.plan(8 * N, N, 256, 3, changes.get("deviations", deviations(0)))
    return 8 * N / sizes.parameters(256)


def count_refinements(given: argparse.Namespace) -> None:
    """Print a table of bits per parameter, by the planner's counts alone."""
    counts = (10**5,) if given.tiny else (10**5, 10**6)
    rows = table("Qwen2-MoE: bits per parameter, as planned", "refinement", *(f"N = {N:,}" for N in counts))
    for name, changes in REFINEMENTS.items():
        rows.add_row(name, *(f"{planned(N, changes):.2f}" for N in counts))
    OUT.print(rows, "")


@torch.inference_mode()
def wrong(built: Built, task: NextToken, asked: int) -> tuple[int, float]:
    """Return the number of wrong answers, and the smallest distance of the best logit from the next one."""
    missed, least = 0, float("inf")
    for start in range(0, asked, BATCH):
        inputs = torch.tensor(task.inputs[start : min(start + BATCH, asked)])
        two = built.network.model(inputs, logits_to_keep=1).logits[:, 0].topk(2, dim=1)  # type: ignore[attr-defined]
        missed += int((two.indices[:, 0].numpy() != task.labels[start : start + len(inputs)]).sum())
        least = min(least, float((two.values[:, 0] - two.values[:, 1]).min()))
    return missed, least


def main() -> int:
    """Compile, ask, and print the table. Return 1 if an answer is wrong."""
    given = options()
    if given.refinements or given.tiny:
        count_refinements(given)
    if given.refinements:
        return 0
    warnings.filterwarnings("ignore", message="Initializing zero-element tensors")
    rng = np.random.default_rng(0)
    task = random_next_token(examples=given.examples, length=8, vocab=256, labels=256, rng=rng)
    small = random_next_token(examples=30, length=8, vocab=256, labels=256, rng=rng)
    asked = min(given.asked or given.examples, given.examples)
    columns = ("layout", "N", "parameters", "planned", "bits/parameter", "load", "compiled in", "CPU")
    rows = table("Stock models, random labels, C = 256", *columns, "wrong", "smallest margin", "asked in")
    failed = 0
    for layout in given.layouts or LAYOUTS:
        compile(small, window=8, settings=CompilerSettings(layout=layout))  # compiles code before anything is timed
        busy = time.process_time()
        built = compile(task, window=8, settings=CompilerSettings(layout=layout))
        busy = time.process_time() - busy
        start = time.perf_counter()
        missed, least = wrong(built, task, asked)
        failed += missed
        planned = built.chosen.get("parameters_planned", built.account.dense)
        rows.add_row(
            layout,
            f"{given.examples:,}",
            f"{built.account.dense:,}",
            f"{planned:,}",
            f"{8 * given.examples / built.account.dense:.3f}",
            f"{built.chosen['load']:.3f}",
            f"{built.seconds:.1f} s",
            f"{busy:.1f} s",
            f"{missed} of {asked:,}",
            f"{least:g}",
            f"{time.perf_counter() - start:.1f} s",
        )
    OUT.print(rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
