"""Ask verify.py for a second opinion on one network of every kind, and print whether it agrees and the times.

    python benchmarks/second_opinion.py

builds all networks first: two recited modules of Python (a sample of 2,000 questions), 10,000 folded sequences, every
construction of the comparison on its two tasks, 621 real targets, and a decoder for docstrings. Takes a few minutes.
"""

import argparse
import inspect
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tables
from tables import OUT, table

import byheart
from byheart.certificates import certify
from byheart.certificates.judges import asked
from byheart.certificates.second_opinion import PROGRAM, second_opinion
from byheart.constructions import CONSTRUCTIONS, Built
from byheart.errors import BadInput
from byheart.tasks import Task, random_next_token, random_queries, random_seq_to_seq, save
from byheart.tasks.corpus import corpus_distribution
from byheart.tasks.shipped import library_docstrings

Made = tuple[str, Built, Task | list[Path], int | None]
"""A name, a built network, its questions, and the number of questions to ask (None: all)."""


def exact(scale: int) -> Iterator[Made]:
    """Yield folding, and every construction of the comparison on the tasks that it accepts."""
    rng = np.random.default_rng(0)
    task = random_next_token(examples=10_000 // scale, length=16, vocab=64, labels=2, rng=rng)
    yield "folding, n = 16", byheart.build("folding", task), task, None
    tags = random_seq_to_seq(examples=200 // scale, length=8, vocab=64, labels=10, rng=rng)
    labels = random_next_token(examples=500 // scale, length=8, vocab=64, labels=10, rng=rng)
    for name in CONSTRUCTIONS:
        for what, given in (("seq-to-seq", tags), ("next-token", labels)):
            try:
                built = byheart.build(name, given)
            except BadInput:  # outside its hypotheses
                continue
            yield f"{name}, {what}", built, given, None


def softmax(scale: int) -> Iterator[Made]:
    """Yield one layer of 20 heads, and a decoder of word distributions."""
    heads = 20 // scale or 1
    rng = np.random.default_rng(0)
    queries = random_queries(examples=31 * heads + 1, length=32, dim=64, labels=None, shared=True, rng=rng)
    yield f"mahdavi-2024, {heads} heads", byheart.build("mahdavi-2024", queries, heads=heads), queries, None
    texts = ["\n\n".join(found) for found in library_docstrings()]
    words = corpus_distribution(texts, length=8, vocab=500 // scale, examples=1000 // scale).task()
    yield "madden-2024, docstrings", byheart.build("madden-2024", words), words, None


def recited(scale: int) -> Iterator[Made]:
    """Yield two modules of the running Python in one network, or one short module at a small scale."""
    modules = [argparse, inspect] if scale == 1 else [tables]
    paths = [Path(str(module.__file__)) for module in modules]
    yield " and ".join(path.stem for path in paths), byheart.compile(paths), paths, 2000 // scale


def opinion(made: Made, folder: Path) -> list[str]:
    """Return a row with both verdicts and the judge's time."""
    name, built, given, sample = made
    built.save(folder / "net")
    questions: dict[str, Any] = {"files": given}
    if isinstance(given, Task):
        save(given, folder / "task.npz")
        questions = {"task": folder / "task.npz"}
    certificate = certify(folder / "net", given)
    found = second_opinion(certificate, folder / "net", asked(built.network, given), **questions, sample=sample, seed=0)
    agrees = {True: "agrees", False: "DIFFERENT", None: "cannot say"}[found.agrees]
    return [name, f"{certificate.checked:,}", f"{certificate.seconds:.1f} s", agrees, found.found]


def main() -> None:
    """Build and certify the networks, ask for second opinions, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="build small networks, to see that everything runs")
    scale = 25 if parser.parse_args().tiny else 1
    rows = table("Judge and second opinion", "network", "answers", "judge", "verify.py", "what it found")
    for part in (recited, exact, softmax):
        for made in part(scale):
            with TemporaryDirectory() as folder:
                rows.add_row(*opinion(made, Path(folder)))
    OUT.print(rows)
    OUT.print(f"verify.py has {len(PROGRAM.read_text(encoding='utf-8').splitlines())} lines")


if __name__ == "__main__":
    main()
