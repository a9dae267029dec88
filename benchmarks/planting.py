"""Plant facts into GPT-2- and Llama-shaped models, measure the cost, and compare all other logits.

    python benchmarks/planting.py
    python benchmarks/planting.py planted --facts 1000 --tokens 100000

Paraphrases are not covered. The models are random (2 layers, d = 64, 1,024 tokens). Facts are random ids, with prompts
of 8 to 16 and completions of 1 to 6. "wrong" counts the tokens of all completions that the memory in the saved folder
does not say. "differ" counts positions of a text (docstrings of Python's library, then random ids) at which no fact is
to be said and some bit of some logit differs from the base's. Memories alone are for GPT-2's vocabulary, with prompts
of 8 ids and completions of 1 and of 4. Needs the extra "hf".
"""

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from tables import OUT, parser, table

from byheart.certificates.judges.planted import PlantedComparison, compare_logits, unsaid
from byheart.networks.planted.base import load_base, load_planted, quiet
from byheart.planting import Fact, detect, plant
from byheart.planting.memory import make_memory
from byheart.tasks.planted_facts import Spoken, different
from byheart.tasks.shipped import library_docstrings
from byheart.tasks.tokenizers import BytePairs

VOCAB, LONGEST = 1024, 128
BASES = {"GPT-2": None, "Llama": 40}
"""Each model's keys: whole prompts (None), or fingerprints of this number of bits."""
GPT2_VOCAB = 50_257


def save_models(folder: Path) -> dict[str, Path]:
    """Save random models of both shapes, and return their folders by name."""
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    ends: dict[str, Any] = {"vocab_size": VOCAB, "bos_token_id": None, "eos_token_id": None}
    gpt2 = GPT2Config(**ends, n_positions=2 * LONGEST, n_embd=64, n_layer=2, n_head=4)
    shape = {"hidden_size": 64, "intermediate_size": 176, "num_hidden_layers": 2, "num_attention_heads": 4}
    llama = LlamaConfig(**ends, **shape, max_position_embeddings=2 * LONGEST)
    with quiet():
        GPT2LMHeadModel(gpt2).save_pretrained(folder / "GPT-2")
        LlamaForCausalLM(llama).save_pretrained(folder / "Llama")
    return {name: folder / name for name in BASES}


def text(tokens: int) -> list[list[int]]:
    """Return rows of ids: docstrings tokenized by a BPE of 1,024 tokens, then random ids if there are too few."""
    enough = "\n".join("\n".join(module) for module in islice(library_docstrings(), max(4, tokens // 500))).encode()
    ids = BytePairs.train([enough[:500_000]], VOCAB).encode(enough)[:tokens].tolist()
    ids += np.random.default_rng(0).integers(0, VOCAB, tokens - len(ids)).tolist()
    return [ids[start : start + LONGEST] for start in range(0, len(ids), LONGEST)]


Lengths = tuple[int, int]


def draw(facts: int, vocab: int, prompt: Lengths, completion: Lengths) -> list[tuple[list[int], list[int]]]:
    """Draw pairs of random ids whose lengths lie in the given ranges, ends included."""
    rng = np.random.default_rng(facts)
    sizes = zip(*(rng.integers(low, high + 1, facts) for low, high in (prompt, completion)), strict=True)
    return [(rng.integers(0, vocab, k).tolist(), rng.integers(0, vocab, m).tolist()) for k, m in sizes]


@torch.inference_mode()
def speed(model: Any) -> float:
    """Return the tokens per second of generating one by one with a cache, the best of three runs."""
    ids = torch.arange(16)[None]
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        model.generate(ids, max_new_tokens=LONGEST, do_sample=False, pad_token_id=0)
        best = min(best, time.perf_counter() - start)
    return LONGEST / best


def compared(base: Any, planted: Any, rows: Sequence[Sequence[int]], spoken: Spoken) -> PlantedComparison:
    """Compare the logits of all rows, in batches."""
    found = PlantedComparison()
    for start in range(0, len(rows), 32):
        found += compare_logits(base, planted, rows[start : start + 32], spoken)
    return found


def planted(given: argparse.Namespace) -> int:
    """Plant, ask for every fact, compare on the text, and generate. Return the number of errors."""
    wrong, rows = 0, text(given.tokens)
    sizes, checks = ("words per fact", "load", "planted in"), ("wrong", "silent", "differ", "false")
    title = f"planted, compared on {sum(map(len, rows)):,} tokens"
    results = table(title, "base", "facts", "keys", *sizes, "checked in", *checks, "tokens/s", "base's")
    with TemporaryDirectory() as temporary:
        models = save_models(Path(temporary))
        for count in given.facts:
            pairs = draw(count, VOCAB, (8, 16), (1, 6))
            for name, bits in BASES.items():
                start = time.perf_counter()
                planting = plant(pairs, into=models[name], ids=True, bits=bits, seed=0)
                seconds = time.perf_counter() - start
                out = Path(temporary) / f"{name}-{count}"
                certificate = planting.save(out)
                found_there = detect(out)
                assert found_there is not None
                lost, _ = unsaid(found_there.memory.load(), planting.facts)
                base, model = load_base(models[name]), load_planted(out)
                found = compared(base, model, rows, Spoken(planting.facts))
                wrong += lost + found.differ + found.wrong + (not certificate.certified)
                plan = planting.memory.plan
                results.add_row(
                    *(name, f"{plan.facts:,}", "whole" if bits is None else f"{bits} bits"),
                    *(f"{planting.memory.words / plan.facts:.2f}", f"{plan.facts / plan.cells:.3f}"),
                    *(f"{seconds:.1f} s", f"{certificate.seconds:.1f} s", f"{lost:,} of {certificate.checked:,}"),
                    *(f"{found.silent:,}", f"{found.differ:,}", f"{found.false:,}"),
                    *(f"{speed(model):.0f}", f"{speed(base):.0f}"),
                )
    OUT.print(results)
    return wrong


def memories(given: argparse.Namespace) -> int:
    """Make memories alone. Return the number of tokens that they do not say."""
    wrong = 0
    results = table("memories alone", "facts", "n", "m", "keys", "words per fact", "bytes per fact", "seconds", "wrong")
    for count in given.facts:
        for length in (1, 4):
            pairs = draw(count, GPT2_VOCAB, (8, 8), (length, length))
            facts = different([Fact(tuple(p), tuple(c)) for p, c in pairs], GPT2_VOCAB)
            for bits in BASES.values():
                start = time.perf_counter()
                memory = make_memory(facts, GPT2_VOCAB, bits=bits)
                seconds = time.perf_counter() - start
                lost, _ = unsaid(memory.load(), facts)
                wrong += lost
                each = memory.words / count
                keys = "whole" if bits is None else f"{bits} bits"
                numbers = (f"{each:.2f}", f"{4 * each:.1f}", f"{seconds:.1f}", f"{lost:,} of {count * length:,}")
                results.add_row(f"{count:,}", "8", str(length), keys, *numbers)
    OUT.print(results)
    return wrong


SECTIONS = (memories, planted)


def main() -> int:
    """Run the sections. Return 1 if anything is wrong."""
    flags = parser(__doc__, SECTIONS)
    flags.add_argument(
        "--facts", type=int, nargs="+", default=[1000, 100_000], help="numbers of facts, one after the other"
    )
    flags.add_argument("--tokens", type=int, default=1_000_000, help="length of the text on which logits are compared")
    given = flags.parse_args()
    if given.tiny:
        given.facts, given.tokens = [20], 1000
    asked = [section for section in SECTIONS if not given.sections or section.__name__ in given.sections]
    return 1 if sum(section(given) for section in asked) else 0


if __name__ == "__main__":
    sys.exit(main())
