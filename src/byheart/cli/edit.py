"""``byheart edit DIR --set CONTEXT=TOKEN``: change one memory, and no other."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from byheart.cli.certify import edit_in
from byheart.cli.options import Arg, Columns, FactFiles, Json, Positional
from byheart.cli.output import given_by, steps
from byheart.cli.result import Block, Result, dim, number, verdict_rows
from byheart.errors import BadInput
from byheart.files.writing import check_apart
from byheart.networks.about import facts_of, texts_of
from byheart.networks.folders import replacing
from byheart.tasks.tokenizers import from_files

if TYPE_CHECKING:
    from byheart.certificates import Certificate
    from byheart.compiler.edit import Edited
    from byheart.networks.stock.stock_network import StockNetwork
    from byheart.networks.transformer.transformer_network import TransformerNetwork
    from byheart.tasks.contexts import Contexts
    from byheart.tasks.tokenizers import Tokenizer

    Editable = TransformerNetwork | StockNetwork


@dataclass(frozen=True)
class EditCommand:
    """Change what a compiled network answers to one context; all other answers stay, and both are certified."""

    network: Positional[Path]
    """Network folder."""
    set: str
    """CONTEXT=TOKEN: a piece of text that occurs once, and what is to follow it (\\\\n and \\\\xNN are understood). For
    a task: token ids, 3,1,4=7."""
    files: Annotated[tuple[Path, ...], Arg(aliases=("-f",))] = ()
    """The texts (default: the network recites them itself, which takes longer)."""
    task: Path | None = None
    """The task, if the network was compiled from one."""
    facts: FactFiles = ()
    columns: Columns = None
    out: Annotated[Path | None, Arg(aliases=("-o",))] = None
    """Network folder to write (default: the folder that is edited)."""
    json: Json = False

    def run(self) -> "EditResult":
        """Certify, change, solve, certify what was written, and let it take the network's place."""
        from byheart.certificates import certify, write
        from byheart.compiler.edit import edit
        from byheart.networks.kinds import describe
        from byheart.tasks.edits import locate_edit

        folder = self.out or self.network
        with replacing(folder) as new:
            check_apart(folder, self.task, *self.files, *self.facts)
            network = self._network()
            contexts, tokenizer = self._contexts(network), from_files(network.files)
            place, label = locate_edit(contexts, *edit_in(self.set, tokenizer), tokenizer)
            try:
                with steps("solving bit planes", quiet=self.json) as report:
                    edited = edit(network, contexts, place, label, report=report)
                before = certify(network, edited.before)
            except BadInput as error:
                raise BadInput(f"{self.network}: {error}") from error
            edited.built.write(new)
            after = certify(new, edited.built.questions)
            if not after.certified:
                problem = f"the network that its recipe makes is not right: {after.counterexample}"
                raise BadInput(f"{self.network}: {problem}; compile the texts anew")
            write(after, new / "certificate.json")
            describe(edited.built.network, new, f"{after.statement} {after.sentence}")
        return EditResult(folder, edited, label, before, after, tokenizer)

    def _network(self) -> "Editable":
        from byheart.networks import load

        network = load(self.network)
        if network.kind not in ("transformer", "stock"):
            raise BadInput(f"{self.network}: is {network.title}; expected a network that `byheart compile` has made")
        return cast("Editable", network)

    def _contexts(self, network: "Editable") -> "Contexts":
        """Return the questions of the user's texts or task, or of the texts as the network recites them."""
        from byheart.certificates.judges import judge_for
        from byheart.compiler.edit import recited

        asked = judge_for(network).asked
        with steps("reading", quiet=self.json):
            if not self.files and not self.facts and self.task is None and texts_of(network) and not facts_of(network):
                return cast("Contexts", asked(network, recited(network)))
            return cast("Contexts", asked(network, given_by(self.files, self.task, self.facts, self.columns)))


@dataclass(frozen=True)
class EditResult(Result):
    """A changed answer, and the certificates of all answers before and after."""

    folder: Path
    """Folder of the changed network."""
    edited: "Edited"
    label: int
    """The new answer."""
    before: "Certificate"
    after: "Certificate"
    tokenizer: "Tokenizer | None"

    def as_json(self) -> dict[str, Any]:
        """Return the old and the new answer, the number of words that changed, and both certificates."""
        numbers = {"was": self.edited.was, "is": self.label, "words_changed": self.edited.words_changed}
        return {**numbers, "before": self.before.as_json(), "after": self.after.as_json()}

    def rows(self) -> Iterator[Block]:
        """Yield the answers before, the change, and the verdict after it."""
        yield f"before: {number(self.before.checked)} answers, {self.before.found or 'all as the texts have them'}"
        old, new = self._word(self.edited.was), self._word(self.label)
        yield f"question {self.edited.question}: was {old}, is {new}; {self._what_changed()}"
        yield from verdict_rows(self.after, "after: ")
        yield dim(f"saved in {self.folder}")

    def _word(self, token: int) -> str:
        """Return a token as the text has it, or its number if there is no text."""
        if self.tokenizer is None:
            return str(token)
        return repr(self.tokenizer.decode([token]).decode(errors="replace"))

    def _what_changed(self) -> str:
        if self.edited.words_changed is None:
            return "the token has no code word yet, or the table no room, so the network was compiled anew"
        words = self.edited.built.chosen["words"]
        return f"{self.edited.words_changed:,} of {words:,} words changed, nothing else"
