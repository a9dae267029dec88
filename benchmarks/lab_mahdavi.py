"""Measure how fast Mahdavi's models train: one at a time in a plain loop, and many at once in an ensemble.

    PYTHONPATH=src python benchmarks/lab_mahdavi.py --device cuda --models 128 24 --out mahdavi.json

The task is the authors': queries and contexts of n tokens, uniform in [0, 1]^64, with one of 100 labels each. The ways:

- authors' way: one model, attention computed for all n + 1 positions and read at one;
- query only: one model, only the position that the loss reads, by the same operations as the ensemble;
- ensemble: many models at once, on a GPU with one CUDA graph per step; with --tf32, matrix products in TF32;
- lengths, heads: many models for each length n, or number of heads H, of the paper's figures, in stacks side by side.

A model-step is one step of Adam of one model on one batch; the rates are model-steps per second. Needs numpy and torch
only.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import torch
from devices import usable
from torch import nn
from torch.nn import functional

from byheart.lab.member import ANSWERS
from byheart.lab.models.parts import sinusoids
from byheart.lab.stack import Stack
from byheart.papers.mahdavi_2024 import HEADS, LENGTHS, MahdaviConfig, data, members

WARM_UP_STEPS = 20
TURN = 500
"""Number of steps of a stack before the next one's turn, as between two evaluations."""


@dataclass(frozen=True)
class Speed:
    """Model-steps per second of one way to train, with a number of models at once."""

    way: str
    context: str
    models: int
    steps_per_second: float


class AllPositions(nn.Module):
    """The model as its authors wrote it: tokens [B, n + 1, 64], the query first, to logits at all positions."""

    def __init__(self, heads: int, head_dim: int, length: int, labels: int, dim: int = 64) -> None:
        super().__init__()
        self.embedding, self.decoder = nn.Linear(dim, dim), nn.Linear(dim, labels)
        self.W_Q, self.W_K, self.W_V, self.W_O = (
            nn.Parameter(nn.init.xavier_uniform_(torch.empty(shape)))
            for shape in ((heads, dim, head_dim), (heads, dim, head_dim), (heads, dim, 1), (heads, dim))
        )
        self.register_buffer("positions", sinusoids(length + 1, dim, torch.device("cpu"), torch.float32))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits [B, n + 1, C]."""
        stream = self.embedding(tokens) + self.positions
        Q, K, V = (stream[:, None] @ weights for weights in (self.W_Q, self.W_K, self.W_V))
        scores = Q @ K.mT / math.sqrt(stream.shape[-1])
        mask = torch.zeros_like(scores[0, 0])
        mask[:, 0] = -torch.inf
        mixed = (scores + mask).softmax(dim=-1) @ V
        logits: torch.Tensor = self.decoder(mixed[..., 0].mT @ self.W_O)
        return logits


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--models", type=int, nargs="+", default=[128], help="models per ensemble; several numbers are tried in turn")
    add(
        "--side-by-side",
        type=int,
        nargs="*",
        default=[4, 24],
        help="models per length, and per number of heads",
    )
    add("--heads", type=int, default=20, help="H")
    add("--length", type=int, default=32, help="n, tokens per context")
    add("--examples", type=int, default=2048, help="N, examples per model")
    add("--batch", type=int, default=256, help="examples per batch")
    add("--seconds", type=float, default=2.0, help="time of each measurement")
    add("--tf32", action="store_true", help="let a GPU round the factors of matrix products to TF32")
    add("--device", type=usable, default="cpu", help="cpu, cuda, cuda:1, …")
    add("--out", type=Path, default=None, help="JSON file for the results")
    add("--tiny", action="store_true", help="train tiny models for a moment, to see that it runs; rates mean nothing")
    given = parser.parse_args()
    if given.tiny:
        vars(given).update(models=[2], side_by_side=[1], heads=2, length=4, examples=32, batch=8, seconds=0.02)
    given.device = torch.device(given.device)
    return given


def rate(step: Callable[[int], object], device: torch.device, seconds: float) -> float:
    """Return the steps per second of ``step(k)``, which does k steps."""

    def timed(steps: int) -> float:
        start = time.perf_counter()
        step(steps)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - start

    timed(1)
    steps = max(1, int(seconds / 10 * WARM_UP_STEPS / timed(WARM_UP_STEPS)))
    steps = max(1, int(seconds * steps / timed(steps)))
    return steps / timed(steps)


def plain(config: MahdaviConfig, device: torch.device) -> Callable[[int], None]:
    """Return the authors' training step. The data lie on the device, and batches are random rows."""
    examples, constants = data(config)
    contexts = (examples | constants)["contexts"].expand(config.examples, -1, -1)
    tokens = torch.cat([examples["queries"][:, None], contexts], dim=1).to(device)
    answers = examples[ANSWERS].to(device)
    model = AllPositions(config.heads, config.head_dim, config.length, config.labels).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate)

    def step(steps: int) -> None:
        for _ in range(steps):
            rows = torch.randint(config.examples, (config.batch,), device=device)
            loss = functional.cross_entropy(model(tokens[rows])[:, 0], answers[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    return step


def query_only(config: MahdaviConfig, device: torch.device) -> Callable[[int], None]:
    """Return the training step of one model in a plain loop, by the ensemble's operations."""
    examples, constants = ({name: part.to(device) for name, part in parts.items()} for parts in data(config))
    model = config.architecture
    weights = {
        name: first[None].float().to(device).requires_grad_()
        for name, first in model.init(torch.Generator().manual_seed(0)).items()
    }
    shared = {name: part[None] for name, part in constants.items()}
    optimizer = torch.optim.Adam(weights.values(), lr=config.learning_rate)

    def step(steps: int) -> None:
        for _ in range(steps):
            rows = torch.randint(config.examples, (config.batch,), device=device)
            batch = {name: part[rows][None] for name, part in examples.items()}
            loss = functional.cross_entropy(model.outputs(weights, batch | shared)[0], batch[ANSWERS][0])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    return step


def ensemble(config: MahdaviConfig, device: torch.device, models: int) -> Callable[[int], object]:
    """Return the training step of ``models`` models, each with its own data."""
    configs = [replace(config, seed=seed) for seed in range(models)]
    return Stack(members(configs), config.architecture, device, torch.float32, graph=True).advance


def side_by_side(
    config: MahdaviConfig, device: torch.device, models: int, name: str, values: tuple[int, ...]
) -> Callable[[int], None]:
    """Return the training step of ``models`` models for each value that a figure sweeps, one stack per value."""
    stacks = []
    for value in values:
        configs = [replace(config, **{name: value, "seed": seed}) for seed in range(models)]
        stacks.append(Stack(members(configs), configs[0].architecture, device, torch.float32, graph=True))

    def step(steps: int) -> None:
        turns = [min(TURN, steps - done) for done in range(0, steps, TURN)]
        for stack in stacks:
            stack.start(turns[0])
        for turn in [*turns[1:], 0]:
            for stack in stacks:
                stack.finish()
                if turn:
                    stack.start(turn)

    return step


SWEPT = {"lengths": ("length", LENGTHS), "heads": ("heads", HEADS)}
PLAIN_WAYS = {"authors' way": plain, "query only": query_only}


def main() -> None:
    """Measure all ways to train, for both kinds of contexts."""
    given = options()
    torch.backends.cuda.matmul.allow_tf32 = given.tf32
    torch.set_num_threads(1)
    device: torch.device = given.device
    if device.type != "cuda":
        print("no GPU: steps are not CUDA graphs here")
    speeds = []
    print("context  way           at once  model-steps/s")
    for context in ("fixed", "random"):
        sizes = {"examples": given.examples, "length": given.length, "heads": given.heads, "batch": given.batch}
        config = MahdaviConfig("labels", context, head_dim=64, seed=0, steps=10**9, **sizes)  # type: ignore[arg-type]
        ways = [(way, 1, partial(made, config, device)) for way, made in PLAIN_WAYS.items()]
        ways += [("ensemble", models, partial(ensemble, config, device, models)) for models in given.models]
        for models, (way, (name, values)) in product(given.side_by_side, SWEPT.items()):
            some = values[:2] if given.tiny else values
            ways.append((way, models * len(some), partial(side_by_side, config, device, models, name, some)))
        for way, models, made in ways:
            speeds.append(Speed(way, context, models, models * rate(made(), device, given.seconds)))
            print(f"{context:>7}  {way:<12}  {models:>7}  {speeds[-1].steps_per_second:>13,.1f}", flush=True)
    if given.out is not None:
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu, one thread"
        found = {"device": name, "tf32": given.tf32, "heads": given.heads, "length": given.length}
        given.out.write_text(json.dumps(found | {"speeds": [asdict(speed) for speed in speeds]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
