"""Changing one memory: the same network, the same hash, the words solved for again with one answer changed.

The front and everything behind the table stay as they are, bit for bit; only words change: of a stock model those of
one matrix, of a network with shards those of the shard that the question reads. All other questions keep their answers,
because they are equations of the same system. A label that has no code word yet needs another code, and with it another
network.
"""

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from byheart.compiler.rectangular import table
from byheart.compiler.rectangular.dimensions import Unsolvable
from byheart.compiler.rectangular.recipe import (
    NAME,
    CompilerSettings,
    Draft,
    Recipe,
    compile_rectangular,
    compile_with,
)
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.networks import generate_all
from byheart.networks.about import end_of, refuse_of, texts_of
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


def _present(network: "Editable", contexts: Contexts) -> Contexts:
    """The questions with the answers that the network gives now, whatever the texts, or its folder, say.

    BadInput if these are not proved to be exact, or if more of them are others than its folder says it was edited.
    """
    found = _answers(network, contexts)
    if not (found.margins > 0).all():
        raise BadInput("not all answers of the network are proved to be exact; expected one that can be certified")
    now = count_edits(contexts.with_answers(found.labels), contexts)
    edits = network.about.get("edits")
    if now.edited > (len(edits) if isinstance(edits, list) else 0):
        first = int((now.labels != contexts.labels).argmax())
        expected, got = contexts.labels[first], now.labels[first]
        raise BadInput(
            f"does not answer all questions of the given texts; question {first}: expected {expected}, got {got}"
        )
    return now


def _answers(network: "Editable", contexts: Contexts) -> "Answers":
    """Of a float Transformer those that are proved; of a stock model those that transformers gives."""
    asked = contexts.tokens, contexts.starts, contexts.places
    if network.kind == "stock":
        from byheart.networks.stock.running import answers

        return answers(cast("StockNetwork", network), *asked)
    from byheart.networks.transformer.forced import FEW, forced_answers

    return forced_answers(cast("TransformerNetwork", network), *asked, compiled=len(contexts) >= FEW)


def edit(network: "Editable", contexts: Contexts, place: int, label: int, *, report: Report | None = None) -> Edited:
    """Give the question at ``place`` (an index into ``contexts.tokens``) the answer ``label``; others stay.

    ``contexts`` are what the texts ask and answer, which the network may have been edited away from before.
    """
    made: _Made = _StockEdit(network) if network.kind == "stock" else _Rectangular(network)  # type: ignore[arg-type]
    if contexts.label_count != made.labels:
        raise BadInput(f"the network answers with {made.labels} labels; what was given has {contexts.label_count}")
    if contexts.vocab > (known := _vocab(network)):  # before a front is made for all of them
        raise BadInput(f"the network knows {known:,} tokens; what was given has {contexts.vocab:,}")
    if not 0 <= label < contexts.label_count:
        raise BadInput(f"the new answer is {label}; expected 0 to {contexts.label_count - 1}")
    question, now = question_at(contexts, place), _present(network, contexts)
    changed = count_edits(with_labels(now, {question: label}), contexts)
    built = made.solved_again(changed, question, report) if made.has_code(label) else None
    words = None if built is None else _words_changed(network, built)
    if built is None:
        built = made.compiled_anew(changed, report)
    about = {**network.about, **built.network.about, "edits": _edits(changed, contexts)}
    was = int(now.labels[question])
    return Edited(replace(built, network=replace(built.network, about=about)), now, question, was, words)


class _Made(Protocol):
    """How a network was made, and how to make it again."""

    labels: int

    def has_code(self, label: int) -> bool:
        """Whether the label has a code word."""

    def solved_again(self, contexts: Contexts, question: int, report: Report | None) -> Built | None:
        """The same network with other words, after the answer to ``question`` has changed; None if there are none.

        Other free bits give other carries: a few tries are as good as certain to do.
        """

    def compiled_anew(self, contexts: Contexts, report: Report | None) -> Built:
        """Another network."""


def _notes(network: "TransformerNetwork", shards: int) -> list[Any]:
    """What the folder notes of every shard, in their order. What they say is not believed, and nothing needs it."""
    notes = network.about.get("shards")
    if not isinstance(notes, list) or len(notes) != shards:
        raise BadInput(
            f"config.json: about.shards is no list of {shards:,} notes; expected the folder as it was compiled"
        )
    return [*notes]


class _Rectangular:
    def __init__(self, network: "TransformerNetwork") -> None:
        self.network = network
        self.labels = network.spec.labels - (refuse_of(network) is not None)  # nobody is told to answer "unknown"

    @cached_property
    def recipe(self) -> Recipe:
        recipe = Recipe.from_json(self.network.about.get("recipe", {}))
        recipe.check(labels=self.network.spec.labels, parameters=self.network.account.dense)
        return recipe

    def has_code(self, label: int) -> bool:
        return self.recipe.lengths[label] >= 0

    def solved_again(self, contexts: Contexts, question: int, report: Report | None) -> Built | None:
        for draw in range(_TRIES):
            try:
                if self.recipe.sizes.shards > 1:
                    return self._shard_solved_again(contexts, question, draw)
                return compile_with(self.recipe, contexts, files=self.network.files, report=report, free_bits=draw)
            except Unsolvable:
                continue
        return None

    def _shard_solved_again(self, contexts: Contexts, question: int, free_bits: int) -> Built:
        """The same network, but for the words of the shard that the question reads."""
        from byheart.compiler.rectangular import lots, shards
        from byheart.networks.transformer.transformer_network import from_arrays

        began, network, recipe = time.perf_counter(), self.network, self.recipe
        notes = _notes(network, recipe.sizes.shards)
        draft = Draft.of(recipe, contexts)
        mapped, cuts = draft.mapped(contexts)
        (route,) = shards.map_piece(
            draft.wiring, recipe.sizes, *shards.piece_of(contexts, slice(question, question + 1))
        ).route
        shard = int(np.searchsorted(cuts[1:-1], route, side="right"))
        records = shards.records_of(mapped, cuts, shard)
        how = (recipe.sizes, draft.code, recipe.draw, shard, draft.wiring.precision)
        turns = [lots.turn_of(dict(network.tensors()), recipe.sizes, shard, records.route.astype(np.int64))]
        tensor, note = shards.solve_shard(records, *how, turns=turns, free_bits=free_bits)
        notes[shard] = note.as_json()
        tensors = {**dict(network.tensors()), table.shard_tensor(shard): tensor}
        about = {**network.about, **contexts.notes, "shards": notes}
        changed = from_arrays(network.spec, tensors, about=about, files=network.files)
        return Built(
            NAME,
            recipe.settings,
            changed,
            time.perf_counter() - began,
            recipe.draw[0],
            contexts,
            draft.chosen(contexts),
        )

    def compiled_anew(self, contexts: Contexts, report: Report | None) -> Built:
        seed, files = self.recipe.draw[0], self.network.files
        return compile_rectangular(contexts, self.recipe.settings, seed=seed, files=files, report=report)


class _StockEdit:
    def __init__(self, network: "StockNetwork") -> None:
        from byheart.compiler.layouts import STOCK
        from byheart.compiler.stock.rewrite import lengths_of

        self.layout = STOCK["experts" if "num_experts" in network.config else "uniform"]()
        self.network, self.lengths = network, lengths_of(network)
        self.labels = len(self.lengths)

    def has_code(self, label: int) -> bool:
        return bool(self.lengths[label] >= 0)

    def solved_again(self, contexts: Contexts, question: int, report: Report | None) -> Built | None:
        from byheart.compiler.stock.rewrite import rewritten, understood

        written = understood(self.network, self.layout, contexts)
        for draw in range(_TRIES):
            try:
                return rewritten(written, contexts, question, draw)
            except Unsolvable:
                continue
        return None

    def compiled_anew(self, contexts: Contexts, report: Report | None) -> Built:
        from byheart.compiler.stock.attempt import compile_stock

        settings = CompilerSettings(layout=self.layout.name)
        return compile_stock(self.layout, contexts, settings, files=self.network.files, report=report)


def recited(network: "Editable") -> Contexts:
    """The questions of the texts as the network itself says them."""
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
    return text_contexts(texts, vocab=_vocab(network), end=end, window=network.window)


def _vocab(network: "Editable") -> int:
    """How many tokens a network knows."""
    config = getattr(network, "config", None)
    return int(config["vocab_size"]) if config is not None else cast("TransformerNetwork", network).spec.vocab


def _words_changed(network: "Editable", built: Built) -> int:
    if getattr(built.network, "spec", None) != getattr(network, "spec", None):
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
