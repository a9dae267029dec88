"""Is what a network that refuses says of other contexts true? From its files and the user's own facts.

What :mod:`.storing` proves is about the network that it makes. So that network is made again, from the recipe that the
folder states and from the facts, and compared, tensor by tensor and bit by bit. The recipe need not be believed: if
nothing differs, it is the one. It must refuse by what the folder says it refuses by: a key, or so many bits. The words
of the index are not compared: it may name any entry, as long as these words are integers of the kind that are added up
without rounding, and that is looked at. So entries may stand in any order, and facts be given in any.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.rectangular import storing, table
from byheart.compiler.rectangular.dimensions import LANES
from byheart.compiler.rectangular.recipe import Draft, Recipe
from byheart.errors import BadInput
from byheart.tasks.contexts import Contexts

if TYPE_CHECKING:
    from byheart.networks.transformer.transformer_network import TransformerNetwork


def doubt(network: "TransformerNetwork", contexts: Contexts, *, in_order: bool = False) -> str:
    """Why it is not proved that the network tells these contexts from all others; empty if it is.

    That is for networks with a store: of whole keys, or of prints. ``in_order``: entry k must be that of question k.
    """
    try:
        wanted, word = _made_again(network, contexts)
    except BadInput as error:
        return str(error)
    for name, tensor in network.tensors():
        if name == table.TABLE:
            if not _are_words(tensor.astype(np.float64), word):
                return f"{name} holds numbers that are no words of an index"
        elif name == storing.STORE and not in_order:
            if not np.array_equal(_sorted(tensor, network), _sorted(wanted[name], network)):
                return f"{name} does not hold these facts and no others"
        elif not np.array_equal(tensor, wanted[name]):
            return f"{name} is not what its recipe and these facts make"
    return ""


def _made_again(network: "TransformerNetwork", contexts: Contexts) -> tuple[dict[str, NDArray[Any]], int]:
    """All tensors but the index, and how many bits its words have; BadInput if that is another network."""
    recipe = Recipe.from_json(network.about.get("recipe", {}))
    recipe.check(labels=network.spec.labels, parameters=network.account.dense)
    if not recipe.stores:
        raise BadInput("it has no store")
    if network.about.get("refuse") != {**recipe.refused_by, "token": network.spec.labels - 1}:
        raise BadInput("it says that it refuses by something else than its recipe does")
    if recipe.sizes.exponent or recipe.sizes.shards > 1:
        raise BadInput("its recipe is for an index that no store goes with")
    coded = np.array(recipe.lengths) >= 0
    if contexts.label_count >= len(coded) or not coded[contexts.labels].all():
        raise BadInput("it has no code for all of these answers")
    draft = Draft.of(recipe, contexts)
    if draft.spec != network.spec:
        raise BadInput("it is of another shape than its recipe and these facts make")
    return {**draft.wiring.tensors, storing.STORE: draft.entries(contexts)}, recipe.sizes.word


def _sorted(store: NDArray[Any], network: "TransformerNetwork") -> NDArray[Any]:
    """The entries of a store, [entries, lanes], in an order of their own."""
    entries = store.reshape(-1, storing.columns_of(network), store.shape[2])
    rows = entries.reshape(len(entries), -1).T
    return rows[np.lexsort(rows.T)]


def _are_words(halves: NDArray[Any], bits: int) -> bool:
    """Whether the tensor ``TABLE`` has integers from 0 to 2^bits − 1 in even lanes, from −2^bits to −1 in the others.

    >>> halves = np.array([[[3.0], [-1.0], [0.0]], [[-4.0], [1.0], [-2.0]]])
    >>> _are_words(halves, 2), _are_words(halves + 0.5, 2), _are_words(halves + 1, 2)
    (True, False, False)
    >>> _are_words(np.full((2, 3, 1), -1.25) * [[[0], [1], [0]], [[1], [0], [1]]], 53)  # −1.25 + 2^53 is an integer
    False
    """
    lifted = halves.reshape(LANES, -1) + (np.arange(LANES) % 2 * 2.0**bits)[:, None]
    return bool(np.all((lifted >= 0) & (lifted < 2.0**bits)) and np.all(halves == np.floor(halves)))
