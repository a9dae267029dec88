"""A softmax network in a folder: the part of config.json that is its own, and ``model.safetensors``."""

from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from byheart.errors import BadInput
from byheart.networks.folders import SOFTMAX, WEIGHTS, read_weights
from byheart.networks.softmax.network import SoftmaxNetwork


def config(network: SoftmaxNetwork) -> dict[str, Any]:
    """What config.json says of it."""
    return {"format": SOFTMAX, "skip": network.skip}


def write(network: SoftmaxNetwork, folder: Path) -> None:
    """Write the weights into ``folder``."""
    save_file(network.weights(), folder / WEIGHTS)


def read(config: dict[str, Any], folder: Path, **beside: Any) -> SoftmaxNetwork:
    """The network with the weights in ``folder``."""
    if not isinstance(config.get("skip"), bool):
        raise BadInput(f"config.json: skip is {config.get('skip')!r}; expected true or false")
    try:
        weights: dict[str, Any] = read_weights(folder, ("F64",))
        return SoftmaxNetwork(**weights, skip=config["skip"], **beside)
    except TypeError as error:  # a tensor of another name
        raise BadInput(f"{WEIGHTS} does not hold the tensors of a softmax network ({error})") from error
