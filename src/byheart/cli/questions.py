"""The questions of a compiled folder, from its files, its task, or from its own mouth."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from byheart.errors import BadInput

if TYPE_CHECKING:
    from byheart.networks.transformer.store import Loaded
    from byheart.tasks.contexts import Contexts
    from byheart.tasks.texts import Text
    from byheart.tasks.tokenizers import Tokenizer


def questions_of(
    folder: Path,
    about: dict[str, Any],
    files: tuple[Path, ...],
    task: Path | None,
    *,
    window: int | None = None,
    loaded: "Loaded | None" = None,
) -> tuple["Contexts", "Tokenizer | None"]:
    """The questions, edits applied, and the tokenizer if there is one.

    Without files and task, ``loaded`` recites its texts, if it is given.
    """
    from byheart.constructions.reciting.texts import with_edits
    from byheart.tasks import NextToken, load, tokenizers
    from byheart.tasks.contexts import task_contexts, text_contexts
    from byheart.tasks.texts import read_texts

    window = about["window"] if window is None else window
    edits = about.get("edits", ())
    if task is not None:
        if files:
            raise BadInput("expected either text files or --task, not both")
        given = load(task)
        if not isinstance(given, NextToken):
            raise BadInput(f"{task}: is a {given.kind} task; expected next-token")
        return with_edits(task_contexts(given, window), edits), None
    if not about.get("texts"):
        raise BadInput(f"{folder}: was compiled from a task; give it with --task")
    tokenizer = tokenizers.load(folder)
    if files:
        texts = read_texts(files, tokenizer)
    elif loaded is not None:
        texts = _recited(loaded)
    else:
        raise BadInput("expected the files that the network was compiled from, or --task")
    contexts = text_contexts(texts, vocab=tokenizer.vocab, end=tokenizer.end, window=window)
    return with_edits(contexts, edits, [text.name for text in texts]), tokenizer


def _recited(loaded: "Loaded") -> tuple["Text", ...]:
    """The texts as the network says them."""
    import numpy as np

    from byheart.networks.transformer.generate import generate_all
    from byheart.tasks.texts import Text

    about = loaded.about
    if about["edits"]:
        raise BadInput("the network was edited before, so it cannot recite its texts; give them with --files")
    prompts = [text["prompt"] for text in about["texts"]]
    spoken = generate_all(loaded.module, prompts, end=about["end"], tokens=[text["tokens"] for text in about["texts"]])
    return tuple(
        Text(text["name"], np.array([*text["prompt"], *tokens], dtype=np.int32))
        for text, tokens in zip(about["texts"], spoken, strict=True)
    )
