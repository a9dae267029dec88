"""Measure how many model-steps per second the lab's Triton kernels add: the same stacks with and without them.

    PYTHONPATH=src python benchmarks/lab_kernels.py --device cuda

The models: Mahdavi's (H = 20, n = 32, batch 256, 100 labels), with a shared context and with own contexts; Madden's
decoder (300 stories); GPTs of the ladder of capacity. A step is a CUDA graph in all
cases. Stacks are measured in turn, several times, and the median is printed. On a CPU there are no kernels, and all
rows measure the same. With --each, GPTs and decoders are also measured with one of PyTorch's operations at a time and
kernels for the others, which shows what each kernel is worth. With --no-madden the decoder, whose products take
longest, is left out. An H200 needs about two minutes, most of them for compiling.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from types import SimpleNamespace
from typing import Any, TypeAlias
from unittest.mock import patch

import torch
from devices import usable
from torch.nn import functional

from byheart.lab import fused
from byheart.lab.member import Member
from byheart.lab.models import parts
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


PLAIN: dict[str, Callable[..., Any]] = {
    "normed": lambda rows, epsilon: functional.layer_norm(rows, rows.shape[-1:], eps=epsilon),
    "can_mix": lambda length, head_dim: False,
    "looked_up": parts.looked_up,
    "multiplied": lambda rows, W, shift: torch.baddbmm(shift, rows, W.mT),
}
"""PyTorch's operation for each kernel of GPTs and decoders; without ``can_mix`` there is no kernel for attention."""
Ways: TypeAlias = Callable[[], Any]
"""Function that returns the kernels to use, or None."""


def all_but(name: str) -> Ways:
    """Return kernels for all operations but the one named."""
    kernels = fused._operations()
    return (lambda: None) if kernels is None else lambda: SimpleNamespace(**{**vars(kernels), name: PLAIN[name]})


def stack_of(members: list[Member], device: torch.device, kernels: Ways) -> Stack:
    """Return a warmed-up stack whose step is recorded with these kernels."""
    with patch.object(fused, "_operations", kernels):
        stack = Stack(members, members[0].architecture, device, torch.float32, graph=True)
        stack.advance(WARM_UP_STEPS)
    return stack


def rate(stack: Stack, seconds: float, device: torch.device, kernels: Ways) -> float:
    """Return the model-steps per second of a stack. Its graph is recorded already; on a CPU, ``kernels`` are used."""

    def timed(steps: int) -> float:
        start = time.perf_counter()
        stack.advance(steps)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - start

    with patch.object(fused, "_operations", kernels):
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
    add("--each", action="store_true", help="also measure with one of PyTorch's operations at a time")
    add("--no-madden", action="store_true", help="leave Madden's decoders out")
    add("--tiny", action="store_true", help="two tiny models per case for a moment; rates mean nothing")
    options = parser.parse_args()
    seconds, repeats = (0.01, 1) if options.tiny else (options.seconds, options.repeats)
    device = torch.device(options.device)
    torch.set_num_threads(1)
    ways: dict[str, Ways] = {"nothing": fused._operations, "all": lambda: None}
    each = {name: all_but(name) for name in PLAIN} if options.each else {}
    print(f"{'models':<24}  at once  PyTorch does  model-steps/s  ratio of the kernels")
    for name, (members_of, models) in CASES.items():
        if options.no_madden and name.startswith("Madden"):
            continue
        members = members_of(2 if options.tiny else models, tiny=options.tiny)
        own = ways if name.startswith("Mahdavi") else ways | each
        stacks = {way: stack_of(members, device, kernels) for way, kernels in own.items()}
        rates: dict[str, list[float]] = {way: [] for way in own}
        for _ in range(repeats):
            for way, stack in stacks.items():
                rates[way].append(rate(stack, seconds, device, own[way]))
        best = median(rates["nothing"])
        for way in own:
            here = median(rates[way])
            print(f"{name:<24}  {len(members):>7}  {way:<12}  {here:>13,.0f}  {best / here:>5.2f}", flush=True)


if __name__ == "__main__":
    main()
