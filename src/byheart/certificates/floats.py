"""Certificates for float Transformers: every question, asked of the saved weights.

A label is right if its logit is the largest, strictly. Where the weights are float32 (or shorter) everything is done
again in float64: if every step was exact, as it is meant to be, all logits of all questions agree, bit for bit; the
certificate says whether they did (64-bit fingerprints of their bits are compared).
"""

import copy
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from byheart.certificates.certificate import Certificate, versions
from byheart.certificates.controls import Control
from byheart.certificates.verdict import Counterexample, Verdict
from byheart.networks.transformer import stock
from byheart.networks.transformer.evaluate import Answers, answers
from byheart.networks.transformer.module import Transformer
from byheart.networks.transformer.store import fingerprint
from byheart.progress import Report
from byheart.tasks.contexts import Contexts

WORDS = "table.W_out"
"""The tensor that holds what was memorized."""
FEW = 100
"""With fewer questions, a network with other words may be right by chance."""
SAMPLE = 10_000
"""Controls that need windows of their own ask at most this many questions."""


@dataclass(frozen=True, eq=False)
class Checked:
    """What a network answered, and the verdict."""

    verdict: Verdict
    found: Answers


def judge_transformer(module: Transformer, contexts: Contexts, *, report: Report | None = None) -> Checked:
    """Ask every question."""
    start = time.perf_counter()
    found = answers(module, contexts.tokens, contexts.starts, contexts.places, report=report)
    return Checked(_verdict(found.labels, found.margins, contexts.labels, time.perf_counter() - start), found)


def certify_transformer(
    module: Transformer, contexts: Contexts, *, twice: bool = True, report: Report | None = None
) -> Certificate:
    """Check every answer; ``twice``: in float64 as well, where the network itself is shorter."""
    checked = judge_transformer(module, contexts, report=report)
    verdict, method = checked.verdict, f"{module.spec.precision}, exhaustive"
    if twice and module.spec.precision != "float64":
        again = judge_transformer(_doubled(module), contexts, report=report)
        same = np.array_equal(again.found.prints, checked.found.prints)
        method += "; the same logits in float64" if same else "; float64 gives OTHER logits: not exact"
    return _certificate(verdict, method, fingerprint(module.spec, module), contexts)


def _certificate(verdict: Verdict, method: str, weights: str, contexts: Contexts, *run_by: str) -> Certificate:
    return Certificate(
        certified=verdict.certified,
        statement="The label's logit is the largest, for every question.",
        method=method,
        checked=verdict.checked,
        examples=len(contexts),
        errors=verdict.errors,
        smallest_margin=verdict.margin,
        counterexample=verdict.counterexample,
        weights=weights,
        task=contexts.fingerprint,
        versions=versions("byheart", "numpy", "torch", *run_by),
        seconds=verdict.seconds,
    )


def certify_stock(
    folder: Path, contexts: Contexts, loaded: stock.Stock | None = None, *, report: Report | None = None
) -> Certificate:
    """Check every answer of a stock Llama in ``folder`` (``loaded`` already, or loaded now), run by transformers."""
    start = time.perf_counter()
    loaded = stock.load(folder) if loaded is None else loaded
    found = stock.answers(loaded, contexts.tokens, contexts.starts, contexts.places, contexts.window, report)
    verdict = _verdict(found.labels, found.margins, contexts.labels, time.perf_counter() - start)
    method = "float32, exhaustive, by transformers' LlamaForCausalLM"
    return _certificate(verdict, method, fingerprint_of_stock(folder), contexts, "transformers")


def fingerprint_of_stock(folder: Path) -> str:
    """SHA-256 over the files of a stock Llama."""
    files = (folder / "config.json").read_bytes() + (folder / "model.safetensors").read_bytes()
    return hashlib.sha256(files).hexdigest()


def controls(module: Transformer, contexts: Contexts, rng: np.random.Generator) -> list[Control]:
    """Four lies that must be found out: other labels, other words, words off by one, tokens in another order."""
    return [
        _shuffled_labels(module, contexts, rng),
        _other_words(
            "shuffled words", module, contexts, lambda words: words.flatten()[_order(words, rng)].view_as(words)
        ),
        _other_words("words off by one", module, contexts, _nudged),
        _swapped_tokens(module, contexts, rng),
    ]


def _verdict(
    found: NDArray[np.int64], margins: NDArray[np.float64], labels: NDArray[np.int64], seconds: float
) -> Verdict:
    wrong = np.flatnonzero((found != labels) | (margins <= 0))
    example = None
    if len(wrong):
        first = int(wrong[0])
        example = Counterexample(first, None, int(labels[first]), str(found[first]))
    margin = float(margins.min()) if not len(wrong) else None
    return Verdict(not len(wrong), len(labels), len(wrong), margin, example, seconds)


def _doubled(module: Transformer) -> Transformer:
    return copy.deepcopy(module).double()


def _control(name: str, verdict: Verdict, possible: bool = True) -> Control:
    return Control(name, f"{verdict.errors:,} of {verdict.checked:,} answers wrong", verdict, possible)


def _shuffled_labels(module: Transformer, contexts: Contexts, rng: np.random.Generator) -> Control:
    checked = judge_transformer(module, contexts)
    possible = len(np.unique(contexts.labels)) > 1
    lie = rng.permutation(contexts.labels)
    while possible and np.array_equal(lie, contexts.labels):
        lie = rng.permutation(contexts.labels)
    return _control(
        "shuffled labels", _verdict(checked.found.labels, checked.found.margins, lie, checked.verdict.seconds), possible
    )


def _other_words(
    name: str, module: Transformer, contexts: Contexts, change: Callable[[torch.Tensor], torch.Tensor]
) -> Control:
    """The table's words changed."""
    other = copy.deepcopy(module)
    with torch.no_grad():
        words = dict(other.named_parameters())[WORDS]
        words.copy_(change(words))
    return _control(name, judge_transformer(other, contexts).verdict, _many(contexts))


def _many(contexts: Contexts) -> bool:
    """Whether there are enough questions that not all are answered right by chance."""
    return len(contexts) >= FEW and len(np.unique(contexts.labels)) > 1


def _order(words: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    return torch.from_numpy(rng.permutation(words.numel()))


def _nudged(words: torch.Tensor) -> torch.Tensor:
    return torch.nextafter(words, torch.full_like(words, torch.inf))


@torch.no_grad()
def _swapped_tokens(module: Transformer, contexts: Contexts, rng: np.random.Generator) -> Control:
    """The last two tokens of the window exchanged, where they differ."""
    sample = np.sort(rng.permutation(len(contexts))[:SAMPLE])
    windows = contexts.windows(sample)
    differ = np.zeros(len(sample), dtype=bool) if windows.shape[1] < 2 else windows[:, -1] != windows[:, -2]
    differ &= (windows[:, -2:] >= 0).all(axis=1)
    windows, labels = windows[differ].copy(), contexts.labels[sample[differ]]
    if not len(labels):
        return _control("swapped tokens", Verdict(True, 0, 0, None, None, 0.0), possible=False)
    windows[:, -2:] = windows[:, :-3:-1]
    start = time.perf_counter()
    found = np.concatenate([_ask(module, part) for part in np.array_split(windows, max(1, windows.size >> 18))])
    verdict = _verdict(found, np.ones(len(found)), labels, time.perf_counter() - start)
    return _control("swapped tokens", verdict, len(labels) >= FEW and _many(contexts))


def _ask(module: Transformer, windows: NDArray[np.int32]) -> NDArray[np.int64]:
    tokens = torch.from_numpy(windows.astype(np.int64))
    logits = module(tokens.clamp(min=0).to(module.device), last=1, mask=(tokens >= 0).to(module.device))
    labels: NDArray[np.int64] = logits[:, 0].argmax(dim=1).cpu().numpy()
    return labels
