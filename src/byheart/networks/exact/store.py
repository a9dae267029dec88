"""An exact network in a folder: the part of config.json that is its own, and ``model.safetensors``."""

from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from byheart.errors import BadInput
from byheart.networks.exact.format import pack, rebuild, shapes, unpack
from byheart.networks.exact.network import ExactNetwork
from byheart.networks.folders import EXACT, WEIGHTS, read_weights

TAKES = 32
"""Bytes of memory for every byte of the file: an integer of four is an object of 32, in two lists and an array."""


def config(network: ExactNetwork) -> dict[str, Any]:
    """What config.json says of it."""
    return {"format": EXACT, "network": network.description}


def write(network: ExactNetwork, folder: Path) -> None:
    """Write the weights into ``folder``."""
    save_file(pack([tensor for _, tensor in network.tensors()]), folder / WEIGHTS)


def read(config: dict[str, Any], folder: Path, **beside: Any) -> ExactNetwork:
    """The network that ``config`` describes, with the weights in ``folder``."""
    arrays = read_weights(folder, ("I32", "U8"), takes=TAKES)
    try:
        given = config["network"]
        layers = rebuild(given["layers"], iter(unpack(arrays, list(shapes(given["layers"])))))
        sizes = {key: given[key] for key in ("inputs", "outputs", "length", "dim")}
        return ExactNetwork(layers, **sizes, **beside)
    except BadInput:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"config.json does not describe an exact network ({error!r})") from error
