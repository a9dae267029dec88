"""Check a stock Llama on the random task that it was compiled from, on any device, in Hugging Face's own code.

    byheart task random --examples 1000000 --length 8 --vocab 256 --labels 256 --seed 0 -o t.npz
    byheart compile --task t.npz --window 8 --layout uniform -o llama
    python benchmarks/stock_check.py llama --examples 1000000 --device cuda

The task is drawn anew from its seed, so that only the folder has to travel. Exit 1 if an answer is wrong.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch

from byheart.networks.transformer import stock
from byheart.tasks import random_next_token


@torch.inference_mode()
def main() -> int:
    """Ask every question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--examples", type=int, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=16384)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    task = random_next_token(examples=options.examples, length=8, vocab=256, labels=256, rng=rng)
    model = stock.load(options.folder).model.to(options.device)
    start = time.perf_counter()
    wrong, least = 0, float("inf")
    for inputs, labels in zip(
        torch.tensor(task.inputs).split(options.batch), torch.tensor(task.labels).split(options.batch), strict=True
    ):
        two = model(inputs.to(options.device), logits_to_keep=1).logits[:, 0].topk(2, dim=1)
        wrong += int((two.indices[:, 0].cpu() != labels).sum())
        least = min(least, float((two.values[:, 0] - two.values[:, 1]).min()))
    seconds = time.perf_counter() - start
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(
        f"{type(model).__name__} on {options.device}: {wrong} of {options.examples:,} wrong, "
        f"smallest margin {least:g}, {seconds:.1f} s; "
        f"{parameters:,} parameters, {8 * options.examples / parameters:.2f} bits a parameter"
    )
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
