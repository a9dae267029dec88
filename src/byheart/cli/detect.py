"""``byheart detect FOLDER``: whether and what a model has planted in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byheart.cli.certify import print_verdict
from byheart.cli.options import Columns, Json, Positional
from byheart.cli.output import DONE, NOT_TRUE, facts_in, steps
from byheart.cli.result import console, number, print_json
from byheart.errors import BadInput, check_installed

if TYPE_CHECKING:
    from byheart.certificates import Certificate
    from byheart.planting import Detected, Fact
    from byheart.planting.detecting import MemoryLocation

SHOWN = 10
"""Facts that are shown if not all are asked for."""


@dataclass(frozen=True)
class DetectCommand:
    """Say whether and what a model has planted in it, where that would speak in a text, and whether it is true."""

    folder: Positional[Path]
    """Model folder."""
    all: bool = False
    """List all facts, not only the first, with the words of the store that hold each (--json: of the table too)."""
    scan: Path | None = None
    """A text: where would a memory speak?"""
    check: Path | None = None
    """The facts that were planted: check again that they are said, and nothing else is changed."""
    columns: Columns = None
    ids: bool = False
    """Facts are lists of token ids (JSONL); tokens are shown as ids."""
    stop: bool = False
    """Facts were planted with --stop."""
    positions: int = 4096
    """Positions of a text, and as many of random tokens, at which a check compares logits with the base's."""
    through: int = 256
    """Facts that go through the whole model when checking, with near misses of them."""
    json: Json = False

    def run(self) -> int:
        """Look, list, scan, check, print."""
        check_installed("transformers", "detecting", "hf")
        from byheart.planting import detect

        found = detect(self.folder)
        if found is None:
            if self.scan is not None or self.check is not None:
                raise BadInput(f"{self.folder}: has nothing planted; expected a folder that byheart plant wrote")
            self._print_nothing()
            return DONE
        tokenizer = None if self.ids else found.tokenizer(self.folder)
        certificate = None if self.check is None else self._check(self.check, tokenizer)
        fires = None if self.scan is None else self._scan(self.scan, found, tokenizer)
        if self.json:
            self._print_json(found, tokenizer, fires, certificate)
        else:
            self._print(found, tokenizer, fires, certificate)
        return DONE if certificate is None or certificate.certified else NOT_TRUE

    def _check(self, facts: Path, tokenizer: Any) -> "Certificate":
        from byheart.planting.planting import check_measure, recheck

        check_measure(self.positions, self.through)
        options: dict[str, Any] = {"positions": self.positions, "through": self.through}
        with steps("checking", quiet=self.json) as report:
            return recheck(
                self.folder, facts_in((facts,), self.columns), tokenizer, stop=self.stop, **options, report=report
            )

    def _scan(self, text: Path, found: "Detected", tokenizer: Any) -> list[dict[str, Any]]:
        from byheart.files.untrusted import read_text

        if tokenizer is None:
            raise BadInput(f"{self.folder}: has no tokenizer, or --ids was given; expected one to read {text}")
        try:
            tokens = tokenizer.encode(read_text(text), add_special_tokens=False)
        except OSError as error:
            raise BadInput(f"{text}: cannot be read: {error.strerror}") from error
        near = [(tokens[max(0, place - 12) : place], place, token) for place, token in found.fires(tokens)]
        return [
            {"tokens": place, "after": tokenizer.decode(before), "says": tokenizer.decode([token])}
            for before, place, token in near
        ]

    def _listed(self, found: "Detected", facts: Sequence["Fact"], tokenizer: Any) -> list[dict[str, Any]]:
        shown = facts if self.all else facts[:SHOWN]
        return [_shown(one, held, tokenizer) for one, held in zip(shown, found.held(len(shown)), strict=True)]

    def _print_nothing(self) -> None:
        if self.json:
            print_json({"planted": False})
        else:
            console().print(f"{self.folder}: nothing planted, going by its model type and its tensors", markup=False)

    def _print_json(self, found: "Detected", tokenizer: Any, fires: Any, certificate: "Certificate | None") -> None:
        plan, facts = found.manifest.plan, found.facts
        shown = None if facts is None else self._listed(found, facts, tokenizer)
        more: dict[str, Any] = {} if fires is None else {"fires": fires}
        more |= {} if certificate is None else {"certificate": certificate.as_json()}
        numbers = {"planted": True, "mode": plan.mode, "bits": plan.bits, "words": found.memory.words}
        print_json({**numbers, "facts": plan.facts, "own_code": found.own_code, "listed": shown, **more})

    def _print(self, found: "Detected", tokenizer: Any, fires: Any, certificate: "Certificate | None") -> None:
        out, plan, facts = console(), found.manifest.plan, found.facts
        kind = "whole keys" if plan.mode == "whole" else f"fingerprints of {plan.bits} bits"
        count = f"{number(plan.facts)} fact" + "s" * (plan.facts != 1)
        out.print(f"{self.folder}: {count} planted, {kind}, {found.memory.words:,} words", markup=False)
        if not found.own_code:
            out.print("modeling_plant.py there is not that of this Byheart: read it before you trust it", style="bold")
        if facts is None:
            out.print("fingerprints keep no prompts: --check FACTS tells whether these are the facts", style="dim")
        else:
            _print_facts(self._listed(found, facts, tokenizer), len(facts))
        for one in fires or ():
            out.print(f"after {one['tokens']:,} tokens, …{one['after']!r}: says {one['says']!r}", markup=False)
        if fires is not None:
            out.print(f"{self.scan}: a memory would speak at {len(fires):,} places", markup=False)
        if certificate is not None:
            print_verdict(certificate)


def _print_facts(shown: Sequence[dict[str, Any]], count: int) -> None:
    for one in shown:
        first, last = one["store"]
        console().print(f"  {one['prompt']!r} → {one['completion']!r}  (words {first:,} to {last:,})", markup=False)
    if count > len(shown):
        console().print(f"  and {count - len(shown):,} more: --all", style="dim", markup=False)


def _shown(fact: "Fact", held: "MemoryLocation", tokenizer: Any) -> dict[str, Any]:
    """A fact as text, as ids where there is no tokenizer; and the words that hold it: the store's ends, the table's."""
    words = {"store": [held.store[0], held.store[-1]], "table": list(held.table)}
    if tokenizer is None:
        return {"prompt": list(fact.prompt), "completion": list(fact.completion), **words}
    return {"prompt": tokenizer.decode(fact.prompt), "completion": tokenizer.decode(fact.completion), **words}
