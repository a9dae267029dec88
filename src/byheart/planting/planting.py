"""Planting: facts and a model in, the model that says them out."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byheart.certificates.certificate import FILE, Certificate, write
from byheart.certificates.judges.planted import POSITIONS, THROUGH, check, corpus_for
from byheart.errors import BadInput, check_seed
from byheart.files.writing import check_apart
from byheart.networks.planted.base import Base, end_token, read_base, reads
from byheart.networks.planted.loading import tokenizer_in
from byheart.networks.planted.planted_folder import PlantedMemory
from byheart.planting import folder as folders
from byheart.planting.memory import made
from byheart.progress import Report
from byheart.tasks.planted_facts import FactsLike, PlantedFact, different, facts_of, fingerprint


@dataclass(frozen=True, eq=False, repr=False)
class Planting:
    """A memory for a model, not written yet: ``save`` writes the planted model and checks it."""

    base: Base
    facts: Sequence[PlantedFact]
    memory: PlantedMemory
    tokenizer: Any

    def __repr__(self) -> str:
        facts = f"{len(self.facts):,} fact" + "s" * (len(self.facts) != 1)
        return f"<Planting: {facts}, {self.memory.words:,} words of 32 bits>"

    def save(
        self,
        out: Path | str,
        *,
        positions: int = POSITIONS,
        through: int = THROUGH,
        report: Report | None = None,
    ) -> Certificate:
        """Write the planted model and its certificate; what is checked is read from the files."""
        with folders.replacing(Path(out), self.base.folder) as new:
            folders.write(self.memory, self.base, new, fingerprint(self.facts))
            options: dict[str, Any] = {"positions": positions, "through": through, "report": report}
            certificate = check(new, self.facts, corpus=corpus_for(self.tokenizer), **options)
            write(certificate, new / FILE)
        return certificate


def plant(
    facts: FactsLike,
    *,
    into: Path | str,
    bits: int | None = None,
    ids: bool = False,
    stop: bool = False,
    seed: int | None = None,
) -> Planting:
    """Facts, planted into the causal language model in the folder ``into``; paraphrases are not covered.

    ``facts`` are pairs of prompt and completion, :class:`byheart.Facts`, or a file of them; with ``ids``, token ids
    instead of texts. ``bits``: keep fingerprints of so many bits instead of whole keys. ``stop``: every completion ends
    with the model's end-of-text token. ``seed``: drawn if it is not given.
    """
    base = read_base(Path(into))
    vocab = base.vocab
    tokenizer = None if ids else tokenizer_in(base.folder)
    end = (end_token(base.config),) if stop else ()
    given = different(facts_of(facts, tokenizer, end), vocab)
    _check_lengths(base, given)
    if seed is not None:
        check_seed(seed)
    drawn = secrets.randbits(32) if seed is None else seed
    return Planting(base, given, made(given, vocab, bits=bits, seed=drawn), tokenizer)


def check_measure(positions: object, through: object) -> None:
    """BadInput unless these are numbers of positions, and of facts, to be measured."""
    for name, value in (("positions", positions), ("through", through)):
        if type(value) is not int or value < 1:
            raise BadInput(f"{name} is {value!r}; expected a whole number, 1 or more")


def _check_lengths(base: Base, facts: Sequence[PlantedFact]) -> None:
    """BadInput if a fact is longer than what the model reads."""
    most = reads(base.config)
    for fact in facts:
        length = len(fact.prompt) + len(fact.completion)
        if most is not None and length > most:
            raise BadInput(f"{fact.where}: has {length:,} tokens; expected at most {most:,}, which the model reads")


def check_before(out: Path, into: Path, facts: Path) -> None:
    """BadInput if ``out`` cannot be written, before any work is done."""
    check_apart(out, into, facts)
    folders.check_planted_place(out)
