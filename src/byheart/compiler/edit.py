"""Change what a network knows: one answer, or a passage of a text, with the same hash and the words solved again.

The front and everything behind the table stay as they are, bit for bit. Only words change: in a stock model those of
the matrices that the changed questions read. For one answer, a network with shards solves only the shard that the
question reads. All other questions keep their answers, because they are equations of the same system.

A passage changes the answer in front of it and every context that contains a part of it, so that the network recites
the new text to its end. One changed *answer* leaves these contexts as they are: what follows is not memorized.

The network is compiled anew if a label has no code word yet, if the table has no room for a longer text, or if the new
text needs a larger window.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.compile import compile_contexts
from byheart.compiler.layouts import NAME, Attempt, CompilerSettings, Resources, Unsolvable
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.networks import generate_all
from byheart.networks.about import end_of, texts_of
from byheart.progress import Report
from byheart.tasks.arrays import Ids
from byheart.tasks.contexts import Contexts
from byheart.tasks.edits import count_edits, question_at, with_labels
from byheart.tasks.questions import Texts, as_contexts
from byheart.tasks.texts import Text
from byheart.tasks.tokenizers import Tokenizer
from byheart.tasks.windows import Undetermined, text_contexts

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


@dataclass(frozen=True, eq=False)
class EditedTexts:
    """The network after a change of its texts, and what has changed."""

    built: Built
    reached: int
    """Number of questions that the change reaches: their context or their answer is another."""
    words_changed: int | None
    """Number of words of the table that changed, and nothing else; None if the network had to be compiled anew."""
    why_anew: str = ""
    """Why the network had to be compiled anew."""


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

    def solve_texts(self, contexts: Contexts, questions: Ids, free_bits: int, resources: Resources) -> Attempt:
        """Return the same network with new words, after texts have changed and with them ``questions``."""


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
    built = None
    if plan.has_code(label):
        built = _solve_again(plan, changed, partial(plan.solve_again, changed, question), resources)
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


def edit_texts(
    network: "Editable", before: Contexts, texts: Texts, tokenizer: Tokenizer, *, report: Report | None = None
) -> EditedTexts:
    """Make the network recite ``texts``; ``before`` are the questions of its texts until now, under the same names."""
    if network.about.get("edits"):
        raise BadInput("single answers of the network were edited before; compile the new texts instead")
    plan, resources = _plan(network), Resources(files=network.files, report=report)
    built, reached, why_anew = None, None, "its window is too small for the new text"
    try:
        after = as_contexts(texts, tokenizer=tokenizer, window=before.window)
    except Undetermined:
        after = as_contexts(texts, tokenizer=tokenizer)
    else:
        reached = questions_reached(before, after)
        seen_whole = before.longest <= before.window < after.longest  # what lies farther back was never looked at
        if seen_whole:
            why_anew = "the text has outgrown its window"
        elif not all(map(plan.has_code, np.unique(after.labels).tolist())):
            why_anew = "a token of the new text was no answer before"
        else:
            why_anew = "its table has no room for them"
            built = _solve_again(plan, after, partial(plan.solve_texts, after, reached), resources)
    words = None if built is None else _words_changed(network, built)
    if built is None:
        built = compile_contexts(after, plan.settings, seed=plan.recompile_seed, resources=resources)
    about = {**network.about, **built.network.about, **after.notes}
    built = replace(built, network=replace(built.network, about=about))
    return EditedTexts(built, len(after) if reached is None else len(reached), words, why_anew if words is None else "")


def questions_reached(before: Contexts, after: Contexts) -> Ids:
    """Return the numbers of the questions of changed texts whose context or answer is another.

    Both have the same window. Questions that are asked elsewhere too may be among them.
    """
    origin = np.full(len(after.tokens), -1)
    names = {name: number for number, name in enumerate(before.names)}
    for number, name in enumerate(after.names):
        new = np.arange(*after.starts[number : number + 2])
        old = np.arange(*before.starts[names[name] : names[name] + 2]) if name in names else new[:0]
        ours, theirs = after.tokens[new], before.tokens[old]
        head = _common(ours, theirs)
        if head == len(new) == len(old):
            origin[new] = old
            continue
        tail = _common(ours[head:][::-1], theirs[head:][::-1])
        # The last question in front of the change has another answer; behind it, those that look back to it are others.
        keeps, far = max(0, head - 1), max(0, tail - after.window + 1)
        origin[new[:keeps]] = old[:keeps]
        origin[new[len(new) - far :]] = old[len(old) - far :]
    questions = after.questions_at(np.arange(len(origin)))
    is_known = (origin >= 0) & (before.questions_at(np.maximum(origin, 0)) >= 0)
    return np.unique(questions[~is_known & (questions >= 0)]).astype(np.int64)


def _common(one: NDArray[Any], other: NDArray[Any]) -> int:
    """Return the number of first tokens that two sequences share."""
    shared = min(len(one), len(other))
    same = one[:shared] == other[:shared]
    return shared if same.all() else int(same.argmin())


def _solve_again(
    plan: EditPlan, contexts: Contexts, solve: Callable[[int, Resources], Attempt], resources: Resources
) -> Built | None:
    """Return the same network with new words; None if none of the ways to fill the free bits has a solution."""
    for free_bits in range(_TRIES):
        began = time.perf_counter()
        try:
            network, choices = solve(free_bits, resources)
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
