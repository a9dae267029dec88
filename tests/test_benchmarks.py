"""Every benchmark runs, at a tiny scale, and prints its tables."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
COLUMNS = {
    "attention": [
        ["context", "way", "d_h", "promised", "condition", "errors at most", "certified", "rank"],
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
        ["C", "N", "parameters", "÷ √(N log₂C)", "load", "certified", "peak memory"],
    ],
    "contextual": [
        ["n", "N = 5", "N = 10", "N = 20", "slowest"],
        ["sequences", "n", "ω", "units", "gentle", "paper", "certified, with bits"],
    ],
    "dana": [["model_dim", "head_dim", "heads", "hidden", "published", "here", "gap", "all contexts"]],
    "lab": [["way", "models at once", "model-steps/s", "seconds per model", "ratio"]],
    "lab_mahdavi": [["context", "way", "at once", "model-steps/s"]],
    "reciting": [
        ["network", "N", "parameters", "bits/parameter", "padded", "load", "compiled in", "errors", "checked in"],
        ["N", "parameters", "bits/parameter", "layers", "load", "compiled in", "errors"],
        ["shape", "parameters", "rate", "bits/parameter", "steps", "seconds"],
        ["N", "seconds"],
        ["network", "one by one, 1 thread", "batched, 1 worker", "batched, 2 workers"],
        ["tokenizer", "words", "questions", "window", "parameters", "bits/parameter", "errors"],
    ],
    "same_bits": [["device", "threads", "wrong", "contexts/s", "digest", "one by one the same"]],
    "second_opinion": [["network", "answers", "judge", "verify.py", "what it found"]],
    "stock_check": [["N", "wrong", "smallest margin", "parameters", "bits per parameter", "seconds"]],
}
"""The columns of every table that a script prints, or some of them, in order."""
SHARED = {"checking", "tables"}


def run(script: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / f"{script}.py"), *arguments]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=alone, capture_output=True, text=True, check=False)


def is_header(line: str, columns: list[str]) -> bool:
    """Whether the columns stand in the line, one after the other."""
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
def test_a_benchmark_runs_and_prints_its_tables(script: str, tmp_path: Path) -> None:
    done = run(script, "--tiny", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for columns in COLUMNS[script]:
        headers = [number for number, line in enumerate(lines) if is_header(line, columns)]
        assert headers, f"no table of {', '.join(columns)} in:\n{done.stdout}"
        assert lines[headers[0] + 1].strip(), "a table has rows"
    assert not re.search(r"\bNO\b|\bNOT CERTIFIED\b|\bDIFFERENT\b", done.stdout), done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("script", COLUMNS)
def test_a_benchmark_says_what_it_measures_and_how_it_is_called(script: str, tmp_path: Path) -> None:
    done = run(script, "--help", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"python benchmarks/{script}.py" in done.stdout, "an example"
    assert "--tiny" in done.stdout
