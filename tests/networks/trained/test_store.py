"""Trained networks in folders: they come back as they were, and folders that are none are refused by name."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from byheart.errors import BadInput
from byheart.networks import load, save
from byheart.networks.trained import Inputs, TrainedNetwork
from byheart.networks.trained.evaluate import evaluate
from byheart.networks.trained.steps import STEPS

from .small import KINDS, drawn

BY_HAND = {
    "format": "byheart-trained-1",
    "blocks": [
        {"skip": False, "steps": [{"step": "embedding", "W_E": "wte"}, {"step": "positions"}]},
        {
            "skip": True,
            "steps": [
                {"step": "norm", "epsilon": 1e-05, "gain": "ln"},
                {
                    "step": "attention",
                    "heads": 2,
                    "over": 1,
                    "W_Q": "q",
                    "W_K": "q",
                    "W_V": "q",
                    "W_O": "o",
                    "b_O": "b",
                },
            ],
        },
        {
            "skip": False,
            "steps": [{"step": "activation", "function": "relu"}, {"step": "affine", "W": "wte", "rows": 2}],
        },
    ],
}


def by_hand(folder: Path, config: Any = BY_HAND, **changes: Any) -> Path:
    """A folder that was written by somebody else; changes are to the tensors, None leaves one out."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    tensors = {"wte": (3, 2), "ln": (2,), "q": (4, 2), "o": (2, 4), "b": (2,)}
    given = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in tensors.items()} | changes
    save_file({name: tensor for name, tensor in given.items() if tensor is not None}, folder / "model.safetensors")
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_network_comes_back_as_it_was(kind: str, dtype: type, tmp_path: Path) -> None:
    network, inputs = drawn(kind, dtype=dtype)
    save(network, tmp_path / "net", {"seed": 3})
    again = load(tmp_path / "net")
    assert isinstance(again, TrainedNetwork)
    assert again.blocks == network.blocks
    assert (again.fingerprint, again.account, again.about) == (network.fingerprint, network.account, {"seed": 3})
    assert np.array_equal(evaluate(again, inputs), evaluate(network, inputs))


def test_a_config_by_hand(tmp_path: Path) -> None:
    network = load(by_hand(tmp_path / "net"))
    assert isinstance(network, TrainedNetwork)
    inputs: Inputs = (np.array([[0, 1, 2], [2, 2, 0]]), None)
    assert evaluate(network, inputs).shape == (2, 2)
    assert network.account.dense == 6 + 2 + 8 + 8 + 2


def test_the_config_of_the_page_on_trust(tmp_path: Path) -> None:
    """What docs/trust.md shows can be loaded, with tensors as PyTorch's modules keep them."""
    page = (Path(__file__).parents[3] / "docs" / "trust.md").read_text(encoding="utf-8")
    [config] = re.findall(r"```json\n(.*?)```", page, flags=re.DOTALL)
    tensors = {"wte": (7, 32), "wpe": (5, 32), "ln.weight": (32,), "ln.bias": (32,), "up.weight": (64, 32)}
    tensors |= {"up.bias": (64,), "down.weight": (32, 64), "down.bias": (32,)}
    tensors |= {f"{name}.weight": (32, 32) for name in "qkvo"}
    (tmp_path / "config.json").write_text(config)
    rng = np.random.default_rng(0)
    save_file({name: rng.standard_normal(shape) for name, shape in tensors.items()}, tmp_path / "model.safetensors")
    network: Any = load(tmp_path)
    assert (network.outputs, network.depth, network.length) == (7, 5, 5)


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """The config with one thing set to another; or without it."""
    config: Any = json.loads(json.dumps(BY_HAND))
    *inner, last = path
    at = config
    for key in inner:
        at = at[key]
    if to is None:
        del at[last]
    else:
        at[last] = to
    return config


STEPS_OF = ("blocks", 1, "steps")
STRANGE: list[tuple[Any, str]] = [
    (changed("blocks", to=None), "blocks is None; expected a list of blocks"),
    (changed("blocks", to=[]), r"blocks is \[\]; expected a list"),
    (changed("blocks", to={"a": 1}), "blocks is {'a': 1}; expected a list"),
    (changed("blocks", 0, to=5), r"blocks\[0\] is 5; expected an object"),
    (changed("blocks", 0, "more", to=5), r"blocks\[0\] has 'more'; expected the keys skip, steps"),
    (changed("blocks", 0, "skip", to=0), "skip is 0; expected true or false"),
    (changed("blocks", 0, "steps", to=[]), r"steps is \[\]; expected a list of steps"),
    (changed(*STEPS_OF, 0, to=7), r"steps\[0\] is 7; expected an object"),
    (
        changed(*STEPS_OF, 0, "step", to="rotary"),
        "a step is .*rotary.*; expected 'step' to be one of embedding, positions,",
    ),
    (changed(*STEPS_OF, 0, "step", to=["norm"]), "a step is"),
    (changed(*STEPS_OF, 0, "epsilon", to=-1), "norm.epsilon is -1; expected a number from 0 to 1"),
    (changed(*STEPS_OF, 0, "epsilon", to=True), "norm.epsilon is True"),
    (changed(*STEPS_OF, 0, "epsilon", to=None), "norm lacks 'epsilon'"),
    (changed(*STEPS_OF, 0, "gain", to=3), "norm.gain is 3; expected a text or null"),
    (changed(*STEPS_OF, 0, "gain", to="no"), "'no' is no tensor of the network"),
    (changed(*STEPS_OF, 0, "depth", to=1), "norm has 'depth'; expected the keys epsilon, gain, bias"),
    (changed(*STEPS_OF, 0, "dropout", to=0.1), "norm has 'dropout'; expected the keys epsilon, gain, bias"),
    (changed(*STEPS_OF, 1, "heads", to=0), "attention.heads is 0; expected a whole number from 1 to"),
    (changed(*STEPS_OF, 1, "heads", to=3), "expected multiples of heads = 3"),
    (changed(*STEPS_OF, 1, "heads", to=2.0), "attention.heads is 2.0"),
    (changed(*STEPS_OF, 1, "heads", to=10**18), "attention.heads is 1000"),
    (changed(*STEPS_OF, 1, "over", to=10**18), "attention.over is 1000"),
    (changed(*STEPS_OF, 1, "heads", to=2**53), r"expected multiples of heads = 9007"),
    (changed("blocks", 2, "steps", 1, "rows", to=4), "rows is 4; wte has 3"),
    (changed("blocks", 2, "steps", 1, "rows", to=10**15), "rows is 1000000000000000; wte has 3"),
    (changed("blocks", 2, "steps", 0, "function", to="silu"), "activation.function is 'silu'; expected \"gelu\" or"),
    (changed("blocks", 2, "steps", 0, "function", to=[]), r"activation.function is \[\]"),
    (changed("rope_theta", to=1e4), "has 'rope_theta'; expected format, blocks and about"),
]


@pytest.mark.parametrize(("config", "message"), STRANGE)
def test_strange_configs_are_refused(config: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"net: .*{message}"):
        load(by_hand(tmp_path / "net", config))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"b": None}, "'b' is no tensor of the network"),
        ({"more": np.ones(2, np.float32)}, "more belongs to no step"),
        ({"b": np.array([1, np.nan], np.float32)}, "b has entries that are not finite"),
        ({"q": np.ones((4, 3), np.float32)}, r"q is \[4, 3\]; expected \[any, 2\]"),
        ({"b": np.ones(2, np.int64)}, "'b' is 'I64'; expected F32 or F64"),
        ({"b": np.ones((2, 1, 1), np.float32)}, r"b is float32 \[2, 1, 1\]"),
    ],
)
def test_strange_tensors_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"net: .*{message}"):
        load(by_hand(tmp_path / "net", **changes))


def test_every_step_is_written_and_read() -> None:
    kinds = {step.kind for kind in KINDS for step in drawn(kind)[0].steps}
    assert kinds == set(STEPS)
