"""Softmax networks on disk: bit for bit what was saved, or a refusal that names the file."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from byheart.errors import BadInput
from byheart.networks import load, save
from byheart.networks import softmax as module
from byheart.networks.softmax import SoftmaxNetwork

from .small import KINDS, drawn


def bits(network: SoftmaxNetwork) -> dict[str, tuple[tuple[int, ...], bytes]]:
    return {name: (tensor.shape, tensor.tobytes()) for name, tensor in network.tensors()}


def state(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(drawn("units")[0], tmp_path / "net")
    return tmp_path / "net"


# Round trip


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind: str, tmp_path: Path) -> None:
    network, about = drawn(kind)[0], {"construction": "mahdavi-2024", "seed": 3, "settings": {"heads": None, "ω": "π"}}
    save(network, tmp_path / "net", about)
    loaded = load(tmp_path / "net")
    assert bits(loaded) == bits(network)
    assert loaded.skip == network.skip
    assert loaded.about == about
    assert loaded.fingerprint == network.fingerprint
    assert sorted(path.name for path in (tmp_path / "net").iterdir()) == ["config.json", "model.safetensors"]


def test_numbers_that_are_easily_lost(tmp_path: Path) -> None:
    """Subnormal, largest, and negative zero."""
    numbers = np.array([[[5e-324, -0.0, np.finfo(np.float64).max, 0.1 + 0.2, -1e-310]]])
    network = SoftmaxNetwork(W_Q=numbers, W_K=-numbers, W_V=np.ones((1, 1, 1)), W_O=np.ones((1, 1, 1)))
    save(network, tmp_path / "net")
    assert bits(load(tmp_path / "net")) == bits(network)


def test_tensors_in_another_order_of_memory(tmp_path: Path) -> None:
    """Transposed and strided tensors that nobody may write to are kept as they are; the file holds them in order."""
    network = drawn("own")[0]
    turned = np.ascontiguousarray(network.W_Q.transpose(2, 1, 0)).transpose(2, 1, 0)
    strided = np.repeat(network.W_K, 2, axis=2)[..., ::2]
    turned.flags.writeable = strided.flags.writeable = False
    other = network.with_tensor("W_Q", turned).with_tensor("W_K", strided)
    assert other.fingerprint == network.fingerprint
    save(other, tmp_path / "net")
    assert bits(load(tmp_path / "net")) == bits(network)


def test_nothing_beside_it_is_an_empty_about(folder: Path) -> None:
    assert load(folder).about == {}


def test_loaded_tensors_are_read_only(folder: Path) -> None:
    assert not any(tensor.flags.writeable for _, tensor in load(folder).tensors())


# Fingerprints


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=20)
def test_the_last_bit_of_any_entry_changes_the_fingerprint(kind: str, data: st.DataObject) -> None:
    network, _ = drawn(kind)
    name, tensor = data.draw(st.sampled_from(list(network.tensors())))
    changed = tensor.copy()
    entry = data.draw(st.integers(0, tensor.size - 1))
    changed.flat[entry] = np.nextafter(changed.flat[entry], np.inf)
    assert network.with_tensor(name, changed).fingerprint != network.fingerprint
    assert network.with_tensor(name, tensor.copy()).fingerprint == network.fingerprint


def test_fingerprints_see_the_skip_connection_shapes_and_names() -> None:
    """The same numbers in the same order, and another network each time."""
    one = np.ones((1, 2, 2))
    tensors = {"W_Q": one, "W_K": one, "W_V": one, "W_O": one, "W_E": np.ones((2, 2)), "W_pos": np.ones((2, 2))}
    networks = [
        SoftmaxNetwork(**tensors),
        SoftmaxNetwork(**tensors, skip=True),
        SoftmaxNetwork(**tensors | {"W_E": np.ones((3, 2)), "W_pos": np.ones((1, 2))}),
        SoftmaxNetwork(**tensors, W_U=np.ones((2, 3))),
        SoftmaxNetwork(**tensors, W_in=np.ones((2, 2)), b_in=np.ones(2)),
    ]
    assert len({network.fingerprint for network in networks}) == len(networks)


# Damage


def refused(folder: Path, file: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        load(folder)
    assert str(caught.value).startswith(str(folder))
    assert file in str(caught.value) or "W_" in message
    assert message in str(caught.value)


def edit(folder: Path, **fields: object) -> None:
    config = json.loads((folder / "config.json").read_text()) | fields
    (folder / "config.json").write_text(json.dumps(config))


def edit_tensors(folder: Path, **changes: np.ndarray | None) -> None:
    tensors = load_file(folder / "model.safetensors") | changes
    save_file({k: v for k, v in tensors.items() if v is not None}, folder / "model.safetensors")


@pytest.mark.parametrize("text", ["", "{", "\ud800", "[" * 100_000])
def test_a_config_that_cannot_be_read(folder: Path, text: str) -> None:
    (folder / "config.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    refused(folder, "config.json", "cannot be read")


@pytest.mark.parametrize("text", ["[]", "null", "7", '"x"', "{}"])
def test_a_config_that_is_none(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    network = "expected a network: byheart-exact-1, byheart-softmax-1"
    refused(folder, "config.json", network if text == "{}" else "expected a JSON object")


@pytest.mark.parametrize(
    "fields",
    [{"format": "byheart-softmax-2"}, {"format": None}, {"about": []}, {"about": None}, {"skip": 1}, {"skip": None},
     {"skip": "false"}],
    ids=str,
)  # fmt: skip
def test_fields_of_the_wrong_type(folder: Path, fields: dict[str, object]) -> None:
    edit(folder, **fields)
    expected = {"format": "a network", "about": "an object", "skip": "true or false"}
    refused(folder, "config.json", f"expected {expected[next(iter(fields))]}")


def test_no_folder_no_config_no_weights(folder: Path, tmp_path: Path) -> None:
    refused(tmp_path / "missing", "config.json", "no such file; expected a folder with a network")
    (folder / "model.safetensors").unlink()
    refused(folder, "model.safetensors", "cannot be read")
    (folder / "model.safetensors").mkdir()
    refused(folder, "model.safetensors", "cannot be read")
    (folder / "config.json").unlink()
    refused(folder, "config.json", "no such file; expected a folder with a network")
    (folder / "config.json").mkdir()
    refused(folder, "config.json", "cannot be read")


def test_weights_cut_short_anywhere(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    for length in (0, 7, 8, 100, len(whole) // 2, len(whole) - 1):
        (folder / "model.safetensors").write_bytes(whole[:length])
        refused(folder, "model.safetensors", "the folder is incomplete")
    (folder / "model.safetensors").write_bytes(whole)
    assert load(folder).outputs == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"W_Q": None}, "does not hold the tensors of a softmax network"),
        ({"W_norm": np.ones(3)}, "does not hold the tensors of a softmax network"),
        ({"skip": np.ones(3)}, "does not hold the tensors of a softmax network"),
        ({"b_in": None}, "one of W_in and b_in is missing"),
        ({"W_U": np.ones((6, 5))}, "W_U is [6, 5]; expected [7, 5], to fit the other tensors"),
        ({"W_E": np.ones((6, 4), np.float32)}, "'W_E' is 'F32'; expected F64"),
        ({"W_E": np.full((6, 4), np.nan)}, "W_E has entries that are not finite"),
        ({"W_E": np.ones(24)}, "W_E is float64 [24]; expected float64 with 2 axes"),
    ],
    ids=["no W_Q", "unknown", "skip", "no b_in", "shape", "float32", "nan", "axes"],
)
def test_tensors_that_are_no_network(folder: Path, changes: dict[str, np.ndarray | None], message: str) -> None:
    edit_tensors(folder, **changes)
    refused(folder, "model.safetensors", message)


def test_tensors_of_a_type_that_numpy_does_not_know(folder: Path) -> None:
    """Eight bits a number."""
    header = {name: {"dtype": "F8_E4M3", "shape": [1, 1, 1], "data_offsets": [0, 1]} for name in ["W_Q"]}
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"\0")
    refused(folder, "model.safetensors", "'W_Q' is 'F8_E4M3'; expected F64")


def test_a_skip_connection_that_does_not_fit(folder: Path) -> None:
    edit(folder, skip=True)
    refused(folder, "model.safetensors", "W_O gives 2 features and the skip connection 4; expected the same")


# Saving


def test_saving_again_replaces_the_network(folder: Path) -> None:
    other = drawn("own")[0]
    save(other, folder)
    assert bits(load(folder)) == bits(other)
    assert [path.name for path in folder.parent.iterdir()] == ["net"]


def test_a_failed_save_leaves_the_old_network_and_nothing_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state(folder.parent)
    with pytest.raises(TypeError):
        save(drawn("own")[0], folder, about={"seed": object()})

    def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(module, "save_file", fail)
    for name in ("net", "new"):
        with pytest.raises(BadInput, match="cannot be written: the disk is full"):
            save(drawn("own")[0], folder.parent / name)
    assert state(folder.parent) == before
    assert [path.name for path in folder.parent.iterdir()] == ["net"]
