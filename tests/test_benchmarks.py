"""Every benchmark runs, at a tiny scale, and prints its tables."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.forking import OTHERS, OURS, ForkingServer

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
COLUMNS = {
    "attention": [
        ["context", "way", "d_h", "promised", "condition", "errors at most", "certified", "rank"],
        ["d_v", "Kruskal rank of the queries", "N = H(r − 1) + 1", "parameters", "coordinates", "certified"],
        ["N = H·d_h + d", "parameters", "smallest margin", "certified"],
        ["best encoder", "divergence", "certified below", "excess"],
        ["needed by any model", "entropy of the data", "loss above it, at most", "certified"],
    ],
    "baseline": [["layers", "d_model", "d_ff", "parameters", "rate", "bits/parameter", "accuracy", "steps", "epochs"]],
    "bench": [
        ["N", "parameters", "÷ √(N log₂N)", "most bits", "depth", "certified"],
        ["n", "parameters without embedding", "÷ at n = 8"],
        ["N", "tokens", "parameters", "3 · questions", "certified"],
        ["N", "built in", "certified in", "answers"],
        ["limit", "parameters", "depth", "most bits", "parameters · limit / N"],
        ["network", "limbs", "flint", "limbs ÷ flint"],
        ["N", "C = 2", "C = 3", "C = 10", "C = 10,000"],
        ["N", "attention", "words", "sum", "level", "shift", "fold", "label", "in all, fewest in all"],
        ["C", "N", "without embedding", "÷ √(N log₂C)", "fewest in all", "load", "certified", "peak memory"],
        ["N", "built in", "certified in", "fold by fold", "ratio", "µs per sequence"],
    ],
    "capacity": [
        ["parameters", "demand", "learning_rate", "steps", "bits/parameter", "lowest", "highest", "seeds"],
        ["N", "network", "parameters", "bits/parameter", "weight bits"],
    ],
    "contextual": [
        ["n", "N = 5", "N = 10", "N = 20", "slowest"],
        ["sequences", "n", "ω", "units", "gentle", "paper", "certified, with bits"],
        ["H", "d", "n", "heads that confuse them", "softmax averages apart by"],
    ],
    "dana": [["model_dim", "head_dim", "heads", "hidden", "published", "here", "gap", "all contexts"]],
    "dana_theory": [
        ["N, n, ω, d", "tasks", "C", "excess ÷ Cε‖WE‖₂", "÷ uniform", "below both, certified"],
        ["H", "parameters", "held", "promised", "at least", "right", "accuracy", "certified"],
        ["parameters, d_h", "width 1", "fewer", "(2d_h − 2)·H·d", "certified"],
        ["c, drawn", "divergence", "Theorem 2", "ours", "uniform"],
        ["held", "largest logit", "excess", "÷ ε log(1/ε)", "right-hand side", "certified"],
    ],
    "facts": [
        ["tokens", "questions", "window", "parameters", "parameters/fact", "bits/parameter", "certified", "checked in"]
    ],
    "held": [["H", "parameters", "trained, measured", "trained, proved", "promised: H·d_h + d", "built, proved"]],
    "lab": [["way", "models at once", "model-steps/s", "seconds per model", "ratio"]],
    "lab_kernels": [["models", "at once", "PyTorch does", "model-steps/s", "ratio of the kernels"]],
    "lab_mahdavi": [["context", "way", "at once", "model-steps/s"]],
    "lab_seconds": [["experiment", "scale", "machine", "models", "model_steps", "seconds", "command"]],
    "large_text": [
        ["files", "bytes", "window", "shards", "draws", "parameters", "bits/parameter", "load", "CPU", "memory"],
        ["questions", "wrong", "certified", "wall seconds", "memory"],
        ["file", "bytes", "the same", "seconds"],
    ],
    "lower": [
        [
            "construction",
            "parameters",
            "no embedding",
            "most bits",
            "counting",
            "÷ counting",
            "VC",
            "÷ VC",
            "certified",
        ],
        ["construction", "N", "parameters", "÷ √(2N)", "VC", "÷ VC", "certified"],
        ["construction", "N", "parameters", "collapsed", "depth", "collapsed depth", "equal on tokens", "certified"],
    ],
    "madden": [["stories", "hidden", "models", "seconds", "model-steps/s", "elapsed"]],
    "planting": [
        ["facts", "n", "m", "keys", "words per fact", "bytes per fact", "seconds", "wrong"],
        ["base", "facts", "keys", "words per fact", "planted in", "wrong", "silent", "differ", "tokens/s"],
    ],
    "radius": [
        ["floats", "r/δ", "grid", "cells", "radius/δ", "certified"],
        [
            "construction",
            "read",
            "radius/δ",
            "parameters",
            "provable ÷ stated",
            "wrong inside",
            "beyond",
            "certified in",
        ],
        ["ρ = 2·radius/δ", "parameters", "depth", "width", "most bits", "cells or balls", "certified in"],
    ],
    "reading": [
        ["file", "µs each to read", "bytes each", "÷ file", "µs each for the window", "peak bytes each", "window"]
    ],
    "reciting": [
        ["network", "N", "parameters", "bits/parameter", "padded", "load", "compiled in", "errors", "checked in"],
        ["network", "N", "parameters", "bits/parameter", "load", "compiled in", "errors"],
        ["shape", "parameters", "rate", "bits/parameter", "steps", "seconds"],
        ["N", "seconds"],
        ["network", "one by one, 1 thread", "batched, 1 worker", "batched, 2 workers"],
        ["tokenizer", "words", "questions", "window", "parameters", "bits/parameter", "errors"],
    ],
    "same_bits": [["device", "threads", "wrong", "contexts/s", "digest", "one by one the same"]],
    "scale": [
        ["N", "shards", "columns × rows", "parameters", "bits/parameter", "load", "map", "solve", "µs each", "GiB"],
        [
            "N",
            "shards",
            "asked",
            "wrong",
            "not proved",
            "smallest margin",
            "PyTorch",
            "compiled proof",
            "PyTorch proof",
        ],
    ],
    "scarce": [["step", "memory", "CPU", "memory, limit 500M", "CPU", "the same"]],
    "second_opinion": [["network", "answers", "judge", "verify.py", "what it found"]],
    "speed_of_reciting": [
        ["network", "module", "guessing 16", "compiled", "ratio", "logits equal", "errors"],
        ["N", "by the network's front", "by the loop", "ratio", "same network"],
        ["network", "questions", "PyTorch", "compiled proof", "PyTorch proof", "ratio", "same", "not proved"],
    ],
    "stock": [
        ["refinement", "N = 100,000"],
        ["layout", "N", "parameters", "planned", "bits/parameter", "load", "compiled in", "CPU", "wrong"],
    ],
    "stock_alone": [
        ["layout", "class", "parameters", "tokens", "generation", "whole", "tokens/s", "seconds"],
        ["layout", "threads", "batch of eight", "other order", "one by one"],
    ],
    "certify_on": [["N", "right", "smallest margin", "parameters", "bits per parameter", "seconds"]],
    "tradeoff": [
        ["theorem", "questions", "width", "depth", "÷ √(K log₂K)", "most bits", "parameters", "certified"],
        ["settings", "width", "depth", "w²L²", "÷ N log₂N", "most bits", "parameters", "certified"],
        ["construction", "width", "depth", "w²L²", "÷ N log(r/δ)", "most bits", "parameters", "certified"],
    ],
}
"""Columns of every table that a script prints, or some of them, in order."""
SHARED = {"checking", "devices", "driving", "moving", "pictures", "tables"}


@pytest.fixture(scope="session")
def server() -> Iterator[ForkingServer]:
    """Process that runs every script of this worker, so that libraries are imported once."""
    server = ForkingServer(*OTHERS, *OURS)
    yield server
    server.close()


def is_header(line: str, columns: list[str]) -> bool:
    """Return True if the columns are in the line, one after the other."""
    place = 0
    for column in columns:
        place = line.find(column, place)
        if place < 0:
            return False
        place += len(column)
    return True


def test_every_benchmark_is_tested() -> None:
    assert {path.stem for path in BENCHMARKS.glob("*.py")} == COLUMNS.keys() | SHARED
    scripts = {path.stem for path in BENCHMARKS.glob("*.py") if "__main__" in path.read_text(encoding="utf-8")}
    assert scripts == COLUMNS.keys(), "what is shared is no script"


@pytest.mark.slow
@pytest.mark.parametrize("script", COLUMNS)
def test_benchmark(script: str, server: ForkingServer, tmp_path: Path) -> None:
    """The help has an example and says how to run little of it, and a tiny run prints all tables, with rows."""
    path = BENCHMARKS / f"{script}.py"
    described = server.run(path, "--help", folder=tmp_path)
    assert described.returncode == 0, described.stderr
    assert f"python benchmarks/{script}.py" in described.stdout
    assert "--tiny" in described.stdout
    done = server.run(path, "--tiny", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for columns in COLUMNS[script]:
        headers = [number for number, line in enumerate(lines) if is_header(line, columns)]
        assert headers, f"no table of {', '.join(columns)} in:\n{done.stdout}"
        assert lines[headers[0] + 1].strip(), "a table has rows"
    assert not re.search(r"\bNO\b|\bNOT CERTIFIED\b|\bDIFFERENT\b", done.stdout), done.stdout
