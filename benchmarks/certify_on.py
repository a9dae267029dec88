"""Certify a network on the random task that it was compiled from, on any device, by asking every question.

    byheart task random --examples 1000000 --length 8 --vocab 256 --labels 256 --seed 0 -o t.npz
    byheart compile --task t.npz --window 8 --layout experts -o net
    python benchmarks/certify_on.py net --examples 1000000 --device cuda

The task is drawn again from its seed, so only the folder has to be copied. Runs from the source tree with torch, numpy
and safetensors alone (stock models: transformers too), and gives the verdict of `byheart certify --device`. Exits with
1 if the network is not certified.
"""

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from devices import usable

from byheart.certificates import judge
from byheart.networks import Network, load
from byheart.tasks import NextToken, random_next_token
from byheart.tasks.contexts import Contexts

LENGTH, VOCAB, LABELS = 8, 256, 256


def tiny_network(task: NextToken) -> Network:
    """Compile the task into a stock Llama, save it, and load it."""
    from byheart.compiler import CompilerSettings, compile

    with TemporaryDirectory() as folder:
        compile(task, window=LENGTH, settings=CompilerSettings(layout="uniform")).save(Path(folder) / "net")
        return load(Path(folder) / "net")


def contexts_of(task: NextToken) -> Contexts:
    """Return the task's questions as `byheart.tasks.contexts` makes them, but without compiled code."""
    tokens = np.ascontiguousarray(task.inputs, np.uint8)
    assert len(np.unique(tokens.view(np.uint64))) == len(tokens), "all questions must differ"
    ends = np.arange(len(tokens) + 1, dtype=np.int64) * LENGTH
    labels, again = task.labels.astype(np.uint8), np.empty((2, 0), np.int32)
    places, prompts = (ends[1:] - 1).astype(np.int32), (LENGTH,) * len(tokens)
    return Contexts(tokens.ravel(), ends, places, labels, again, LENGTH, VOCAB, LABELS, prompts, end=None)


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="folder of a network, written by byheart compile --task")
    parser.add_argument("--examples", type=int, help="N of the task that the network was compiled from")
    parser.add_argument("--device", type=usable, default="cpu", help="cpu, cuda, cuda:1, …")
    parser.add_argument("--tiny", action="store_true", help="compile a small network first, to see that it runs")
    given = parser.parse_args()
    if given.tiny:
        given.examples = 100
    elif given.folder is None or given.examples is None:
        parser.error("expected a folder and --examples, or --tiny")
    return given


def main() -> int:
    """Certify the network and print the counts."""
    given = options()
    rng = np.random.default_rng(0)
    task = random_next_token(examples=given.examples, length=LENGTH, vocab=VOCAB, labels=LABELS, rng=rng)
    contexts = contexts_of(task)
    network = tiny_network(task) if given.tiny else load(given.folder)
    start = time.perf_counter()
    verdict = judge(network, contexts, device=given.device)
    seconds = time.perf_counter() - start
    parameters = sum(tensor.size for _, tensor in network.tensors())
    print(f"{network.title}; {verdict.method}")
    print("       N     right  smallest margin  parameters  bits per parameter  seconds")
    numbers = f"{verdict.checked:>8}  {verdict.right:>8}  {verdict.margin:>15g}  {parameters:>10,}"
    print(f"{numbers}  {8 * given.examples / parameters:>18.2f}  {seconds:>7.1f}")
    return 0 if verdict.certified else 1


if __name__ == "__main__":
    sys.exit(main())
