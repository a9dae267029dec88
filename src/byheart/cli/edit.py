"""``byheart edit DIR --set CONTEXT=TOKEN``: change one memory, and no other."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from byheart.cli.output import DONE, NOT_TRUE, Json, console, number, print_json, status, steps
from byheart.cli.recite import unescaped
from byheart.errors import BadInput
from byheart.networks.folders import check_destination

if TYPE_CHECKING:
    from byheart.constructions.reciting.edit import Edited
    from byheart.networks.transformer.store import Loaded
    from byheart.tasks.contexts import Contexts


@dataclass(frozen=True)
class EditCommand:
    """Change what a compiled network answers to one context; all other answers stay, and both are certified."""

    network: Positional[Path]
    """Network folder."""
    set: str
    """CONTEXT=TOKEN: a piece of text that occurs once, and what is to follow it (\\\\n and \\\\xNN are understood). For
    a task: token ids, 3,1,4=7."""
    files: Annotated[tuple[Path, ...], arg(aliases=["-f"])] = ()
    """The texts (default: the network recites them itself, which takes longer)."""
    task: Path | None = None
    """The task, if the network was compiled from one."""
    out: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Where to write the network (default: in its place)."""
    json: Json = False

    def run(self) -> int:
        """Certify, change, solve, save, certify."""
        from byheart.certificates import write
        from byheart.certificates.floats import certify_transformer
        from byheart.constructions.reciting.edit import edit
        from byheart.networks.transformer import store

        check_destination(self.out or self.network, "float")
        loaded = store.load(self.network)
        contexts, tokenizer = self._contexts(loaded)
        place, label = self._change(contexts, tokenizer)
        before = certify_transformer(loaded.module, contexts, twice=False)
        if not before.certified:
            raise BadInput(f"{self.network}: does not answer all questions of the given texts; {before.counterexample}")
        with steps("solving bit planes", quiet=self.json) as report:
            edited = edit(loaded.about, contexts, place, label, report=report)
        about = self._about(loaded, edited, place, label)
        folder = self.out or self.network
        changed = _words_changed(loaded, edited)
        also = None if tokenizer is None else tokenizer.save
        store.save(folder, edited.compiled.spec, edited.compiled.tensors, about, also=also)
        after = certify_transformer(store.load(folder).module, edited.compiled.contexts, twice=False)
        write(after, folder / "certificate.json")
        result = {
            "was": edited.was,
            "is": label,
            "before": before.as_json(),
            "after": after.as_json(),
            "same_front": edited.same_front,
            "words_changed": changed,
        }
        if self.json:
            print_json(result)
        else:
            out = console()
            out.print(f"before: {number(before.checked)} of {number(before.checked)} answers right")
            out.print(f"question {edited.question}: was {edited.was}, is {label}; {_what_changed(edited, changed)}")
            verdict = "[bold green]certified[/]" if after.certified else "[bold red]not certified[/]"
            right = f"{number(after.checked - after.errors)} of {number(after.checked)} answers right"
            out.print(f"after: {verdict}, {right}, all others as they were")
        return DONE if after.certified else NOT_TRUE

    def _contexts(self, loaded: "Loaded") -> tuple["Contexts", Any]:
        from byheart.cli.questions import questions_of

        with status("reading", quiet=self.json):
            return questions_of(
                self.network, loaded.about, self.files, self.task, window=loaded.spec.window, loaded=loaded
            )

    def _change(self, contexts: "Contexts", tokenizer: Any) -> tuple[int, int]:
        """Where, and which label."""
        from byheart.constructions.reciting.edit import places_of

        context, _, answer = self.set.rpartition("=")
        if not answer and context.endswith("="):
            context, answer = context[:-1], "="
        if not context or not answer:
            raise BadInput(f"--set is {self.set!r}; expected CONTEXT=TOKEN")
        if tokenizer is None:
            piece, labels = _ids(context), _ids(answer)
        else:
            piece = tokenizer.encode(unescaped(context)).tolist()
            labels = tokenizer.encode(unescaped(answer)).tolist()
        if len(labels) != 1:
            raise BadInput(f"{answer!r} is {len(labels)} tokens; expected one")
        places = places_of(contexts, piece)
        if tokenizer is None:
            ends = set((contexts.starts[1:] - 1).tolist())
            places = [place for place in places if place in ends]
        if len(places) != 1:
            hint = "give more of it" if places else "nothing was changed"
            raise BadInput(f"{context!r} occurs {len(places)} times; expected once: {hint}")
        return places[0], labels[0]

    @staticmethod
    def _about(loaded: "Loaded", edited: "Edited", place: int, label: int) -> dict[str, Any]:
        import numpy as np

        starts = edited.compiled.contexts.starts
        number = int(np.searchsorted(starts, place, side="right")) - 1
        texts = loaded.about.get("texts", [])
        where = {"text": texts[number]["name"] if texts else number, "token": place - int(starts[number])}
        entry = {**where, "label": label, "was": edited.was}
        kept = [old for old in loaded.about.get("edits", []) if (old["text"], old["token"]) != tuple(where.values())]
        return {**loaded.about, **edited.compiled.about(), "edits": [*kept, entry]}


def _ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.replace(" ", "").split(",")]
    except ValueError:
        raise BadInput(f"{text!r} is no list of token ids; expected numbers, 3,1,4") from None


def _words_changed(loaded: "Loaded", edited: "Edited") -> int | None:
    import numpy as np

    if not edited.same_front:
        return None
    old = {name: tensor.detach().double().numpy() for name, tensor in loaded.module.state_dict().items()}
    return sum(int(np.sum(old[name] != tensor)) for name, tensor in edited.compiled.tensors.items())


def _what_changed(edited: "Edited", words: int | None) -> str:
    if words is None:
        return "the token has no code word yet, or the table no room, so the network was compiled anew"
    return f"{words:,} of {edited.compiled.recipe.sizes.words:,} words changed, nothing else"
