"""How much a trained GPT memorizes of a random task: the fair counterpart of the networks that are built.

    PYTHONPATH=src python benchmarks/baseline.py --parameters 40000 --seconds 240 --device cuda --out baseline.json

The task is :func:`byheart.tasks.random_next_token`'s: N contexts of n tokens, each with one of C labels, all uniform.
One network is trained for each depth and each learning rate; the budget is divided among them, and the best counts.
Needs numpy and torch only. The file of results is written anew after every run, so what is finished is kept.
"""

import argparse
import itertools
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from byheart.lab.baseline import Trained, train
from byheart.lab.gpt import gpt_with
from byheart.tasks import random_next_token


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--examples", type=int, default=100_000, help="N, contexts to memorize")
    add("--length", type=int, default=8, help="n, tokens of a context")
    add("--vocab", type=int, default=256, help="V, tokens in all")
    add("--labels", type=int, default=256, help="C, labels in all")
    add("--parameters", type=int, default=40_000, help="most parameters of the network, everything counted")
    add("--layers", type=int, nargs="+", default=[None], help="depths to try, 1 to 4; one is chosen if none is given")
    add("--untied", action="store_true", help="a table of its own for the labels")
    add("--learning-rates", type=float, nargs="+", default=[1e-2], help="largest learning rates to try")
    add("--seconds", type=float, default=None, help="training time of all runs together")
    add("--steps", type=int, default=None, help="steps of each run, instead of seconds")
    add("--batch", type=int, default=1 << 14, help="most examples of a batch")
    add("--precision", choices=("float32", "bfloat16"), default="float32", help="of the products in training")
    add("--no-graph", action="store_true", help="no CUDA graph: slower, if one should fail")
    add("--seed", type=int, default=0, help="of the task and of the training")
    add("--device", default="cpu", help="cpu, cuda, cuda:1, …")
    add("--out", type=Path, default=None, help="JSON file for all results")
    return parser.parse_args()


def table(runs: list[tuple[float, Trained]]) -> str:
    """One line a run, the best first."""
    lines = [
        "layers  d_model  d_ff  parameters    rate  bits/parameter  bits memorized  accuracy     steps   epochs      s"
    ]
    for rate, run in runs:
        shape = run.shape
        lines.append(
            f"{shape.layers:>6}  {shape.width:>7}  {shape.hidden:>4}  {run.parameters:>10,}  {rate:>6.0e}  "
            f"{run.bits_per_parameter:>14.3f}  {run.memorized_bits:>14,.0f}  {run.accuracy:>8.4f}  {run.steps:>8,}  "
            f"{run.epochs:>7,.0f}  {run.seconds:>5.0f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Make the task, train, tell."""
    given = options()
    sizes: dict[str, Any] = {name: getattr(given, name) for name in ("examples", "length", "vocab", "labels")}
    task = random_next_token(**sizes, rng=np.random.default_rng(given.seed))
    tries = list(itertools.product(given.layers, given.learning_rates))
    runs: list[tuple[float, Trained]] = []
    for layers, rate in tries:
        shape = gpt_with(
            given.parameters, given.vocab, given.labels, given.length, layers=layers, tied=not given.untied
        )
        print(f"{shape.layers} layers, learning rate {rate:g}", flush=True)
        trained = train(
            task.inputs,
            task.labels,
            labels_in_all=given.labels,
            vocab=given.vocab,
            parameters=given.parameters,
            shape=shape,
            seconds=None if given.seconds is None else given.seconds / len(tries),
            steps=given.steps,
            batch=given.batch,
            learning_rate=rate,
            seed=given.seed,
            device=given.device,
            precision=given.precision,
            graph=not given.no_graph,
            report=lambda line: print(f"  {line}", flush=True),
        )
        runs.append((rate, trained))
        # A run that went astray has no number, and comes last.
        runs.sort(key=lambda run: -run[1].memorized_bits if math.isfinite(run[1].memorized_bits) else math.inf)
        if given.out is not None:
            settings = {name: value for name, value in vars(given).items() if name != "out"}
            results = [{"learning_rate": rate} | asdict(run) for rate, run in runs]
            given.out.write_text(json.dumps({"settings": settings, "runs": results}, indent=2) + "\n")
    demand = given.examples * math.log2(given.labels)
    print(f"\nN = {given.examples:,}, {demand:,.0f} bits of labels; trained on {runs[0][1].device}")
    print(table(runs))


if __name__ == "__main__":
    main()
