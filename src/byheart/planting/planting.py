"""Planting: facts and a model in, the model that says them out."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byheart.certificates.certificate import FILE, Certificate, read, write
from byheart.errors import BadInput, check_seed
from byheart.files.untrusted import read_json
from byheart.files.writing import check_apart
from byheart.networks.folders import CONFIG
from byheart.planting import folder as folders
from byheart.planting.base import Base, read_base, reads
from byheart.planting.checking import POSITIONS, THROUGH, check
from byheart.planting.contexts import PlantedFact, different, fingerprint
from byheart.planting.memory import PlantedMemory, made
from byheart.planting.reading import Given, facts_of, tokenizer_in
from byheart.progress import Report
from byheart.tasks.facts import Facts


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
    facts: Given,
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
    end = (_end(base.config),) if stop else ()
    given = different(facts_of(facts, tokenizer, end), vocab)
    _check_lengths(base, given)
    if seed is not None:
        check_seed(seed)
    drawn = secrets.randbits(32) if seed is None else seed
    return Planting(base, given, made(given, vocab, bits=bits, seed=drawn), tokenizer)


def _end(config: Mapping[str, Any]) -> int:
    found = config.get("eos_token_id")
    first = found[0] if isinstance(found, list) and found else found
    if type(first) is not int:
        raise BadInput("the model's config.json has no eos_token_id; expected one for --stop")
    return first


def recheck(folder: Path | str, facts: Given, tokenizer: Any, *, stop: bool = False, **options: Any) -> Certificate:
    """Check a planted folder again, against facts that are given anew; ``tokenizer`` is None where they are ids.

    BadInput if a certificate lies there that is about other facts or files, or claims more. Nothing is taken from it.
    """
    folder = Path(folder)
    end = (_end(read_json(folder / CONFIG)),) if stop else ()
    certificate = check(folder, facts_of(facts, tokenizer, end), corpus=corpus_for(tokenizer), **options)
    check_claimed(folder / FILE, certificate)
    return certificate


def certify_planted(folder: Path | str, facts: Facts, *, report: Report | None = None) -> Certificate:
    """Judge a planted folder against facts: texts, read with the base's tokenizer, or token ids.

    The manifest's fingerprint only tells whether the facts were planted with the end-of-text token behind them.
    """
    folder = Path(folder)
    manifest, _ = folders.read_memory(folder)
    is_text = any(isinstance(fact.prompt, bytes) for fact in facts)
    tokenizer = None
    if is_text:
        with folders.base_of(folder, manifest, weights=False) as base:
            tokenizer = tokenizer_in(base)
    end = read_json(folder / CONFIG).get("eos_token_id")
    plain = facts_of(facts, tokenizer)
    if end is not None and fingerprint(different(plain, manifest.plan.vocab)) != manifest.facts:
        stopped = facts_of(facts, tokenizer, (_end(read_json(folder / CONFIG)),))
        if fingerprint(different(stopped, manifest.plan.vocab)) == manifest.facts:
            plain = stopped
    return check(folder, plain, corpus=corpus_for(tokenizer), report=report)


def check_claimed(path: Path, certificate: Certificate) -> None:
    """Raise BadInput if the certificate at ``path``, if there is one, is about or claims something else."""
    if not certificate.certified or not path.exists():
        return
    claimed = read(path)
    for what, other in (("task", "facts"), ("weights", "files"), ("statement", "claims"), ("checked", "tokens")):
        if getattr(claimed, what) != getattr(certificate, what):
            raise BadInput(f"{path}: is about other {other}; remove it, or plant the facts anew")


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


def corpus_for(tokenizer: Any) -> list[list[int]]:
    """The documentation strings that come with Byheart, as a tokenizer's ids; nothing where there is none."""
    from byheart.tasks.shipped import docstrings

    return [] if tokenizer is None else [tokenizer.encode(" ".join(docstrings()), add_special_tokens=False)]


def check_before(out: Path, into: Path, facts: Path) -> None:
    """BadInput if ``out`` cannot be written, before any work is done."""
    check_apart(out, into, facts)
    folders.check_planted_place(out)
