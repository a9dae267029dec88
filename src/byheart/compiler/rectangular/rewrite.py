"""Change one memory of a rectangular network: solve its table again, or the shard that the question reads."""

from functools import cached_property
from typing import Any

import numpy as np

from byheart.compiler.layouts import Attempt, CompilerSettings, Resources
from byheart.compiler.rectangular import lots, shards, table
from byheart.compiler.rectangular.attempt import attempt
from byheart.compiler.rectangular.draft import Draft
from byheart.compiler.rectangular.recipe import Recipe
from byheart.errors import BadInput
from byheart.networks.about import refuse_of
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays
from byheart.tasks.contexts import Contexts


class RectangularEdit:
    """A rectangular network to edit, by the recipe that its folder states."""

    def __init__(self, network: TransformerNetwork) -> None:
        self.network = network
        self.label_count = network.spec.labels - (refuse_of(network) is not None)  # no edit may answer "unknown"

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe, checked against the network."""
        recipe = Recipe.from_json(self.network.about.get("recipe", {}))
        recipe.check(labels=self.network.spec.labels, parameters=self.network.account.dense)
        return recipe

    @property
    def settings(self) -> CompilerSettings:
        """The recipe's settings."""
        return self.recipe.settings

    @property
    def seed(self) -> int:
        """The recipe's seed."""
        return self.recipe.draw[0]

    @property
    def recompile_seed(self) -> int:
        """Seed for compiling the network anew: its own."""
        return self.seed

    def has_code(self, label: int) -> bool:
        """Return True if the label has a code word."""
        return self.recipe.lengths[label] >= 0

    def solve_again(self, contexts: Contexts, question: int, free_bits: int, resources: Resources) -> Attempt:
        """Return the network with new words, after the answer to ``question`` has changed; raises Unsolvable."""
        if self.recipe.sizes.shards > 1:
            return self._solve_shard_again(contexts, question, free_bits)
        return attempt(self.recipe, contexts, resources, free_bits=free_bits)

    def _solve_shard_again(self, contexts: Contexts, question: int, free_bits: int) -> Attempt:
        """Return the network with new words in the shard that the question reads."""
        network, recipe = self.network, self.recipe
        notes = self._notes()
        draft = Draft.of(recipe, contexts)
        mapped, cuts = shards.map_questions(draft.wiring, recipe.sizes, contexts)
        own = shards.piece_of(contexts, slice(question, question + 1))
        (route,) = shards.map_piece(draft.wiring, recipe.sizes, *own).route
        shard = int(np.searchsorted(cuts[1:-1], route, side="right"))
        records = shards.records_of(mapped, cuts, shard)
        options = (recipe.sizes, draft.code, recipe.draw, shard, draft.wiring.precision)
        turns = [lots.turn_of(dict(network.tensors()), recipe.sizes, shard, records.route.astype(np.int64))]
        tensor, note = shards.solve_shard(records, *options, turns=turns, free_bits=free_bits)
        notes[shard] = note.as_json()
        tensors = {**dict(network.tensors()), table.shard_tensor(shard): tensor}
        about = {**network.about, **contexts.notes, "shards": notes}
        return Attempt(from_arrays(network.spec, tensors, about=about, files=network.files), draft.choices(contexts))

    def _notes(self) -> list[Any]:
        """Return the folder's note about each shard. Nothing relies on what the notes say."""
        notes, count = self.network.about.get("shards"), self.recipe.sizes.shards
        if not isinstance(notes, list) or len(notes) != count:
            problem = f"about.shards is not a list of {count:,} notes"
            raise BadInput(f"config.json: {problem}; expected the folder as it was compiled")
        return [*notes]
