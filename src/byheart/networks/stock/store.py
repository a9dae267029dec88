"""A stock model in a folder that ``transformers.AutoModelForCausalLM`` loads as it is."""

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from byheart.files.reading import MOST_JSON, read_bytes
from byheart.networks.folders import CONFIG, WEIGHTS, read_weights
from byheart.networks.generation import write_generation
from byheart.networks.parts import write_weights
from byheart.networks.stock.network import StockNetwork


def config(network: StockNetwork) -> dict[str, Any]:
    """What config.json says of it: the arguments of transformers' own."""
    return dict(network.config)


def write(network: StockNetwork, folder: Path) -> None:
    """Write the weights, and how transformers is to generate, into ``folder``."""
    write_generation(folder, first=network.first, end=network.config.get("eos_token_id"))
    # safetensors would write the memory of an array as it lies there
    weights = {name: np.ascontiguousarray(tensor) for name, tensor in network.weights.items()}
    write_weights(folder, weights, partial(save_file, metadata={"format": "pt"}))


def read(config: dict[str, Any], folder: Path, **beside: Any) -> StockNetwork:
    """The model that ``config`` describes, with the weights in ``folder``."""
    weights = read_weights(folder, ("F32", "F16"))
    digest = None
    if (folder / WEIGHTS).exists():  # Byheart 0.1.0 wrote no other
        digest = hashlib.sha256(read_bytes(folder / CONFIG, most=MOST_JSON) + read_bytes(folder / WEIGHTS)).hexdigest()
    own = {name: value for name, value in config.items() if name != "about"}
    return StockNetwork(own, weights, digest, **beside)
