"""Plant facts into a model, save it, and check it again."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byheart.certificates.certificate import FILE, Certificate, read, write
from byheart.errors import BadInput, check_seed
from byheart.files.untrusted import read_json
from byheart.files.writing import check_apart, new_folder
from byheart.networks.folders import CONFIG
from byheart.planting import folder as folders
from byheart.planting.base import Base, longest_text, read_base, tokenizer_in
from byheart.planting.checking import POSITIONS, THROUGH, check
from byheart.planting.facts import FactSource, PlantedFact, different, facts_of, fingerprint
from byheart.planting.memory import PlantedMemory, make_memory
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
        """Write the planted model and its certificate; all that is checked is read from the files."""
        check_apart(Path(out), self.base.folder)
        with new_folder(Path(out), folders.check_planted_place) as new:
            folders.write(self.memory, self.base, new, fingerprint(self.facts))
            corpus = corpus_for(self.tokenizer)
            certificate = check(new, self.facts, corpus=corpus, positions=positions, through=through, report=report)
            write(certificate, new / FILE)
        return certificate


def plant(
    facts: FactSource,
    *,
    into: Path | str,
    bits: int | None = None,
    ids: bool = False,
    stop: bool = False,
    seed: int | None = None,
) -> Planting:
    """Plant facts into the causal language model in the folder ``into``; paraphrases are not covered.

    ``facts`` are pairs of prompt and completion, :class:`byheart.Facts`, or a file of them. They are texts, or token
    ids if ``ids`` is True. ``bits`` is the size of fingerprints; None keeps whole keys. If ``stop`` is True, every
    completion ends with the model's end-of-text token. ``seed`` None: it is drawn.
    """
    base = read_base(Path(into))
    vocab = base.vocab
    tokenizer = None if ids else tokenizer_in(base.folder)
    end = (_end(base.config),) if stop else ()
    planted = different(facts_of(facts, tokenizer, end), vocab)
    _check_lengths(base, planted)
    seed = secrets.randbits(32) if seed is None else seed
    check_seed(seed)
    return Planting(base, planted, make_memory(planted, vocab, bits=bits, seed=seed), tokenizer)


def _end(config: Mapping[str, Any]) -> int:
    ids = config.get("eos_token_id")
    first = ids[0] if isinstance(ids, list) and ids else ids
    if type(first) is not int:
        raise BadInput("the model's config.json has no eos_token_id; expected one for --stop")
    return first


def recheck(
    folder: Path | str, facts: FactSource, tokenizer: Any, *, stop: bool = False, **options: Any
) -> Certificate:
    """Check a planted folder again, against facts that are read anew; ``tokenizer`` is None if they are ids.

    Raise BadInput if the folder's certificate is about other facts or files, or claims more. Nothing is taken from it.
    """
    folder = Path(folder)
    end = (_end(read_json(folder / CONFIG)),) if stop else ()
    certificate = check(folder, facts_of(facts, tokenizer, end), corpus=corpus_for(tokenizer), **options)
    check_claimed(folder / FILE, certificate)
    return certificate


def certify_planted(folder: Path | str, facts: Facts, *, report: Report | None = None) -> Certificate:
    """Judge a planted folder against facts: texts, read with the base's tokenizer, or token ids.

    The manifest's fingerprint only shows whether the end-of-text token was planted after every fact.
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
    for name, subject in (("task", "facts"), ("weights", "files"), ("statement", "claims"), ("checked", "tokens")):
        if getattr(claimed, name) != getattr(certificate, name):
            raise BadInput(f"{path}: is about other {subject}; remove it, or plant the facts anew")


def check_measure(positions: object, through: object) -> None:
    """Raise BadInput unless these are numbers of positions, and of facts, to be measured."""
    for name, value in (("positions", positions), ("through", through)):
        if type(value) is not int or value < 1:
            raise BadInput(f"{name} is {value!r}; expected a whole number, 1 or more")


def _check_lengths(base: Base, facts: Sequence[PlantedFact]) -> None:
    """Raise BadInput if a fact is longer than a text that the model reads."""
    most = longest_text(base.config)
    for fact in facts:
        length = len(fact.prompt) + len(fact.completion)
        if most is not None and length > most:
            raise BadInput(f"{fact.where}: has {length:,} tokens; expected at most {most:,}, which the model reads")


def corpus_for(tokenizer: Any) -> list[list[int]]:
    """Return the documentation strings that come with Byheart as token ids; nothing without a tokenizer."""
    from byheart.tasks.shipped import docstrings

    return [] if tokenizer is None else [tokenizer.encode(" ".join(docstrings()), add_special_tokens=False)]


def check_before(out: Path, into: Path, facts: Path) -> None:
    """Raise BadInput if ``out`` cannot be written, before any work is done."""
    check_apart(out, into, facts)
    folders.check_planted_place(out)
