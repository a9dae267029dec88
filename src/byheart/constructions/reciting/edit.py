"""Changing one memory: the same network, the same hash, the words solved for again with one answer changed.

The front and everything behind the table stay as they are, bit for bit; only words change. All other questions keep
their answers, because they are equations of the same system. A label that has no code word yet needs another code, and
with it another network.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from byheart.constructions.built import Built
from byheart.constructions.reciting.rectangular import Recipe, compile_rectangular, compile_with
from byheart.constructions.reciting.sizes import Unsolvable
from byheart.errors import BadInput
from byheart.networks.about import end_of, texts_of
from byheart.progress import Report
from byheart.tasks.contexts import Contexts, text_contexts
from byheart.tasks.edits import question_at, with_labels
from byheart.tasks.texts import Text

if TYPE_CHECKING:
    from byheart.networks.transformer.network import TransformerNetwork


@dataclass(frozen=True, eq=False)
class Edited:
    """The network after the change, and what has changed."""

    built: Built
    question: int
    """Which question got another answer."""
    was: int
    """Its answer before."""
    words_changed: int | None
    """How many words of the table are others, nothing else; None if the network had to be compiled anew."""


def edit(
    network: "TransformerNetwork", contexts: Contexts, place: int, label: int, *, report: Report | None = None
) -> Edited:
    """Give the question at ``place`` (an index into ``contexts.tokens``) the answer ``label``."""
    if contexts.label_count != network.spec.labels:
        raise BadInput(
            f"the network answers with {network.spec.labels} labels; what was given has {contexts.label_count}"
        )
    if not 0 <= label < contexts.label_count:
        raise BadInput(f"the new answer is {label}; expected 0 to {contexts.label_count - 1}")
    question = question_at(contexts, place)
    was, edits = int(contexts.labels[question]), _edits(network, contexts, question, label)
    changed = replace(with_labels(contexts, {question: label}), edited=len(edits))
    recipe = Recipe.from_json(network.about.get("recipe", {}))
    recipe.check(labels=network.spec.labels, parameters=network.account.dense)
    built = _solved_again(recipe, changed, network, report) if recipe.lengths[label] >= 0 else None
    words = None if built is None else _words_changed(network, built)
    if built is None:
        seed = recipe.draw[0]
        built = compile_rectangular(changed, recipe.settings, seed=seed, files=network.files, report=report)
    about = {**network.about, **built.network.about, "edits": edits}
    return Edited(replace(built, network=replace(built.network, about=about)), question, was, words)


def recited(network: "TransformerNetwork") -> Contexts:
    """The questions of the texts as the network itself says them."""
    from byheart.networks.transformer.generate import generate_all

    if network.about.get("edits"):
        raise BadInput("the network was edited before, so it cannot recite its texts; give them with --files")
    known, end = texts_of(network), end_of(network)
    if not known or end is None:
        raise BadInput("config.json says nothing of texts, or of how they end; give them with --files")
    prompts, lengths = [text["prompt"] for text in known], [text["tokens"] for text in known]
    spoken = generate_all(network, prompts, end=end, tokens=lengths)
    texts = [
        Text(text["name"], np.array([*text["prompt"], *tokens], dtype=np.int32))
        for text, tokens in zip(known, spoken, strict=True)
    ]
    return text_contexts(texts, vocab=network.spec.vocab, end=end, window=network.window)


def _solved_again(
    recipe: Recipe, contexts: Contexts, network: "TransformerNetwork", report: Report | None
) -> Built | None:
    """The same front, other words. Other free bits give other carries: a few tries are as good as certain to do."""
    for draw in range(8):
        try:
            return compile_with(recipe, contexts, files=network.files, report=report, free_bits=draw)
        except Unsolvable:
            continue
    return None


def _words_changed(network: "TransformerNetwork", built: Built) -> int:
    new = dict(built.network.tensors())
    return sum(int(np.sum(old != new[name])) for name, old in network.tensors())


def _edits(network: "TransformerNetwork", contexts: Contexts, question: int, label: int) -> list[dict[str, Any]]:
    """Where answers are not those of the texts, after this change; ``was`` is what the text has there."""
    place, was = int(contexts.places[question]), int(contexts.labels[question])
    number = int(np.searchsorted(contexts.starts, place, side="right")) - 1
    where = {
        "text": contexts.names[number] if contexts.names else number,
        "token": place - int(contexts.starts[number]),
    }
    others = []
    for old in network.about.get("edits") or []:
        if (old["text"], old["token"]) == tuple(where.values()):
            was = old["was"]
        else:
            others.append(old)
    return [*others, {**where, "label": label, "was": was}] if label != was else others
