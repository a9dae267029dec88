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
from byheart.networks.about import end_of, refuse_of, texts_of
from byheart.progress import Report
from byheart.tasks.contexts import Contexts, text_contexts
from byheart.tasks.edits import changed_from, question_at, with_labels
from byheart.tasks.texts import Text

if TYPE_CHECKING:
    from byheart.networks.transformer.network import TransformerNetwork


@dataclass(frozen=True, eq=False)
class Edited:
    """The network after the change, and what has changed."""

    built: Built
    before: Contexts
    """What was asked and answered before the change."""
    question: int
    """Which question got another answer."""
    was: int
    """Its answer before."""
    words_changed: int | None
    """How many words of the table are others, nothing else; None if the network had to be compiled anew."""


def _present(network: "TransformerNetwork", contexts: Contexts) -> Contexts:
    """The questions with the answers that the network gives now, whatever the texts, or its folder, say.

    BadInput if these are not proved to be exact, or if more of them are others than its folder says it was edited.
    """
    from byheart.networks.transformer.proved import proved_answers

    found = proved_answers(network.module, contexts.tokens, contexts.starts, contexts.places)
    if not (found.margins > 0).all():
        raise BadInput("not all answers of the network are proved to be exact; expected one that can be certified")
    now = changed_from(contexts.with_answers(found.labels), contexts)
    edits = network.about.get("edits")
    if now.edited > (len(edits) if isinstance(edits, list) else 0):
        first = int((now.labels != contexts.labels).argmax())
        expected, got = contexts.labels[first], now.labels[first]
        raise BadInput(
            f"does not answer all questions of the given texts; question {first}: expected {expected}, got {got}"
        )
    return now


def edit(
    network: "TransformerNetwork", contexts: Contexts, place: int, label: int, *, report: Report | None = None
) -> Edited:
    """Give the question at ``place`` (an index into ``contexts.tokens``) the answer ``label``; others stay.

    ``contexts`` are what the texts ask and answer, which the network may have been edited away from before.
    """
    labels = network.spec.labels - (refuse_of(network) is not None)
    if contexts.label_count != labels:
        raise BadInput(f"the network answers with {labels} labels; what was given has {contexts.label_count}")
    if not 0 <= label < contexts.label_count:
        raise BadInput(f"the new answer is {label}; expected 0 to {contexts.label_count - 1}")
    question, now = question_at(contexts, place), _present(network, contexts)
    changed = changed_from(with_labels(now, {question: label}), contexts)
    recipe = Recipe.from_json(network.about.get("recipe", {}))
    recipe.check(labels=network.spec.labels, parameters=network.account.dense)
    built = _solved_again(recipe, changed, network, report) if recipe.lengths[label] >= 0 else None
    words = None if built is None else _words_changed(network, built)
    if built is None:
        seed = recipe.draw[0]
        built = compile_rectangular(changed, recipe.settings, seed=seed, files=network.files, report=report)
    about = {**network.about, **built.network.about, "edits": _edits(changed, contexts)}
    was = int(now.labels[question])
    return Edited(replace(built, network=replace(built.network, about=about)), now, question, was, words)


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
    if getattr(built.network, "spec", None) != network.spec:
        raise BadInput("config.json: about.recipe is not that of the network; expected the folder as it was compiled")
    new = dict(built.network.tensors())
    return sum(int(np.sum(old != new[name])) for name, old in network.tensors())


def _edits(changed: Contexts, given: Contexts) -> list[dict[str, Any]]:
    """Where answers are not those of the texts: at which token of which, what is said, and what the text has."""
    found = []
    for question in np.flatnonzero(changed.labels != given.labels):
        place = int(given.places[question])
        number = int(np.searchsorted(given.starts, place, side="right")) - 1
        found.append(
            {
                "text": (given.names[number] if given.names else "") or number,
                "token": place - int(given.starts[number]),
                "label": int(changed.labels[question]),
                "was": int(given.labels[question]),
            }
        )
    return found
