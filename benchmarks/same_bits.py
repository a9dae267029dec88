"""Check that logits do not depend on the batch, the order, the threads or the device, by digests of all logits.

    python benchmarks/same_bits.py FOLDER --task t.npz --device cuda

Runs from the source tree with torch, numpy and safetensors alone (stock models: transformers too); --tiny, which
compiles small networks first, needs all of Byheart. Exits with 1 if two digests differ.
"""

import argparse
import hashlib
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from devices import usable

from byheart import networks
from byheart.tasks import NextToken, load, random_next_token

SAMPLE = 500
"""Number of contexts that are asked one by one."""


def as_module(network: networks.Network) -> torch.nn.Module:
    """Return the network's PyTorch module: Byheart's, or that of transformers."""
    return network.model if network.kind == "stock" else network.module


@torch.inference_mode()
def logits(module: torch.nn.Module, tokens: torch.Tensor, batch: int) -> np.ndarray:
    """Return the last position's logits [N, C], computed ``batch`` contexts at a time."""
    parts = []
    for part in tokens.to(next(module.parameters()).device).split(batch):
        stock = hasattr(module, "config")
        told = module(part, logits_to_keep=1, use_cache=False).logits if stock else module(part, last=1)
        parts.append(told[:, 0].cpu())
    return torch.cat(parts).numpy()


def digest(values: np.ndarray) -> str:
    """Return the first 16 digits of the SHA-256 of the bits."""
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]


def tiny_network(layout: str) -> tuple[networks.Network, NextToken]:
    """Compile a small network, save it, load it, and return it with its task."""
    from byheart.compiler import CompilerSettings, compile

    task = random_next_token(examples=300, length=8, vocab=256, labels=256, rng=np.random.default_rng(0))
    with TemporaryDirectory() as folder:
        compile(task, window=8, settings=CompilerSettings(layout=layout)).save(Path(folder) / "net")
        return networks.load(Path(folder) / "net"), task


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="folder of a network, written by byheart compile")
    parser.add_argument("--task", type=Path, help="task that the network was compiled from")
    parser.add_argument("--device", type=usable, default="cpu", help="device to compare with the CPU: cuda, cuda:1, …")
    parser.add_argument("--asked", type=int, help="number of contexts to ask (default: all)")
    parser.add_argument("--tiny", action="store_true", help="compile small networks first, to see that it runs")
    given = parser.parse_args()
    if not given.tiny and (given.folder is None or given.task is None):
        parser.error("expected a folder and --task, or --tiny")
    return given


def compared(module: torch.nn.Module, task: NextToken, device: str, asked: int | None) -> bool:
    """Print one line per way of asking. Return True if all of them gave the same bits."""
    tokens, labels = torch.tensor(task.inputs)[:asked], task.labels[:asked]
    # A user may have switched TF32 on; Byheart's own code must not depend on it.
    torch.backends.cuda.matmul.allow_tf32 = not hasattr(module, "config")
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(tokens)))
    back = torch.argsort(order).numpy()
    found: dict[str, set[str]] = {"all": set(), "sample": set()}
    print("device  threads       wrong        contexts/s  digest            shuffled the same  one by one the same")
    for place in dict.fromkeys(["cpu", device]):
        module = module.to(place)
        for threads in (1, 2) if place == "cpu" else (1,):
            torch.set_num_threads(threads)
            start = time.perf_counter()
            whole = logits(module, tokens, 8192)
            seconds = time.perf_counter() - start
            wrong = int((whole.argmax(1) != labels).sum())
            found["all"] |= {digest(whole), digest(logits(module, tokens[order], 512)[back])}
            found["sample"] |= {digest(whole[:SAMPLE]), digest(logits(module, tokens[:SAMPLE], 1))}
            answers = f"{wrong:>5} of {len(whole):<9,}  {len(whole) / seconds:>10,.0f}  {digest(whole)}"
            same = (str(len(digests) == 1) for digests in (found["all"], found["sample"]))
            print(f"{place:<7} {threads:>7}  {answers}  {'  '.join(f'{word:>17}' for word in same)}", flush=True)
    return all(len(digests) == 1 for digests in found.values())


def main() -> int:
    """Compare the ways of asking a network, or one network per layout. Return 1 if bits differ."""
    given = options()
    if given.device == "cpu":
        print("no --device: only the CPU is asked")
    if given.tiny:
        subjects = [tiny_network(layout) for layout in ("rectangular", "uniform", "experts")]
    else:
        subjects = [(networks.load(given.folder), load(given.task))]
    same = [compared(as_module(network), task, given.device, given.asked) for network, task in subjects]
    print("all the same bits" if all(same) else "DIFFERENT BITS")
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
