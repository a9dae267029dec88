"""Measure the figures of the reciting networks in docs/numbers.md on this machine. Run by `make bench`.

    python benchmarks/reciting.py capacity stock trained --plot bits.png

draws bits per parameter, from the tables that these sections print.
"""

import importlib.util
import json
import math
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from checking import certified
from pictures import Bar, draw_bits
from stock import wrong
from tables import OUT, parser, table

from byheart.compiler import CompilerSettings, compile
from byheart.constructions import Built
from byheart.networks import generate
from byheart.networks.transformer.answers import answers
from byheart.tasks import NextToken, random_next_token

RESULTS = Path(__file__).parent / "results"


def task_of(N: int, labels: int = 256) -> NextToken:
    """Draw random contexts of 8 tokens out of 256, with random labels."""
    return random_next_token(examples=N, length=8, vocab=256, labels=labels, rng=np.random.default_rng(0))


def compiled_task(N: int, precision: str = "float32", words: int = 24) -> Built:
    """Compile the task of N contexts into a network."""
    return compile(task_of(N), window=8, settings=CompilerSettings(precision, words))  # type: ignore[arg-type]


def capacity(tiny: bool) -> list[Bar]:
    """Measure bits per parameter on random labels, with every answer checked."""
    compiled_task(1000)  # compiles code before anything is timed
    columns = (
        "network",
        "N",
        "parameters",
        "bits/parameter",
        "padded",
        "load",
        "compiled in",
        "errors",
        "checked in",
        "GiB",
    )
    rows = table("Reciting, random labels, C = 256, contexts of 8 tokens, vocabulary 256", *columns)
    bars = []
    few, many = (1000, 2000) if tiny else (100_000, 1_000_000)
    single, double, half = (("float32", 24), ("float32", 31)), (("float64", 53), ("float64", 60)), (8, 15)
    grid = [(few, *kind) for kind in (*single, *double)]
    grid += [(few, "bfloat16", words) for words in half] + [(many, *kind) for kind in single]
    for N, precision, words in grid:
        built = compiled_task(N, precision, words)
        verdict, seconds = certified(built, built.questions)
        ratio = built.bits / built.account.dense
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        numbers = (f"{built.account.dense:,}", f"{ratio:.2f}", f"{built.bits / built.network.padded:.2f}")
        times = (f"{built.seconds:.1f} s", f"{verdict.errors} of {verdict.checked:,}", f"{seconds:.1f} s")
        rows.add_row(
            f"{precision}, {words}-bit words",
            f"{N:,}",
            *numbers,
            f"{built.chosen['load']:.3f}",
            *times,
            f"{memory:.1f}",
        )
        if precision == "float32":
            bars.append(Bar(f"compiled, {words}-bit words, N = {N:,}", ratio, "compiled"))
    rows.add_row("plain network, 3 per label", "any", "3 N", f"{8 / 3:.2f}", *["–"] * 6)
    OUT.print(rows, "")
    return bars


def trained(tiny: bool) -> list[Bar]:
    """Print the results of `benchmarks/baseline.py` (on an H200; the command is in docs/numbers.md)."""
    runs = json.loads((RESULTS / "trained_h200.json").read_text())["runs"]
    rows = table(
        "Small GPTs trained on the first of these tasks, N = 100,000",
        "shape",
        "parameters",
        "rate",
        "bits/parameter",
        "steps",
        "seconds",
    )
    for run in runs:
        shape = f"{run['shape']['layers']} layers, d_model {run['shape']['model_dim']}"
        numbers = (f"{run['bits_per_parameter']:.2f}", f"{run['steps']:,}", f"{run['seconds']:.0f}")
        rows.add_row(shape, f"{run['parameters']:,}", f"{run['learning_rate']:g}", *numbers)
    OUT.print(rows, "")
    best = max(run["bits_per_parameter"] for run in runs)
    return [
        Bar(f"trained GPT, best of {len(runs)} (ours)", best, "trained"),
        Bar("trained GPTs (Morris et al. 2025)", 3.6, "quoted"),
    ]


def stock(tiny: bool) -> list[Bar]:
    """Compile stock models, a Llama and a Qwen2-MoE. Of 10⁶ questions, 50,000 are asked here."""
    columns = ("network", "N", "parameters", "bits/parameter", "load", "compiled in", "errors")
    rows = table("Stock models, random labels as above, asked through transformers' own code", *columns)
    bars = []
    few, many = (300, 600) if tiny else (100_000, 1_000_000)
    for name, layout in (("stock Llama", "uniform"), ("stock Qwen2-MoE", "experts")):
        for N, asked in ((few, few), (many, many // 20)):
            task = task_of(N)
            built = compile(task, window=8, settings=CompilerSettings(layout=layout))  # type: ignore[arg-type]
            ratio = built.bits / built.account.dense
            numbers = (f"{built.account.dense:,}", f"{ratio:.2f}", f"{built.chosen['load']:.3f}")
            rows.add_row(
                name, f"{N:,}", *numbers, f"{built.seconds:.1f} s", f"{wrong(built, task, asked)[0]} of {asked:,}"
            )
            bars.append(Bar(f"{name}, compiled, N = {N:,}", ratio, "stock"))
    OUT.print(rows, "")
    return bars


def growth(tiny: bool) -> None:
    """Measure compile time against N, which should be linear."""
    compiled_task(1000)
    rows = table("Compile time, float32, 24-bit words", "N", "seconds", "µs per question")
    points = []
    sizes = (100, 300, 1000, 3000) if tiny else (10_000, 30_000, 100_000, 300_000, 1_000_000)
    for N in sizes:
        seconds = compiled_task(N).seconds
        points.append((math.log(N), math.log(seconds)))
        rows.add_row(f"{N:,}", f"{seconds:.2f}", f"{1e6 * seconds / N:.1f}")
    slope = np.polyfit(*np.array(points[2:]).T, 1)[0]
    projected = math.exp(points[-1][1] + slope * math.log(10))
    projection = f"projected for N = {10 * sizes[-1]:,}: {projected:,.0f} s"
    OUT.print(rows, f"fitted exponent from N = {sizes[2]:,} on: {slope:.2f}; {projection}", "")


def speed(tiny: bool) -> None:
    """Measure tokens per second at N = 100,000: one by one with the cache, and teacher-forced in batches."""
    N, tokens = (300, 20) if tiny else (100_000, 100_000)
    rows = table(
        f"Reading at N = {N:,}, CPU", "network", "one by one, 1 thread", "batched, 1 worker", "batched, 2 workers"
    )
    task = task_of(N)
    for words in (24, 31):
        built = compiled_task(N, words=words)
        network, contexts = built.network, built.questions
        list(generate(network, task.inputs[0].tolist(), tokens=tokens // 50))  # loads compiled code first
        start = time.perf_counter()
        said = sum(1 for _ in generate(network, task.inputs[0].tolist(), tokens=tokens))
        single = said / (time.perf_counter() - start)
        batched = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            start = time.perf_counter()
            answers(network.module, contexts.tokens, contexts.starts, contexts.places)
            batched.append(len(contexts) / (time.perf_counter() - start))
        rows.add_row(f"float32, {words}-bit words", *(f"{value:,.0f} tokens/s" for value in (single, *batched)))
    OUT.print(rows, "")


def texts(tiny: bool) -> None:
    """Compile Python's own argparse and inspect into one network."""
    names = ("this", "antigravity") if tiny else ("argparse", "inspect")
    paths = [Path(str(importlib.util.find_spec(name).origin)) for name in names]  # type: ignore[union-attr]
    columns = ("tokenizer", "words", "questions", "window", "parameters", "bits (order 0)", "bits/parameter", "errors")
    rows = table(f"{names[0]}.py and {names[1]}.py in one network", *columns)
    for tokenizer, words in (("bytes", 24), ("bytes", 31), ("bpe", 24), ("bpe", 31)):
        built = compile(paths, tokenizer=tokenizer, settings=CompilerSettings("float32", words))
        (certificate, _), size = certified(built, built.questions), built.questions.size
        numbers = (f"{size.examples:,}", f"{size.length}", f"{built.account.dense:,}", f"{built.bits:,.0f}")
        ratio = f"{built.bits / built.account.dense:.2f}"
        rows.add_row(tokenizer, str(words), *numbers, ratio, str(certificate.errors))
    OUT.print(rows, "")


SECTIONS: tuple[Callable[[bool], Sequence[Bar] | None], ...] = (capacity, stock, trained, growth, speed, texts)


def main() -> None:
    """Run all sections, or the named ones."""
    arguments = parser(__doc__, SECTIONS)
    arguments.add_argument("--plot", type=Path, help="draw bits per parameter into this file")
    chosen = arguments.parse_args()
    bars: list[Bar] = []
    for section in SECTIONS:
        if not chosen.sections or section.__name__ in chosen.sections:
            bars += section(chosen.tiny) or []
    if chosen.plot is not None:
        draw_bits(bars, chosen.plot)


if __name__ == "__main__":
    main()
