"""Compiled networks as ONNX: a trace with a free length; what is in the file (``make onnx``), and what is refused."""

import json
import os
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import byheart
from byheart.errors import BadInput
from byheart.networks import Network, load
from byheart.networks.transformer import GatedBlocks, Spec, WindowAttention
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays

FIXTURES = Path(__file__).parents[1] / "fixtures" / "0.1.0"
PACKAGES = ("onnx", "onnxscript", "onnxruntime")
NEEDS = "the extra onnx is not installed: make onnx"
LONGER = ["llama", "texts", "pairs", "float64", "experts"] if os.environ.get("ONNX") == "all" else []
"""Networks whose exports take ten seconds and more: make onnx."""


def tiny() -> TransformerNetwork:
    """Two heads that look back by 0, 2 and 4, and two units; small integers, so that sums have one value only."""
    look = WindowAttention("look", reads=(0, 1), writes=(2, 3), window=3, dilation=2, heads=2, d_head=1)
    unit = GatedBlocks("unit", "relu", reads=(2, 3), writes=(4,), units=2)
    spec = Spec(5, 3, 5, 5, "float32", embeds=(0, 1), unembeds=(3, 4), sublayers=(look, unit))
    rng = np.random.default_rng(0)
    arrays = {name: rng.integers(-2, 3, shape).astype(np.float32) for name, shape in spec.shapes().items()}
    arrays["look.bias"] = np.array([[0, 500, 0], [0, 0, 500]], dtype=np.float32)  # one-hot: sums of one term
    return from_arrays(spec, arrays)


@pytest.mark.slow
def test_a_trace_keeps_neither_batch_nor_length() -> None:
    """Traced once, at 2 × 3; run at others, with padding, bit for bit; no length is refused."""
    module = tiny().module
    free = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
    given = torch.zeros(2, 3, dtype=torch.long)
    with torch.no_grad():
        shapes = {"tokens": free, "mask": free}
        program = torch.export.export(module, (given,), {"mask": torch.ones_like(given)}, dynamic_shapes=shapes)
        for batch, length in ((1, 1), (1, 2), (3, 7), (2, 600)):
            tokens = torch.randint(0, 5, (batch, length), generator=torch.Generator().manual_seed(0))
            mask = torch.ones_like(tokens)
            mask[0, : length // 2] = 0
            assert torch.equal(program.module()(tokens, mask=mask), module(tokens, mask=mask))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folding", "ONNX has no model for an exact network; its entries are integers of any size"),
        ("dana-2025", "ONNX has no model for a softmax network; byheart.lens"),
        ("trained", "ONNX has no model for a trained network; if it is a GPT-2"),
    ],
)
def test_what_has_no_graph_is_refused(name: str, message: str, tmp_path: Path) -> None:
    from byheart.exporting.onnx import to_onnx

    with pytest.raises(BadInput, match=message):
        to_onnx(load(FIXTURES / name), tmp_path / "x.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", PACKAGES)
def test_without_a_package_nothing_is_written(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from byheart.exporting.onnx import to_onnx

    for name in PACKAGES:
        monkeypatch.setitem(sys.modules, name, __import__("json"))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BadInput, match=f"writing ONNX needs {package}, which is not installed"):
        to_onnx(tiny(), tmp_path / "x.onnx")
    assert not list(tmp_path.iterdir())


def test_what_is_too_large_for_one_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from byheart.exporting import onnx

    monkeypatch.setattr(onnx, "MOST_BYTES", 80)
    with pytest.raises(BadInput, match="parameters; expected at most 10 in one ONNX file"):
        onnx.to_onnx(tiny(), tmp_path / "x.onnx")
    assert not list(tmp_path.iterdir())


def needed() -> Any:
    """ONNX Runtime, if all packages are there."""
    for package in PACKAGES:
        pytest.importorskip(package, reason=NEEDS)
    return sys.modules["onnxruntime"]


def network_of(name: str) -> Network:
    text = (FIXTURES / "a.txt").read_text()
    if name == "experts":
        return byheart.compile(text, layout="experts").network
    return byheart.compile(text, precision=name).network if name == "float64" else load(FIXTURES / name)


@pytest.mark.parametrize("name", ["short", "llama-facts", *LONGER])
def test_it_says_the_same(name: str, tmp_path: Path) -> None:
    """Greedily, whole, from the file alone: the last tokens in, the next one out, until the end."""
    runtime = needed()
    from byheart.exporting.onnx import to_onnx

    network = network_of(name)
    assert to_onnx(network, tmp_path / "x.onnx") == len(list(network.tensors()))
    session = runtime.InferenceSession(tmp_path / "x.onnx")
    noted = session.get_modelmeta().custom_metadata_map
    told = {key.removeprefix("byheart."): json.loads(value) for key, value in noted.items()}
    assert told["fingerprint"] == network.fingerprint
    for text in told["texts"]:
        said = [] if told["first"] is None else [told["first"]]
        said += text["prompt"]
        while said[-1] != told["end"] or len(said) == 1:
            seen = np.array([said[-told["window"] :]])
            (logits,) = session.run(None, {"input_ids": seen, "attention_mask": np.ones_like(seen)})
            said.append(int(logits[0, -1].argmax()))
        wanted = byheart.networks.generate(network, text["prompt"], end=told["end"])
        assert said[(told["first"] is not None) + len(text["prompt"]) :] == list(wanted)
        assert len(said) > text["tokens"]


def test_experts_are_fused_as_transformers_has_them() -> None:
    """Two experts of one unit each, by hand: gates above ups, and downs; what is no expert's stays as it is."""
    from byheart.exporting.onnx import _fused

    given = {"mlp.gate.weight": np.zeros((2, 2))}
    for number, part in product(range(2), ("gate", "up", "down")):
        row = np.array([[1 + number, 10.0 * len(part)]])
        given[f"mlp.experts.{number}.{part}_proj.weight"] = row.T if part == "down" else row
    found = _fused(given)
    assert found.keys() == {"mlp.gate.weight", "mlp.experts.gate_up_proj", "mlp.experts.down_proj"}
    assert found["mlp.experts.gate_up_proj"].tolist() == [[[1, 40], [1, 20]], [[2, 40], [2, 20]]]
    assert found["mlp.experts.down_proj"].tolist() == [[[1], [40]], [[2], [40]]]


def test_the_graph_tells_nothing_of_this_machine(tmp_path: Path) -> None:
    needed()
    from byheart.exporting.onnx import to_onnx

    to_onnx(tiny(), tmp_path / "x.onnx")
    assert b".py" not in (tmp_path / "x.onnx").read_bytes()


@pytest.mark.parametrize("what", ["tensors", "logits"])
def test_what_is_not_equal_is_not_left(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bit of a tensor that is flipped in the file is found; and by the logits too, were tensors not looked at."""
    needed()
    import onnx as format_

    from byheart.exporting import onnx

    note = onnx._note

    def careless(path: Path, network: Network) -> None:
        note(path, network)
        model = format_.load(path)
        (table,) = (tensor for tensor in model.graph.initializer if tensor.name.endswith("W_U"))
        table.raw_data = bytes([*table.raw_data[:2], table.raw_data[2] ^ 64, *table.raw_data[3:]])
        format_.save(model, path)

    monkeypatch.setattr(onnx, "_note", careless)
    if what == "logits":
        monkeypatch.setattr(onnx, "_compare_tensors", lambda path, network: 0)
    kind, message = (RuntimeError, "W_U'] were not read back") if what == "tensors" else (BadInput, "logits differ by")
    with pytest.raises(kind, match=message):
        onnx.to_onnx(tiny(), tmp_path / "x.onnx")
    assert not list(tmp_path.iterdir())
