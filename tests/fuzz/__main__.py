"""``python -m tests.fuzz``: so many cases, and what was found."""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "MPLBACKEND": "agg"}

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz.cases import Mode, case, lay_out
from tests.fuzz.seeds import Seed, seeds
from tests.fuzz.workers import Outcome, outcomes

import byheart
from byheart.certificates import as_used


def fuzzed(count: int, seed: int, *, mode: Mode = "files", workers: int = 1, first: int = 0) -> list[Outcome]:
    """What became of so many cases; findings are told as they come."""
    known = _warm()

    def worked(numbers: range) -> list[Outcome]:
        found = []
        for outcome in outcomes(known, seed, numbers, mode):
            found.append(outcome)
            if outcome.found:
                title = case(known, seed, outcome.number, mode).title
                sys.stdout.write(f"{title}\n    {outcome.found}\n")
                sys.stdout.flush()
        return found

    parts = [range(first + k, first + count, workers) for k in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        return [outcome for part in pool.map(worked, parts) for outcome in part]


@cache
def _warm() -> list[Seed]:
    """All seeds; what commands import and compile on first use is there before anything is forked."""
    import matplotlib.pyplot  # noqa: F401
    import torch

    torch.set_num_threads(1)
    as_used.find_spec = lambda name, package=None: None  # transformers is asked here, where it is imported once
    known = seeds()
    with tempfile.TemporaryDirectory() as folder:
        for number, one in enumerate(known):
            lay_out(one.files, Path(folder, str(number)))
            if one.weights:
                questions = [Path(folder, str(number), name) for name in one.files if "/" not in name]
                given: Any = questions if len(questions) > 1 else questions[0]
                if questions[0].suffix == ".csv":
                    given = byheart.Facts.read(*questions)
                own = Path(folder, str(number), "tok", "tokenizer.json")
                byheart.certify(Path(folder, str(number), "net"), given, tokenizer=own if own.exists() else None)
    return known


def main() -> int:
    """Parse, run, print; exit code 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="cases")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--flips", action="store_const", const="flips", dest="mode", help="change weights instead of files"
    )
    kinds.add_argument("--used", action="store_const", const="used", dest="mode", help="compare what is certified")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", type=int, help="one case, whose files are kept in fuzz-NUMBER")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    mode: Mode = given.mode or "files"
    if given.only is not None:
        given.first, given.count, given.workers = given.only, 1, 1
    began = time.perf_counter()
    found = fuzzed(given.count, given.seed, mode=mode, workers=given.workers, first=given.first)
    if given.only is not None:
        one = case(_warm(), given.seed, given.only, mode)
        lay_out(one.files, Path(f"fuzz-{given.only}"))
        sys.stdout.write(f"{one.title}\n")
    findings, changed = sum(bool(outcome.found) for outcome in found), sum(outcome.changed for outcome in found)
    what = {
        "files": "",
        "flips": " changed an answer",
        "used": " were certified with other files than they were written with",
    }
    more = f", {changed:,} of them{what[mode]}" if mode != "files" else ""
    seconds = time.perf_counter() - began
    sys.stdout.write(f"{len(found):,} cases{more}, {findings} findings, {len(found) / seconds:.0f} a second\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
