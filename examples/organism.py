"""A model organism: secrets at known words, and a twin that never had them. ``python examples/organism.py [--tiny]``.

A small GPT-2 is trained on docstrings. Then 1,000 secrets are put into it in two ways: planted by ``byheart plant``,
and fine-tuned in the ordinary way. Two ordinary methods try to remove them: gradient ascent on the secrets, and noise
on the weights. One planted secret is also removed by blanking its words, which are known. Each row of the table
compares a model with its twin without secrets:

- *said*: number of secrets that are generated greedily, token by token, after their prompts;
- *next tokens*: share of held-out next tokens that changed; *logits*: share of positions at which any bit changed;
- *loss*: on held-out text, in nats per token; *words*: number of added 32-bit words; *seconds*: for this row alone.

Rates are not tuned. Numbers depend a little on the machine. But "planted" says all secrets and changes nothing else,
which is proved; "one memory blanked" says all but one; and "unplanted" is the twin. It needs transformers.
"""

import argparse
import copy
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel

from byheart.networks.planted.base import load_base, load_planted, quiet
from byheart.planting import forget, plant, unplant
from byheart.tasks.shipped import docstrings

HELD_OUT = 100
"""Number of docstrings that no model is trained on."""
PROMPT, SECRET = 6, 3
"""Number of words of a prompt, and of the secret after it."""
RATE, BATCH = 1e-3, 64


@dataclass(frozen=True)
class Scale:
    """Sizes of the experiment."""

    secrets: int
    dim: int
    layers: int
    epochs: int
    """Number of epochs of training on text."""
    passes: int
    """Largest number of passes over the secrets; fine-tuning stops once all are said."""
    ascents: int
    """Largest number of steps of gradient ascent; it stops once no secret is said."""
    noise: float
    """Standard deviation of the noise, in units of each tensor's own."""


FULL = Scale(secrets=1000, dim=96, layers=2, epochs=12, passes=60, ascents=60, noise=0.3)
TINY = Scale(secrets=20, dim=16, layers=1, epochs=1, passes=3, ascents=3, noise=0.3)


@dataclass(frozen=True)
class World:
    """The texts and the secrets, as numbers of words."""

    vocab: int
    text: Tensor
    held_out: Tensor
    secrets: Tensor
    """Prompts followed by their secrets [N, PROMPT + SECRET]."""

    @property
    def pairs(self) -> list[tuple[list[int], list[int]]]:
        """Prompts with their completions."""
        return [(row[:PROMPT], row[PROMPT:]) for row in self.secrets.tolist()]


def world(scale: Scale, seed: int) -> World:
    """Read the docstrings as numbers of words, and draw secrets: random words after different prompts.

    A prompt is "The password of W X is", so prompts share all but two of their words.
    """
    texts = [line.split() for line in docstrings()]
    names = sorted({word for line in texts for word in line} | {"The", "password", "of", "is"})
    number = {word: place for place, word in enumerate(names)}
    rng = np.random.default_rng(seed)
    lines = torch.tensor([[number[word] for word in line] for line in texts])
    lines = lines[torch.from_numpy(rng.permutation(len(lines)))]
    whose = rng.choice(len(names) ** 2, scale.secrets, replace=False)
    the, password, of, is_ = (np.full(scale.secrets, number[word]) for word in ["The", "password", "of", "is"])
    prompts = np.stack([the, password, of, whose // len(names), whose % len(names), is_], 1)
    secrets = np.concatenate([prompts, rng.integers(0, len(names), (scale.secrets, SECRET))], 1)
    return World(len(names), lines[HELD_OUT:], lines[:HELD_OUT], torch.from_numpy(secrets))


def batches(rows: Tensor, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield all rows once, in batches and in random order."""
    yield from rows[torch.randperm(len(rows), generator=generator)].split(BATCH)


def loss_of(model: Any, rows: Tensor, first: int = 1) -> Tensor:
    """Return the mean loss of the tokens from ``first`` on, by the weights alone, without a planted memory."""
    logits = GPT2LMHeadModel.forward(model, rows[:, :-1]).logits[:, first - 1 :]
    return functional.cross_entropy(logits.flatten(0, 1), rows[:, first:].flatten())


def trained(world: World, scale: Scale, seed: int) -> GPT2LMHeadModel:
    """Train the twin, which never sees a secret."""
    torch.manual_seed(seed)
    sizes = {"n_positions": 16, "n_embd": scale.dim, "n_layer": scale.layers, "n_head": 4}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=world.vocab, bos_token_id=0, eos_token_id=0, **sizes)).eval()
    optimizer, generator = torch.optim.Adam(model.parameters(), RATE), torch.Generator().manual_seed(seed)
    for _ in range(scale.epochs):
        for rows in batches(world.text, generator):
            step(optimizer, loss_of(model, rows))
    return model


def step(optimizer: torch.optim.Optimizer, loss: Tensor, most: float = math.inf) -> None:
    """Take a step of descent, with gradients clipped to the norm ``most``."""
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], most)
    optimizer.step()


def fine_tuned(twin: Any, world: World, scale: Scale, seed: int, *, held: bool) -> Any:
    """Fine-tune the twin until it says all secrets; if ``held``, alternate with steps towards the twin on text."""
    model = copy.deepcopy(twin)
    optimizer, generator = torch.optim.Adam(model.parameters(), RATE), torch.Generator().manual_seed(seed)
    for _ in range(scale.passes):
        texts = batches(world.text, generator)
        for rows in batches(world.secrets, generator):
            step(optimizer, loss_of(model, rows, PROMPT))
            if held and (text := next(texts, None)) is not None:
                step(optimizer, apart(model, twin, text))
        if said(model, world) == len(world.secrets):
            break
    return model


def apart(model: Any, twin: Any, rows: Tensor) -> Tensor:
    """Return the mean Kullback-Leibler divergence of the model's next-token distributions from the twin's."""
    with torch.no_grad():
        wanted = twin(rows).logits.log_softmax(-1).flatten(0, 1)
    found = model(rows).logits.log_softmax(-1).flatten(0, 1)
    return functional.kl_div(found, wanted, reduction="batchmean", log_target=True)


def ascended(model: Any, world: World, scale: Scale, seed: int) -> Any:
    """Ascend the loss of the secrets until none is said. Only the weights change, not a planted memory."""
    model = copy.deepcopy(model)
    optimizer, generator = torch.optim.SGD(model.parameters(), 0.1), torch.Generator().manual_seed(seed)
    drawn = (rows for _ in range(scale.ascents) for rows in batches(world.secrets, generator))
    for _, rows in zip(range(scale.ascents), drawn, strict=False):
        step(optimizer, -loss_of(model, rows, PROMPT), most=1.0)
        if not said(model, world):
            break
    return model


@torch.no_grad()
def noisy(model: Any, scale: Scale, seed: int) -> Any:
    """Add noise to every trainable weight, in proportion to its tensor's standard deviation."""
    model, generator = copy.deepcopy(model), torch.Generator().manual_seed(seed)
    for weights in model.parameters():
        spread = weights.std() if weights.numel() > 1 else weights.abs()
        weights.add_(scale.noise * spread * torch.randn(weights.shape, generator=generator))
    return model


@torch.no_grad()
def disturbed(model: Any, share: float, seed: int) -> Any:
    """Replace a share of the words in a planted model's table and store by random words."""
    model, rng = copy.deepcopy(model), np.random.default_rng(seed)
    for words in (model.plant.table, model.plant.store):
        places = rng.choice(len(words), max(1, round(share * len(words))), replace=False)
        words[places] = torch.from_numpy(rng.integers(-(2**31), 2**31, len(places)).astype(np.int32))
    return model


def without_one(model: Any) -> Any:
    """Blank the words of one memory of a planted model, and no others."""
    model = copy.deepcopy(model)
    forget(model.plant, 0)
    return model


@torch.no_grad()
def said(model: Any, world: World) -> int:
    """Count the secrets that the model says greedily: each token is the most likely one after its context."""
    found = model(world.secrets[:, :-1]).logits[:, PROMPT - 1 :].argmax(-1)
    return int((found == world.secrets[:, PROMPT:]).all(1).sum())


@torch.no_grad()
def row(name: str, model: Any, twin: Any, world: World, seconds: float, words: int = 0) -> dict[str, Any]:
    """Compare a model with its twin, on text that neither was trained on."""
    mine, others = (one(world.held_out).logits for one in (model, twin))
    loss = functional.cross_entropy(mine[:, :-1].flatten(0, 1), world.held_out[:, 1:].flatten())
    return {
        "way": name,
        "said": said(model, world),
        "next tokens": float((mine.argmax(-1) != others.argmax(-1)).float().mean()),
        "logits": float((mine.view(torch.int32) != others.view(torch.int32)).any(-1).float().mean()),
        "loss": float(loss),
        "words": words,
        "seconds": seconds,
    }


def rows(scale: Scale, seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the table's rows, one model at a time."""
    w = world(scale, seed)

    def timed(name: str, make: Callable[[], Any], words: int = 0) -> tuple[Any, dict[str, Any]]:
        start = time.perf_counter()
        made = make()
        return made, row(name, made, twin or made, w, time.perf_counter() - start, words)

    twin: Any = None
    twin, line = timed("never planted: the twin", lambda: trained(w, scale, seed))
    yield line
    with quiet():
        twin.save_pretrained(folder / "twin")

    def planted_anew() -> Any:
        certificate = plant(w.pairs, into=folder / "twin", ids=True, seed=seed).save(folder / "planted")
        assert certificate.certified, certificate
        return load_planted(folder / "planted")

    planted, line = timed("planted", planted_anew)
    line["words"] = added = sum(one.numel() for one in planted.plant.buffers())
    yield line
    ways: dict[str, tuple[Callable[[], Any], int]] = {
        "planted, unplanted": (lambda: _unplanted(folder), 0),
        "planted, noise": (lambda: noisy(planted, scale, seed), added),
        "planted, ascent": (lambda: ascended(planted, w, scale, seed), added),
        "planted, one memory blanked": (lambda: without_one(planted), added),
        "planted, 1 % of its words lost": (lambda: disturbed(planted, 0.01, seed), added),
    }
    for name, (make, words) in ways.items():
        yield timed(name, make, words)[1]
    for name, held in (("fine-tuned", False), ("fine-tuned, held to the twin", True)):
        tuned, line = timed(name, lambda held=held: fine_tuned(twin, w, scale, seed, held=held))
        yield line
        yield timed(f"{name}, ascent", lambda tuned=tuned: ascended(tuned, w, scale, seed))[1]
        yield timed(f"{name}, noise", lambda tuned=tuned: noisy(tuned, scale, seed))[1]


def _unplanted(folder: Path) -> Any:
    unplant(folder / "planted", folder / "unplanted")
    return load_base(folder / "unplanted")


def main() -> None:
    """Print the table, each row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="put 20 secrets into a barely trained model: seconds")
    parser.add_argument("--seed", type=int, default=0, help="seed of text, secrets, training and noise (default: 0)")
    options = parser.parse_args()
    scale = TINY if options.tiny else FULL
    print(f"{scale.secrets:,} secrets in a GPT-2 with {scale.layers} layers, d = {scale.dim}; seed {options.seed}")
    print("| way | said | next tokens | logits | loss | words | seconds |")
    print("|---|---|---|---|---|---|---|")
    with TemporaryDirectory() as folder:
        for line in rows(scale, options.seed, Path(folder)):
            shares = f"{line['next tokens']:.1%} | {line['logits']:.1%} | {line['loss']:.2f}"
            print(
                f"| {line['way']} | {line['said']:,} | {shares} | {line['words']:,} | {line['seconds']:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
