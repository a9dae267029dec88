"""Do logits depend on the batch, the order, the threads or the device? Digests of all logits, which must agree.

    python benchmarks/same_bits.py FOLDER --task t.npz [--device cuda]

Runs from the source tree with torch, numpy and safetensors alone. Exit 1 if two digests differ.
"""

import argparse
import hashlib
import sys
import time
from pathlib import Path

import numpy as np
import torch

from byheart.networks.transformer import store
from byheart.networks.transformer.module import Transformer
from byheart.tasks import load

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


def main() -> int:
    """Print one line for every way of asking."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--task", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    loaded, task = store.load(options.folder), load(options.task)
    tokens = torch.tensor(task.inputs)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(tokens)))
    back = torch.argsort(order).numpy()
    found: dict[str, set[str]] = {"all": set(), "sample": set()}
    # TF32 as a user may have set it: it must make no difference.
    torch.backends.cuda.matmul.allow_tf32 = True
    for device in dict.fromkeys(["cpu", options.device]):
        module = loaded.module.to(device)
        for threads in (1, 2) if device == "cpu" else (1,):
            torch.set_num_threads(threads)
            start = time.perf_counter()
            whole = logits(module, tokens, 8192)
            seconds = time.perf_counter() - start
            wrong = int((whole.argmax(1) != task.labels).sum())
            found["all"] |= {digest(whole), digest(logits(module, tokens[order], 512)[back])}
            found["sample"] |= {digest(whole[:SAMPLE]), digest(logits(module, tokens[:SAMPLE], 1))}
            print(
                f"{device}, {threads} thread(s): {wrong} of {len(whole):,} wrong, "
                f"{len(whole) / seconds:,.0f} contexts/s; "
                f"batch 8192 {digest(whole)}, shuffled in 512s the same: {len(found['all']) == 1}, "
                f"one by one the same: {len(found['sample']) == 1}",
                flush=True,
            )
    same = all(len(digests) == 1 for digests in found.values())
    print("all the same bits" if same else "DIFFERENT BITS")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
