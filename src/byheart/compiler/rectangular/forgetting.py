"""Ablate one memory: set the words of its entries to 0, so that it alone is gone.

This is for networks with a store (:mod:`.storing`), compiled with ``refuse="key"``. The words of an entry belong to one
question. Without them its context finds zeros, which are no context's key, and is answered *unknown*, as if it had
never been memorized. Other questions have other entries, and a context that is no question is *unknown* with or without
these words. So all other logits keep every bit. (Words of the table are shared: each belongs to several questions.)
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.rectangular import storing, table
from byheart.compiler.rectangular.draft import Draft
from byheart.compiler.rectangular.recipe import Recipe
from byheart.errors import BadInput
from byheart.tasks.contexts import Contexts

if TYPE_CHECKING:
    from byheart.networks.transformer.transformer_network import TransformerNetwork


def forget(network: "TransformerNetwork", contexts: Contexts, fact: int) -> "tuple[TransformerNetwork, int]":
    """Return the network without the fact of number ``fact``, and the number of words that were set to 0.

    ``contexts`` are all facts that the network knows. A question that two facts share (their prompts are equal, and
    their completions begin alike) is gone for both.
    """
    from byheart.networks.transformer.transformer_network import from_arrays

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


def _check_entries(network: "TransformerNetwork", contexts: Contexts) -> None:
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


def _make_again(network: "TransformerNetwork", contexts: Contexts) -> dict[str, NDArray[Any]]:
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
