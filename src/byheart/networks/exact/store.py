"""An exact network in a folder: the part of config.json that is its own, and ``model.safetensors``."""

from pathlib import Path
from typing import Any

from safetensors.numpy import load_file, save_file

from byheart.errors import BadInput
from byheart.networks.exact.format import pack, rebuild, shapes, unpack
from byheart.networks.exact.network import ExactNetwork
from byheart.networks.folders import EXACT, WEIGHTS, read_weights


def config(network: ExactNetwork) -> dict[str, Any]:
    """What config.json says of it."""
    return {"format": EXACT, "network": network.description}


def write(network: ExactNetwork, folder: Path) -> None:
    """Write the weights into ``folder``."""
    save_file(pack([tensor for _, tensor in network.tensors()]), folder / WEIGHTS)


def read(config: dict[str, Any], folder: Path, **beside: Any) -> ExactNetwork:
    """The network that ``config`` describes, with the weights in ``folder``."""
    arrays = read_weights(folder, load_file)
    try:
        given = config["network"]
        sizes = [tuple(int(size) for size in shape) for shape in shapes(given["layers"])]
        if any(size < 0 for shape in sizes for size in shape):
            raise BadInput("config.json: a negative shape")
        return ExactNetwork(
            rebuild(given["layers"], iter(unpack(arrays, sizes))),
            inputs=given["inputs"],
            outputs=given["outputs"],
            length=int(given["length"]),
            dim=int(given["dim"]),
            **beside,
        )
    except BadInput:
        raise
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise BadInput(f"config.json does not describe an exact network ({error!r})") from error
