"""A stock model in a folder that ``transformers.AutoModelForCausalLM`` loads as it is."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from byheart.files.reading import MOST_JSON, read_bytes
from byheart.networks.folders import CONFIG, WEIGHTS, read_weights
from byheart.networks.stock.network import StockNetwork


def config(network: StockNetwork) -> dict[str, Any]:
    """What config.json says of it: the arguments of transformers' own."""
    return dict(network.config)


def write(network: StockNetwork, folder: Path) -> None:
    """Write the weights, and how transformers is to generate, into ``folder``."""
    end = network.config.get("eos_token_id")
    generation = {"bos_token_id": network.first, "eos_token_id": end, "pad_token_id": end, "do_sample": False}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n", encoding="utf-8")
    # safetensors would write the memory of an array as it lies there
    weights = {name: np.ascontiguousarray(tensor) for name, tensor in network.weights.items()}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


def read(config: dict[str, Any], folder: Path, **beside: Any) -> StockNetwork:
    """The model that ``config`` describes, with the weights in ``folder``."""
    weights = read_weights(folder, ("F32", "F16"))
    digest = hashlib.sha256(read_bytes(folder / CONFIG, most=MOST_JSON) + read_bytes(folder / WEIGHTS)).hexdigest()
    own = {name: value for name, value in config.items() if name != "about"}
    return StockNetwork(own, weights, digest, **beside)
