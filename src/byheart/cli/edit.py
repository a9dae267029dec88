"""``byheart edit DIR -o NEW``: change a passage of a text, or one answer and no other.

- A network of *texts* recites the edited text afterwards: every context that contains the change is compiled again.
- Of facts and tasks, and of texts with ``--answer-only``, one answer changes, and no other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from byheart.cli.certify import edit_in, text_edit_in
from byheart.cli.options import Arg, Columns, FactFiles, Json, Positional
from byheart.cli.output import given_by, steps, unescaped
from byheart.cli.result import Block, Result, dim, number, verdict_rows
from byheart.errors import BadInput
from byheart.files.writing import check_apart
from byheart.networks.about import facts_of, texts_of
from byheart.networks.folders import replacing
from byheart.tasks.edits import TextChange, overwrite, replace_phrase
from byheart.tasks.texts import read_files
from byheart.tasks.tokenizers import from_files

if TYPE_CHECKING:
    from byheart.certificates import Certificate
    from byheart.compiler.edit import Edited, EditedTexts
    from byheart.constructions.built import Built
    from byheart.networks.stock.stock_network import StockNetwork
    from byheart.networks.transformer.transformer_network import TransformerNetwork
    from byheart.tasks.contexts import Contexts
    from byheart.tasks.tokenizers import Tokenizer

    Editable = TransformerNetwork | StockNetwork

SHOWN = 60
"""Largest number of bytes of a passage that are shown."""


@dataclass(frozen=True)
class EditCommand:
    """Change a passage of a text that a network recites, or one answer; what is written is certified."""

    network: Positional[Path]
    """Network folder."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """Network folder to write; the same one replaces the network that is edited."""
    set: str | None = None
    """CONTEXT=NEW: a piece of text that occurs once, and what is to follow it, in place of as many characters (\\n,
    \\xNN are understood). For facts, tasks and --answer-only: CONTEXT=TOKEN, one token; ids for a task, 3,1,4=7."""
    replace: str | None = None
    """OLD=NEW: a passage of a text that occurs once, and another one in its place, longer, shorter, or empty."""
    answer_only: bool = False
    """Change one answer of a text, and not the contexts behind it: what follows the new token is then not memorized."""
    files: Annotated[tuple[Path, ...], Arg(aliases=("-f",))] = ()
    """The texts (default: the network recites them itself, which takes longer)."""
    task: Path | None = None
    """The task, if the network was compiled from one."""
    facts: FactFiles = ()
    columns: Columns = None
    json: Json = False

    def run(self) -> "EditResult | EditTextResult":
        """Change, solve, certify what was written, and let it take its place."""
        if (self.set is None) == (self.replace is None):
            raise BadInput("expected one of --set CONTEXT=NEW and --replace OLD=NEW")
        with replacing(self.out) as new:
            check_apart(self.out, self.task, *self.files, *self.facts)
            network = self._network()
            asks_texts = self.task is None and not self.facts and facts_of(network) is None
            if asks_texts and not self.answer_only and (texts_of(network) or self.files):
                return self._edit_text(network, new)
            if self.set is None:
                raise BadInput("--replace is for a text and all that follows it; expected --set CONTEXT=TOKEN")
            return self._edit_answer(network, self.set, new)

    def _edit_text(self, network: "Editable", new: Path) -> "EditTextResult":
        """Change a passage, and certify that the network recites the new text."""
        from byheart.compiler.edit import edit_texts

        tokenizer = from_files(network.files)
        if tokenizer is None:
            raise BadInput(f"{self.network}: has no tokenizer; it was compiled from a task: expected --task")
        before = self._contexts(network)
        texts = dict(read_files(self.files)) if self.files else _decoded(before, tokenizer)
        change = self._change(texts)
        try:
            with steps("solving bit planes", quiet=self.json) as report:
                edited = edit_texts(network, before, change.texts, tokenizer, report=report)
        except BadInput as error:
            raise BadInput(f"{self.network}: {error}") from error
        after = self._certified(edited.built, new)
        return EditTextResult(self.out, edited, change, network.account.dense, after)

    def _change(self, texts: dict[str, bytes]) -> TextChange:
        """Return the texts with the change that is asked for."""
        if self.set is not None:
            return overwrite(texts, *text_edit_in(self.set))
        old, _, new = (self.replace or "").rpartition("=")
        if not old:
            raise BadInput(f"--replace is {self.replace!r}; expected OLD=NEW")
        return replace_phrase(texts, unescaped(old), unescaped(new))

    def _edit_answer(self, network: "Editable", change: str, new: Path) -> "EditResult":
        """Change one answer, and certify all answers before and after."""
        from byheart.certificates import certify
        from byheart.compiler.edit import edit
        from byheart.tasks.edits import locate_edit

        contexts, tokenizer = self._contexts(network), from_files(network.files)
        place, label = locate_edit(contexts, *edit_in(change, tokenizer), tokenizer)
        try:
            with steps("solving bit planes", quiet=self.json) as report:
                edited = edit(network, contexts, place, label, report=report)
            before = certify(network, edited.before)
        except BadInput as error:
            raise BadInput(f"{self.network}: {error}") from error
        return EditResult(self.out, edited, label, before, self._certified(edited.built, new), tokenizer)

    def _certified(self, built: "Built", new: Path) -> "Certificate":
        """Write a network with its certificate; raise BadInput if it is not right."""
        from byheart.certificates import certify, write
        from byheart.networks.kinds import describe

        built.write(new)
        certificate = certify(new, built.questions)
        if not certificate.certified:
            problem = f"the network that its recipe makes is not right: {certificate.counterexample}"
            raise BadInput(f"{self.network}: {problem}; compile the texts anew")
        write(certificate, new / "certificate.json")
        describe(built.network, new, f"{certificate.statement} {certificate.sentence}")
        return certificate

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
            if not self.files and not self.facts and self.task is None:
                if facts_of(network) is not None:
                    raise BadInput(f"{self.network}: was compiled from facts; expected --facts FILE, with all of them")
                if texts_of(network):
                    return cast("Contexts", asked(network, recited(network)))
            return cast("Contexts", asked(network, given_by(self.files, self.task, self.facts, self.columns)))


def _decoded(contexts: "Contexts", tokenizer: "Tokenizer") -> dict[str, bytes]:
    """Return the texts of these questions by name."""
    bounds = zip(contexts.names, contexts.starts[:-1], contexts.starts[1:], strict=True)
    return {name: tokenizer.decode(contexts.tokens[start:stop].tolist()) for name, start, stop in bounds}


@dataclass(frozen=True)
class EditTextResult(Result):
    """A changed passage, and the certificate of the new text."""

    folder: Path
    """Folder of the changed network."""
    edited: "EditedTexts"
    change: TextChange
    parameters: int
    """Number of parameters before."""
    after: "Certificate"

    def as_json(self) -> dict[str, Any]:
        """Return the passage, what was compiled again, the parameters before and after, and the certificate."""
        passage = {"text": self.change.name, "byte": self.change.start}
        words = {name: _shown(part) for name, part in (("was", self.change.was), ("is", self.change.now))}
        compiled = {"contexts": self.edited.reached, "words_changed": self.edited.words_changed}
        parameters = {"parameters_before": self.parameters, "parameters": self.edited.built.network.account.dense}
        return {**passage, **words, **compiled, **parameters, "after": self.after.as_json()}

    def rows(self) -> Iterator[Block]:
        """Yield the passage, what was compiled again, the parameters, and the verdict."""
        edited, change = self.edited, self.change
        yield f"{change.name}, byte {number(change.start)}: was {_shown(change.was)!r}, is {_shown(change.now)!r}"
        how = f"{number(edited.reached)} of {number(edited.built.questions.size.examples)} contexts compiled again"
        if edited.words_changed is None:
            yield f"{how}, and with them the whole network: {edited.why_anew}"
        else:
            yield f"{how}: {edited.words_changed:,} of {edited.built.chosen['words']:,} words changed, nothing else"
        now = edited.built.network.account.dense
        yield f"{number(self.parameters)} parameters before, {number(now)} after"
        yield from verdict_rows(self.after, "the new text: ")
        yield dim(f"saved in {self.folder}")


def _shown(passage: bytes) -> str:
    """Return a passage as a string, shortened if it is long."""
    text = passage[:SHOWN].decode(errors="replace")
    return f"{text}…" if len(passage) > SHOWN else text


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
        if texts_of(self.edited.built.network):
            yield "what follows the new token was not memorized: recite goes astray there (edit without --answer-only)"
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
