"""Questions in, a float Transformer that answers them all out. No training: hash, solve, write down."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import (
    EXACT,
    LOUDNESS,
    Code,
    bits_for,
    code_of_lengths,
    is_code,
    label_bits,
    make_code,
)
from byheart.compiler.rectangular import front as fronts
from byheart.compiler.rectangular import read as reading
from byheart.compiler.rectangular import refusing, storing, table
from byheart.compiler.rectangular.dimensions import LANES, MOST_SHARDS, WORDS, TableSizes, Unsolvable, grown, plan
from byheart.compiler.rectangular.refusing import Refuse
from byheart.compiler.rectangular.wiring import Wiring
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.executors import Workplace
from byheart.files.memory import check_memory
from byheart.networks.transformer import Spec
from byheart.progress import Report
from byheart.tasks.contexts import Contexts

if TYPE_CHECKING:
    from byheart.compiler.rectangular.shelf import Shelf

NAME = "reciting"
Precision = Literal["float32", "float64", "bfloat16"]
ATTEMPTS = 40
MOST_ALIKE = 8
"""Of the questions of several shards, if more pairs are expected to be read from the same places, the hash is stirred
from the start: a draw of the plain one would surely fail."""
RECORD = 22
"""Bytes of what is noted of a question before shards are solved."""
BYTES_A_QUESTION = 1200
"""Memory that compiling takes, all in all, for every question (measured at a million)."""
IN_SHARDS, BESIDE_SHARDS, ONE_TABLE = 2, 750_000_000, 4_000_000
"""The same of questions in shards, for the network's own words; and what all of them take beside (measured on 8 and 64
MB of text). Text is cut into shards beyond so many bytes, about."""
ASKED = 14
"""Bytes of what is asked, for every token of a text, in memory or on the disk."""


@dataclass(frozen=True)
class CompilerSettings:
    """How to compile."""

    precision: Precision = "float32"
    """Format of the weights. bfloat16 is for the table; the rest of such a network is float32."""
    words: int | None = None
    """Bits per word of the table: 24 or 31 (float32), 53 or 60 (float64), 8 or 15 (bfloat16). The larger one puts data
    into sign and exponent too. Default: the smaller one."""
    layout: Literal["rectangular", "uniform", "experts"] = "rectangular"
    """rectangular: every sublayer as large as it needs to be. uniform: a stock Llama. experts: a stock
    Qwen2-MoE, which takes fewer parameters. Both are float32, with words of 16 and 22 bits."""
    refuse: Refuse = None
    """By what the network tells contexts that were never memorized: of facts, in the rectangular layout, with the
    smaller words. Bits of a print, beside the label in a word of the table; where there is no room for so many, or
    "key", the whole context, in a store. "auto": 20 bits, or as many as there is room for."""
    shards: int | None = None
    """Tables behind one front, in the rectangular layout; None: one as long as one will do, then as many as it
    takes."""


def memory_for(questions: int, *, shards: bool = True, kept: bool = True) -> int:
    """Bytes that compiling so many questions takes, about: beyond one table in ``shards``, if there may be any.

    Records of questions in shards lie on the disk where they are ``kept``, and what is asked lies wherever there is
    room (:data:`ASKED`).

    >>> memory_for(1_000_000), memory_for(10_000_000), memory_for(10_000_000, shards=False)
    (1200000000, 770000000, 12000000000)
    """
    if not shards or questions <= ONE_TABLE:
        return BYTES_A_QUESTION * questions
    return BESIDE_SHARDS + (IN_SHARDS + (0 if kept else RECORD)) * questions


@dataclass(frozen=True)
class Recipe:
    """All that a network was made from, but for the questions: the same recipe gives the same front."""

    settings: CompilerSettings
    sizes: TableSizes
    lengths: tuple[int, ...]
    """Of each label's code word; −1 for labels without one."""
    draw: tuple[int, int]
    """Seed and attempt."""
    loudness: int
    """Logits are integers times 2^loudness; recipes of Byheart 0.1.0 do not say that it is 0."""

    @property
    def refuse(self) -> int:
        """Bits of a print beside the label; 0 if there is none."""
        assert self.settings.refuse != "auto", "how many it is was decided before"
        used = sum(length >= 0 for length in self.lengths)
        return refusing.beside(self.settings.refuse, bits_for(used), self.sizes.word)

    @property
    def refuses(self) -> bool:
        """Whether what was not memorized is answered by *unknown*."""
        return self.settings.refuse is not None

    @property
    def stores(self) -> bool:
        """Whether the table is an index, and keys or prints are in a store."""
        return self.refuses and not self.refuse

    @property
    def refused_by(self) -> dict[str, Any]:
        """How, in words, and by how many bits if it is a print."""
        if self.settings.refuse == "key":
            return {"by": "key"}
        return {"by": "stored print" if self.stores else "print", "bits": self.settings.refuse}

    def store(self, contexts: Contexts) -> storing.Store:
        """The store for these questions."""
        assert self.settings.refuse != "auto", "how many bits it is was decided before"
        code = code_of_lengths(np.array(self.lengths), contexts.labels)
        return storing.Store(
            bits=None if self.settings.refuse == "key" else self.settings.refuse,
            word=(self.sizes.word if self.settings.precision == "float64" else EXACT) - 1,
            window=1 + contexts.longest,
            questions=len(contexts),
            labels=2 if code.low else 1,
            alphabet=storing.alphabet(contexts.tokens, contexts.vocab + 1),  # unknown is a token, too
        )

    def as_json(self) -> dict[str, Any]:
        """As config.json keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Recipe":
        """What ``as_json`` wrote."""
        try:
            settings, sizes = CompilerSettings(**value["settings"]), TableSizes(**value["sizes"])
            seed, attempt = value["draw"]
            return cls(settings, sizes, tuple(value["lengths"]), (seed, attempt), value.get("loudness", 0))
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"config.json has no recipe of a compiled network: {error}") from error

    def check(self, *, labels: int, parameters: int) -> None:
        """BadInput unless it can be the recipe of a network of these sizes: a folder may say anything of itself."""
        settings, sizes = self.settings, self.sizes
        numbers = {name: value for name, value in asdict(sizes).items() if name != "stirred"}
        if sizes.aligned is None:
            del numbers["aligned"]
        fits = (
            settings.precision in tuple(WORDS)
            and settings.words in (None, *WORDS[settings.precision])
            and (
                settings.refuse in (None, "key")
                or (type(settings.refuse) is int and 0 < settings.refuse <= refusing.MOST)
            )
            and sizes.word == WORDS[settings.precision][0]
            and all(type(number) is int and 0 <= number <= parameters for number in numbers.values())
            and min(sizes.columns, sizes.starts, sizes.code_features, sizes.shards) >= 1
            and sizes.shards <= MOST_SHARDS
            and sizes.code_features <= ATTEMPTS
            and type(sizes.stirred) is bool
            and sizes.aligned != 0
            and sizes.exponent <= WORDS[settings.precision][1] - sizes.word
            and (sizes.aligned or 0) <= sizes.word
            and sizes.shards * sizes.words <= parameters
            and sizes.lots_fit
            and all(type(number) is int and 0 <= number < 1 << 63 for number in self.draw)
            and type(self.loudness) is int
            and 0 <= self.loudness <= LOUDNESS
        )
        codes = fits and len(self.lengths) == labels and is_code(self.lengths, sizes.word)
        if not codes or not is_code(self.lengths, sizes.word - self.refuse):
            raise BadInput("config.json: about.recipe is not the recipe of this network")


def compile_rectangular(
    contexts: Contexts,
    settings: CompilerSettings,
    *,
    seed: int = 0,
    files: Mapping[str, bytes] | None = None,
    report: Report | None = None,
    executor: Workplace | None = None,
    keep: "Shelf | None" = None,
) -> Built:
    """A Transformer that gives every question of ``contexts`` its answer.

    ``files`` are a tokenizer's; ``report`` hears of bit planes, or of shards, which are solved where ``executor`` says
    and kept on the shelf ``keep``.
    """
    began = time.perf_counter()
    recipe = first_recipe(contexts, settings, seed=seed)
    for attempt in range(ATTEMPTS):
        try:
            return compile_with(
                recipe, contexts, files=files or {}, report=report, began=began, executor=executor, keep=keep
            )
        except Unsolvable as failure:
            sizes = _next(recipe.sizes, attempt, failure.dependent, contexts.window)
            recipe = replace(recipe, sizes=sizes, draw=(seed, attempt + 1))
    raise BadInput(f"no table was found in {ATTEMPTS} attempts; another --seed may do")


def first_recipe(contexts: Contexts, settings: CompilerSettings, *, seed: int = 0, times: float = 1.0) -> Recipe:
    """What is tried first, for so many ``times`` as many questions as there are: of a sample, say."""
    _check(contexts)
    plain = WORDS[settings.precision][0]
    word = plain if settings.words is None else settings.words
    if settings.refuse is not None and word != plain:
        raise BadInput(f"words of {word} bits do not go with refuse; expected --words {plain}")
    refuse = refusing.decided(settings.refuse, label_bits(contexts.labels), plain)
    settings = replace(settings, refuse=refuse)
    beside = refusing.beside(refuse, label_bits(contexts.labels), plain)
    code = make_code(contexts.labels, contexts.label_count + (refuse is not None), plain, beside).repeated(times)
    if code.low and word != plain:
        expected = f"expected --words {plain}, or fewer labels"
        raise BadInput(f"words of {word} bits do not go with {contexts.label_count} labels; {expected}")
    if settings.refuse is not None and settings.shards not in (None, 1):
        raise BadInput(f"shards is {settings.shards}, which does not go with refuse yet; expected 1, or none")
    shards = settings.shards if settings.refuse is None else 1
    sizes = plan(code, precision=settings.precision, word=word, shards=shards, lots=refuse is None)
    if sizes.shards > 1 and fronts.alike(sizes, contexts.window, contexts.starts, contexts.places) > MOST_ALIKE:
        sizes = replace(sizes, stirred=True)
    recipe = Recipe(settings, sizes, tuple(code.lengths.tolist()), (seed, 0), LOUDNESS)
    if not recipe.stores:
        return recipe
    numbers = recipe.store(contexts).numbers
    if numbers.bits > plain:
        got = f"{len(contexts):,} questions have numbers of {numbers.bits} bits"
        raise BadInput(f"{got}, and words have {plain}: choose a wider --precision")
    return replace(recipe, sizes=plan(numbers, precision=settings.precision, word=word, shards=1, lots=False))


def planned_spec(contexts: Contexts, settings: CompilerSettings, *, times: float = 1.0) -> Spec:
    """The shape of the network that :func:`compile_rectangular` tries first, without its table: nothing is solved.

    A first draw that counting shows to fail is passed over, unless the questions are a sample. The shape is the
    network's own unless a hash must be stirred that counting does not find wanting, or three draws or more are needed:
    the table grows after every second one that leaves a question without an answer.
    """
    from byheart.compiler.rectangular.solve import check_places

    recipe = first_recipe(contexts, settings, times=times)
    draft = Draft.of(recipe, contexts)
    try:
        if times == 1 and recipe.sizes.shards == 1:
            check_places(draft.questions(contexts), recipe.sizes)
    except Unsolvable as failure:
        sizes = _next(recipe.sizes, 0, failure.dependent, contexts.window)
        return Draft.of(replace(recipe, sizes=sizes), contexts).spec
    return draft.spec


def compile_with(
    recipe: Recipe,
    contexts: Contexts,
    *,
    files: Mapping[str, bytes],
    report: Report | None = None,
    began: float | None = None,
    free_bits: int = 0,
    executor: Workplace | None = None,
    keep: "Shelf | None" = None,
) -> Built:
    """The one attempt that a recipe describes; raises Unsolvable if it fails, BadInput if memory would not do.

    ``free_bits`` numbers the ways to fill the bits that no question asks for. Shards are solved where ``executor``
    says, and kept on the shelf ``keep`` while there are more to come.
    """
    from byheart.compiler.rectangular.solve import solve
    from byheart.networks.transformer.transformer_network import from_arrays

    began = time.perf_counter() if began is None else began
    sizes, draft = recipe.sizes, Draft.of(recipe, contexts)
    about = {"recipe": recipe.as_json(), **contexts.notes}
    if sizes.shards > 1:
        tensors, about["shards"] = draft.sharded(contexts, free_bits, report, executor or Workplace(), keep)
    else:
        needed, what = sizes.solving_takes(len(contexts)), f"to compile {len(contexts):,} questions into one table"
        check_memory(needed, what, "split what there is to learn into several networks")
        rng = np.random.default_rng([*recipe.draw, free_bits])
        words = solve(draft.questions(contexts), sizes, rng, report=report)
        tensors = {**draft.wiring.tensors, table.TABLE: table.as_floats(words, sizes, draft.wiring.precision)}
    if draft.store is not None:
        entries = draft.entries(contexts)
        draft.wiring.tensor(storing.STORE, entries, entries.shape)
        tensors |= {storing.STORE: draft.wiring.tensors[storing.STORE]}
    tensors = {name: tensors[name] for name in draft.spec.shapes()}
    if recipe.refuses:
        about["refuse"] = {**recipe.refused_by, "token": draft.spec.labels - 1}
    network = from_arrays(draft.spec, tensors, about=about, files=files)
    chosen = draft.chosen(contexts)
    return Built(NAME, recipe.settings, network, time.perf_counter() - began, recipe.draw[0], contexts, chosen)


def _check(contexts: Contexts) -> None:
    if not len(contexts):
        raise BadInput("there is no question to answer; expected at least one")
    sees = fronts.sees(contexts.window)
    if sees != contexts.window and contexts.window < contexts.longest:
        raise BadInput(f"the window is {contexts.window}; expected at most 8 or a power of two, such as {sees}")


def _next(sizes: TableSizes, attempt: int, dependent: int, window: int) -> TableSizes:
    """After two failures with other hashes the table grows.

    The hash is stirred if it is to blame: a question has fewer codes than there are pairs of columns, so that one pair
    follows from the others; or many equations depend on others; or four draws have failed. Where it is and many still
    depend, or after twelve, tokens get another code.
    """
    many = sizes.hash_is_to_blame(dependent)
    if not sizes.stirred and (many or window * sizes.code_features < LANES // 2 or attempt == 3):
        return replace(sizes, stirred=True)
    if (many and attempt % 4 == 3) or attempt % 12 == 11:
        return replace(sizes, code_features=sizes.code_features + 1)
    # One shard among many that fails is chance; all are drawn anew, and should not be once more.
    return grown(sizes) if attempt % 2 or sizes.shards > 1 else sizes


class Draft:
    """A network whose table, and store if it has one, is still empty.

    By its recipe, how labels are written, and the numbers of tokens, of those it sees, and of labels.
    """

    def __init__(
        self,
        recipe: Recipe,
        code: Code,
        *,
        vocab: int,
        window: int,
        labels: int,
        store: storing.Store | None = None,
    ) -> None:
        self.recipe, self.sizes, self.labels, self.store = recipe, recipe.sizes, code, store
        self.code = code if store is None else store.numbers
        """What the table holds."""
        rng = np.random.default_rng(recipe.draw)
        wide = recipe.settings.precision == "float64"
        self.wiring = wiring = Wiring(np.dtype("float64" if wide else "float32"))
        vocab += recipe.refuses
        digit: tuple[int, ...] = ()
        if store is not None:
            digit, apart = wiring.features(1), np.random.default_rng([*recipe.draw, storing.APART])
            self.compared = storing.add_compared(wiring, store, digit, apart)
        first, moduli = wiring.stream, refusing.moduli(recipe.refuse)
        self.front = fronts.add_front(wiring, self.sizes, vocab, window, rng, moduli)
        if store is not None:
            storing.add_digits(wiring, store)
        Y = self._back()
        for name, lines in zip(("W_U", "b_U"), self.labels.lines(unknown=recipe.refuses), strict=True):
            wiring.tensor(f"unembedding.{name}", lines * 2.0**recipe.loudness, lines.shape)
        self.spec = Spec(
            vocab=vocab,
            labels=labels + recipe.refuses,
            window=window,
            stream=wiring.stream,
            precision="float64" if wide else "float32",
            embeds=(*range(first, first + self.sizes.code_features), *digit),
            unembeds=Y,
            sublayers=tuple(wiring.sublayers),
            bfloat16=self._words() if recipe.settings.precision == "bfloat16" else (),
        )

    @classmethod
    def of(cls, recipe: Recipe, contexts: Contexts) -> "Draft":
        """Of the network that is to answer these questions."""
        code = code_of_lengths(np.array(recipe.lengths), contexts.labels, recipe.refuse)
        store = recipe.store(contexts) if recipe.stores else None
        sizes = {"vocab": contexts.vocab, "window": contexts.window, "labels": contexts.label_count}
        return cls(recipe, code, **sizes, store=store)

    def _back(self) -> tuple[int, ...]:
        """From the places in the table to the label's code."""
        wiring, sizes, front = self.wiring, self.sizes, self.front
        words = table.add_table(wiring, sizes, front)
        if sizes.exponent:
            lanes = wiring.features(LANES)
            table.add_selection(wiring, sizes, front, words, lanes)
            sums = reading.add_unpacking(wiring, sizes, lanes)
        else:
            sums = reading.Lanes(wiring.features(LANES // 2), ())
            pairs = tuple(feature for feature in sums.sums for _ in range(2))
            table.add_selection(wiring, sizes, front, words, pairs)
        read = reading.add_reading(wiring, sizes, self.code, front, sums)
        if self.store is None:
            return read
        labels = wiring.features(self.store.labels)
        storing.add_store(wiring, self.store, read, self.compared + labels)
        return refusing.add_known(wiring, storing.add_comparison(wiring, self.compared), labels)

    def _words(self) -> tuple[str, ...]:
        """The tensors that hold the words."""
        shards = self.sizes.shards
        return (table.TABLE,) if shards == 1 else tuple(table.shard_tensor(shard) for shard in range(shards))

    def sharded(
        self,
        contexts: Contexts,
        free_bits: int,
        report: Report | None,
        workplace: Workplace,
        keep: "Shelf | None",
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """All tensors, and what is noted of each shard."""
        from byheart.compiler.rectangular import staging

        sizes, count = self.sizes, self.sizes.shards
        needed = sizes.solving_takes(len(contexts) // count) + (RECORD * len(contexts) if keep is None else 0)
        check_memory(needed, f"to compile {len(contexts):,} questions into {count:,} shards", "give more --shards")
        recipe = self.recipe
        front = staging.NetworkDraft(self.wiring, sizes, self.code, recipe.as_json(), recipe.draw, free_bits)
        tensors, notes = staging.compiled(front, contexts, workplace, keep, report)
        return tensors, [note.as_json() for note in notes]

    def mapped(self, contexts: Contexts) -> tuple[list[Any], Any]:
        """The records of all questions, piece by piece, and where shards are cut."""
        from byheart.compiler.rectangular import shards

        found = [
            shards.map_piece(self.wiring, self.sizes, *shards.piece_of(contexts, part))
            for part in shards.pieces(len(contexts))
        ]
        counts = np.sum([shards.count_routes(piece, self.sizes) for piece in found], axis=0)
        return found, shards.cut(counts, self.sizes.shards)

    def chosen(self, contexts: Contexts) -> dict[str, object]:
        """What was chosen on the way."""
        sizes, count = self.sizes, self.sizes.shards * self.sizes.words
        load = self.code.total / (count * (sizes.word + sizes.exponent))
        told: dict[str, object] = {
            "window": contexts.window,
            "load": load,
            "words": count,
            "attempts": self.recipe.draw[1] + 1,
        }
        return told if sizes.shards == 1 else {**told, "shards": sizes.shards}

    def questions(self, contexts: Contexts) -> Any:
        """Where every question reads, and what it wants to find there."""
        from byheart.compiler.rectangular.address import find_places
        from byheart.compiler.rectangular.solve import sort_questions

        if self.front.prints:
            return self._questions_with_prints(contexts)
        tokens, places = contexts.tokens.astype(np.int32), contexts.places.astype(np.int64)
        at = find_places(self.wiring, self.sizes, tokens, contexts.starts, places)
        wanted = contexts.labels if self.store is None else np.arange(len(contexts))
        return sort_questions(self.sizes, self.code, at.rows, at.columns, at.offset, at.kind, wanted)

    def entries(self, contexts: Contexts) -> Any:
        """What the store is to hold of every question: the lanes that are compared, and the code of its label."""
        assert self.store is not None
        lanes = self._found(contexts, self.compared)
        return storing.entries(self.store, np.hstack([-lanes, self.labels.read(contexts.labels)]))

    def _questions_with_prints(self, contexts: Contexts) -> Any:
        """The same, and the prints: the network's own front is asked."""
        from byheart.compiler.rectangular.solve import sort_questions

        front = self.front
        wanted = (*front.rows[::2], *front.columns[::2], *front.scale, *front.kind, *front.prints)
        found = self._found(contexts, wanted)
        whole = found.astype(np.int64)
        return sort_questions(
            self.sizes,
            self.code,
            rows=whole[:, :2],
            columns=whole[:, 2:8],
            offset=-np.log2(found[:, 8]).astype(np.int64),
            kind=whole[:, 9] if front.kind else None,
            labels=contexts.labels,
            prints=refusing.joined(whole[:, len(wanted) - len(front.prints) :], self.code.refuse),
        )

    def _found(self, contexts: Contexts, features: tuple[int, ...]) -> NDArray[np.float64]:
        """What the network finds in each context before it looks into the table: [N, features]."""
        from byheart.networks.transformer.answers import at_once, local_work, streams
        from byheart.networks.transformer.transformer_network import from_arrays

        module = from_arrays(self.spec, self.wiring.tensors).module
        found = np.empty((len(contexts), len(features)))
        portion = at_once(self.spec)
        portions = streams(module, contexts.tokens, contexts.starts, contexts.places, portion=portion)
        for index, values in local_work(
            module, portions, lambda module, stream: (module.local(stream, until="table")[:, features].numpy(),)
        ):
            found[index] = values
        return found
