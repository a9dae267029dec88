"""Hugging Face's GPT-2 as a trained network: the logits of transformers itself, and what is refused."""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from byheart.certificates import certify
from byheart.errors import BadInput
from byheart.networks import load, save
from byheart.networks.trained.evaluate import evaluate
from byheart.tasks import NextToken
from byheart.tasks import load as load_task

transformers = pytest.importorskip("transformers")
SIZES = {"vocab_size": 11, "n_positions": 7, "n_embd": 12, "n_layer": 2, "n_head": 3}
TOKENS = np.random.default_rng(0).integers(11, size=(9, 5))


def model(**settings: Any) -> Any:
    """A tiny GPT-2 with random weights everywhere, gains and biases too."""
    config = transformers.GPT2Config(**SIZES, bos_token_id=None, eos_token_id=None, **settings)
    found = transformers.GPT2LMHeadModel(config).eval()
    generator = torch.Generator().manual_seed(1)
    for parameter in found.parameters():
        parameter.data += 0.4 * torch.randn(parameter.shape, generator=generator)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("gpt2")
    model().save_pretrained(place)
    return place


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"activation_function": "gelu", "tie_word_embeddings": False},
        {"activation_function": "relu", "n_inner": 10, "scale_attn_weights": False},
    ],
)
def test_logits_are_those_of_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    theirs = model(**settings)
    theirs.save_pretrained(tmp_path / "net")
    ours: Any = load(tmp_path / "net")
    with torch.inference_mode():
        logits = theirs.double()(torch.from_numpy(TOKENS)).logits[:, -1].numpy()
    assert evaluate(ours, (TOKENS, None)) == pytest.approx(logits, rel=1e-11, abs=1e-12)
    assert ours.account.dense == sum(parameter.numel() for parameter in theirs.parameters())


def test_it_is_certified_and_saved_as_ours(folder: Path, tmp_path: Path) -> None:
    network: Any = load(folder)
    labels = evaluate(network, (TOKENS, None)).argmax(axis=1)
    task = NextToken(TOKENS, labels, label_count=11, vocab=11)
    assert certify(folder, task).certified
    wrong = task.with_labels((labels + (np.arange(9) == 4)) % 11)
    found = certify(folder, wrong)
    assert (found.certified, found.errors, found.undecided) == (False, 1, 0)
    save(network, tmp_path / "own")
    assert load(tmp_path / "own").fingerprint == network.fingerprint
    with pytest.raises(BadInput, match="exists and is no network that Byheart wrote"):
        save(network, folder)


def test_names_of_older_files(folder: Path, tmp_path: Path) -> None:
    """Without the prefix, with the mask beside the weights, and with the tied table twice; in half precision."""
    tensors = {
        name.removeprefix("transformer."): tensor for name, tensor in load_file(folder / "model.safetensors").items()
    }
    tensors |= {"h.0.attn.bias": np.ones((1, 1, 7, 7), np.float32), "lm_head.weight": tensors["wte.weight"].copy()}
    again = other(folder, tmp_path / "old", tensors)
    assert load(again).fingerprint == load(folder).fingerprint
    halves = {name: tensor.astype(np.float16) for name, tensor in tensors.items()}
    half: Any = load(other(folder, tmp_path / "half", halves))
    assert np.array_equal(half.weights["embedding.W_E"], halves["wte.weight"].astype(np.float32))


@pytest.mark.parametrize("name", ["wte.weight", "h.0.ln_1.bias", "transformer.lm_head.weight"])
def test_a_tensor_that_is_there_under_two_names_is_refused(folder: Path, name: str, tmp_path: Path) -> None:
    """Which of them transformers takes depends on the others."""
    tensors = load_file(folder / "model.safetensors")
    assert all(known.startswith("transformer.") for known in tensors)
    tensors[name] = tensors["transformer.wte.weight" if "h.0" not in name else f"transformer.{name}"] + 1
    with pytest.raises(
        BadInput, match=r"some tensors are called transformer\.…, others are not; expected all but lm_head"
    ):
        load(other(folder, tmp_path / "net", tensors))


def other(folder: Path, place: Path, tensors: dict[str, Any] | None = None, **changes: Any) -> Path:
    """A copy of the folder with other tensors, or with changes to its config (None: left out)."""
    place.mkdir()
    config = json.loads((folder / "config.json").read_text()) | changes
    (place / "config.json").write_text(json.dumps({name: value for name, value in config.items() if value != "gone"}))
    save_file(load_file(folder / "model.safetensors") if tensors is None else tensors, place / "model.safetensors")
    return place


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"activation_function": "silu"}, "activation_function is 'silu'; expected"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True; expected false"),
        ({"add_cross_attention": True}, "add_cross_attention is True; expected false"),
        ({"rope_theta": 1e4}, "has 'rope_theta', which a GPT-2 of Byheart's does not have"),
        ({"n_layer": "gone"}, "n_layer is missing; expected the sizes of a GPT-2"),
        ({"n_layer": 3}, r"tensors \['h.2.attn.c_attn.bias', .* are missing, unknown or of another shape"),
        ({"n_layer": 1 << 24}, "there are 28 tensors; expected those of 16777216 layers"),
        ({"n_layer": 1 << 40}, "n_layer is 1099511627776; expected a whole number"),
        ({"n_head": 5}, "n_embd is 12; expected a multiple of n_head = 5"),
        ({"n_embd": 24}, "are missing, unknown or of another shape"),
        ({"n_inner": 5}, "are missing, unknown or of another shape"),
        ({"layer_norm_epsilon": -1.0}, "layer_norm_epsilon is -1.0"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads is"),
        ({"attn_implementation": "kernels-community/flash-attn"}, "attn_implementation is"),
        ({"architectures": ["GPT2ForSequenceClassification"]}, "architectures is"),
    ],
)
def test_what_is_not_enclosed_is_refused(folder: Path, changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=message):
        load(other(folder, tmp_path / "net", **changes))


def test_weights_that_transformers_would_round_are_not_certified(folder: Path, tmp_path: Path) -> None:
    """With "dtype": "bfloat16", AutoModelForCausalLM loads another network than the one whose answers are proved."""
    task = NextToken(TOKENS, evaluate(load(folder), (TOKENS, None)).argmax(axis=1), label_count=11, vocab=11)
    tensors = load_file(folder / "model.safetensors")
    mixed = {name: tensor.astype(np.float16 if "ln_" in name else np.float32) for name, tensor in tensors.items()}
    assert certify(other(folder, tmp_path / "plain", dtype=None), task).certified
    assert certify(other(folder, tmp_path / "wide", dtype="float64"), task).certified
    for place, message, named, changes in [
        ("short", "dtype is 'bfloat16'", None, {"dtype": "bfloat16"}),
        ("old", "torch_dtype is 'float16'", None, {"torch_dtype": "float16"}),
        ("mixed", "formats F16, F32", mixed, {}),
    ]:
        with pytest.raises(BadInput, match=message):
            certify(other(folder, tmp_path / place, named, **changes), task)
    net = other(folder, tmp_path / "parts", dtype=None)
    (net / "model.safetensors").rename(net / "model-00001-of-00001.safetensors")
    places = dict.fromkeys(tensors, "model-00001-of-00001.safetensors")
    index = {"metadata": {"total_size": 1, "dtype": "bfloat16"}, "weight_map": places}
    (net / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(BadInput, match="dtype is 'bfloat16'"):
        certify(net, task)


def test_an_untied_table_that_is_said_to_be_tied_is_refused(folder: Path, tmp_path: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"] + 1
    with pytest.raises(BadInput, match=r"lm_head\.weight is not wte\.weight; config\.json says that they are tied"):
        load(other(folder, tmp_path / "net", tensors))


def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """examples/own_checkpoint.py: so many answers are proved right as transformers gives."""
    monkeypatch.setattr(sys, "argv", ["own_checkpoint.py", str(tmp_path)])
    runpy.run_path(str(Path(__file__).parents[3] / "examples" / "own_checkpoint.py"))
    counted = certify(tmp_path, tmp_path / "task.npz", count=True)
    assert counted.certified
    assert f"count certified: {counted.right} of 40 answers right" in capsys.readouterr().out
    theirs, task = transformers.GPT2LMHeadModel.from_pretrained(tmp_path).eval(), load_task(tmp_path / "task.npz")
    with torch.inference_mode():
        said = theirs.double()(torch.tensor(task.inputs)).logits[:, -1].argmax(dim=1).numpy()
    assert counted.right == int((said == task.answers).sum())
    assert counted.right > 10, "a moment of training is not for nothing"
