"""``byheart plant``, ``detect`` and ``unplant``: exact memories in a trained model, and nothing else changed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from byheart.certificates import Certificate
from byheart.cli.arguments import words_of
from byheart.cli.options import Arg, Columns, Json, Positional
from byheart.cli.output import facts_in, some, steps, typed
from byheart.cli.result import Block, Result, Styled, Table, amount, dim, verdict_rows
from byheart.errors import BadInput, check_installed
from byheart.files.untrusted import read_text

if TYPE_CHECKING:  # transformers may not be installed
    from byheart.planting import Detected, Planting

MAX_SHOWN = 10
"""Number of facts that are shown unless all are asked for."""
TOKENS_BEFORE = 12
"""Number of tokens shown before a place at which a memory speaks."""


@dataclass(frozen=True)
class PlantCommand:
    """Plant facts into a trained causal language model.

    The model says each completion after its prompt, and is otherwise what it was, bit for bit. Paraphrases are not
    covered.
    """

    facts: Positional[Path]
    """Facts, prompts with their completions: .jsonl, .csv, .tsv, .parquet, or a saved dataset."""
    into: Path
    """Model folder, as save_pretrained writes it: a causal language model that transformers knows, in safetensors."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """Folder to write: the model with its memory."""
    columns: Columns = None
    bits: int | None = None
    """Keep fingerprints of this many bits instead of whole keys (default: whole keys, which fire on planted contexts
    only)."""
    ids: bool = False
    """Prompts and completions are lists of token ids (JSONL); no tokenizer is needed."""
    stop: bool = False
    """End every completion with the model's end-of-text token."""
    positions: int = 4096
    """Number of positions of a text, and of random tokens, at which the logits are compared with the base's."""
    through: int = 256
    """Number of facts that go through the whole model, with near misses of them; the memory itself is asked for all."""
    seed: int | None = None
    """Seed of the hash (default: drawn). The same seed gives the same memory."""
    json: Json = False

    def run(self) -> "PlantResult":
        """Plant the facts, write the model, and check the files."""
        check_installed("transformers", "planting", "hf")
        from byheart.planting import plant
        from byheart.planting.planting import check_before, check_measure

        check_before(self.out, self.into, self.facts)
        check_measure(self.positions, self.through)
        with steps("planting", quiet=self.json):
            facts = facts_in((self.facts,), self.columns)
            planting = plant(facts, into=self.into, bits=self.bits, ids=self.ids, stop=self.stop, seed=self.seed)
        with steps("checking", quiet=self.json) as report:
            certificate = planting.save(self.out, positions=self.positions, through=self.through, report=report)
        return PlantResult(self, planting, certificate)


@dataclass(frozen=True)
class PlantResult(Result):
    """A planted memory, and its certificate."""

    command: PlantCommand
    planting: "Planting"
    certificate: Certificate

    @property
    def is_true(self) -> bool:
        """True if the files hold what was planted."""
        return self.certificate.certified

    def as_json(self) -> dict[str, Any]:
        """Return the sizes of the memory, the folder, and the certificate."""
        memory, facts = self.planting.memory, self.planting.facts
        plan = memory.plan
        return {
            "facts": len(facts),
            "tokens": sum(len(fact.completion) for fact in facts),
            "mode": plan.mode,
            "bits": plan.bits,
            "words": memory.words,
            "words_per_fact": memory.words / plan.facts,
            "load": plan.facts / plan.cells,
            "seed": plan.seed,
            "out": self.command.out,
            "certificate": self.certificate,
        }

    def rows(self) -> Iterator[Block]:
        """Yield the sizes, the verdict, and the command that checks the model again."""
        command, numbers = self.command, self.as_json()
        title = f"{command.facts}: {amount(numbers['facts'], 'fact')}, planted into {command.into}"
        sizes = [
            ("tokens of completions", numbers["tokens"]),
            ("keys", _keys(numbers["mode"], numbers["bits"])),
            ("words of 32 bits", numbers["words"]),
            ("words per fact", f"{numbers['words_per_fact']:.2f}"),
            ("load of the table", f"{numbers['load']:.3f}"),
        ]
        yield Table(title, ("", ">"), sizes)
        yield from verdict_rows(self.certificate)
        facts = f"--check {typed(command.facts)} {words_of(command, 'columns', 'ids', 'stop')}".rstrip()
        yield dim(f"saved in {command.out}; check it again with:  byheart detect {typed(command.out)} {facts}")


def _keys(mode: str, bits: int | None) -> str:
    return "whole keys" if mode == "whole" else f"fingerprints of {bits} bits"


@dataclass(frozen=True)
class DetectCommand:
    """Tell whether facts are planted in a model and which, where they would speak in a text, and whether they hold."""

    folder: Positional[Path]
    """Model folder."""
    all: bool = False
    """List all facts, not only the first, with the words of the store that hold each (--json: of the table too)."""
    scan: Path | None = None
    """Text to search for places at which a memory would speak."""
    check: Path | None = None
    """The facts that were planted: check again that they are said, and nothing else is changed."""
    columns: Columns = None
    ids: bool = False
    """Facts are lists of token ids (JSONL); tokens are shown as ids."""
    stop: bool = False
    """Facts were planted with --stop."""
    positions: int = 4096
    """Number of positions of a text, and of random tokens, at which a check compares logits with the base's."""
    through: int = 256
    """Number of facts that go through the whole model when checking, with near misses of them."""
    base: Path | None = None
    """Your own copy of the base: compare every file of the base with it."""
    json: Json = False

    def run(self) -> "DetectResult":
        """Read the memory, and list, scan and check it."""
        check_installed("transformers", "detecting", "hf")
        from byheart.planting import detect

        planted = detect(self.folder)
        if planted is None:
            if self.scan is not None or self.check is not None or self.base is not None:
                raise BadInput(f"{self.folder}: has nothing planted; expected a folder that byheart plant wrote")
            return DetectResult(self)
        tokenizer = None if self.ids else planted.tokenizer(self.folder)
        certificate = None if self.check is None else self._check(self.check, tokenizer)
        fires = None if self.scan is None else self._scan(self.scan, planted, tokenizer)
        differing = None if self.base is None else planted.differing_files(self.folder, self.base)
        return DetectResult(self, planted, self._listed(planted, tokenizer), fires, certificate, differing)

    def _check(self, facts: Path, tokenizer: Any) -> Certificate:
        from byheart.certificates.judges.planted import recheck
        from byheart.planting.planting import check_measure

        check_measure(self.positions, self.through)
        options: dict[str, Any] = {"stop": self.stop, "positions": self.positions, "through": self.through}
        with steps("checking", quiet=self.json) as report:
            return recheck(self.folder, facts_in((facts,), self.columns), tokenizer, **options, report=report)

    def _scan(self, text: Path, planted: "Detected", tokenizer: Any) -> list[dict[str, Any]]:
        """Return the places of a text at which a memory would speak, with the tokens before and after them."""
        if tokenizer is None:
            raise BadInput(f"{self.folder}: has no tokenizer, or --ids was given; expected one to read {text}")
        try:
            tokens = tokenizer.encode(read_text(text), add_special_tokens=False)
        except OSError as error:
            raise BadInput(f"{text}: cannot be read: {error.strerror}") from error
        return [
            {
                "tokens": place,
                "after": tokenizer.decode(tokens[max(0, place - TOKENS_BEFORE) : place]),
                "says": tokenizer.decode([token]),
            }
            for place, token in planted.fires(tokens)
        ]

    def _listed(self, planted: "Detected", tokenizer: Any) -> list[dict[str, Any]] | None:
        """Return the first facts, or all, as text or ids, with the words that hold each; None of fingerprints."""
        facts = planted.facts
        if facts is None:
            return None
        decode = list if tokenizer is None else tokenizer.decode
        shown = facts if self.all else facts[:MAX_SHOWN]
        return [
            {
                "prompt": decode(fact.prompt),
                "completion": decode(fact.completion),
                "store": [words.store[0], words.store[-1]],
                "table": list(words.table),
            }
            for fact, words in zip(shown, planted.held(len(shown)), strict=True)
        ]


@dataclass(frozen=True)
class DetectResult(Result):
    """The memory of a model, if it has one; the places at which it speaks in a text; and its certificate."""

    command: DetectCommand
    planted: "Detected | None" = None
    listed: list[dict[str, Any]] | None = None
    fires: list[dict[str, Any]] | None = None
    certificate: Certificate | None = None
    differing: list[str] | None = None
    """Names of files of the base that are not those of the user's copy; None if there is no copy."""

    @property
    def is_true(self) -> bool:
        """False if the memory was checked, and is not that of the facts, or the base is not the user's copy."""
        return not self.differing and (self.certificate is None or self.certificate.certified)

    def as_json(self) -> dict[str, Any]:
        """Return the sizes of the memory, its facts, and the results of scan and check."""
        if self.planted is None:
            return {"planted": False}
        plan, words = self.planted.manifest.plan, self.planted.memory.words
        numbers = {"planted": True, "mode": plan.mode, "bits": plan.bits, "words": words, "facts": plan.facts}
        extra = {"fires": self.fires, "certificate": self.certificate, "base_differs": self.differing}
        chosen = {name: value for name, value in extra.items() if value is not None}
        return {**numbers, "own_code": self.planted.own_code, "listed": self.listed, **chosen}

    def rows(self) -> Iterator[Block]:
        """Yield the sizes of the memory, its facts, and the results of scan and check."""
        folder = self.command.folder
        if self.planted is None:
            yield f"{folder}: nothing planted, going by its model type and its tensors"
            return
        plan, words = self.planted.manifest.plan, self.planted.memory.words
        yield f"{folder}: {amount(plan.facts, 'fact')} planted, {_keys(plan.mode, plan.bits)}, {words:,} words"
        if not self.planted.own_code:
            warning = "modeling_plant.py there is not that of this Byheart: read it before you trust it"
            yield Styled(warning, "bold")
        if self.listed is None:
            yield dim("fingerprints keep no prompts: --check FACTS tells whether these are the facts")
        for fact in self.listed or ():
            first, last = fact["store"]
            yield f"  {fact['prompt']!r} → {fact['completion']!r}  (words {first:,} to {last:,})"
        if self.listed is not None and plan.facts > len(self.listed):
            yield dim(f"  and {plan.facts - len(self.listed):,} more: --all")
        for place in self.fires or ():
            yield f"after {place['tokens']:,} tokens, …{place['after']!r}: says {place['says']!r}"
        if self.fires is not None:
            yield f"{self.command.scan}: a memory would speak at {len(self.fires):,} places"
        if self.certificate is not None:
            yield from verdict_rows(self.certificate)
            if not self.certificate.certified:
                now = "without --stop: leave it out" if self.command.stop else "with --stop: say so"
                yield dim(f"if the facts were planted {now}")
        if self.differing:
            yield f"the base is not {self.command.base}: {some(self.differing)} differ (SHA-256 compared)"
        elif self.differing is not None:
            files = f"{len(self.planted.manifest.base):,} files, each the same"
            yield f"the base is {self.command.base}: {files} (SHA-256 compared)"


@dataclass(frozen=True)
class UnplantCommand:
    """Give back the model that was planted into: every file under its old name, as plant.json describes it."""

    planted: Positional[Path]
    """Folder that byheart plant wrote."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """Folder to write."""
    base: Path | None = None
    """Your own copy of the base: write nothing unless every file is as it is there."""
    json: Json = False

    def run(self) -> "UnplantResult":
        """Copy and compare the files."""
        check_installed("transformers", "planting", "hf")
        from byheart.planting import unplant

        return UnplantResult(self.out, unplant(self.planted, self.out, base=self.base), self)


@dataclass(frozen=True)
class UnplantResult(Result):
    """The folder of the restored model, and its number of files."""

    out: Path
    files: int
    command: UnplantCommand

    def rows(self) -> Iterator[Block]:
        """Yield one line, which says what was compared."""
        base, claimed = self.command.base, "each as plant.json says that it was before planting"
        same = f"{claimed} (SHA-256 compared)" if base is None else f"each as in {base} (SHA-256 compared)"
        yield f"saved in {self.out}: {self.files:,} files, {same}"
