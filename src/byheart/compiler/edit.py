"""Change one memory: the same network and the same hash, with the words solved again for one changed answer.

The front and everything behind the table stay as they are, bit for bit. Only words change: in a stock model those of
one matrix, in a network with shards those of the shard that the question reads. All other questions keep their answers,
because they are equations of the same system. A label that has no code word yet needs another code, and with it another
network.
"""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from byheart.compiler.compile import compile_contexts
from byheart.compiler.layouts import NAME, Attempt, CompilerSettings, Resources, Unsolvable
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.networks import generate_all
from byheart.networks.about import end_of, texts_of
from byheart.progress import Report
from byheart.tasks.contexts import Contexts
from byheart.tasks.edits import count_edits, question_at, with_labels
from byheart.tasks.texts import Text
from byheart.tasks.windows import text_contexts

if TYPE_CHECKING:
    from byheart.networks.stock.stock_network import StockNetwork
    from byheart.networks.transformer.answers import Answers
    from byheart.networks.transformer.transformer_network import TransformerNetwork

    Editable = TransformerNetwork | StockNetwork

_TRIES = 8
"""Number of ways to fill the free bits that are tried before the network is compiled anew. Each gives other carries."""


@dataclass(frozen=True, eq=False)
class Edited:
    """The network after a change, and what has changed."""

    built: Built
    before: Contexts
    """The questions and their answers before the change."""
    question: int
    """Number of the question that got another answer."""
    was: int
    """Its answer before."""
    words_changed: int | None
    """Number of words of the table that changed, and nothing else; None if the network had to be compiled anew."""


class EditPlan(Protocol):
    """A network of one layout, and how to solve its words again."""

    label_count: int

    @property
    def recompile_seed(self) -> int:
        """The seed for compiling the network anew."""

    @property
    def settings(self) -> CompilerSettings:
        """The settings that the network was compiled with."""

    @property
    def seed(self) -> int:
        """The seed that the network was compiled with."""

    def has_code(self, label: int) -> bool:
        """Return True if the label has a code word."""

    def solve_again(self, contexts: Contexts, question: int, free_bits: int, resources: Resources) -> Attempt:
        """Return the same network with new words, after the answer to ``question`` has changed; raise Unsolvable."""


def edit(network: "Editable", contexts: Contexts, place: int, label: int, *, report: Report | None = None) -> Edited:
    """Give the question at ``place`` (an index into ``contexts.tokens``) the answer ``label``; other answers stay.

    ``contexts`` are the questions of the texts with the texts' answers. The network may have been edited before.
    """
    plan = _plan(network)
    if contexts.label_count != plan.label_count:
        raise BadInput(f"the network answers with {plan.label_count} labels; the data have {contexts.label_count}")
    if contexts.vocab > (vocab := _vocab(network)):  # before a front is made for all of them
        raise BadInput(f"the network knows {vocab:,} tokens; the data have {contexts.vocab:,}")
    if not 0 <= label < contexts.label_count:
        raise BadInput(f"the new answer is {label}; expected 0 to {contexts.label_count - 1}")
    question, before = question_at(contexts, place), _present_answers(network, contexts)
    changed = count_edits(with_labels(before, {question: label}), contexts)
    resources = Resources(files=network.files, report=report)
    built = _solve_again(plan, changed, question, resources) if plan.has_code(label) else None
    words = None if built is None else _words_changed(network, built)
    if built is None:
        built = compile_contexts(changed, plan.settings, seed=plan.recompile_seed, resources=resources)
    about = {**network.about, **built.network.about, "edits": _edits(changed, contexts)}
    built = replace(built, network=replace(built.network, about=about))
    return Edited(built, before, question, int(before.labels[question]), words)


def _plan(network: "Editable") -> EditPlan:
    if network.kind == "stock":
        from byheart.compiler.stock.rewrite import StockEdit

        return StockEdit(cast("StockNetwork", network))
    from byheart.compiler.rectangular.rewrite import RectangularEdit

    return RectangularEdit(cast("TransformerNetwork", network))


def _solve_again(plan: EditPlan, contexts: Contexts, question: int, resources: Resources) -> Built | None:
    """Return the same network with new words; None if none of the ways to fill the free bits has a solution."""
    for free_bits in range(_TRIES):
        began = time.perf_counter()
        try:
            network, choices = plan.solve_again(contexts, question, free_bits, resources)
        except Unsolvable:
            continue
        return Built(NAME, plan.settings, network, time.perf_counter() - began, plan.seed, contexts, choices)
    return None


def _present_answers(network: "Editable", contexts: Contexts) -> Contexts:
    """Return the questions with the answers that the network gives now, whatever the texts or its folder state.

    Raise BadInput if these are not proved to be exact, or if more of them differ than the folder lists as edits.
    """
    answers = _answers(network, contexts)
    if not (answers.margins > 0).all():
        raise BadInput("not all answers of the network are proved to be exact; expected one that can be certified")
    present = count_edits(contexts.with_answers(answers.labels), contexts)
    edits = network.about.get("edits")
    if present.edited > (len(edits) if isinstance(edits, list) else 0):
        first = int((present.labels != contexts.labels).argmax())
        expected, got = contexts.labels[first], present.labels[first]
        raise BadInput(
            f"does not answer all questions of the given texts; question {first}: expected {expected}, got {got}"
        )
    return present


def _answers(network: "Editable", contexts: Contexts) -> "Answers":
    """Return the proved answers of a float Transformer, or the answers that transformers computes for a stock model."""
    questions = contexts.tokens, contexts.starts, contexts.places
    if network.kind == "stock":
        from byheart.networks.stock.running import answers

        return answers(cast("StockNetwork", network), *questions)
    from byheart.networks.transformer.forced import FEW, forced_answers

    return forced_answers(cast("TransformerNetwork", network), *questions, compiled=len(contexts) >= FEW)


def recited(network: "Editable") -> Contexts:
    """Return the questions of the network's texts as the network recites them."""
    if network.about.get("edits"):
        raise BadInput("the network was edited before, so it cannot recite its texts; give them with --files")
    known, end = texts_of(network), end_of(network)
    if not known or end is None:
        raise BadInput("config.json says nothing of texts, or of how they end; give them with --files")
    prompts, lengths = [text["prompt"] for text in known], [text["tokens"] for text in known]
    completions = generate_all(network, prompts, end=end, tokens=lengths)
    texts = [
        Text(text["name"], np.array([*text["prompt"], *tokens], dtype=np.int32))
        for text, tokens in zip(known, completions, strict=True)
    ]
    return text_contexts(texts, vocab=_vocab(network), end=end, window=network.window)


def _vocab(network: "Editable") -> int:
    """Return the number of tokens that a network knows."""
    config = getattr(network, "config", None)
    return int(config["vocab_size"]) if config is not None else cast("TransformerNetwork", network).spec.vocab


def _words_changed(network: "Editable", built: Built) -> int:
    if getattr(built.network, "spec", None) != getattr(network, "spec", None):
        raise BadInput("config.json: about.recipe is not that of the network; expected the folder as it was compiled")
    new = dict(built.network.tensors())
    return sum(int(np.sum(old != new[name])) for name, old in network.tensors())


def _edits(changed: Contexts, original: Contexts) -> list[dict[str, Any]]:
    """List the answers that are not those of the texts: text, token, the network's label, the text's label."""
    edits = []
    for question in np.flatnonzero(changed.labels != original.labels):
        place = int(original.places[question])
        number = int(np.searchsorted(original.starts, place, side="right")) - 1
        edits.append(
            {
                "text": (original.names[number] if original.names else "") or number,
                "token": place - int(original.starts[number]),
                "label": int(changed.labels[question]),
                "was": int(original.labels[question]),
            }
        )
    return edits
