"""Is it true? A planted folder, held against the facts that were planted, from the files alone.

What is *proved*:

- **Said**: every context of every fact is put to the memory of the folder, and it names the completion's token. The
  memory decides by token ids alone, in integers, so it decides so on every device, with or without a cache; and it
  makes that token's logit the largest, if the base's logits are numbers.
- **Silent, whole keys**: the store holds these facts and no others. A memory fires only after it has compared all ids
  of a stored prompt, and of what was said since: so on no other text, whatever the hash does.
- **Silent, fingerprints**: planted again, these facts give the same memory, bit for bit, so nothing else was planted. A
  window that is not planted fires with probability 2⁻ᵇ *if the hash acts like a random function* on it; that is an
  assumption, and a token has as many windows as prompts have lengths.

What is *measured*, beside the base itself: the logits of texts, of random ids and of near misses (a planted prompt with
one id changed, cut off, or with a wrong end). Where the memory is silent, they must be the base's, bit for bit; where
it speaks, the facts must want it: with whole keys always, with fingerprints the exceptions are counted and said.
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
from byheart.planting.base import read_base, reads
from byheart.planting.contexts import PlantedFact, Spoken, different, fingerprint
from byheart.planting.folder import base_of, check_written, digest, read_memory
from byheart.planting.layout import MANIFEST
from byheart.planting.loading import load_base, load_planted, logits_of
from byheart.planting.manifest import Manifest
from byheart.planting.memory import PlantedMemory, listed, made
from byheart.planting.modeling_plant import Memory, MemoryPlan
from byheart.progress import Report

POSITIONS = 4096
"""Of texts, and of random ids, that are measured if nothing else is asked for."""
THROUGH = 256
"""Facts that go through the whole model, and get near misses."""
BATCH = 4096
"""Positions at once."""
ROW = 128
"""Tokens of a row."""

Rows = list[list[int]]


@dataclass(frozen=True)
class PlantedComparison:
    """A planted model beside its base, position by position."""

    silent: int = 0
    """Positions at which the facts say nothing, and neither does the memory."""
    differ: int = 0
    """Of these: some logit is not the base's, bit for bit."""
    false: int = 0
    """Positions at which the facts say nothing, but the memory does."""
    spoken: int = 0
    """Positions at which the facts say a token."""
    wrong: int = 0
    """Of these: another token is the largest, or other logits were changed too."""

    def __add__(self, other: "PlantedComparison") -> "PlantedComparison":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return PlantedComparison(*(a + b for a, b in pairs))


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

    ``corpus`` are texts as token ids, of which ``positions`` are measured, and as many of random ids; so many facts go
    ``through`` the whole model, with their near misses.
    """
    start = time.perf_counter()
    manifest, memory = read_memory(folder)
    facts = different(facts, memory.plan.vocab)
    runs = memory.load()
    other = _others(facts, memory, runs)
    wrong, example = unsaid(runs, facts)
    certain = memory.plan.mode == "whole"
    tokens = sum(len(fact.completion) for fact in facts)
    measure = not other and not wrong
    found = (
        _measured(folder, manifest, memory, facts, corpus, positions, through, report)
        if measure
        else PlantedComparison()
    )
    verdict = Verdict(
        claim=claim(memory.plan, len(facts)),
        method=f"ids compared, exhaustive; logits measured, {len(facts[:through]):,} facts through the model",
        checked=tokens,
        errors=min(tokens, wrong + bool(other) + found.differ + found.wrong + found.false * certain),
        counterexample=example or _odd(other, found, certain),
        note=_note(found) if measure else other,
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


def _others(facts: Sequence[PlantedFact], memory: PlantedMemory, runs: Memory) -> str:
    """What the memory holds besides these facts, or lacks, in words; nothing if it holds these and no others."""
    plan = memory.plan
    if plan.mode == "whole":
        there, given = ({(fact.prompt, fact.completion) for fact in some} for some in (listed(runs), facts))
        if there == given:
            return ""
        return f"{len(there - given):,} facts are planted that were not given, {len(given - there):,} are not planted"
    again = made(facts, plan.vocab, bits=plan.bits, seed=plan.seed)
    same = again.plan == plan and all(np.array_equal(again.tensors[name], one) for name, one in memory.tensors.items())
    return "" if same else "these facts, planted again, give another memory"


def unsaid(memory: Memory, facts: Sequence[PlantedFact]) -> tuple[int, Counterexample | None]:
    """How many tokens of completions the memory does not say after their contexts, and the first of them."""
    wrong, example = 0, None
    for start, ids, mask in _batches(facts):
        said = memory(ids.masked_fill(~mask, -1))
        for number, (row, fact) in enumerate(zip(said.tolist(), facts[start : start + len(ids)], strict=True), start):
            got = row[len(fact.prompt) - 1 : len(fact.prompt) - 1 + len(fact.completion)]
            for position, (expected, token) in enumerate(zip(fact.completion, got, strict=True)):
                if expected != token:
                    wrong += 1
                    told = "nothing" if token < 0 else str(token)
                    example = example or Counterexample(number, position, expected, told, fact.where)
    return wrong, example


def _batches(facts: Sequence[PlantedFact]) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Prompt and completion but its last token, padded on the right; with the number of the first fact."""
    start = 0
    while start < len(facts):
        longest = max(len(fact.prompt) + len(fact.completion) for fact in facts[start : start + BATCH])
        some = facts[start : start + max(1, 16 * BATCH // longest)]
        yield start, *padded([[*fact.prompt, *fact.completion[:-1]] for fact in some])
        start += len(some)


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Ids [B, T] with zeros on the right, and which of them are there."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
    there = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], dtype=torch.bool)
    return ids, there


def _measured(
    folder: Path,
    manifest: Manifest,
    memory: PlantedMemory,
    facts: Sequence[PlantedFact],
    corpus: Sequence[Sequence[int]],
    positions: int,
    through: int,
    report: Report | None,
) -> PlantedComparison:
    """The planted model beside its base."""
    plan, rng = manifest.plan, np.random.default_rng(plan_seed(manifest.plan))
    some = [facts[i] for i in sorted(rng.permutation(len(facts))[:through])]
    with base_of(folder, manifest) as place:
        known = read_base(place)
        check_written(folder, known, manifest, memory)
        most = reads(known.config) or ROW
        rows = cut([one for text in corpus for one in text][:positions], most)
        rows += cut(rng.integers(0, plan.vocab, positions).tolist(), most)
        rows += [[*fact.prompt, *fact.completion][:most] for fact in some]
        rows += [row[:most] for row in near_misses(some, plan.vocab, rng)]
        base, planted = load_base(place), load_planted(folder)
        found, spoken = PlantedComparison(), Spoken(facts)
        done = 0
        rows.sort(key=len)
        while done < len(rows):
            batch = rows[done : done + max(1, BATCH // len(rows[min(len(rows), done + 64) - 1]))]
            found += beside(base, planted, batch, spoken)
            done += len(batch)
            if report is not None:
                report(done, len(rows))
    return found


def plan_seed(plan: MemoryPlan) -> int:
    """The seed of what is drawn to measure."""
    return plan.seed ^ 0x5EED


def cut(ids: list[int], most: int) -> Rows:
    """A text in rows, none longer than what a model reads."""
    each = min(ROW, most)
    return [ids[start : start + each] for start in range(0, len(ids), each)]


def near_misses(facts: Sequence[PlantedFact], vocab: int, rng: np.random.Generator) -> Rows:
    """For each fact: one id of the prompt changed, the prompt cut off in front, and a completion left midway."""
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
    """Both models' logits on the same rows, compared bit by bit; where something is to be said, the facts tell."""
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
    return PlantedComparison(*(int(one.sum()) for one in counts))


def _note(found: PlantedComparison) -> str:
    same = f"measured: {found.differ:,} of {found.silent:,} silent positions differ from the base in any bit"
    return f"{same}; {found.false:,} false firings; {found.wrong:,} of {found.spoken:,} others wrong"


def _odd(other: str, found: PlantedComparison, certain: bool) -> Counterexample | None:
    if other:
        return Counterexample(0, None, "these facts and no others", other)
    if odd := found.differ + found.wrong + found.false * certain:
        return Counterexample(0, None, "the base's logits", f"others at {odd:,} positions")
    return None
