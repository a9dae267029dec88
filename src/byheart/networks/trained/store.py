"""A trained network in a folder: its blocks in config.json, and ``model.safetensors``; or a GPT-2 of transformers'."""

from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from byheart.errors import BadInput
from byheart.networks.folders import TRAINED, WEIGHTS, read_weights
from byheart.networks.trained.network import TrainedNetwork
from byheart.networks.trained.steps import blocks_from_json

TAKES = 16
"""Bytes of memory for each byte of the file: a float32 becomes a ball of some 64."""


def config(network: TrainedNetwork) -> dict[str, Any]:
    """What config.json says of it."""
    return {"format": TRAINED, "blocks": [block.as_json() for block in network.blocks]}


def write(network: TrainedNetwork, folder: Path) -> None:
    """Write the weights into ``folder``, every tensor in its own format."""
    save_file(dict(network.weights), folder / WEIGHTS)


def read(config: dict[str, Any], folder: Path, **beside: Any) -> TrainedNetwork:
    """The network that ``config`` describes, with the weights in ``folder``."""
    if "format" not in config:
        from byheart.networks.trained.gpt2 import checked, from_gpt2

        sizes = checked(config)
        return from_gpt2(sizes, read_weights(folder, ("F32", "F64", "F16", "U8"), takes=TAKES), **beside)
    if strange := sorted(set(config) - {"format", "blocks", "about"}):
        raise BadInput(f"config.json: has {strange[0]!r}; expected format, blocks and about")
    blocks = blocks_from_json(config.get("blocks"))
    return TrainedNetwork(blocks, read_weights(folder, ("F32", "F64"), takes=TAKES), **beside)
