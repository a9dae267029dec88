"""A softmax network on disk: ``config.json`` and ``model.safetensors``; nothing in the folder executes on loading."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from byheart.errors import BadInput
from byheart.networks.folders import SOFTMAX, replacing
from byheart.networks.softmax.network import SoftmaxNetwork


@dataclass(frozen=True, eq=False)
class Loaded:
    """A network and what was kept beside it: construction, settings, task."""

    network: SoftmaxNetwork
    about: dict[str, Any]


def save(network: SoftmaxNetwork, folder: Path, about: dict[str, object] | None = None) -> None:
    """Write ``network`` to ``folder`` (new, or one that holds such a network); ``about`` is kept in config.json."""
    config = {"format": SOFTMAX, "about": about or {}, "skip": network.skip}
    text = json.dumps(config, indent=1, ensure_ascii=False) + "\n"
    with replacing(Path(folder), "softmax") as new:
        save_file(dict(network.tensors()), new / "model.safetensors")
        (new / "config.json").write_text(text, encoding="utf-8")


def load(folder: Path) -> Loaded:
    """The network in ``folder``; BadInput, with the file named, if anything is missing or does not fit."""
    path = Path(folder) / "config.json"
    try:
        config = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; expected a network folder") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path}: cannot be read ({error})") from error
    about = config.get("about") if isinstance(config, dict) else None
    if not isinstance(about, dict) or config.get("format") != SOFTMAX or not isinstance(config.get("skip"), bool):
        raise BadInput(f"{path}: expected format {SOFTMAX!r}, an object 'about', and 'skip' true or false")
    path = Path(folder) / "model.safetensors"
    try:
        return Loaded(SoftmaxNetwork(**load_file(path), skip=config["skip"]), about)
    except (OSError, SafetensorError) as error:
        raise BadInput(f"{path}: cannot be read ({error}); the folder is incomplete") from error
    except (AttributeError, KeyError, TypeError) as error:  # a dtype that numpy has not, or a tensor of another name
        raise BadInput(f"{path}: not the tensors of a softmax network ({error})") from error
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def fingerprint(network: SoftmaxNetwork) -> str:
    """SHA-256 over all tensors and the skip connection: the same for a network and for its reloaded copy."""
    tensors = dict(network.tensors())
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    digest = hashlib.sha256(json.dumps([SOFTMAX, network.skip, shapes]).encode())
    for tensor in tensors.values():
        digest.update(tensor.astype("<f8").tobytes())
    return digest.hexdigest()
