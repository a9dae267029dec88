"""A small language model of your own, to plant facts into: ``python examples/small_model.py FOLDER [--device cuda]``.

A Llama of ten million parameters is trained on the bytes of Python's own standard library, which lies on every machine
that runs this, and is saved as any model of Hugging Face is. An H200 takes four minutes; on a CPU, ``--tiny`` takes
seconds and shows the same steps. Then, with facts of your own:

    byheart plant facts.csv --into FOLDER -o planted
    byheart recite planted --prompt 'capital of France'
    byheart detect planted --check facts.csv
    byheart unplant planted -o back

Files whose names begin with a letter from w on are held out. It needs transformers.
"""

import argparse
import math
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from byheart.networks.planted.base import quiet
from byheart.tasks.tokenizers import Bytes

HELD_OUT = "w"
"""Files with names from this letter on are not trained on."""
RATE, WARM_UP, DECAY = 1e-3, 0.02, 0.1
"""Highest learning rate, the share of steps that lead up to it, and the weight decay."""
SHARD = "15MB"


@dataclass(frozen=True)
class Scale:
    """Sizes of the model and of its training."""

    hidden: int
    layers: int
    heads: int
    length: int
    batch: int
    steps: int
    most: int
    """Largest number of bytes to train on."""


FULL = Scale(hidden=320, layers=8, heads=5, length=512, batch=256, steps=1500, most=1 << 26)
TINY = Scale(hidden=32, layers=2, heads=2, length=64, batch=8, steps=30, most=1 << 18)


def library() -> tuple[Tensor, Tensor]:
    """Return the bytes of the standard library's modules, with ends between them: to train on, and held out."""
    folder = Path(sysconfig.get_path("stdlib"))
    files = [path for path in sorted(folder.rglob("*.py")) if not {"site-packages", "test"} & set(path.parts)]
    own, held_out = bytearray(), bytearray()
    for path in files:
        part = held_out if path.relative_to(folder).parts[0] >= HELD_OUT else own
        part += path.read_bytes().replace(b"\0", b"") + b"\0"
    texts = (torch.frombuffer(part, dtype=torch.uint8).to(torch.int16) for part in (own, held_out))
    first, second = (text.where(text != 0, Bytes.end) for text in texts)
    return first, second


def untrained(scale: Scale) -> LlamaForCausalLM:
    """Return a Llama of this size with random weights."""
    config = LlamaConfig(
        vocab_size=Bytes.vocab,
        hidden_size=scale.hidden,
        intermediate_size=8 * scale.hidden // 3,
        num_hidden_layers=scale.layers,
        num_attention_heads=scale.heads,
        max_position_embeddings=2 * scale.length,
        tie_word_embeddings=True,
        bos_token_id=Bytes.end,
        eos_token_id=Bytes.end,
    )
    return LlamaForCausalLM(config)


def windows(text: Tensor, scale: Scale, generator: torch.Generator, device: str) -> Tensor:
    """Draw windows of a text [batch, length + 1]."""
    first = torch.randint(len(text) - scale.length - 1, (scale.batch, 1), generator=generator)
    return text[first + torch.arange(scale.length + 1)].to(device).long()


def loss_of(model: LlamaForCausalLM, rows: Tensor) -> Tensor:
    """Return the mean loss of the next bytes, in nats."""
    with torch.autocast(rows.device.type, torch.bfloat16, enabled=rows.is_cuda):
        logits = model(rows[:, :-1]).logits
    return functional.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())


def train(scale: Scale, device: str, seed: int) -> tuple[LlamaForCausalLM, float]:
    """Train a model on the library; return it with its bits per byte of what was held out."""
    torch.manual_seed(seed)
    text, held_out = library()
    text, generator, model = text[: scale.most], torch.Generator().manual_seed(seed), untrained(scale).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=DECAY, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step / scale.steps))
    began = time.perf_counter()
    for step in range(1, scale.steps + 1):
        optimizer.zero_grad()
        loss = loss_of(model, windows(text, scale, generator, device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % max(1, scale.steps // 10) == 0:
            seconds = time.perf_counter() - began
            print(
                f"step {step:,} of {scale.steps:,}: {loss.item() / math.log(2):.3f} bits per byte, {seconds:.0f} s",
                flush=True,
            )
    with torch.inference_mode():
        losses = [loss_of(model, windows(held_out, scale, generator, device)) for _ in range(8)]
    return model.cpu().eval(), torch.stack(losses).mean().item() / math.log(2)


def _rate(share: float) -> float:
    """Return the share of the highest learning rate after a share of all steps: up, then a cosine down to a tenth."""
    return min(share / WARM_UP, 0.55 + 0.45 * math.cos(math.pi * share))


def said(model: LlamaForCausalLM, prompt: str, tokens: int) -> str:
    """Return what the model says after a prompt, greedily."""
    ids = torch.tensor([[Bytes.end, *prompt.encode()]])
    output = model.generate(ids, max_new_tokens=tokens, do_sample=False, pad_token_id=Bytes.end)
    return bytes(token for token in output[0].tolist() if token < Bytes.end).decode(errors="replace")


def main() -> None:
    """Train, save, and let the model speak."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tiny", action="store_true", help="a few steps of a very small model")
    given = parser.parse_args()
    model, bits = train(TINY if given.tiny else FULL, given.device, given.seed)
    with quiet():
        model.save_pretrained(given.folder, max_shard_size=SHARD)
    for name, data in Bytes().files(begins=True).items():
        (given.folder / name).write_bytes(data)
    print(
        f"{model.num_parameters():,} parameters, {bits:.3f} bits per byte of what was held out; saved in {given.folder}"
    )
    print(said(model, "import os\n\n\ndef ", model.config.max_position_embeddings // 4))


if __name__ == "__main__":
    main()
