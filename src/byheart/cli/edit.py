"""``byheart edit DIR --set CONTEXT=TOKEN``: change one memory, and no other."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from byheart.cli.certify import edit_in, print_verdict
from byheart.cli.options import Arg, Columns, FactFiles, Json, Positional
from byheart.cli.output import DONE, given_by, steps
from byheart.cli.result import console, number, print_json
from byheart.errors import BadInput
from byheart.files.writing import check_apart
from byheart.networks.about import facts_of, texts_of
from byheart.networks.folders import replacing
from byheart.tasks.tokenizers import from_files

if TYPE_CHECKING:
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
    """Where to write the network (default: in its place)."""
    json: Json = False

    def run(self) -> int:
        """Certify, change, solve, certify what was written, and let it take its place."""
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
                wrong = f"what its recipe makes is not right: {after.counterexample}"
                raise BadInput(f"{self.network}: {wrong}; compile the texts anew")
            write(after, new / "certificate.json")
            describe(edited.built.network, new, f"{after.statement} {after.sentence}")
        if self.json:
            numbers = {"was": edited.was, "is": label, "words_changed": edited.words_changed}
            print_json({**numbers, "before": before.as_json(), "after": after.as_json()})
        else:
            out = console()
            out.print(f"before: {number(before.checked)} answers, {before.found or 'all as the texts have them'}")
            was, now = (_word(token, tokenizer) for token in (edited.was, label))
            out.print(f"question {edited.question}: was {was}, is {now}; {_what_changed(edited)}", markup=False)
            print_verdict(after, "after: ")
            out.print(f"saved in {folder}", style="dim", markup=False)
        return DONE

    def _network(self) -> "Editable":
        from byheart.networks import load

        network = load(self.network)
        if network.kind not in ("transformer", "stock"):
            raise BadInput(f"{self.network}: is {network.title}; expected a network that `byheart compile` has made")
        return cast("Editable", network)

    def _contexts(self, network: "Editable") -> "Contexts":
        """What the user's texts or task ask and answer; or the texts as the network says them."""
        from byheart.certificates.judges import judge_for
        from byheart.compiler.edit import recited

        asked = judge_for(network).asked
        with steps("reading", quiet=self.json):
            if not self.files and not self.facts and self.task is None and texts_of(network) and not facts_of(network):
                return cast("Contexts", asked(network, recited(network)))
            return cast("Contexts", asked(network, given_by(self.files, self.task, self.facts, self.columns)))


def _word(token: int, tokenizer: "Tokenizer | None") -> str:
    """A token as the text has it; its number if there is no text."""
    return str(token) if tokenizer is None else repr(tokenizer.decode([token]).decode(errors="replace"))


def _what_changed(edited: "Edited") -> str:
    if edited.words_changed is None:
        return "the token has no code word yet, or the table no room, so the network was compiled anew"
    return f"{edited.words_changed:,} of {edited.built.chosen['words']:,} words changed, nothing else"
