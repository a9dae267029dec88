"""All that a rectangular network is made from, apart from the questions: what to try first, and what next."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from byheart.compiler.codes import EXACT, LOUDNESS, bits_for, code_of_lengths, is_code, label_bits, make_code
from byheart.compiler.layouts import ATTEMPTS, CompilerSettings, Unsolvable
from byheart.compiler.rectangular import front as fronts
from byheart.compiler.rectangular import refusing, storing
from byheart.compiler.rectangular.dimensions import LANES, MOST_SHARDS, WORDS, TableSizes, grown, plan
from byheart.errors import BadInput
from byheart.tasks.contexts import Contexts

MOST_ALIKE = 8
"""Expected number of pairs of questions that read the same places, above which the hash of several shards is stirred
from the start: a draw of the plain hash would almost surely fail."""
RECORD = 22
"""Bytes per question of the records from which shards are solved."""
QUESTION_BYTES = 1200
"""Memory of compiling into one table, in bytes per question (measured at a million)."""
SHARDED_QUESTION_BYTES, SHARDED_BYTES, ONE_TABLE = 2, 750_000_000, 4_000_000
"""Memory of compiling into shards: bytes per question for the network's own words, and bytes for everything else
(measured on 8 and 64 MB of text). Texts of more than about ``ONE_TABLE`` bytes are cut into shards."""
ASKED = 14
"""Bytes per token that the questions of a text take, in memory or on the disk."""


def memory_for(questions: int, *, shards: bool = True, kept: bool = True) -> int:
    """Estimate the bytes of memory that compiling takes. Without ``shards`` there is one table, however large.

    The records of questions in shards lie on the disk if they are ``kept``. The questions themselves lie wherever there
    is room, and are not counted here (:data:`ASKED`).

    >>> memory_for(1_000_000), memory_for(10_000_000), memory_for(10_000_000, shards=False)
    (1200000000, 770000000, 12000000000)
    """
    if not shards or questions <= ONE_TABLE:
        return QUESTION_BYTES * questions
    return SHARDED_BYTES + (SHARDED_QUESTION_BYTES + (0 if kept else RECORD)) * questions


@dataclass(frozen=True)
class Recipe:
    """All that a network is made from, apart from the questions. The same recipe gives the same front."""

    settings: CompilerSettings
    sizes: TableSizes
    lengths: tuple[int, ...]
    """[C]: length of each label's code word; −1 for labels without one."""
    draw: tuple[int, int]
    """Seed and number of the attempt."""
    loudness: int
    """Logits are integers times 2^loudness. It is 0 in recipes of Byheart 0.1.0, which do not state it."""

    @property
    def refuse(self) -> int:
        """Bits of the print beside each label; 0 if there is none."""
        assert self.settings.refuse != "auto", "first_recipe has decided the number of bits"
        used = sum(length >= 0 for length in self.lengths)
        return refusing.beside(self.settings.refuse, bits_for(used), self.sizes.word)

    @property
    def refuses(self) -> bool:
        """True if contexts that were not memorized are answered by *unknown*."""
        return self.settings.refuse is not None

    @property
    def stores(self) -> bool:
        """True if the table is an index, and keys or prints are in a store."""
        return self.refuses and not self.refuse

    @property
    def refused_by(self) -> dict[str, Any]:
        """Entries of ``about["refuse"]`` that say what is compared, and the number of bits of a print."""
        if self.settings.refuse == "key":
            return {"by": "key"}
        return {"by": "stored print" if self.stores else "print", "bits": self.settings.refuse}

    def store(self, contexts: Contexts) -> storing.Store:
        """Return the store for these questions, without its entries."""
        assert self.settings.refuse != "auto", "first_recipe has decided the number of bits"
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
        """Return the recipe as config.json keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Recipe":
        """Return the recipe that ``as_json`` wrote; BadInput if ``value`` is none."""
        try:
            settings, sizes = CompilerSettings(**value["settings"]), TableSizes(**value["sizes"])
            seed, attempt = value["draw"]
            return cls(settings, sizes, tuple(value["lengths"]), (seed, attempt), value.get("loudness", 0))
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"config.json has no recipe of a compiled network: {error}") from error

    def check(self, *, labels: int, parameters: int) -> None:
        """Raise BadInput unless a network of these sizes can have this recipe: a folder may state anything."""
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


def first_recipe(contexts: Contexts, settings: CompilerSettings, seed: int = 0, *, times: float = 1.0) -> Recipe:
    """Return the recipe to try first, for ``times`` as many questions as there are (more than 1 for a sample)."""
    _check_window(contexts)
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
    if contexts.window <= contexts.longest:
        got = f"refuse is {refuse}, which takes a store of whole prompts, and texts are longer than the window"
        raise BadInput(f"{got}; expected --refuse with at most {plain - label_bits(contexts.labels)} bits")
    numbers = recipe.store(contexts).numbers
    if numbers.bits > plain:
        got = f"{len(contexts):,} questions have numbers of {numbers.bits} bits"
        raise BadInput(f"{got}, and words have {plain}: choose a wider --precision")
    return replace(recipe, sizes=plan(numbers, precision=settings.precision, word=word, shards=1, lots=False))


def next_recipe(recipe: Recipe, contexts: Contexts, failure: Unsolvable) -> Recipe:
    """Return the recipe to try after ``recipe`` has failed."""
    seed, attempt = recipe.draw
    sizes = next_sizes(recipe.sizes, attempt, failure.dependent, contexts.window)
    return replace(recipe, sizes=sizes, draw=(seed, attempt + 1))


def _check_window(contexts: Contexts) -> None:
    if not len(contexts):
        raise BadInput("there is no question to answer; expected at least one")
    sees = fronts.sees(contexts.window)
    if sees != contexts.window and contexts.window < contexts.longest:
        raise BadInput(f"the window is {contexts.window}; expected at most 8 or a power of two, such as {sees}")


def next_sizes(sizes: TableSizes, attempt: int, dependent: int, window: int) -> TableSizes:
    """Return the sizes for the next attempt: after two failures with different hashes the table grows.

    The hash is stirred if one of three things holds:

    - A question has fewer codes than there are pairs of columns, so that one pair follows from the others.
    - Many equations depend on others.
    - Four draws have failed.

    Each token gets one more code if the hash is stirred and many equations still depend on others, and after every
    twelve failures.
    """
    many = sizes.is_hash_at_fault(dependent)
    if not sizes.stirred and (many or window * sizes.code_features < LANES // 2 or attempt == 3):
        return replace(sizes, stirred=True)
    if (many and attempt % 4 == 3) or attempt % 12 == 11:
        return replace(sizes, code_features=sizes.code_features + 1)
    # If one shard among many fails, that is chance. All shards are drawn anew, which should not happen twice: grow.
    return grown(sizes) if attempt % 2 or sizes.shards > 1 else sizes
