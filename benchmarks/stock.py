"""Stock models, compiled from random labels: bits a parameter, every answer asked of transformers' own code.

    python benchmarks/stock.py
    python benchmarks/stock.py --examples 1000000 --asked 50000

C = 256, contexts of 8 tokens out of 256. Exit 1 if an answer is wrong. Needs the extra "hf".
"""

import argparse
import sys
import time
import warnings

import numpy as np
import torch
from tables import OUT, table

from byheart.constructions import Built
from byheart.constructions.reciting import Settings, compile
from byheart.tasks import NextToken, random_next_token

BATCH = 2048
LAYOUTS = ("uniform", "experts")


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layouts", nargs="*", choices=[*LAYOUTS, []], metavar="LAYOUT", help="both if none is named")
    parser.add_argument("--examples", type=int, default=100_000, help="N")
    parser.add_argument("--asked", type=int, help="how many of them are asked; all, if nobody says")
    parser.add_argument("--tiny", action="store_true", help="sizes of a few seconds, to see that everything runs")
    given = parser.parse_args()
    if given.tiny:
        given.examples = 300
    return given


@torch.inference_mode()
def wrong(built: Built, task: NextToken, asked: int) -> tuple[int, float]:
    """How many answers are not right, and the smallest distance of the best logit from the next one."""
    missed, least = 0, float("inf")
    for start in range(0, asked, BATCH):
        inputs = torch.tensor(task.inputs[start : min(start + BATCH, asked)])
        two = built.network.model(inputs, logits_to_keep=1).logits[:, 0].topk(2, dim=1)  # type: ignore[attr-defined]
        missed += int((two.indices[:, 0].numpy() != task.labels[start : start + len(inputs)]).sum())
        least = min(least, float((two.values[:, 0] - two.values[:, 1]).min()))
    return missed, least


def main() -> int:
    """Compile, ask, print."""
    given = options()
    warnings.filterwarnings("ignore", message="Initializing zero-element tensors")
    rng = np.random.default_rng(0)
    task = random_next_token(examples=given.examples, length=8, vocab=256, labels=256, rng=rng)
    small = random_next_token(examples=30, length=8, vocab=256, labels=256, rng=rng)
    asked = min(given.asked or given.examples, given.examples)
    columns = ("layout", "N", "parameters", "planned", "bits/parameter", "load", "compiled in", "CPU")
    rows = table("Stock models, random labels, C = 256", *columns, "wrong", "smallest margin", "asked in")
    failed = 0
    for layout in given.layouts or LAYOUTS:
        compile(small, window=8, settings=Settings(layout=layout))  # compiled code is made before anything is timed
        busy = time.process_time()
        built = compile(task, window=8, settings=Settings(layout=layout))
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
