"""Measure how many model-steps per second the lab's Triton kernels add: the same stacks with and without them.

    PYTHONPATH=src python benchmarks/lab_kernels.py --device cuda

The models: Mahdavi's (H = 20, n = 32, batch 256, 100 labels), with a shared context and with own contexts; Madden's
decoder (300 stories); GPTs of the ladder of capacity. A step is a CUDA graph in all
cases. Stacks are measured in turn, several times, and the median is printed. On a CPU there are no kernels, and both
columns measure the same. With --no-madden the decoder, whose products take longest, is left out. An H200 needs about
two minutes, most of them for compiling.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from unittest.mock import patch

import torch
from devices import usable

from byheart.lab import fused
from byheart.lab.member import Member
from byheart.lab.stack import Stack
from byheart.papers import madden_2024, mahdavi_2024
from byheart.papers.capacity import PAPER, Rung, prepare

WARM_UP_STEPS = 5


def mahdavi(context: str, models: int, *, tiny: bool) -> list[Member]:
    """Return models whose examples share a context ("fixed") or have their own ("random")."""
    sizes = (32, 4, 2) if tiny else (2048, 32, 20)
    batch = {"steps": 10**9, "batch": 8 if tiny else 256}
    configs = [mahdavi_2024.MahdaviConfig("labels", context, *sizes, 64, seed, **batch) for seed in range(models)]  # type: ignore[arg-type]
    return mahdavi_2024.members(configs)


def madden(hidden: int, models: int, *, tiny: bool) -> list[Member]:
    """Return decoders with all tensors trained."""
    stories = 100 if tiny else 300
    configs = [
        madden_2024.MaddenConfig(stories, 8 if tiny else hidden, frozen=False, seed=seed, steps=10**6)
        for seed in range(models)
    ]
    return [madden_2024.member_of(config, madden_2024.data_of(stories)) for config in configs]


def gpts(parameters: int, models: int, *, tiny: bool) -> list[Member]:
    """Return GPTs of the ladder's larger scale that are asked for 8 bits per parameter."""
    sizes = PAPER | {"steps": 10**6} | ({"batch": 64} if tiny else {})
    return [prepare(Rung(parameters, 8, seed, **sizes)).member for seed in range(models)]


CASES: dict[str, tuple[Callable[..., list[Member]], int]] = {
    "Mahdavi, shared context": (partial(mahdavi, "fixed"), 128),
    "Mahdavi, own contexts": (partial(mahdavi, "random"), 128),
    "Madden, 64 units": (partial(madden, 64), 4),
    "Madden, 512 units": (partial(madden, 512), 4),
    "GPT, 8,000 parameters": (partial(gpts, 8_000), 27),
    "GPT, 80,000 parameters": (partial(gpts, 80_000), 6),
}


def stack_of(members: list[Member], device: torch.device, *, with_kernels: bool) -> Stack:
    """Return a stack whose step is recorded with or without kernels, and warmed up."""
    with patch.object(fused, "_operations", fused._operations if with_kernels else lambda: None):
        stack = Stack(members, members[0].architecture, device, torch.float32, graph=True)
        stack.advance(WARM_UP_STEPS)
    return stack


def rate(stack: Stack, seconds: float, device: torch.device, *, with_kernels: bool) -> float:
    """Return the model-steps per second of a stack; its graph is recorded already, a step on a CPU is not."""

    def timed(steps: int) -> float:
        start = time.perf_counter()
        stack.advance(steps)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - start

    with patch.object(fused, "_operations", fused._operations if with_kernels else lambda: None):
        steps = max(1, int(seconds / 4 * WARM_UP_STEPS / timed(WARM_UP_STEPS)))
        steps = max(1, int(seconds * steps / timed(steps)))
        return len(stack.members) * steps / timed(steps)


def main() -> None:
    """Measure all cases, with and without kernels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", type=usable, default="cpu", help="cpu, cuda, cuda:1, …")
    add("--seconds", type=float, default=1.0, help="time of each measurement")
    add("--repeats", type=int, default=5, help="number of measurements whose median is printed")
    add("--no-madden", action="store_true", help="leave Madden's decoders out")
    add("--tiny", action="store_true", help="two tiny models per case for a moment; rates mean nothing")
    options = parser.parse_args()
    seconds, repeats = (0.01, 1) if options.tiny else (options.seconds, options.repeats)
    device = torch.device(options.device)
    torch.set_num_threads(1)
    print(f"{'models':<24}  at once  model-steps/s with kernels  without  ratio")
    for name, (members_of, models) in CASES.items():
        if options.no_madden and name.startswith("Madden"):
            continue
        members = members_of(2 if options.tiny else models, tiny=options.tiny)
        stacks = {with_kernels: stack_of(members, device, with_kernels=with_kernels) for with_kernels in (True, False)}
        rates: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(repeats):
            for with_kernels, stack in stacks.items():
                rates[with_kernels].append(rate(stack, seconds, device, with_kernels=with_kernels))
        first, second = median(rates[True]), median(rates[False])
        print(f"{name:<24}  {len(members):>7}  {first:>26,.0f}  {second:>7,.0f}  {first / second:>5.2f}", flush=True)


if __name__ == "__main__":
    main()
