"""A rectangular network in the making: every layer, with a table and a store that are still empty."""

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.codes import Code, code_of_lengths
from byheart.compiler.planes import Equations
from byheart.compiler.rectangular import front as fronts
from byheart.compiler.rectangular import read, refusing, storing, table
from byheart.compiler.rectangular.address import TableAddresses, find_addresses
from byheart.compiler.rectangular.dimensions import LANES
from byheart.compiler.rectangular.recipe import Recipe
from byheart.compiler.rectangular.solve import sort_questions
from byheart.compiler.rectangular.wiring import Wiring
from byheart.networks.transformer import Spec
from byheart.tasks.contexts import Contexts


class Draft:
    """A network whose table, and store if it has one, is still empty."""

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
        """Add every layer. ``code`` says how labels are written; ``vocab`` and ``labels`` do not count *unknown*."""
        self.recipe, self.sizes, self.labels, self.store = recipe, recipe.sizes, code, store
        self.code = code if store is None else store.numbers
        """The code of what the table holds: labels, or the numbers of entries in the store."""
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
        Y = self._add_back()
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
            bfloat16=self._word_tensors() if recipe.settings.precision == "bfloat16" else (),
        )

    @classmethod
    def of(cls, recipe: Recipe, contexts: Contexts) -> "Draft":
        """Return the draft of the network that is to answer these questions."""
        code = code_of_lengths(np.array(recipe.lengths), contexts.labels, recipe.refuse)
        store = recipe.store(contexts) if recipe.stores else None
        sizes = {"vocab": contexts.vocab, "window": contexts.window, "labels": contexts.label_count}
        return cls(recipe, code, **sizes, store=store)

    def _add_back(self) -> tuple[int, ...]:
        """Add the layers from the table on, and return the features that hold the label's code."""
        wiring, sizes, front = self.wiring, self.sizes, self.front
        words = table.add_table(wiring, sizes, front)
        if sizes.exponent:
            lanes = wiring.features(LANES)
            table.add_selection(wiring, sizes, front, words, lanes)
            sums = read.add_unpacking(wiring, sizes, lanes)
        else:
            sums = read.Lanes(wiring.features(LANES // 2), ())
            pairs = tuple(feature for feature in sums.sums for _ in range(2))
            table.add_selection(wiring, sizes, front, words, pairs)
        Y = read.add_reading(wiring, sizes, self.code, front, sums)
        if self.store is None:
            return Y
        labels = wiring.features(self.store.labels)
        storing.add_store(wiring, self.store, Y, self.compared + labels)
        return refusing.add_known(wiring, storing.add_comparison(wiring, self.compared), labels)

    def _word_tensors(self) -> tuple[str, ...]:
        """Return the names of the tensors that hold the words."""
        shards = self.sizes.shards
        return (table.TABLE,) if shards == 1 else tuple(table.shard_tensor(shard) for shard in range(shards))

    def choices(self, contexts: Contexts) -> dict[str, object]:
        """Return the choices that ``Built`` states."""
        sizes, count = self.sizes, self.sizes.shards * self.sizes.words
        choices: dict[str, object] = {
            "window": contexts.window,
            "load": self.code.total / (count * (sizes.word + sizes.exponent)),
            "words": count,
            "attempts": self.recipe.draw[1] + 1,
        }
        return choices if sizes.shards == 1 else {**choices, "shards": sizes.shards}

    def questions(self, contexts: Contexts) -> Equations:
        """Return the equations of all questions: where each reads, and the bits that it has to find there."""
        if self.front.prints:
            return self._questions_with_prints(contexts)
        tokens, places = contexts.tokens.astype(np.int32), contexts.places.astype(np.int64)
        address = find_addresses(self.wiring, self.sizes, tokens, contexts.starts, places)
        labels = contexts.labels if self.store is None else np.arange(len(contexts))
        return sort_questions(self.sizes, self.code, address, labels)

    def entries(self, contexts: Contexts) -> NDArray[np.float64]:
        """Return the store's tensor: for every question the lanes that are compared, and the code of its label."""
        assert self.store is not None
        lanes = self._features_of(contexts, self.compared)
        return storing.entries(self.store, np.hstack([-lanes, self.labels.read(contexts.labels)]))

    def _questions_with_prints(self, contexts: Contexts) -> Equations:
        """Return the equations where a print stands before every label: the network's own front works it out."""
        front = self.front
        features = (*front.rows[::2], *front.columns[::2], *front.scale, *front.kind, *front.prints)
        values = self._features_of(contexts, features)
        whole = values.astype(np.int64)
        address = TableAddresses(
            rows=whole[:, :2],
            columns=whole[:, 2:8],
            offset=-np.log2(values[:, 8]).astype(np.int64),
            kind=whole[:, 9] if front.kind else None,
        )
        prints = refusing.joined(whole[:, len(features) - len(front.prints) :], self.code.refuse)
        return sort_questions(self.sizes, self.code, address, contexts.labels, prints)

    def _features_of(self, contexts: Contexts, features: tuple[int, ...]) -> NDArray[np.float64]:
        """Return the values [N, features] that the network gives these features before it reads the table."""
        from byheart.networks.transformer.answers import at_once, local_work, streams
        from byheart.networks.transformer.transformer_network import from_arrays

        module = from_arrays(self.spec, self.wiring.tensors).module
        result = np.empty((len(contexts), len(features)))
        portion = at_once(self.spec)
        portions = streams(module, contexts.tokens, contexts.starts, contexts.places, portion=portion)
        for index, values in local_work(
            module.device, portions, lambda stream: (module.local(stream, until="table")[:, features].numpy(),)
        ):
            result[index] = values
        return result
