"""Questions in, a float Transformer that answers them all out. No training: hash, solve, write down."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from byheart.constructions.reciting import front as fronts
from byheart.constructions.reciting import reading, table
from byheart.constructions.reciting.codes import Code, make_code
from byheart.constructions.reciting.sizes import WORDS, Sizes, Unsolvable, grown, plan
from byheart.constructions.reciting.wiring import Wiring
from byheart.errors import BadInput
from byheart.networks.account import Account
from byheart.networks.transformer import Spec, count
from byheart.tasks.contexts import Contexts

Precision = Literal["float32", "float64", "bfloat16"]
Report = Callable[[int, int], None]
LOAD = 0.985
ATTEMPTS = 40


@dataclass(frozen=True)
class Settings:
    """How to compile."""

    precision: Precision = "float32"
    """Format of the weights; bfloat16 is for the table, the rest of such a network is float32."""
    words: int | None = None
    """Bits a word of the table: 24 or 31 (float32), 53 or 60 (float64), 8 or 15 (bfloat16). Default: the first."""


@dataclass(frozen=True, eq=False)
class Compiled:
    """A network that has memorized its questions, and what it took."""

    spec: Spec
    tensors: dict[str, NDArray[Any]]
    account: Account
    sizes: Sizes
    code: Code
    load: float
    attempts: int
    seconds: float


def compile_contexts(
    contexts: Contexts, settings: Settings | None = None, *, seed: int = 0, report: Report | None = None
) -> Compiled:
    """A Transformer that gives every question of ``contexts`` its answer."""
    began = time.perf_counter()
    settings = settings or Settings()
    word = settings.words or WORDS[settings.precision][0]
    code = make_code(contexts.labels, contexts.labels_in_all)
    if code.low and word != WORDS[settings.precision][0]:
        raise BadInput(f"words of {word} bits need a code of one digit; got {contexts.labels_in_all} labels: use plain words")
    sizes = plan(code, code.total, precision=settings.precision, word=word, load=LOAD)
    for attempt in range(ATTEMPTS):
        try:
            draft = _Draft(contexts, settings, code, sizes, np.random.default_rng([seed, attempt]))
            return draft.finished(attempt + 1, began, report)
        except Unsolvable:
            sizes = _next(sizes, attempt)
    raise BadInput(f"no table was found in {ATTEMPTS} attempts; another --seed may do")


def _next(sizes: Sizes, attempt: int) -> Sizes:
    """After two failures with other hashes the table grows; after many, so do the codes of the tokens."""
    if attempt % 12 == 11:
        return replace(sizes, code_features=sizes.code_features + 1)
    return grown(sizes) if attempt % 2 else sizes


class _Draft:
    """One attempt: a network whose table is still empty."""

    def __init__(
        self, contexts: Contexts, settings: Settings, code: Code, sizes: Sizes, rng: np.random.Generator
    ) -> None:
        self.contexts, self.settings, self.code, self.sizes, self.rng = contexts, settings, code, sizes, rng
        wiring = Wiring(np.dtype("float64" if settings.precision == "float64" else "float32"))
        self.front = fronts.add_front(wiring, sizes, contexts.vocab, contexts.window, rng)
        words = table.add_table(wiring, sizes, self.front)
        if sizes.exponent:
            lanes = wiring.features(6)
            table.add_selection(wiring, sizes, self.front, words, lanes)
            sums = reading.add_unpacking(wiring, sizes, lanes)
        else:
            sums = reading.Lanes(wiring.features(3), ())
            first, second, third = sums.sums
            table.add_selection(wiring, sizes, self.front, words, (first, first, second, second, third, third))
        Y = reading.add_reading(wiring, sizes, code, self.front, sums)
        W_U, b_U = code.lines()
        wiring.tensor("unembedding.W_U", W_U, W_U.shape)
        wiring.tensor("unembedding.b_U", b_U, b_U.shape)
        self.wiring = wiring
        self.spec = Spec(
            vocab=contexts.vocab,
            labels=contexts.labels_in_all,
            window=contexts.window,
            stream=wiring.stream,
            precision="float64" if settings.precision == "float64" else "float32",
            embeds=tuple(range(sizes.code_features)),
            unembeds=Y,
            sublayers=tuple(wiring.sublayers),
            bfloat16=(table.TABLE,) if settings.precision == "bfloat16" else (),
        )

    def finished(self, attempts: int, began: float, report: Report | None) -> Compiled:
        """Ask the front where every question reads, solve for the words, and fill them in."""
        from byheart.constructions.reciting.solve import solve

        words = solve(self._questions(), self.sizes, self.rng, report=report)
        self.wiring.tensors[table.TABLE] = table.as_floats(words, self.sizes, self.wiring.precision)
        tensors = {name: self.wiring.tensors[name] for name in self.spec.shapes()}
        return Compiled(
            spec=self.spec,
            tensors=tensors,
            account=count(tensors, self.spec),
            sizes=self.sizes,
            code=self.code,
            load=self.code.total / (self.sizes.words * (self.sizes.word + self.sizes.exponent)),
            attempts=attempts,
            seconds=time.perf_counter() - began,
        )

    def _questions(self) -> Any:
        import torch

        from byheart.constructions.reciting.solve import sort_questions
        from byheart.networks.transformer.evaluate import streams
        from byheart.networks.transformer.store import as_module

        contexts, front = self.contexts, self.front
        module = as_module(self.spec, self.wiring.tensors)
        wanted = [*front.rows[::2], *front.columns[::2], *front.scale, *front.kind]
        found = np.empty((len(contexts.places), len(wanted)))
        for index, stream in streams(module, contexts.tokens, contexts.starts, contexts.places):
            with torch.no_grad():
                found[index] = module.local(stream, until="table")[:, wanted].numpy()
        whole = found.astype(np.int64)
        return sort_questions(
            self.sizes,
            self.code,
            rows=whole[:, :2],
            columns=whole[:, 2:8],
            offset=-np.log2(found[:, 8]).astype(np.int64),
            kind=whole[:, 9] if front.kind else None,
            labels=contexts.labels,
        )
