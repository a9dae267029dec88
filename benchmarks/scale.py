"""Measure how compiling and certifying scale: time, memory and bits per parameter. For docs/large.md.

    python benchmarks/scale.py laws                    # 10⁵, 10⁶, 10⁷ random labels, one process each
    python benchmarks/scale.py --plot large.png        # only draw: more sizes, one table beside shards
    python benchmarks/scale.py certify --asked 200000  # ask 200,000 of 10⁷ questions (0: all) and prove the answers

Questions are drawn in pieces, seed by seed, and are never in memory all at once. The measured stages are those of
`byheart.compiler.rectangular.shards`, as an executor runs them, in one process. Times are CPU seconds of the process,
because wall time says little on a machine that does other work.
"""

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pictures import GrowthCurve, draw_growth
from tables import OUT, parser, table

from byheart.compiler import CompilerSettings
from byheart.compiler.codes import LOUDNESS, make_code
from byheart.compiler.layouts import ATTEMPTS, Unsolvable
from byheart.compiler.rectangular import shards
from byheart.compiler.rectangular.address import find_addresses
from byheart.compiler.rectangular.dimensions import grown, plan
from byheart.compiler.rectangular.draft import Draft
from byheart.compiler.rectangular.recipe import Recipe
from byheart.compiler.rectangular.solve import solve, sort_questions
from byheart.compiler.rectangular.table import TABLE, as_floats
from byheart.networks.transformer.answers import answers
from byheart.networks.transformer.forced import forced_answers
from byheart.networks.transformer.proved import proved_answers
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays

LENGTH, VOCAB, LABELS, FEW = 8, 256, 256, 4096


def piece(number: int, count: int) -> shards.Piece:
    """Draw random windows of 8 tokens with random labels. Two of 10⁷ windows are equal in one of 400,000 draws."""
    rng = np.random.default_rng([20, number])
    tokens = rng.integers(0, VOCAB, size=count * LENGTH, dtype=np.int32)
    labels = rng.integers(0, LABELS, size=count, dtype=np.int64)
    return tokens, np.arange(count + 1) * LENGTH, np.arange(1, count + 1) * LENGTH - 1, labels


def drawn(N: int) -> Iterator[shards.Piece]:
    """Yield all pieces of N questions."""
    return (piece(number, part.stop - part.start) for number, part in enumerate(shards.pieces(N)))


def compiled(N: int, count: int | None = None) -> tuple[TransformerNetwork, Recipe, dict[str, float]]:
    """Compile in stages, into ``count`` shards (None: as planned), and return the CPU seconds of each stage, too."""
    seconds = dict.fromkeys(("draw", "map", "solve", "join"), 0.0)
    code = make_code(np.tile(np.arange(LABELS), 64), LABELS).repeated(N / (64 * LABELS))
    sizes = plan(code, precision="float32", word=24, shards=count)
    recipe = Recipe(CompilerSettings(shards=count), sizes, tuple(code.lengths.tolist()), (0, 0), LOUDNESS)
    for attempt in range(ATTEMPTS):
        draft = Draft(recipe, code, vocab=VOCAB, window=LENGTH, labels=LABELS)
        try:
            tensors = solved(N, draft, seconds)
        except Unsolvable:
            recipe = replace(recipe, sizes=grown(recipe.sizes), draw=(0, attempt + 1))
            continue
        began = time.process_time()
        network = from_arrays(draft.spec, {name: tensors[name] for name in draft.spec.shapes()})
        seconds["join"] += time.process_time() - began
        return network, recipe, seconds
    raise AssertionError("no table was found")


def solved(N: int, draft: Draft, seconds: dict[str, float]) -> dict[str, np.ndarray]:
    """Return all tensors: of one table, as `compile` solves it, if planned; otherwise map, cut, solve and join."""
    sizes, mapped, began = draft.sizes, [], time.process_time()
    if sizes.shards == 1:
        drawn_pieces = list(drawn(N))
        tokens, labels = (np.concatenate([piece[k] for piece in drawn_pieces]) for k in (0, 3))
        began = lap(seconds, "draw", began)
        at = find_addresses(draft.wiring, sizes, tokens, np.arange(N + 1) * LENGTH, np.arange(1, N + 1) * LENGTH - 1)
        began = lap(seconds, "map", began)
        questions = sort_questions(sizes, draft.code, at, labels)
        words = solve(questions, sizes, np.random.default_rng([*draft.recipe.draw, 0]))
        lap(seconds, "solve", began)
        return {**draft.wiring.tensors, TABLE: as_floats(words, sizes, draft.wiring.precision)}
    for one in drawn(N):
        began = lap(seconds, "draw", began)
        mapped.append(shards.map_piece(draft.wiring, sizes, *one))
        began = lap(seconds, "map", began)
    counts = sum(shards.count_routes(one, sizes) for one in mapped)
    cuts = shards.cut(counts, sizes.shards)
    found = []
    for shard in range(sizes.shards):
        records = shards.records_of(mapped, cuts, shard)
        how = (sizes, draft.code, draft.recipe.draw, shard, draft.wiring.precision)
        found.append(shards.solve_shard(records, *how))
    lap(seconds, "solve", began)
    return shards.join(draft.wiring.tensors, sizes, counts, cuts, found)


def lap(seconds: dict[str, float], name: str, began: float) -> float:
    """Add the CPU seconds since ``began`` to a stage, and return the time now."""
    now = time.process_time()
    seconds[name] += now - began
    return now


def certified(network: TransformerNetwork, N: int, asked: int) -> dict[str, float]:
    """Ask the first ``asked`` questions (0: all) in PyTorch, and prove them by compiled code, piece by piece."""
    found: dict[str, float] = {"asked": 0, "wrong": 0, "not proved": 0, "margin": math.inf}
    seconds = dict.fromkeys(("as it is", "proof", "PyTorch"), 0.0)
    forced_answers(network, *_first(piece(0, FEW), 1), compiled=True)  # compiles code first
    for tokens, starts, ends, labels in drawn(N):
        if asked and found["asked"] >= asked:
            break
        kept = min(len(labels), asked - int(found["asked"]) if asked else len(labels))
        given = _first((tokens, starts, ends, labels), kept)
        began = time.process_time()
        once = answers(network.module, *given)
        began = lap(seconds, "as it is", began)
        proved = forced_answers(network, *given, compiled=True)
        began = lap(seconds, "proof", began)
        if not found["asked"]:
            few = proved_answers(network.module, *_first((tokens, starts, ends, labels), FEW))
            lap(seconds, "PyTorch", began)
            assert (few.margins == proved.margins[:FEW]).all(), "the same proof"
        found["asked"] += kept
        found["wrong"] += int((once.labels != labels[:kept]).sum())
        found["not proved"] += int(((proved.labels != once.labels) | (proved.margins != once.margins)).sum())
        found["margin"] = min(found["margin"], float(once.margins.min()))
    counts = {"as it is": found["asked"], "proof": found["asked"], "PyTorch": min(FEW, found["asked"])}
    return found | {f"µs, {name}": 1e6 * seconds[name] / count for name, count in counts.items()}


def _first(given: shards.Piece, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return tokens, starts and ends of the first ``count`` questions of a piece."""
    tokens, starts, ends, _ = given
    return tokens[: count * LENGTH], starts[: count + 1], ends[:count]


def one(N: int, asked: int | None, count: int | None = None) -> dict[str, Any]:
    """Compile N questions in this process and return the measurements; with ``asked`` None, ask none of them."""
    compiled(2000, 2)  # compiles code before anything is timed
    network, recipe, seconds = compiled(N, count)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    sizes, parameters = recipe.sizes, sum(math.prod(shape) for shape in network.spec.shapes().values())
    told: dict[str, Any] = {
        "N": N,
        "shards": sizes.shards,
        "columns": sizes.columns,
        "rows": sizes.rows,
        "attempts": recipe.draw[1] + 1,
        "parameters": parameters,
        "bits": N * math.log2(LABELS) / parameters,
        "load": N / (sizes.shards * sizes.words * 3),
        "seconds": seconds,
        "GiB": peak,
    }
    if asked is not None:
        told["certified"] = certified(network, N, asked)
    return told


def measured(N: int, tiny: bool, asked: int | None = None, count: int | None = None) -> dict[str, Any]:
    """Measure in a new process; if ``tiny``, in this process, with two shards unless ``count`` is given."""
    if tiny:
        return one(N, asked, count or 2)
    flags = {"--one": N, "--asked": asked, "--shards": count}
    given = [part for name, value in flags.items() if value is not None for part in (name, str(value))]
    command = [sys.executable, __file__, *given]
    told: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return told


def spent(told: dict[str, Any]) -> float:
    """Return the CPU seconds of compiling, without drawing the questions."""
    return sum(told["seconds"][name] for name in ("map", "solve", "join"))


def laws(tiny: bool, asked: int) -> None:
    """Measure time, memory and bits per parameter from 10⁵ to 10⁷ random labels, and fit time's exponent in N."""
    columns = (
        "N",
        "shards",
        "columns × rows",
        "parameters",
        "bits/parameter",
        "load",
        "map",
        "solve",
        "µs each",
        "GiB",
    )
    rows = table("Random labels, C = 256, contexts of 8 tokens, vocabulary 256, 24-bit words", *columns)
    found = []
    for N in (2_000, 4_000) if tiny else (10**5, 10**6, 10**7):
        told = measured(N, tiny)
        seconds = spent(told)
        found.append((N, seconds))
        rows.add_row(
            f"{N:,}",
            str(told["shards"]),
            f"{told['columns']} × {told['rows']:,}",
            f"{told['parameters']:,}",
            f"{told['bits']:.2f}",
            f"{told['load']:.4f}",
            f"{told['seconds']['map']:.1f} s",
            f"{told['seconds']['solve']:.1f} s",
            f"{1e6 * seconds / N:.2f}",
            f"{told['GiB']:.2f}",
        )
    OUT.print(rows)
    slope = np.polyfit(*np.log([(N, max(seconds, 1e-6)) for N, seconds in found]).T, 1)[0]
    OUT.print(
        f"time grows as N^{slope:.2f}; the largest takes {found[-1][1] / found[-2][1]:.1f} times the one before\n"
    )


def growth(tiny: bool) -> list[GrowthCurve]:
    """Measure compiling in shards, and with one table up to the sizes that it can solve."""
    ways = {
        "one table": (1, (2_000, 4_000) if tiny else (10**5, 3 * 10**5, 10**6, 2 * 10**6)),
        "shards, as planned": (None, (2_000, 4_000) if tiny else (10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7)),
    }
    found = []
    for name, (count, sizes) in ways.items():
        told = [measured(N, tiny, count=count) for N in sizes]
        found.append(GrowthCurve(name, sizes, tuple(map(spent, told)), tuple(one["GiB"] for one in told)))
    return found


def certify(tiny: bool, asked: int) -> None:
    """Measure the time per question of asking and proving, against the number of questions."""
    columns = (
        "N",
        "shards",
        "asked",
        "wrong",
        "not proved",
        "smallest margin",
        "PyTorch",
        "compiled proof",
        "PyTorch proof",
    )
    rows = table("Asked, and proved; µs per question", *columns)
    for N in (2_000,) if tiny else (10**6, 10**7):
        told = measured(N, tiny, asked)
        found = told["certified"]
        numbers = (found["wrong"], found["not proved"], found["margin"])
        each = [f"{found[f'µs, {name}']:.1f}" for name in ("as it is", "proof", "PyTorch")]
        told_as = (f"{number:g}" for number in numbers)
        rows.add_row(f"{N:,}", str(told["shards"]), f"{found['asked']:,}", *told_as, *each)
    OUT.print(rows)


SECTIONS = (laws, certify)


def main() -> None:
    """Run all sections, or the named ones."""
    options = parser(__doc__, SECTIONS)
    options.add_argument("--one", type=int, help="number of questions to compile in this process")
    options.add_argument("--shards", type=int, help="with --one: number of shards (default: as planned)")
    options.add_argument("--plot", type=Path, help="draw time and memory against N into this file")
    options.add_argument("--asked", type=int, help="number of questions to ask (0: all; default: 100,000)")
    given = options.parse_args()
    if given.one is not None:
        print(json.dumps(one(given.one, given.asked, given.shards)))
        return
    if given.plot is not None:
        draw_growth(growth(given.tiny), given.plot)
        return
    for section in SECTIONS:
        if not given.sections or section.__name__ in given.sections:
            section(given.tiny, 100_000 if given.asked is None else given.asked)


if __name__ == "__main__":
    main()
