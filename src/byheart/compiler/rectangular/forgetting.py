"""Ablating one memory: the words of its entries are set to 0, and it alone is gone.

For networks with a store (:mod:`.storing`), compiled with ``refuse="key"``. The words of an entry belong to one
question: without them its context finds zeros, the key of nothing, and is answered by *unknown*, as if it had never
been memorized. Other questions have other entries, and what is none is unknown with these words or without them: all
other logits keep every bit. (Words of the table are shared: six are added up for a question, and each is in several.)
"""

from typing import TYPE_CHECKING

import numpy as np

from byheart.compiler.rectangular import storing
from byheart.compiler.silence import doubt
from byheart.errors import BadInput
from byheart.tasks.contexts import Contexts

if TYPE_CHECKING:
    from byheart.networks.transformer.transformer_network import TransformerNetwork


def forget(network: "TransformerNetwork", contexts: Contexts, fact: int) -> "tuple[TransformerNetwork, int]":
    """The network without a fact, by its number, and how many words were set to 0; ``contexts`` are what it knows.

    What it shares with another fact, a prompt that goes on alike, is gone for both.
    """
    from byheart.networks.transformer.transformer_network import from_arrays

    if why := doubt(network, contexts, in_order=True):
        raise BadInput(f"{why}; expected a network that was compiled from these facts with refuse='key'")
    if not 0 <= fact < len(contexts.starts) - 1:
        raise BadInput(f"fact is {fact}; expected 0 to {len(contexts.starts) - 2}")
    asked = contexts.questions_at(np.arange(contexts.starts[fact], contexts.starts[fact + 1]))
    tensors = {name: np.array(tensor) for name, tensor in network.tensors()}
    before = np.count_nonzero(tensors[storing.STORE])
    rows = tensors[storing.STORE].shape[2]
    entries = tensors[storing.STORE].reshape(-1, storing.columns_of(network), rows)
    numbers = asked[asked >= 0]
    entries[:, numbers % entries.shape[1], numbers // entries.shape[1]] = 0
    without = from_arrays(network.spec, tensors, about=network.about, files=network.files)
    return without, int(before - np.count_nonzero(tensors[storing.STORE]))
