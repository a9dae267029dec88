"""Byheart's compiled networks as ONNX files: one graph for batches and texts of any length.

    from byheart.exporting.onnx import to_onnx

    to_onnx(byheart.load("book"), "book.onnx")

Inputs are ``input_ids`` and ``attention_mask`` [batch, length], both int64; a mask of 0 is padding on the left. The
output is ``logits`` [batch, length, labels]. The graph is PyTorch's own trace of the network, be it a float Transformer
or a stock model; in that of a Qwen2-MoE every token takes its expert's matrices along (transformers' ``batched_mm``,
the one of its kernels that has a trace). It keeps nothing between calls: the next token follows from the last
``byheart.window`` tokens alone, a number that the file's metadata hold, with ``byheart.first``, the token before every
text, if there is one.

The file is read back before it takes its place: every tensor is in it, bit for bit (some transposed or reversed), and
ONNX Runtime gives PyTorch's logits, bit for bit, on what the network says, at ``LENGTHS``, with padding and without.
That is a check of this runtime on this machine; no certificate speaks of it.

Needs onnx, onnxscript and onnxruntime, which are imported when a network is written, not before (extra ``onnx``).
"""

import json
import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from byheart.errors import BadInput, check_installed
from byheart.exporting.refusing import refused
from byheart.files.writing import new_file
from byheart.networks import Network, generate
from byheart.networks.about import end_of, texts_of
from byheart.networks.stock.stock_network import StockNetwork
from byheart.networks.transformer.transformer_network import TransformerNetwork

INPUTS = ("input_ids", "attention_mask")
LENGTHS = (1, 2, 7, 60)
"""Lengths at which logits are compared: one token, two, and more than in the traced example."""
MOST_BYTES = 1 << 31
"""Most bytes of one file, a limit of the format."""
_EXPERTS = re.compile(r"\.experts\.\d+\.")
_TRACED = (2, 3)
"""Batch and length of the traced example; the graph takes any others."""


def to_onnx(network: Network, path: Path | str) -> int:
    """Write the network to ``path``, whole or not at all; return the number of tensors."""
    check_onnx(network)
    assert isinstance(network, StockNetwork | TransformerNetwork)
    with new_file(Path(path)) as draft:
        with _quiet():
            _trace(network).save(draft)
        _note(draft, network)
        tensors = _compare_tensors(draft, network)
        _compare_logits(draft, network)
    return tensors


def check_onnx(network: Network) -> None:
    """Raise BadInput if a network has no ONNX, or a package that writes or checks it is missing."""
    if not isinstance(network, StockNetwork | TransformerNetwork):
        raise refused(network, "ONNX")
    if network.account.dense * 8 > MOST_BYTES:
        raise BadInput(
            f"has {network.account.dense:,} parameters; expected at most {MOST_BYTES // 8:,} in one ONNX file"
        )
    if isinstance(network, StockNetwork):
        check_installed("transformers", network.title, "hf")
    for package in ("onnx", "onnxscript", "onnxruntime"):
        check_installed(package, "writing ONNX", "onnx")


class _StockGraph(nn.Module):
    """A stock model without its cache, every position by its number in the row."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        place = torch.arange(input_ids.shape[1])
        seen = (place[:, None] >= place) & (attention_mask != 0)[:, None, None, :]
        lowest = torch.finfo(torch.float32).min
        mask = torch.where(seen, 0.0, lowest)
        logits: Tensor = self.model(input_ids, attention_mask=mask, position_ids=place[None], use_cache=False).logits
        return logits


class _Float(nn.Module):
    """A float Transformer with the usual names of inputs."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        logits: Tensor = self.module(input_ids, mask=attention_mask)
        return logits


def _module(network: Network) -> nn.Module:
    if isinstance(network, StockNetwork):
        model = replace(network).model  # of its own: others go on with the kernel that they have
        if _EXPERTS.search(" ".join(network.weights)):
            model.set_experts_implementation("batched_mm")
        return _StockGraph(model).eval()
    assert isinstance(network, TransformerNetwork)
    return _Float(network.module).eval()


@torch.no_grad()
def _trace(network: Network) -> Any:
    free = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
    given = torch.zeros(_TRACED, dtype=torch.long)
    return torch.onnx.export(
        _module(network),
        (given, torch.ones_like(given)),
        dynamo=True,
        dynamic_shapes=(free, free),
        input_names=INPUTS,
        output_names=["logits"],
        external_data=False,
        verbose=False,
    )


def _note(path: Path, network: Network) -> None:
    """Replace PyTorch's notes on the origin of every node by metadata about the network."""
    import onnx

    model = onnx.load(path)
    for part in (*model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output, model.graph):
        del part.metadata_props[:]
    window = network.spec.sees if isinstance(network, TransformerNetwork) else network.about.get("window")
    said = {"fingerprint": network.fingerprint, "window": window, "first": _first(network)}
    said |= {"end": network.about.get("end"), "texts": texts_of(network)}
    onnx.helper.set_model_props(model, {f"byheart.{name}": json.dumps(value) for name, value in said.items()})
    onnx.save(model, path)


def _first(network: Network) -> int | None:
    """Return the token that stands before every text, or None."""
    return network.first if isinstance(network, StockNetwork) else None


def _compare_tensors(path: Path, network: Network) -> int:
    """Return the number of the network's tensors; raise RuntimeError unless all are in the file."""
    import onnx

    arrays = map(onnx.numpy_helper.to_array, onnx.load(path).graph.initializer)
    there = {array.astype(np.float32 if array.dtype.itemsize == 2 else array.dtype).tobytes() for array in arrays}
    tensors = _fused(dict(network.tensors()))
    # What a graph does to a tensor alone, its optimizer does beforehand: to transpose it, or to turn offsets around.
    forms = {name: (W, W.T, W[..., ::-1], np.moveaxis(W, -1, W.ndim // 2)) for name, W in tensors.items()}
    lost = [name for name, found in forms.items() if not {form.tobytes() for form in found} & there]
    if lost:
        raise RuntimeError(f"{path}: {lost[:3]} were not read back as they were written")
    return sum(1 for _ in network.tensors())


def _fused(tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the tensors as transformers holds them: all experts of a layer in two, gates above ups, and downs."""
    kept = {name: W for name, W in tensors.items() if not _EXPERTS.search(name)}
    layers = {name[: found.start()] for name in tensors if (found := _EXPERTS.search(name))}
    for layer in layers:
        count = sum(name.startswith(f"{layer}.experts.") for name in tensors) // 3
        gate, up, down = (
            np.stack([tensors[f"{layer}.experts.{number}.{part}_proj.weight"] for number in range(count)])
            for part in ("gate", "up", "down")
        )
        kept |= {
            f"{layer}.experts.gate_up_proj": np.concatenate([gate, up], axis=1),
            f"{layer}.experts.down_proj": down,
        }
    return kept


@torch.no_grad()
def _compare_logits(path: Path, network: StockNetwork | TransformerNetwork) -> None:
    """Raise BadInput unless ONNX Runtime gives PyTorch's logits for tokens that the network says."""
    from onnxruntime import InferenceSession

    session = InferenceSession(path, providers=["CPUExecutionProvider"])
    module, before = _module(network), _before(network)
    for ids, mask in _asked(network, before):
        wanted = module(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()
        (found,) = session.run(None, dict(zip(INPUTS, (ids, mask), strict=True)))
        answers = mask.cumsum(axis=1) > before
        if not np.array_equal(found[answers], wanted[answers]):
            most = np.abs(found[answers] - wanted[answers]).max()
            raise BadInput(f"ONNX Runtime's logits differ by {most:.3g}; expected PyTorch's: try another version of it")


def _before(network: Network) -> int:
    """Return how many tokens a network must have read before it answers.

    A stock model without a first token was never asked about less than its window; where it looks there is not exact.
    """
    return network.window - 1 if isinstance(network, StockNetwork) and network.first is None else 0


def _asked(
    network: StockNetwork | TransformerNetwork, before: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield token ids and masks: a text at several lengths, and twice in one batch, once behind padding."""
    said = list(islice(_text(network), before + max(LENGTHS)))
    for length in LENGTHS:
        ids = np.array([said[: before + length]])
        yield ids, np.ones_like(ids)
    short = said[: before + 2]
    padding = len(said) - len(short)
    ids = np.array([[said[-1]] * padding + short, said])
    mask = np.ones_like(ids)
    mask[0, :padding] = 0
    yield ids, mask


def _text(network: StockNetwork | TransformerNetwork) -> Iterator[int]:
    """Yield the tokens of the network's first text; if it has no texts, all tokens in turn."""
    texts, first, end = texts_of(network), _first(network), end_of(network)
    if first is not None:
        yield first
    if texts:
        prompt = texts[0]["prompt"]
        yield from prompt
        yield from (token for token in generate(network, prompt, end=end) if token != end)
    else:
        vocab = network.config["vocab_size"] if isinstance(network, StockNetwork) else network.spec.vocab
        yield from cycle(token for token in range(vocab) if token != first)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence PyTorch's notes on missing packages and its warnings about its own parts."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
