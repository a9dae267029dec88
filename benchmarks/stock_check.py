"""Check a stock Llama on the random task that it was compiled from, on any device, in Hugging Face's own code.

    byheart task random --examples 1000000 --length 8 --vocab 256 --labels 256 --seed 0 -o t.npz
    byheart compile --task t.npz --window 8 --layout uniform -o llama
    python benchmarks/stock_check.py llama --examples 1000000 --device cuda

The task is drawn anew from its seed, so that only the folder has to travel. Exit 1 if an answer is wrong. Needs the
extra "hf".
"""

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from byheart.errors import BadInput
from byheart.lab.devices import device_called
from byheart.networks import load
from byheart.tasks import NextToken, random_next_token


def tiny_llama(task: NextToken, folder: Path) -> None:
    """Compile the task into a stock Llama."""
    from byheart.constructions.reciting import Settings, compile

    compile(task, window=8, settings=Settings(layout="uniform")).save(folder)


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="of a network that byheart compile --layout uniform wrote")
    parser.add_argument("--examples", type=int, help="N of the task that it was compiled from")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, …")
    parser.add_argument("--batch", type=int, default=16384, help="questions at once")
    parser.add_argument("--tiny", action="store_true", help="a small network of its own, to see that it runs")
    given = parser.parse_args()
    if given.tiny:
        given.examples = 100
    elif given.folder is None or given.examples is None:
        parser.error("expected a folder and --examples, or --tiny")
    try:
        device_called(given.device)
    except BadInput as refusal:
        parser.error(str(refusal))
    return given


@torch.inference_mode()
def main() -> int:
    """Ask every question."""
    given = options()
    rng = np.random.default_rng(0)
    task = random_next_token(examples=given.examples, length=8, vocab=256, labels=256, rng=rng)
    with TemporaryDirectory() as temporary:
        if given.tiny:
            given.folder = Path(temporary) / "llama"
            tiny_llama(task, given.folder)
        model = load(given.folder).model.to(given.device)
    start = time.perf_counter()
    wrong, least = 0, float("inf")
    for inputs, labels in zip(
        torch.tensor(task.inputs).split(given.batch), torch.tensor(task.labels).split(given.batch), strict=True
    ):
        two = model(inputs.to(given.device), logits_to_keep=1).logits[:, 0].topk(2, dim=1)
        wrong += int((two.indices[:, 0].cpu() != labels).sum())
        least = min(least, float((two.values[:, 0] - two.values[:, 1]).min()))
    seconds = time.perf_counter() - start
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{type(model).__name__} on {given.device}, every question asked")
    print("      N  wrong  smallest margin  parameters  bits per parameter  seconds")
    numbers = f"{given.examples:>7}  {wrong:>5}  {least:>15g}  {parameters:>10,}"
    print(f"{numbers}  {8 * given.examples / parameters:>18.2f}  {seconds:>7.1f}")
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
