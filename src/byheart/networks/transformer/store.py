"""A float Transformer in a folder, as Hugging Face lays it out: the spec in config.json, and ``model.safetensors``."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from byheart.errors import BadInput
from byheart.networks.about import refuse_of
from byheart.networks.folders import CONFIG, FLOAT, MODELING, read_weights
from byheart.networks.generation import write_generation
from byheart.networks.parts import write_weights
from byheart.networks.transformer.modeling import AUTO_MAP, modeling
from byheart.networks.transformer.network import TransformerNetwork
from byheart.networks.transformer.spec import Spec


def config(network: TransformerNetwork) -> dict[str, Any]:
    """What config.json says of it: the spec, and what Hugging Face wants to know."""
    _ = network.module  # what could not be loaded is not written
    end, refuse = network.about.get("end"), refuse_of(network)
    ends = end if refuse is None else [end, refuse.token]
    return {
        "model_type": FLOAT,
        "architectures": ["ByheartForCausalLM"],
        "auto_map": AUTO_MAP,
        "dtype": network.spec.precision,
        "vocab_size": network.spec.vocab,
        **({} if end is None else {"eos_token_id": ends, "pad_token_id": end}),
        "spec": network.spec.as_json(),
    }


def write(network: TransformerNetwork, folder: Path) -> None:
    """Write the weights into ``folder``, every tensor in its own format; and what transformers needs to run them."""
    refuse = refuse_of(network)
    unknown = None if refuse is None else refuse.token
    write_generation(folder, first=None, end=network.about.get("end"), unknown=unknown)
    (folder / MODELING).write_text(modeling(), encoding="utf-8")
    weights = {name: weight.contiguous() for name, weight in network.weights.items()}
    write_weights(folder, weights, partial(save_file, metadata={"format": "pt"}))  # transformers asks for this mark


def read(config: dict[str, Any], folder: Path, **beside: Any) -> TransformerNetwork:
    """The network that ``config`` describes, with the weights in ``folder``."""
    if "spec" not in config:
        raise BadInput(f"{CONFIG}: no 'spec'; expected the description of a network")
    arrays = read_weights(folder, ("F32", "F64", "BF16"))
    # Whatever a part reads or writes has an entry of a tensor of its own.
    spec = Spec.from_json(config["spec"], most=sum(array.size for array in arrays.values()))
    network = TransformerNetwork(spec, {name: _tensor(array) for name, array in arrays.items()}, **beside)
    _ = network.module  # refuses tensors of other types, and those that the spec does not know
    return network


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    """The array as a tensor; 16 bits are those of a bfloat16."""
    if array.dtype == np.uint16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
