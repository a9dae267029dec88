"""Measure how much of a random task a trained GPT memorizes: the fair counterpart of the networks that are built.

    PYTHONPATH=src python benchmarks/baseline.py --parameters 40000 --seconds 240 --device cuda --out baseline.json

The task is :func:`byheart.tasks.random_next_token`'s: N contexts of n tokens, each with one of C labels, all uniform.
One network (an ensemble of one) is trained for each depth and each learning rate. The budget is divided among them, and
the best counts. A budget in seconds is converted to steps by timing some steps first. Needs numpy and torch only. The
file of results is rewritten after every run, so finished runs are kept.
"""

import argparse
import itertools
import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from devices import usable

from byheart.lab import Member, SmallGPT, Training, gpt_with, train
from byheart.lab.stack import Stack
from byheart.papers.capacity import even_batch, measures
from byheart.tasks import random_next_token

TIMED_STEPS = 100
TINY = {"examples": 64, "vocab": 16, "labels": 16, "parameters": 2000, "layers": [1, 2], "steps": 20, "seconds": None}

Run = dict[str, Any]


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--examples", type=int, default=100_000, help="N, contexts to memorize")
    add("--length", type=int, default=8, help="n, tokens per context")
    add("--vocab", type=int, default=256, help="ω, number of different tokens")
    add("--labels", type=int, default=256, help="C, number of different labels")
    add("--parameters", type=int, default=40_000, help="largest number of parameters, everything counted")
    add("--layers", type=int, nargs="+", default=[None], help="depths to try, 1 to 4 (default: chosen)")
    add("--untied", action="store_true", help="do not share the embedding table with the labels")
    add("--learning-rates", type=float, nargs="+", default=[1e-2], help="largest learning rates to try")
    add("--seconds", type=float, default=None, help="training time of all runs together")
    add("--steps", type=int, default=None, help="number of steps of each run, instead of --seconds")
    add("--batch", type=int, default=1 << 14, help="largest number of examples per batch")
    add("--no-graph", action="store_true", help="do without a CUDA graph, which is slower, if recording one fails")
    add("--seed", type=int, default=0, help="seed of the task and of the training")
    add("--device", type=usable, default="cpu", help="cpu, cuda, cuda:1, …")
    add("--out", type=Path, default=None, help="JSON file for all results")
    add("--tiny", action="store_true", help="run a few steps of tiny networks, to see that it runs")
    given = parser.parse_args()
    if given.tiny:
        vars(given).update(TINY)
    if (given.seconds is None) == (given.steps is None):
        parser.error("expected one of --seconds and --steps")
    return given


def member_of(given: argparse.Namespace, network: SmallGPT, learning_rate: float, steps: int) -> Member:
    """Return the network with its task and its training: Adam, with memorizing as its only goal."""
    sizes: dict[str, int] = {name: getattr(given, name) for name in ("examples", "length", "vocab", "labels")}
    task = random_next_token(**sizes, rng=np.random.default_rng(given.seed))
    training = Training(
        batch=even_batch(given.examples, given.batch),
        steps=steps,
        learning_rate=learning_rate,
        schedule="warm-up-cosine",
        betas=(0.9, 0.99),
        warm_up=0.03,
        largest_norm=1.0,  # rates are large; a single bad step must not end a run
    )
    examples = {"tokens": torch.tensor(task.inputs), "answers": torch.tensor(task.labels)}
    return Member(network, training, given.seed, examples)


def steps_within(seconds: float, member: Member, device: torch.device, *, graph: bool) -> int:
    """Return the number of steps that take ``seconds``."""
    stack = Stack([member], member.architecture, device, torch.float32, graph=graph)
    stack.advance(TIMED_STEPS)  # record the graph before anything is timed
    start = time.perf_counter()
    stack.advance(TIMED_STEPS)
    return max(1, int(seconds * TIMED_STEPS / (time.perf_counter() - start)))


def run(given: argparse.Namespace, network: SmallGPT, learning_rate: float, seconds: float | None) -> Run:
    """Train one network and return its row of results."""
    graph, steps = not given.no_graph, given.steps
    if seconds is not None:
        timed = member_of(given, network, learning_rate, steps=2 * TIMED_STEPS)
        steps = steps_within(seconds, timed, torch.device(given.device), graph=graph)
    member = member_of(given, network, learning_rate, steps)
    [outcome] = train(
        [member], device=given.device, graph=graph, report=lambda done, total, note: print(f"  {note}", flush=True)
    )
    device = torch.cuda.get_device_name(given.device) if given.device.startswith("cuda") else given.device
    times = {"steps": outcome.steps, "seconds": outcome.seconds}
    return {"learning_rate": learning_rate, **measures(member, outcome), **times} | {
        "shape": asdict(network),
        "device": device,
    }


def table(runs: list[Run]) -> str:
    """Return a table with one line per run, the best first."""
    lines = [
        "layers  d_model  d_ff  parameters    rate  bits/parameter  bits memorized  accuracy     steps   epochs      s"
    ]
    for row in runs:
        shape = row["shape"]
        lines.append(
            f"{shape['layers']:>6}  {shape['model_dim']:>7}  {shape['hidden']:>4}  {row['parameters']:>10,}  "
            f"{row['learning_rate']:>6.0e}  {row['bits_per_parameter']:>14.3f}  {row['memorized_bits']:>14,.0f}  "
            f"{row['accuracy']:>8.4f}  {row['steps']:>8,}  {row['epochs']:>7,.0f}  {row['seconds']:>5.0f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Train every network and print the results."""
    given = options()
    tries = list(itertools.product(given.layers, given.learning_rates))
    seconds = None if given.seconds is None else given.seconds / len(tries)
    runs: list[Run] = []
    for layers, rate in tries:
        sizes = given.parameters, given.vocab, given.labels, given.length
        network = gpt_with(*sizes, layers=layers, tied=not given.untied)
        print(f"{network.layers} layers, learning rate {rate:g}", flush=True)
        runs.append(run(given, network, rate, seconds))
        # A run that diverged has no number, and comes last.
        runs.sort(key=lambda row: -row["memorized_bits"] if math.isfinite(row["memorized_bits"]) else math.inf)
        if given.out is not None:
            settings = {name: value for name, value in vars(given).items() if name not in ("out", "tiny")}
            given.out.write_text(json.dumps({"settings": settings, "runs": runs}, indent=2) + "\n")
    demand = given.examples * math.log2(given.labels)
    print(f"\nN = {given.examples:,}, {demand:,.0f} bits of labels; trained on {runs[0]['device']}")
    print(table(runs))


if __name__ == "__main__":
    main()
