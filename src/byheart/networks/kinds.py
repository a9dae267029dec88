"""All kinds of networks behind one door: save, load, generate. The one place in this room that asks for the kind.

=============  =====================================================================  ======================
kind           what                                                                   package
=============  =====================================================================  ======================
exact          layers of integers over powers of two                                  ``networks/exact``
softmax        one softmax attention layer with float64 weights                       ``networks/softmax``
trained        networks that were trained, as blocks of steps; Hugging Face's GPT-2   ``networks/trained``
transformer    float Transformers whose sublayers read and write parts of the stream  ``networks/transformer``
stock          models of other people's classes: Hugging Face's Llama and Qwen2-MoE   ``networks/stock``
=============  =====================================================================  ======================

A package has a module ``store`` with ``config``, ``write`` and ``read``, and, if its networks say texts, a module
``generate``. It is imported when a network of its kind turns up, so that exact networks never need PyTorch.
"""

import errno
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from byheart.errors import BadInput
from byheart.files.claims import recover
from byheart.networks.card import card
from byheart.networks.folders import CARD, CONFIG, WEIGHTS, kind_in, read_beside, read_config, replacing
from byheart.networks.network import Network
from byheart.progress import Report

_SPEAKING = ("transformer", "stock")


def save(network: Network, folder: Path | str, about: Mapping[str, Any] | None = None) -> None:
    """Write ``network`` to ``folder``: new, empty, or one that holds a network of Byheart's, which is replaced.

    ``about`` is kept in config.json instead of the network's own.
    """
    with replacing(Path(folder)) as new:
        write(network, new, about)


def write(network: Network, folder: Path, about: Mapping[str, Any] | None = None) -> None:
    """Write the files of ``network`` into ``folder``, which is new: see :func:`byheart.networks.folders.replacing`."""
    store = _part(network.kind, "store")
    config = {**store.config(network), "about": dict(network.about if about is None else about)}
    try:
        store.write(network, folder)
    except SafetensorError as error:  # on a full disk too
        raise OSError(errno.EIO, str(error), str(folder / WEIGHTS)) from error
    (folder / CONFIG).write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, content in network.files.items():
        (folder / name).write_bytes(content)
    describe(network, folder)


def describe(network: Network, folder: Path, certified: str | None = None) -> None:
    """Write the card of a network that says texts beside it; ``certified`` is what its certificate says."""
    if network.kind in _SPEAKING:
        (folder / CARD).write_text(card(network, certified), encoding="utf-8")


def load(folder: Path | str) -> Network:
    """The network in ``folder``; BadInput, with the file named, if anything is missing or does not fit."""
    folder = Path(folder)
    recover(folder)
    config = read_config(folder)
    kind = kind_in(config)
    assert kind is not None
    beside = {"about": config.get("about", {}), "files": read_beside(folder)}
    try:
        network: Network = _part(kind, "store").read(config, folder, **beside)
    except BadInput as error:
        raise BadInput(f"{folder}: {error}") from error
    return network


def generate(
    network: Network, prompt: Sequence[int], *, tokens: int | None = None, end: int | None = None, guess: int = 0
) -> Iterator[int]:
    """What a network says after ``prompt``, one token after the other, greedily: at most ``tokens``, or to ``end``."""
    said: Iterator[int] = _speaking(network).generate(network, prompt, tokens=tokens, end=end, guess=guess)
    return said


def generate_all(
    network: Network,
    prompts: Sequence[Sequence[int]],
    *,
    end: int,
    tokens: Sequence[int],
    report: Report | None = None,
) -> list[list[int]]:
    """What a network says after each of several prompts, up to the token ``end`` (left out) or this many ``tokens``."""
    speaking = _speaking(network)
    spoken: list[list[int]] = speaking.generate_all(network, prompts, end=end, tokens=tokens, report=report)
    return spoken


def _speaking(network: Network) -> Any:
    if network.kind not in _SPEAKING:
        raise BadInput(f"{network.title} answers tasks; expected a network that says texts")
    return _part(network.kind, "generate")


def _part(kind: str, name: str) -> Any:
    return import_module(f"byheart.networks.{kind}.{name}")
