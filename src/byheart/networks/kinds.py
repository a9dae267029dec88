"""Save, load and generate for all kinds of networks.

=============  =====================================================================  ======================
kind           networks of this kind                                                  package
=============  =====================================================================  ======================
exact          layers of integers over powers of two                                  ``networks/exact``
softmax        one softmax attention layer with float64 weights                       ``networks/softmax.py``
trained        networks that were trained, as blocks of steps; Hugging Face's GPT-2   ``networks/trained``
transformer    float Transformers whose sublayers read and write parts of the stream  ``networks/transformer``
stock          models that Hugging Face's classes run: Llama and Qwen2-MoE            ``networks/stock``
=============  =====================================================================  ======================

This is the only module of the room that branches on the kind. A kind is a subclass of
:class:`~byheart.networks.network.Network` and a line in ``_READERS``. Its module is imported when a network of that
kind turns up, so exact networks never import PyTorch.
"""

import errno
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from byheart.errors import BadInput
from byheart.files.replacement import recover
from byheart.networks.card import card
from byheart.networks.folders import (
    CARD,
    CONFIG,
    EXACT,
    FLOAT,
    SOFTMAX,
    TRAINED,
    WEIGHTS,
    name_in,
    read_beside,
    read_config,
    replacing,
)
from byheart.networks.network import Network
from byheart.progress import Report

_READERS = {
    EXACT: ("exact.exact_network", "ExactNetwork.read"),
    SOFTMAX: ("softmax", "SoftmaxNetwork.read"),
    TRAINED: ("trained.trained_network", "TrainedNetwork.read"),
    "gpt2": ("trained.gpt2", "read_gpt2"),
    FLOAT: ("transformer.transformer_network", "TransformerNetwork.read"),
    "llama": ("stock.stock_network", "StockNetwork.read"),
    "qwen2_moe": ("stock.stock_network", "StockNetwork.read"),
}
"""Module and function that read a network, by its name in config.json (``format`` or ``model_type``)."""
_GENERATORS = {"transformer": "transformer.generate", "stock": "stock.running"}
"""Modules with ``generate`` and ``generate_all``, for the kinds of networks that recite texts."""


def save(network: Network, folder: Path | str, about: Mapping[str, Any] | None = None) -> None:
    """Write ``network`` to ``folder``, which must be new, empty, or hold a network of Byheart, which is replaced.

    If ``about`` is given, config.json holds it instead of the network's own notes.
    """
    with replacing(Path(folder)) as new:
        write(network, new, about)


def write(network: Network, folder: Path, about: Mapping[str, Any] | None = None) -> None:
    """Write the files of ``network`` into the new ``folder`` (see :func:`byheart.networks.folders.replacing`)."""
    config = {**network.as_config(), "about": dict(network.about if about is None else about)}
    try:
        network.write_tensors(folder)
    except SafetensorError as error:  # raised on a full disk, too
        raise OSError(errno.EIO, str(error), str(folder / WEIGHTS)) from error
    (folder / CONFIG).write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, content in {**network.side_files(), **network.files}.items():
        (folder / name).write_bytes(content)
    describe(network, folder)


def describe(network: Network, folder: Path, certified: str | None = None) -> None:
    """Write the card of a network that recites texts into ``folder``; ``certified`` quotes its certificate."""
    if network.kind in _GENERATORS:
        (folder / CARD).write_text(card(network, certified), encoding="utf-8")


def load(folder: Path | str) -> Network:
    """Return the network in ``folder``; raise BadInput, naming the file, if anything is missing or does not fit."""
    folder = Path(folder)
    recover(folder)
    config = read_config(folder)
    module, function = _READERS[name_in(config)]
    beside = {"about": config.get("about", {}), "files": read_beside(folder)}
    try:
        network: Network = attrgetter(function)(_module(module))(config, folder, **beside)
    except BadInput as error:
        raise BadInput(f"{folder}: {error}") from error
    return network


def generate(
    network: Network, prompt: Sequence[int], *, tokens: int | None = None, end: int | None = None, guess: int = 0
) -> Iterator[int]:
    """Yield the tokens that follow ``prompt``, greedily: at most ``tokens``, and none after the token ``end``."""
    continuation: Iterator[int] = _generator(network).generate(network, prompt, tokens=tokens, end=end, guess=guess)
    return continuation


def generate_all(
    network: Network,
    prompts: Sequence[Sequence[int]],
    *,
    end: int,
    tokens: Sequence[int],
    report: Report | None = None,
) -> list[list[int]]:
    """Return the tokens that follow each prompt, up to ``end`` (left out) or to the prompt's number of ``tokens``."""
    generator = _generator(network)
    continuations: list[list[int]] = generator.generate_all(network, prompts, end=end, tokens=tokens, report=report)
    return continuations


def _generator(network: Network) -> Any:
    if network.kind not in _GENERATORS:
        raise BadInput(f"{network.title} answers tasks; expected a network that recites texts")
    return _module(_GENERATORS[network.kind])


def _module(name: str) -> Any:
    return import_module(f"byheart.networks.{name}")
