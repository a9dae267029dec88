"""Check a planted folder against the facts that were planted, from its files alone.

*Proved*:

- **Said**: every context of every fact is put to the memory of the folder, and it names the completion's token. The
  memory decides by token ids alone, in integers, so it decides so on every device, with or without a cache. It makes
  that token's logit the largest, if the base's logits are numbers.
- **Silent, whole keys**: the store holds these facts and no others. A memory fires only after it has compared all ids
  of a stored prompt, and of the tokens said since: so on no other text, whatever the hash does.
- **Silent, fingerprints**: planted again, these facts give the same memory, bit for bit, so nothing else was planted. A
  window that is not planted fires with probability 2⁻ᵇ *if the hash acts like a random function* on it. That is an
  assumption, and a token has as many windows as prompts have lengths.

*Measured*, in comparison with the base itself: the logits of texts, of random ids and of near misses (a planted prompt
with one id changed, cut off, or with a wrong end). Where the memory is silent, they must be the base's, bit for bit.
Where it speaks, the facts must want it: with whole keys always; with fingerprints the exceptions are counted and
reported.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from byheart.certificates.certificate import Certificate
from byheart.certificates.claim import Claim
from byheart.certificates.verdict import Counterexample, Verdict
from byheart.planting.base import load_base, load_planted, logits_of, longest_text, read_base
from byheart.planting.facts import PlantedFact, Spoken, different, fingerprint
from byheart.planting.folder import base_of, check_written, digest, read_memory
from byheart.planting.manifest import MANIFEST, Manifest
from byheart.planting.memory import PlantedMemory, list_facts, make_memory
from byheart.planting.modeling_plant import Memory, MemoryPlan
from byheart.progress import Report

POSITIONS = 4096
"""Default number of positions of texts, and of random ids, that are measured."""
THROUGH = 256
"""Default number of facts that go through the whole model, and get near misses."""
BATCH = 4096
"""Number of positions at once."""
ROW = 128
"""Number of tokens of a row."""

Rows = list[list[int]]


@dataclass(frozen=True)
class PlantedComparison:
    """Counts of positions at which a planted model was compared with its base."""

    silent: int = 0
    """Number of positions at which neither the facts nor the memory say anything."""
    differ: int = 0
    """Number of silent positions at which some logit is not the base's, bit for bit."""
    false: int = 0
    """Number of positions at which the memory says a token, but the facts do not."""
    spoken: int = 0
    """Number of positions at which the facts say a token."""
    wrong: int = 0
    """Number of spoken positions at which another token is the largest, or other logits were changed too."""

    def __add__(self, other: "PlantedComparison") -> "PlantedComparison":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return PlantedComparison(*(a + b for a, b in pairs))

    def failures(self, certain: bool) -> int:
        """Count the positions that refute the claim. ``certain``: a false firing does, because keys are whole."""
        return self.differ + self.wrong + self.false * certain

    @property
    def note(self) -> str:
        """All counts in words."""
        same = f"measured: {self.differ:,} of {self.silent:,} silent positions differ from the base in any bit"
        return f"{same}; {self.false:,} false firings; {self.wrong:,} of {self.spoken:,} others wrong"


def check(
    folder: Path,
    facts: Sequence[PlantedFact],
    *,
    corpus: Sequence[Sequence[int]] = (),
    positions: int = POSITIONS,
    through: int = THROUGH,
    report: Report | None = None,
) -> Certificate:
    """Check a planted folder against the facts; BadInput if its files are not those that were planted.

    ``corpus`` are texts as token ids; ``positions`` of them are measured, and as many of random ids. ``through`` is the
    number of facts that go through the whole model, with their near misses.
    """
    start = time.perf_counter()
    manifest, memory = read_memory(folder)
    facts = different(facts, memory.plan.vocab)
    runs = memory.load()
    difference = _difference(facts, memory, runs)
    wrong, example = unsaid(runs, facts)
    certain = memory.plan.mode == "whole"
    tokens = sum(len(fact.completion) for fact in facts)
    if is_measured := not difference and not wrong:
        rng = np.random.default_rng(memory.plan.seed ^ 0x5EED)
        sample = [facts[i] for i in sorted(rng.permutation(len(facts))[:through])]
        text = [token for text in corpus for token in text][:positions]
        texts = text, rng.integers(0, memory.plan.vocab, positions).tolist()
        measured = _measure(folder, manifest, memory, Spoken(facts), sample, texts, rng, report)
    else:
        measured = PlantedComparison()
    verdict = Verdict(
        claim=claim(memory.plan, len(facts)),
        method=f"ids compared, exhaustive; logits measured, {len(facts[:through]):,} facts through the model",
        checked=tokens,
        errors=min(tokens, wrong + bool(difference) + measured.failures(certain)),
        counterexample=example or _counterexample(difference, measured.failures(certain)),
        note=measured.note if is_measured else difference,
        seconds=time.perf_counter() - start,
    )
    return Certificate.of(
        verdict,
        weights=digest(folder / MANIFEST),
        task=fingerprint(facts),
        examples=len(facts),
        stands_for=len(facts),
        libraries=("torch", "transformers"),
    )


def claim(plan: MemoryPlan, facts: int) -> Claim:
    """Return what is claimed of a memory with this plan."""
    if plan.mode == "whole":
        return Claim("completions", unit="token", prompts=facts, elsewhere="silent")
    return Claim(
        "completions", unit="token", prompts=facts, elsewhere="rarely", bits=plan.bits, windows=int(plan.lengths)
    )


def _difference(facts: Sequence[PlantedFact], memory: PlantedMemory, runs: Memory) -> str:
    """Return how the memory's facts differ from these, in words; nothing if they are the same."""
    plan = memory.plan
    if plan.mode == "whole":
        planted, expected = ({(fact.prompt, fact.completion) for fact in group} for group in (list_facts(runs), facts))
        if planted == expected:
            return ""
        strange, lacking = len(planted - expected), len(expected - planted)
        return f"{strange:,} facts are planted that were not given, {lacking:,} are not planted"
    again = make_memory(facts, plan.vocab, bits=plan.bits, seed=plan.seed)
    tensors = memory.tensors.items()
    same = again.plan == plan and all(np.array_equal(again.tensors[name], tensor) for name, tensor in tensors)
    return "" if same else "these facts, planted again, give another memory"


def unsaid(memory: Memory, facts: Sequence[PlantedFact]) -> tuple[int, Counterexample | None]:
    """Return how many tokens of completions the memory does not say after their contexts, and the first of them."""
    wrong, example = 0, None
    for start, ids, mask in _batches(facts):
        said = memory(ids.masked_fill(~mask, -1))
        for number, (row, fact) in enumerate(zip(said.tolist(), facts[start : start + len(ids)], strict=True), start):
            got = row[len(fact.prompt) - 1 : len(fact.prompt) - 1 + len(fact.completion)]
            for position, (expected, token) in enumerate(zip(fact.completion, got, strict=True)):
                if expected != token:
                    wrong += 1
                    answer = "nothing" if token < 0 else str(token)
                    example = example or Counterexample(number, position, expected, answer, fact.where)
    return wrong, example


def _batches(facts: Sequence[PlantedFact]) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield prompts and completions without their last token, padded on the right, after the first fact's number."""
    start = 0
    while start < len(facts):
        longest = max(len(fact.prompt) + len(fact.completion) for fact in facts[start : start + BATCH])
        batch = facts[start : start + max(1, 16 * BATCH // longest)]
        yield start, *padded([[*fact.prompt, *fact.completion[:-1]] for fact in batch])
        start += len(batch)


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return ids [B, T] with zeros on the right, and a mask that is True for ids of the rows."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
    there = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], dtype=torch.bool)
    return ids, there


def _measure(
    folder: Path,
    manifest: Manifest,
    memory: PlantedMemory,
    spoken: Spoken,
    sample: Sequence[PlantedFact],
    texts: Sequence[list[int]],
    rng: np.random.Generator,
    report: Report | None,
) -> PlantedComparison:
    """Compare the planted model with its base on ``texts``, on the facts in ``sample``, and on near misses of them."""
    with base_of(folder, manifest) as place:
        base = read_base(place)
        check_written(folder, base, manifest, memory)
        most = longest_text(base.config) or ROW
        rows = [row for text in texts for row in cut(text, most)]
        rows += [[*fact.prompt, *fact.completion][:most] for fact in sample]
        rows += [row[:most] for row in near_misses(sample, memory.plan.vocab, rng)]
        models = load_base(place), load_planted(folder)
        total, done = PlantedComparison(), 0
        rows.sort(key=len)
        while done < len(rows):
            batch = rows[done : done + max(1, BATCH // len(rows[min(len(rows), done + 64) - 1]))]
            total += beside(*models, batch, spoken)
            done += len(batch)
            if report is not None:
                report(done, len(rows))
    return total


def cut(ids: list[int], most: int) -> Rows:
    """Return a text in rows, none longer than ``most``."""
    each = min(ROW, most)
    return [ids[start : start + each] for start in range(0, len(ids), each)]


def near_misses(facts: Sequence[PlantedFact], vocab: int, rng: np.random.Generator) -> Rows:
    """Return three rows per fact: an id of the prompt changed, the prompt cut off in front, the completion changed."""
    rows = []
    for fact in facts:
        at, other = int(rng.integers(len(fact.prompt))), int(rng.integers(1, max(2, vocab)))
        changed = list(fact.prompt)
        changed[at] = (changed[at] + other) % vocab
        left = [*fact.prompt, *fact.completion]
        left[-1] = (left[-1] + other) % vocab
        rows += [changed + list(fact.completion), [*fact.prompt[1:], *fact.completion], [*left, *fact.completion[-1:]]]
    return rows


@torch.no_grad()
def beside(base: Any, planted: Any, rows: Sequence[Sequence[int]], facts: Spoken) -> PlantedComparison:
    """Compare both models' logits on the same rows, bit by bit; ``facts`` say where a token has to be said."""
    ids, there = padded(rows)
    mask = there.long()
    before, after = logits_of(base, ids, mask)[there], planted(ids, attention_mask=mask).logits[there]
    said = torch.tensor([token for row in rows for token in facts.after(row)])
    fires = planted.plant(ids.masked_fill(~there, -1))[there] >= 0
    kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[before.element_size()]
    changed = before.view(kind) != after.view(kind)
    spoken, false, silent = said >= 0, (said < 0) & fires, (said < 0) & ~fires
    chosen = said[spoken, None]
    elsewhere = changed[spoken].scatter(1, chosen, False).any(1)
    wrong = elsewhere | (after[spoken].argmax(1) != chosen[:, 0])
    counts = (silent, changed[silent].any(1), false, spoken, wrong)
    return PlantedComparison(*(int(mask.sum()) for mask in counts))


def _counterexample(difference: str, failures: int) -> Counterexample | None:
    if difference:
        return Counterexample(0, None, "these facts and no others", difference)
    return Counterexample(0, None, "the base's logits", f"others at {failures:,} positions") if failures else None
