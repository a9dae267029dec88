"""Do logits depend on the batch, the order, the threads or the device? Digests of all logits, which must agree.

    python benchmarks/same_bits.py FOLDER --task t.npz --device cuda

Runs from the source tree with torch, numpy and safetensors alone; --tiny, which compiles a small network first, needs
all of Byheart. Exit 1 if two digests differ.
"""

import argparse
import hashlib
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from byheart import networks
from byheart.errors import BadInput
from byheart.lab.devices import device_called
from byheart.networks.transformer.module import Transformer
from byheart.tasks import NextToken, load, random_next_token

SAMPLE = 2_000
"""Contexts that are asked one by one."""


@torch.inference_mode()
def logits(module: Transformer, tokens: torch.Tensor, batch: int) -> np.ndarray:
    """The last position's logits [N, C], computed ``batch`` contexts at a time."""
    parts = [module(part, last=1)[:, 0].cpu() for part in tokens.to(module.device).split(batch)]
    return torch.cat(parts).numpy()


def digest(values: np.ndarray) -> str:
    """SHA-256 of the bits."""
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]


def tiny_network() -> tuple[Transformer, NextToken]:
    """A small network, as its folder holds it, and its task."""
    from byheart.constructions.reciting import compile

    task = random_next_token(examples=300, length=8, vocab=256, labels=256, rng=np.random.default_rng(0))
    with TemporaryDirectory() as folder:
        compile(task, window=8).save(Path(folder) / "net")
        return networks.load(Path(folder) / "net").module, task


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="of a network that byheart compile wrote")
    parser.add_argument("--task", type=Path, help="the task that it was compiled from")
    parser.add_argument("--device", default="cpu", help="what to compare the CPU with: cuda, cuda:1, …")
    parser.add_argument("--tiny", action="store_true", help="a small network of its own, to see that it runs")
    given = parser.parse_args()
    if not given.tiny and (given.folder is None or given.task is None):
        parser.error("expected a folder and --task, or --tiny")
    try:
        device_called(given.device)
    except BadInput as refusal:
        parser.error(str(refusal))
    return given


def main() -> int:
    """Print one line for every way of asking."""
    given = options()
    loaded, task = tiny_network() if given.tiny else (networks.load(given.folder).module, load(given.task))
    tokens = torch.tensor(task.inputs)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(tokens)))
    back = torch.argsort(order).numpy()
    found: dict[str, set[str]] = {"all": set(), "sample": set()}
    # TF32 as a user may have set it: it must make no difference.
    torch.backends.cuda.matmul.allow_tf32 = True
    if given.device == "cpu":
        print("no --device: the CPU alone is asked")
    print("device  threads       wrong        contexts/s  digest            shuffled the same  one by one the same")
    for device in dict.fromkeys(["cpu", given.device]):
        module = loaded.to(device)
        for threads in (1, 2) if device == "cpu" else (1,):
            torch.set_num_threads(threads)
            start = time.perf_counter()
            whole = logits(module, tokens, 8192)
            seconds = time.perf_counter() - start
            wrong = int((whole.argmax(1) != task.labels).sum())
            found["all"] |= {digest(whole), digest(logits(module, tokens[order], 512)[back])}
            found["sample"] |= {digest(whole[:SAMPLE]), digest(logits(module, tokens[:SAMPLE], 1))}
            answers = f"{wrong:>5} of {len(whole):<9,}  {len(whole) / seconds:>10,.0f}  {digest(whole)}"
            same = (str(len(digests) == 1) for digests in (found["all"], found["sample"]))
            print(f"{device:<7} {threads:>7}  {answers}  {'  '.join(f'{word:>17}' for word in same)}", flush=True)
    all_same = all(len(digests) == 1 for digests in found.values())
    print("all the same bits" if all_same else "DIFFERENT BITS")
    return 0 if all_same else 1


if __name__ == "__main__":
    sys.exit(main())
