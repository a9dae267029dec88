"""``byheart plant FACTS --into MODEL -o OUT``: exact memories in a trained model, and nothing else changed."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from byheart.cli.certify import print_verdict
from byheart.cli.options import Arg, Columns, Json, Positional
from byheart.cli.output import DONE, NOT_TRUE, facts_in, steps
from byheart.cli.result import console, number, print_json, table
from byheart.errors import check_installed

if TYPE_CHECKING:
    from byheart.planting import Planting


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
    """Keep fingerprints of so many bits instead of whole keys (default: whole keys, which fire on planted contexts
    only)."""
    ids: bool = False
    """Prompts and completions are lists of token ids (JSONL); no tokenizer is needed."""
    stop: bool = False
    """End every completion with the model's end-of-text token."""
    positions: int = 4096
    """Positions of a text, and as many of random tokens, at which the logits are compared with the base's."""
    through: int = 256
    """Facts that go through the whole model, with near misses of them; the memory itself is asked for all of them."""
    seed: int | None = None
    """Seed of the hash (default: drawn). The same seed gives the same memory."""
    json: Json = False

    def run(self) -> int:
        """Read, plant, write, check what was written, print."""
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
        numbers = _numbers(planting)
        if self.json:
            print_json({**numbers, "out": str(self.out), "certificate": certificate.as_json()})
        else:
            self._print(numbers)
            print_verdict(certificate)
            console().print(f"saved in {self.out}; check it again with:  {self._again()}", style="dim", markup=False)
        return DONE if certificate.certified else NOT_TRUE

    def _again(self) -> str:
        """The command that checks what was planted."""
        columns = [] if self.columns is None else ["--columns", *self.columns]
        options = [*columns, *["--ids"] * self.ids, *["--stop"] * self.stop]
        return shlex.join(["byheart", "detect", str(self.out), "--check", str(self.facts), *options])

    def _print(self, numbers: dict[str, Any]) -> None:
        count = f"{number(numbers['facts'])} fact" + "s" * (numbers["facts"] != 1)
        rows = table(f"{self.facts}: {count}, planted into {self.into}", "", ">")
        rows.show_header = False
        rows.add_row("tokens of completions", number(numbers["tokens"]))
        rows.add_row("keys", _keys(numbers))
        rows.add_row("words of 32 bits", number(numbers["words"]))
        rows.add_row("words a fact", f"{numbers['words_per_fact']:.2f}")
        rows.add_row("load of the table", f"{numbers['load']:.3f}")
        console().print(rows)


def _keys(numbers: dict[str, Any]) -> str:
    return "whole" if numbers["mode"] == "whole" else f"fingerprints of {numbers['bits']} bits"


def _numbers(planting: "Planting") -> dict[str, Any]:
    plan, words = planting.memory.plan, planting.memory.words
    return {
        "facts": len(planting.facts),
        "tokens": sum(len(fact.completion) for fact in planting.facts),
        "mode": plan.mode,
        "bits": plan.bits,
        "words": words,
        "words_per_fact": words / plan.facts,
        "load": plan.facts / plan.cells,
        "seed": plan.seed,
    }
