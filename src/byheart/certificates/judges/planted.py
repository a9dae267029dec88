"""The judge of models with planted memories: it compares a folder with the facts that were planted in it.

What is *proved*:

- **Said**: the folder's memory names the completion's token after each context of each fact. It decides by token ids
  alone, in integers: the same on every device, with or without a cache. It makes that token's logit the largest if the
  base's logits are numbers.
- **Silent, whole keys**: the store holds these facts and no others. A memory fires only after it has compared all ids
  of a stored prompt and of the completion so far. So it fires on no other text, whatever the hash does.
- **Silent, fingerprints**: the hash is the one drawn for the folder's seed, and every cell of both tables is either
  determined by these facts or holds the bit drawn for it. So nothing else was planted. A window that is not planted
  fires with probability 2⁻ᵇ *if the hash acts like a random function* on it. That is an assumption. A token has as many
  windows as prompts have different lengths.

Facts determine cells as follows: each fact is an equation modulo 2. The lowest cells with which the combinations of
these equations begin do not depend on the elimination. If all other cells are given, these cells follow.

The logits of texts, of random ids and of near misses (a planted prompt with one id changed, cut off, or with a wrong
end) are *measured* and compared with the base's. If the memory is silent, they must be equal, bit for bit. If it
speaks, a fact must say so: with whole keys always; with fingerprints the exceptions are counted and reported.
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from byheart.certificates.certificate import FILE, Certificate, read
from byheart.certificates.claim import Claim
from byheart.certificates.verdict import Counterexample, Verdict
from byheart.errors import BadInput
from byheart.files.untrusted import digest, read_json
from byheart.networks.folders import CONFIG
from byheart.networks.planted import MANIFEST, modeling_plant
from byheart.networks.planted.base import (
    end_token,
    load_base,
    load_planted,
    logits_of,
    longest_text,
    read_base,
    tokenizer_in,
)
from byheart.networks.planted.modeling_plant import Fingerprints, Memory, MemoryPlan
from byheart.networks.planted.planted_folder import (
    Manifest,
    PlantedMemory,
    base_of,
    check_written,
    list_facts,
    read_memory,
)
from byheart.progress import Report
from byheart.tasks.facts import Facts
from byheart.tasks.planted_facts import FactsLike, PlantedFact, Spoken, different, facts_of, fingerprint

POSITIONS = 4096
"""Default number of positions that are measured in texts, and in random ids."""
THROUGH = 256
"""Default number of facts that are measured with the whole model, each with its near misses."""
BATCH = 4096
"""Number of positions per batch."""
ROW = 128
"""Largest number of tokens per row."""

Rows = list[list[int]]


@dataclass(frozen=True)
class PlantedComparison:
    """A comparison of a planted model with its base: numbers of positions."""

    silent: int = 0
    """Number of positions at which neither the facts nor the memory say a token."""
    differ: int = 0
    """Number of silent positions at which some logit differs from the base's in any bit."""
    false: int = 0
    """Number of positions at which the memory says a token, but the facts do not."""
    spoken: int = 0
    """Number of positions at which the facts say a token."""
    wrong: int = 0
    """Number of spoken positions at which another logit is the largest, or differs from the base's."""

    def __add__(self, other: "PlantedComparison") -> "PlantedComparison":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return PlantedComparison(*(a + b for a, b in pairs))


def certify_planted(folder: Path | str, facts: Facts, *, report: Report | None = None) -> Certificate:
    """Judge a planted folder against facts: texts, read with the base's tokenizer, or token ids.

    The manifest's fingerprint only shows if the facts were planted with an end-of-text token behind them.
    """
    folder = Path(folder)
    manifest, _ = read_memory(folder)
    tokenizer = None
    if any(isinstance(fact.prompt, bytes) for fact in facts):
        with base_of(folder, manifest, weights=False) as base:
            tokenizer = tokenizer_in(base)
    config = read_json(folder / CONFIG)
    candidates = [facts_of(facts, tokenizer)]
    if config.get("eos_token_id") is not None:
        candidates.append(facts_of(facts, tokenizer, (end_token(config),)))
    named = (some for some in candidates if fingerprint(different(some, manifest.plan.vocab)) == manifest.facts)
    return check(folder, next(named, candidates[0]), corpus=corpus_for(tokenizer), report=report)


def recheck(folder: Path | str, facts: FactsLike, tokenizer: Any, *, stop: bool = False, **options: Any) -> Certificate:
    """Check a planted folder against the user's facts again; ``tokenizer`` is None if they are token ids.

    Raise BadInput if the folder's certificate is about other facts or files, or claims more. Nothing is taken from it.
    """
    folder = Path(folder)
    end = (end_token(read_json(folder / CONFIG)),) if stop else ()
    certificate = check(folder, facts_of(facts, tokenizer, end), corpus=corpus_for(tokenizer), **options)
    check_claimed(folder / FILE, certificate)
    return certificate


def check_claimed(path: Path, certificate: Certificate) -> None:
    """Raise BadInput if there is a certificate at ``path`` whose subject or claim differs."""
    if not certificate.certified or not path.exists():
        return
    claimed = read(path)
    for field, subject in (("task", "facts"), ("weights", "files"), ("statement", "claims"), ("checked", "tokens")):
        if getattr(claimed, field) != getattr(certificate, field):
            raise BadInput(f"{path}: is about other {subject}; remove it, or plant the facts anew")


def corpus_for(tokenizer: Any) -> Rows:
    """Return the documentation strings that come with Byheart as token ids; no rows without a tokenizer."""
    from byheart.tasks.shipped import docstrings

    return [] if tokenizer is None else [tokenizer.encode(" ".join(docstrings()), add_special_tokens=False)]


def check(
    folder: Path,
    facts: Sequence[PlantedFact],
    *,
    corpus: Sequence[Sequence[int]] = (),
    positions: int = POSITIONS,
    through: int = THROUGH,
    report: Report | None = None,
) -> Certificate:
    """Check a planted folder against the facts; raise BadInput if its files are not those that were planted.

    The logits of ``positions`` tokens of ``corpus``, of as many random ids, and of ``through`` facts with their near
    misses are measured.
    """
    start = time.perf_counter()
    manifest, memory = read_memory(folder)
    facts = different(facts, memory.plan.vocab)
    runs = memory.load()
    surplus = surplus_of(facts, runs)
    wrong, example = unsaid(runs, facts)
    certain = memory.plan.mode == "whole"
    tokens = sum(len(fact.completion) for fact in facts)
    comparison, note = PlantedComparison(), surplus
    if not surplus and not wrong:
        comparison = _measure(folder, manifest, memory, facts, corpus, positions, through, report)
        note = _note(comparison)
    odd = comparison.differ + comparison.wrong + comparison.false * certain
    if surplus and example is None:
        example = Counterexample(0, None, "these facts and no others", surplus)
    elif odd:
        example = Counterexample(0, None, "the base's logits", f"others at {odd:,} positions")
    verdict = Verdict(
        claim=_claim(memory.plan, len(facts)),
        method=f"ids compared, exhaustive; logits measured, {len(facts[:through]):,} facts through the model",
        checked=tokens,
        errors=min(tokens, wrong + bool(surplus) + odd),
        counterexample=example,
        note=note,
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


def _claim(plan: MemoryPlan, facts: int) -> Claim:
    """Return the claim about a memory with this plan."""
    if plan.mode == "whole":
        return Claim("completions", unit="token", prompts=facts, elsewhere="silent")
    bits, windows = plan.bits, plan.lengths
    return Claim("completions", unit="token", prompts=facts, elsewhere="rarely", bits=bits, windows=windows)


def surplus_of(facts: Sequence[PlantedFact], memory: Memory) -> str:
    """Describe how the memory differs from these facts; return "" if it holds these and no others."""
    if isinstance(memory, Fingerprints):
        return _surplus_of_prints(facts, memory)
    stored, given = set(list_facts(memory)), {(fact.prompt, fact.completion) for fact in facts}
    if stored == given:
        return ""
    return f"{len(stored - given):,} facts are planted that were not given, {len(given - stored):,} are not planted"


def _surplus_of_prints(facts: Sequence[PlantedFact], memory: Fingerprints) -> str:
    """Describe a number of the memory that is neither drawn for its seed nor determined by the facts, if any."""
    plan = memory.plan
    lengths = sorted({len(fact.prompt) for fact in facts})
    if memory.lengths.tolist() != lengths or plan.facts != len(facts):
        return f"its {plan.facts:,} prompts have other lengths than the {len(facts):,} given"
    for name in ("factors", "shifts", "steps"):
        numbers = getattr(memory, name)
        words = np.frombuffer(_drawn(plan, name, 8 * numbers.numel()), "<u8") % np.uint64(modeling_plant.PRIME)
        if numbers.flatten().tolist() != words.tolist():
            return f"its {name} are not those drawn for its seed"
    ends = modeling_plant.read(memory.ends, torch.arange(plan.vocab), 1).nonzero()[:, 0].tolist()
    if ends != sorted({fact.prompt[-1] for fact in facts}):
        return "it looks for prompts that end with other tokens"
    keys = torch.cat([_hashes(memory, facts, column) for column in range(len(lengths))], 1)
    table = memory.table, plan.cells, plan.band, plan.bits
    if not _is_determined(*table, keys, modeling_plant.prints(keys, plan.bits), _drawn_cells(plan, "table", table[3])):
        return "its fingerprints are not those of these facts alone"
    sizes = torch.tensor([len(fact.completion) for fact in facts])
    which = torch.repeat_interleave(sizes)
    said = torch.arange(len(which)) - (sizes.cumsum(0) - sizes)[which]
    tokens = torch.tensor([token for fact in facts for token in fact.completion])
    values = tokens | (said + 1 == sizes[which]).long() << plan.width
    table = memory.answers, plan.answers, plan.answers_band, plan.width + 1
    keys = modeling_plant.moved(keys[:3, which], memory.steps, said)
    if not _is_determined(*table, keys, values, _drawn_cells(plan, "answers", table[3])):
        return "its completions are not those of these facts alone"
    return ""


def _drawn(plan: MemoryPlan, name: str, size: int) -> bytes:
    """Return the bytes of SHAKE-256 for a memory's seed and a name."""
    return hashlib.shake_256(f"byheart-plant-1 {plan.seed} {plan.draw} {name}".encode()).digest(size)


def _drawn_cells(plan: MemoryPlan, name: str, bits: int) -> NDArray[np.uint8]:
    """Return the bits [bits, cells] drawn for the cells of a table."""
    cells = plan.cells if name == "table" else plan.answers
    content = np.frombuffer(_drawn(plan, f"free {name}", (bits * cells + 7) // 8), np.uint8)
    return np.unpackbits(content, count=bits * cells).reshape(bits, cells)


def _hashes(memory: Memory, facts: Sequence[PlantedFact], column: int) -> Tensor:
    """Return the hashes [5, n] of all prompts of the memory's length number ``column``."""
    length = int(memory.lengths[column])
    windows = torch.tensor([fact.prompt[::-1] for fact in facts if len(fact.prompt) == length])
    factors, shifts = memory.factors[:, :length], memory.shifts[:, column : column + 1]
    return modeling_plant.hashes(windows, factors, shifts, torch.tensor([length]))[:, :, 0]


def _is_determined(
    words: Tensor, cells: int, band: int, bits: int, keys: Tensor, values: Tensor, drawn: NDArray[np.uint8]
) -> bool:
    """Return True if a table maps each key to its value, and all free cells hold the drawn bits."""
    from byheart.compiled import jit

    if not torch.equal(modeling_plant.found(words, keys, cells, band, bits), values):
        return False
    first = (keys[0] * (cells - band + 1) >> 31).numpy()
    order = np.argsort(first, kind="stable")
    unknowns = modeling_plant.places(keys, cells, band).T.numpy()[order]
    leading = jit(_leading_cells)(np.ascontiguousarray(unknowns), first[order] >> 6, cells, (band + 63) // 64 + 1)
    content = modeling_plant.read(words, torch.arange(cells), bits).numpy()[~leading]
    return all(np.array_equal(content >> bit & 1, drawn[bit, ~leading]) for bit in range(bits))


def _leading_cells(unknowns, start, cells, width):  # type: ignore[no-untyped-def]
    """Mark the cells with which combinations of equations begin; each has ``width`` words from ``start`` on."""
    rows = np.zeros((cells, width), np.uint64)
    leads = np.zeros(cells, np.bool_)
    one = np.uint64(1)
    for e in range(len(unknowns)):
        row = np.zeros(width, np.uint64)
        for cell in unknowns[e]:
            row[(cell >> 6) - start[e]] ^= one << np.uint64(cell & 63)
        word = 0
        while word < width:
            if row[word] == 0:
                word += 1
                continue
            bit = 0
            while not (row[word] >> np.uint64(bit)) & one:
                bit += 1
            lead = ((start[e] + word) << 6) + bit
            if not leads[lead]:
                leads[lead] = True
                rows[lead, : width - word] = row[word:]
                break
            row[word:] ^= rows[lead, : width - word]
    return leads


def unsaid(memory: Memory, facts: Sequence[PlantedFact]) -> tuple[int, Counterexample | None]:
    """Return the number of tokens of completions that the memory does not say, and the first of them."""
    wrong, example = 0, None
    for start, ids, mask in _batches(facts):
        rows = memory(ids.masked_fill(~mask, -1)).tolist()
        for number, (row, fact) in enumerate(zip(rows, facts[start : start + len(ids)], strict=True), start):
            spoken = row[len(fact.prompt) - 1 : len(fact.prompt) - 1 + len(fact.completion)]
            for position, (expected, token) in enumerate(zip(fact.completion, spoken, strict=True)):
                if expected != token:
                    wrong += 1
                    got = "nothing" if token < 0 else str(token)
                    example = example or Counterexample(number, position, expected, got, fact.where)
    return wrong, example


def _batches(facts: Sequence[PlantedFact]) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield the number of the first fact, and padded prompts with completions less their last tokens."""
    start = 0
    while start < len(facts):
        longest = max(len(fact.prompt) + len(fact.completion) for fact in facts[start : start + BATCH])
        some = facts[start : start + max(1, 16 * BATCH // longest)]
        yield start, *padded([[*fact.prompt, *fact.completion[:-1]] for fact in some])
        start += len(some)


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return ids [B, T], padded with zeros on the right, and a mask of the ids that are not padding."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], dtype=torch.bool)
    return ids, mask


def _measure(
    folder: Path,
    manifest: Manifest,
    memory: PlantedMemory,
    facts: Sequence[PlantedFact],
    corpus: Sequence[Sequence[int]],
    positions: int,
    through: int,
    report: Report | None,
) -> PlantedComparison:
    """Compare the planted model's logits with its base's on texts, random ids, facts and near misses."""
    plan, rng = manifest.plan, np.random.default_rng(manifest.plan.seed ^ 0x5EED)
    some = [facts[i] for i in sorted(rng.permutation(len(facts))[:through])]
    with base_of(folder, manifest) as place:
        layout = read_base(place)
        check_written(folder, layout, manifest, memory)
        longest = longest_text(layout.config) or ROW
        rows = _cut([token for text in corpus for token in text][:positions], longest)
        rows += _cut(rng.integers(0, plan.vocab, positions).tolist(), longest)
        rows += [[*fact.prompt, *fact.completion][:longest] for fact in some]
        rows += [row[:longest] for row in near_misses(some, plan.vocab, rng)]
        base, planted = load_base(place), load_planted(folder)
        comparison, spoken = PlantedComparison(), Spoken(facts)
        done = 0
        rows.sort(key=len)
        while done < len(rows):
            batch = rows[done : done + max(1, BATCH // len(rows[min(len(rows), done + 64) - 1]))]
            comparison += compare_logits(base, planted, batch, spoken)
            done += len(batch)
            if report is not None:
                report(done, len(rows))
    return comparison


def _cut(ids: list[int], longest: int) -> Rows:
    """Cut a text into rows."""
    each = min(ROW, longest)
    return [ids[start : start + each] for start in range(0, len(ids), each)]


def near_misses(facts: Sequence[PlantedFact], vocab: int, rng: np.random.Generator) -> Rows:
    """Make three rows per fact: a changed id in the prompt, a prompt without its first id, and a wrong completion."""
    rows = []
    for fact in facts:
        place, shift = int(rng.integers(len(fact.prompt))), int(rng.integers(1, max(2, vocab)))
        changed = list(fact.prompt)
        changed[place] = (changed[place] + shift) % vocab
        left = [*fact.prompt, *fact.completion]
        left[-1] = (left[-1] + shift) % vocab
        rows += [changed + list(fact.completion), [*fact.prompt[1:], *fact.completion], [*left, *fact.completion[-1:]]]
    return rows


@torch.no_grad()
def compare_logits(base: Any, planted: Any, rows: Sequence[Sequence[int]], facts: Spoken) -> PlantedComparison:
    """Compare both models' logits on the same rows bit by bit; ``facts`` tells which token should follow."""
    ids, there = padded(rows)
    mask = there.long()
    before, after = logits_of(base, ids, mask)[there], planted(ids, attention_mask=mask).logits[there]
    wanted = torch.tensor([token for row in rows for token in facts.after(row)])
    fires = planted.plant(ids.masked_fill(~there, -1))[there] >= 0
    kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[before.element_size()]
    changed = before.view(kind) != after.view(kind)
    spoken, false, silent = wanted >= 0, (wanted < 0) & fires, (wanted < 0) & ~fires
    chosen = wanted[spoken, None]
    elsewhere = changed[spoken].scatter(1, chosen, False).any(1)
    wrong = elsewhere | (after[spoken].argmax(1) != chosen[:, 0])
    counts = (silent, changed[silent].any(1), false, spoken, wrong)
    return PlantedComparison(*(int(count.sum()) for count in counts))


def _note(comparison: PlantedComparison) -> str:
    """Describe a comparison, for the certificate."""
    differ = f"{comparison.differ:,} of {comparison.silent:,} silent positions differ from the base in any bit"
    wrong = f"{comparison.wrong:,} of {comparison.spoken:,} others wrong"
    return f"measured: {differ}; {comparison.false:,} false firings; {wrong}"
