"""Change or ablate one memory of a rectangular network.

**Changing** solves its table again, or the shard that the question reads.

**Ablating** is for networks with a store (:mod:`.storing`), compiled with ``refuse="key"``. The words of an entry
belong to one question. If they are set to 0, its context finds zeros, which are no context's key, and is answered
*unknown*, as if it had never been memorized. Other questions have other entries, and a context that is no question is
*unknown* with or without these words. So all other logits keep every bit. (Words of the table are shared: each belongs
to several questions.)
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.layouts import Attempt, CompilerSettings, Resources
from byheart.compiler.rectangular import lots, shards, storing, table
from byheart.compiler.rectangular.attempt import attempt
from byheart.compiler.rectangular.draft import Draft
from byheart.compiler.rectangular.recipe import Recipe
from byheart.errors import BadInput
from byheart.networks.about import refuse_of
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays
from byheart.tasks.arrays import Ids
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

    def solve_texts(self, contexts: Contexts, questions: Ids, free_bits: int, resources: Resources) -> Attempt:
        """Return the network with new words, after texts have changed; raises Unsolvable. Shards are cut anew."""
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


def forget(network: TransformerNetwork, contexts: Contexts, fact: int) -> tuple[TransformerNetwork, int]:
    """Return the network without the fact of number ``fact``, and the number of words that were set to 0.

    ``contexts`` are all facts that the network knows. A question that two facts share (their prompts are equal, and
    their completions begin alike) is gone for both.
    """
    _check_entries(network, contexts)
    if not 0 <= fact < len(contexts.starts) - 1:
        raise BadInput(f"fact is {fact}; expected 0 to {len(contexts.starts) - 2}")
    questions = contexts.questions_at(np.arange(contexts.starts[fact], contexts.starts[fact + 1]))
    tensors = {name: np.array(tensor) for name, tensor in network.tensors()}
    before = np.count_nonzero(tensors[storing.STORE])
    rows = tensors[storing.STORE].shape[2]
    entries = tensors[storing.STORE].reshape(-1, storing.columns_of(network), rows)
    numbers = questions[questions >= 0]
    entries[:, numbers % entries.shape[1], numbers // entries.shape[1]] = 0
    without = from_arrays(network.spec, tensors, about=network.about, files=network.files)
    return without, int(before - np.count_nonzero(tensors[storing.STORE]))


def _check_entries(network: TransformerNetwork, contexts: Contexts) -> None:
    """Raise BadInput unless the network is what its recipe makes of these questions, with entry k for question k.

    The network is made again, except for the words of the index, and compared bit by bit.
    """
    expected = "expected a network that was compiled from these facts with refuse='key'"
    try:
        tensors = _make_again(network, contexts)
    except BadInput as error:
        raise BadInput(f"{error}; {expected}") from error
    for name, tensor in network.tensors():
        if name != table.TABLE and not np.array_equal(tensor, tensors[name]):
            raise BadInput(f"{name} is not what its recipe and these facts make; {expected}")


def _make_again(network: TransformerNetwork, contexts: Contexts) -> dict[str, NDArray[Any]]:
    """Return all tensors but the index; raise BadInput if the recipe is for another network."""
    recipe = Recipe.from_json(network.about.get("recipe", {}))
    recipe.check(labels=network.spec.labels, parameters=network.account.dense)
    if not recipe.stores:
        raise BadInput("it has no store")
    if recipe.sizes.exponent or recipe.sizes.shards > 1:
        raise BadInput("its recipe is for an index that no store goes with")
    coded = np.array(recipe.lengths) >= 0
    if contexts.label_count >= len(coded) or not coded[contexts.labels].all():
        raise BadInput("it has no code for all of these answers")
    draft = Draft.of(recipe, contexts)
    if draft.spec != network.spec:
        raise BadInput("it is of another shape than its recipe and these facts make")
    return {**draft.wiring.tensors, storing.STORE: draft.entries(contexts)}
