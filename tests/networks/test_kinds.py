"""Exact and softmax networks by the same four functions: each kind comes to its own room, and back."""

from pathlib import Path

import numpy as np
import pytest

from byheart.errors import BadInput
from byheart.networks import account, kinds, softmax
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, integers, store
from byheart.networks.folders import kind_of
from byheart.networks.softmax import SoftmaxNetwork


def exact() -> ExactNetwork:
    chain = FeedForward((Affine(integers([[3]]), integers([10**30])),))
    return ExactNetwork((chain,), inputs="tokens", outputs="last", length=1)


def real() -> SoftmaxNetwork:
    one = np.full((1, 1, 1), 0.1)
    return SoftmaxNetwork(W_Q=one, W_K=one, W_V=one, W_O=one)


def test_each_is_counted_by_its_own_counter() -> None:
    assert kinds.count(exact()) == account.count(exact())
    assert kinds.count(real()) == softmax.count(real())
    assert (kinds.count(exact()).dense, kinds.count(real()).dense) == (2, 4)
    assert (kinds.count(exact()).max_bits, kinds.count(real()).max_bits) == ((10**30).bit_length() + 1, 64)


def test_each_has_its_own_fingerprint() -> None:
    assert kinds.fingerprint(exact()) == store.fingerprint(exact())
    assert kinds.fingerprint(real()) == softmax.fingerprint(real())
    assert kinds.fingerprint(exact()) != kinds.fingerprint(real())


@pytest.mark.parametrize("network", [exact(), real()], ids=["exact", "softmax"])
def test_round_trip(network: kinds.AnyNetwork, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    kinds.save(network, tmp_path / "net", {"seed": 5})
    assert kind_of(tmp_path / "net") == request.node.callspec.id
    loaded = kinds.load(tmp_path / "net")
    assert type(loaded) is type(network)
    assert kinds.fingerprint(loaded) == kinds.fingerprint(network)


def test_what_is_kept_beside_each(tmp_path: Path) -> None:
    kinds.save(exact(), tmp_path / "exact", {"seed": 5})
    kinds.save(real(), tmp_path / "softmax", {"seed": 6})
    assert store.about(tmp_path / "exact") == {"seed": 5}
    assert softmax.load(tmp_path / "softmax").about == {"seed": 6}


def test_one_kind_does_not_replace_the_other(tmp_path: Path) -> None:
    kinds.save(exact(), tmp_path / "exact")
    kinds.save(real(), tmp_path / "softmax")
    with pytest.raises(BadInput, match="exact: exists and holds no softmax network"):
        kinds.save(real(), tmp_path / "exact")
    with pytest.raises(BadInput, match="softmax: exists and holds no exact network"):
        kinds.save(exact(), tmp_path / "softmax")
    assert isinstance(kinds.load(tmp_path / "exact"), ExactNetwork)
    assert isinstance(kinds.load(tmp_path / "softmax"), SoftmaxNetwork)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "no such file; expected a network folder"),
        ("{", "cannot be read"),
        ("{}", "format is None; expected 'byheart-exact-1'"),
        ('{"format": "byheart-softmax-9"}', "format is 'byheart-softmax-9'; expected 'byheart-exact-1'"),
        ('{"model_type": "byheart"}', "format is None; expected 'byheart-exact-1'"),
    ],
)
def test_folders_without_either_are_refused_by_name(tmp_path: Path, config: str | None, message: str) -> None:
    """What is not known to be a softmax network is read as an exact one, and the refusal is that reader's."""
    (tmp_path / "net").mkdir()
    if config is not None:
        (tmp_path / "net" / "config.json").write_text(config)
    with pytest.raises(BadInput) as caught:
        kinds.load(tmp_path / "net")
    assert str(caught.value).startswith(f"{tmp_path / 'net' / 'config.json'}: {message}")


def test_a_damaged_softmax_folder_is_still_one(tmp_path: Path) -> None:
    """The refusal is about its own weights, not about an exact network's."""
    kinds.save(real(), tmp_path / "net")
    (tmp_path / "net" / "model.safetensors").write_bytes(b"")
    with pytest.raises(BadInput, match=r"net/model\.safetensors: cannot be read .* the folder is incomplete"):
        kinds.load(tmp_path / "net")
