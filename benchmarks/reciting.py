"""The figures of the reciting networks that the README names, measured on this machine. Run by `make bench`.
Names of sections as arguments run only those: `python benchmarks/reciting.py capacity`.

`--plot FILE` draws bits a parameter, from the table that `capacity` printed and the trained networks' results.
"""

import argparse
import importlib
import json
import math
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from tables import OUT, table

from byheart.certificates.floats import certify_stock, judge_transformer
from byheart.constructions.reciting import Recital, Settings, compile_files, compile_task
from byheart.constructions.reciting.uniform import compile_uniform, save
from byheart.networks.transformer import store
from byheart.networks.transformer.evaluate import answers
from byheart.networks.transformer.generate import generate
from byheart.report.bits import Bar, draw_bits
from byheart.tasks import NextToken, random_next_token
from byheart.tasks.contexts import task_contexts

RESULTS = Path(__file__).parent / "results"
LIMITS = {"float32": 32, "float64": 64, "bfloat16": 16}


def task_of(N: int, labels: int = 256) -> NextToken:
    """Random contexts of 8 tokens out of 256, random labels."""
    return random_next_token(examples=N, length=8, vocab=256, labels=labels, rng=np.random.default_rng(0))


def reloaded(recital: Recital) -> store.Loaded:
    """The network as its folder holds it."""
    with TemporaryDirectory() as folder:
        recital.save(Path(folder) / "net")
        return store.load(Path(folder) / "net")


def capacity() -> list[Bar]:
    """Bits a parameter on random labels, every answer checked."""
    compile_task(task_of(1000))  # compiled code is made before anything is timed
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
    grid = [(100_000, *kind) for kind in (("float32", 24), ("float32", 31), ("float64", 53), ("float64", 60))]
    grid += [
        (100_000, "bfloat16", 8),
        (100_000, "bfloat16", 15),
        (1_000_000, "float32", 24),
        (1_000_000, "float32", 31),
    ]
    for N, precision, words in grid:
        task = task_of(N)
        compiled = (recital := compile_task(task, window=8, settings=Settings(precision, words))).compiled
        verdict = judge_transformer(reloaded(recital).module, compiled.contexts).verdict
        ratio = compiled.bits / compiled.account.dense
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        numbers = (f"{compiled.account.dense:,}", f"{ratio:.2f}", f"{compiled.bits / compiled.spec.padded:.2f}")
        times = (f"{compiled.seconds:.1f} s", f"{verdict.errors} of {verdict.checked:,}", f"{verdict.seconds:.1f} s")
        rows.add_row(
            f"{precision}, {words}-bit words", f"{N:,}", *numbers, f"{compiled.load:.3f}", *times, f"{memory:.1f}"
        )
        if precision == "float32":
            bars.append(Bar(f"compiled, {words}-bit words, N = {N:,}", ratio, "compiled"))
    rows.add_row("plain network, 3 a label", "any", "3 N", f"{8 / 3:.2f}", *["–"] * 6)
    OUT.print(rows, "")
    return bars


def trained() -> list[Bar]:
    """The trained networks of `benchmarks/baseline.py` (an H200; the command is in the README)."""
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


def stock_llama() -> list[Bar]:
    """The uniform layout; 10⁵ questions are checked here, 10⁶ by `benchmarks/stock_check.py` on a GPU."""
    columns = ("N", "parameters", "bits/parameter", "layers", "load", "compiled in", "errors")
    rows = table("Stock Llama (uniform layout, d_model 64), random labels as above", *columns)
    bars = []
    for N in (100_000, 1_000_000):
        contexts = task_contexts(task_of(N), 8)
        uniform = compile_uniform(contexts)
        ratio = contexts.order0_bits / uniform.parameters
        errors = "–"
        if N == 100_000:
            with TemporaryDirectory() as folder:
                save(uniform, Path(folder) / "llama")
                certificate = certify_stock(Path(folder) / "llama", contexts)
            errors = f"{certificate.errors} of {certificate.checked:,}"
        layers, seconds = uniform.config["num_hidden_layers"], f"{uniform.seconds:.1f} s"
        numbers = (f"{uniform.parameters:,}", f"{ratio:.2f}", str(layers), f"{uniform.load:.3f}")
        rows.add_row(f"{N:,}", *numbers, seconds, errors)
        bars.append(Bar(f"stock Llama, compiled, N = {N:,}", ratio, "stock"))
    OUT.print(rows, "")
    return bars


def growth() -> None:
    """Compile time against N: it should be linear."""
    compile_task(task_of(1000))
    rows = table("Compile time, float32, 24-bit words", "N", "seconds", "µs a question")
    points = []
    for N in (10_000, 30_000, 100_000, 300_000, 1_000_000):
        seconds = compile_task(task_of(N), window=8).compiled.seconds
        points.append((math.log(N), math.log(seconds)))
        rows.add_row(f"{N:,}", f"{seconds:.2f}", f"{1e6 * seconds / N:.1f}")
    slope = np.polyfit(*np.array(points[2:]).T, 1)[0]
    projected = math.exp(points[-1][1] + slope * math.log(10))
    OUT.print(rows, f"fitted exponent from N = 100,000 on: {slope:.2f}; projected for 10⁷: {projected:,.0f} s", "")


def speed() -> None:
    """Tokens a second at N = 100,000: one by one with the cache, and teacher-forced in batches."""
    rows = table(
        "Reading at N = 100,000, CPU", "network", "one by one, 1 thread", "batched, 1 worker", "batched, 2 workers"
    )
    task = task_of(100_000)
    for words in (24, 31):
        recital = compile_task(task, window=8, settings=Settings("float32", words))
        module, contexts = recital.compiled.module(), recital.compiled.contexts
        start = time.perf_counter()
        said = sum(1 for _ in generate(module, task.inputs[0].tolist(), tokens=3000))
        single = said / (time.perf_counter() - start)
        batched = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            start = time.perf_counter()
            answers(module, contexts.tokens, contexts.starts, contexts.places)
            batched.append(len(contexts) / (time.perf_counter() - start))
        rows.add_row(f"float32, {words}-bit words", *(f"{value:,.0f} tokens/s" for value in (single, *batched)))
    OUT.print(rows, "")


def texts() -> None:
    """Python's own argparse and inspect in one network."""
    paths = [Path(str(importlib.import_module(name).__file__)) for name in ("argparse", "inspect")]
    columns = ("tokenizer", "words", "questions", "window", "parameters", "bits (order 0)", "bits/parameter", "errors")
    rows = table("argparse.py and inspect.py in one network", *columns)
    for tokenizer, words in (("bytes", 24), ("bytes", 31), ("bpe", 24), ("bpe", 31)):
        recital = compile_files(paths, tokenizer=tokenizer, settings=Settings("float32", words))
        compiled = recital.compiled
        verdict = judge_transformer(reloaded(recital).module, compiled.contexts).verdict
        numbers = (f"{len(compiled.contexts):,}", f"{compiled.contexts.window}", f"{compiled.account.dense:,}")
        ratio = compiled.bits / compiled.account.dense
        rows.add_row(tokenizer, str(words), *numbers, f"{compiled.bits:,.0f}", f"{ratio:.2f}", str(verdict.errors))
    OUT.print(rows, "")


SECTIONS = (capacity, stock_llama, trained, growth, speed, texts)


def main() -> None:
    """Run the sections that were asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[[], *(section.__name__ for section in SECTIONS)])
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    bars: list[Bar] = []
    for section in SECTIONS:
        if not options.sections or section.__name__ in options.sections:
            bars += section() or []
    if options.plot is not None:
        draw_bits(bars, options.plot)


if __name__ == "__main__":
    main()
