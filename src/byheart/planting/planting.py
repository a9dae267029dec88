"""Plant facts into a model, write its folder (:mod:`byheart.networks.planted`), and give the base back."""

import hashlib
import json
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byheart.certificates.certificate import FILE, Certificate
from byheart.certificates.certificate import write as write_certificate
from byheart.certificates.judges.planted import POSITIONS, THROUGH, check, corpus_for
from byheart.errors import BadInput, check_seed
from byheart.files.tensors import write_tensors
from byheart.files.untrusted import digest
from byheart.files.writing import check_apart, new_folder
from byheart.networks.folders import CONFIG
from byheart.networks.planted import BEFORE, CODE, FORMAT, MANIFEST, MEMORY, PREFIX, modeling_plant
from byheart.networks.planted.base import Base, end_token, longest_text, read_base, tokenizer_in
from byheart.networks.planted.planted_folder import (
    PlantedMemory,
    check_base,
    config_of,
    differing_files,
    index_of,
    place_of,
    read_manifest,
    strange_files,
)
from byheart.networks.weight_files import INDEX
from byheart.planting.memory import make_memory
from byheart.progress import Report
from byheart.tasks.planted_facts import FactsLike, PlantedFact, different, facts_of, fingerprint

PORTION = 1 << 24
"""Number of bytes that are copied at a time."""


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
        with new_folder(Path(out), check_planted_place) as new:
            write(self.memory, self.base, new, fingerprint(self.facts))
            corpus = corpus_for(self.tokenizer)
            certificate = check(new, self.facts, corpus=corpus, positions=positions, through=through, report=report)
            write_certificate(certificate, new / FILE)
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
    """Plant facts into the causal language model in the folder ``into``; paraphrases are not covered.

    ``facts`` are pairs of prompt and completion, :class:`byheart.Facts`, or a file of them. They are texts, or token
    ids if ``ids`` is True. ``bits`` is the size of fingerprints; None keeps whole keys. If ``stop`` is True, every
    completion ends with the model's end-of-text token. ``seed`` None: it is drawn.
    """
    base = read_base(Path(into))
    vocab = base.vocab
    tokenizer = None if ids else tokenizer_in(base.folder)
    end = (end_token(base.config),) if stop else ()
    planted = different(facts_of(facts, tokenizer, end), vocab)
    _check_lengths(base, planted)
    seed = secrets.randbits(32) if seed is None else seed
    check_seed(seed)
    return Planting(base, planted, make_memory(planted, vocab, bits=bits, seed=seed), tokenizer)


def _check_lengths(base: Base, facts: Sequence[PlantedFact]) -> None:
    """Raise BadInput if a fact is longer than a text that the model reads."""
    most = longest_text(base.config)
    for fact in facts:
        length = len(fact.prompt) + len(fact.completion)
        if most is not None and length > most:
            raise BadInput(f"{fact.where}: has {length:,} tokens; expected at most {most:,}, which the model reads")


def write(memory: PlantedMemory, base: Base, folder: Path, facts: str) -> None:
    """Write all files but the certificate into a new folder. ``facts`` is the fingerprint of the planted facts."""
    (folder / BEFORE).mkdir()
    copied: dict[str, Any] = {}
    for name in base.files:
        place = place_of(name)
        copied[name] = {"as": place, "sha256": copy(base.folder / name, folder / place)}
    write_tensors(folder / MEMORY, {PREFIX + name: tensor for name, tensor in memory.tensors.items()}, {"format": "pt"})
    _write_json(folder / INDEX, index_of(folder, base, memory))
    _write_json(folder / CONFIG, config_of(base, memory.plan))
    shutil.copyfile(modeling_plant.__file__, folder / CODE)
    ours = {name: digest(folder / name) for name in (MEMORY, CODE, CONFIG, INDEX)}
    plan = memory.plan.as_json()
    manifest = {"format": FORMAT, "facts": facts, "words": memory.words, "plan": plan, "files": ours, "base": copied}
    _write_json(folder / MANIFEST, manifest)


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def copy(source: Path, place: Path) -> str:
    """Copy a file, and return the SHA-256 of the bytes that were copied."""
    place.parent.mkdir(parents=True, exist_ok=True)
    hasher = hashlib.sha256()
    with source.open("rb") as old, place.open("xb") as new:
        while portion := old.read(PORTION):
            hasher.update(portion)
            new.write(portion)
    return hasher.hexdigest()


def unplant(folder: Path | str, out: Path | str, *, base: Path | str | None = None) -> int:
    """Give the base back, file by file, under the old names, and return the number of files.

    Raise BadInput if a hash is not the manifest's, as in a folder that ``save_pretrained`` has written anew. Whoever
    made the folder wrote the manifest. So the files are compared with those of ``base`` too, your own copy, if given.
    """
    folder, out = Path(folder), Path(out)
    manifest = read_manifest(folder)
    check_apart(out, folder)
    check_base(folder, manifest.base)
    if base is not None and (names := differing_files(manifest, Path(base))):
        raise BadInput(f"{folder}: {names[0]!r} of its base is not that of {base}; expected the same files")
    with new_folder(out, check_base_place) as new:
        for name, (place, expected) in manifest.base.items():
            if copy(folder / place, new / name) != expected:
                raise BadInput(f"{folder / place}: was changed while it was copied; unplant it again")
    return len(manifest.base)


def check_measure(positions: object, through: object) -> None:
    """Raise BadInput unless these are numbers of positions, and of facts, to be measured."""
    for name, value in (("positions", positions), ("through", through)):
        if type(value) is not int or value < 1:
            raise BadInput(f"{name} is {value!r}; expected a whole number, 1 or more")


def check_before(out: Path, into: Path, facts: Path) -> None:
    """Raise BadInput if ``out`` cannot be written, before any work is done."""
    check_apart(out, into, facts)
    check_planted_place(out)


def _is_free(folder: Path) -> bool:
    """Return True if nothing is at the path, or an empty folder."""
    if folder.is_symlink():
        return False
    return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))


def check_planted_place(folder: Path) -> None:
    """Raise BadInput if ``folder`` holds anything but a planted model that Byheart wrote, which may be replaced."""
    if _is_free(folder):
        return
    try:
        manifest = read_manifest(folder)
    except BadInput:
        raise BadInput(f"{folder}: exists and is no planted model; choose another name or remove it") from None
    if strange := strange_files(folder, manifest):
        raise BadInput(f"{folder}: exists and holds {strange[0]!r}, which was not planted; choose another name")


def check_base_place(folder: Path) -> None:
    """Raise BadInput if ``folder`` exists already: a base that is given back replaces nothing."""
    if not _is_free(folder):
        raise BadInput(f"{folder}: exists; choose another name or remove it")
