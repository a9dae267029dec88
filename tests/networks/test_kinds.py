"""All kinds of networks by the same functions: each comes to its own package, and back."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import byheart
from byheart.errors import BadInput
from byheart.networks import Network, count, generate, generate_all, load, save
from byheart.networks.exact import Affine, ExactNetwork, FeedForward, integers
from byheart.networks.folders import FORMATS, NAMES
from byheart.networks.kinds import _READERS
from byheart.networks.softmax import SoftmaxNetwork

FIXTURES = Path(__file__).parents[1] / "fixtures" / "0.1.0"
FOLDERS = sorted(path.parent.name for path in FIXTURES.glob("*/config.json"))


def exact() -> ExactNetwork:
    chain = FeedForward((Affine(integers([[3]]), integers([10**30])),))
    return ExactNetwork((chain,), inputs="tokens", outputs="last", length=1)


def real() -> SoftmaxNetwork:
    one = np.full((1, 1, 1), 0.1)
    return SoftmaxNetwork(W_Q=one, W_K=one, W_V=one, W_O=one)


def test_all_kinds_are_among_the_fixtures() -> None:
    assert {load(FIXTURES / name).kind for name in FOLDERS} == set(NAMES)
    assert set(_READERS) == set(FORMATS)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_network_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    """Written by the version before; read, written again, and read again."""
    network = byheart.load(FIXTURES / name)
    assert isinstance(network, Network)
    save(network, tmp_path / "again")
    again = load(tmp_path / "again")
    assert type(again) is type(network)
    assert again.fingerprint == network.fingerprint
    assert (again.about, again.files) == (network.about, network.files)
    assert again.account == network.account == count(network)
    assert all(
        np.array_equal(one, other) and a == b
        for (a, one), (b, other) in zip(network.tensors(), again.tensors(), strict=True)
    )


@pytest.mark.parametrize("name", FOLDERS)
def test_what_it_looks_like(name: str) -> None:
    network = load(FIXTURES / name)
    assert "\n" not in repr(network)
    assert len(repr(network)) < 120
    assert f"{network.account.dense:,} parameters" in repr(network)
    assert f"<td>{network.account.dense:,}</td>" in network._repr_html_()
    assert sum(part.dense for part in network.account.parts().values()) == network.account.dense
    assert network.padded >= network.account.dense


def test_counts_by_hand() -> None:
    assert (count(exact()).dense, count(real()).dense) == (2, 4)
    assert (count(exact()).max_bits, count(real()).max_bits) == ((10**30).bit_length() + 1, 64)


def test_fingerprints_differ() -> None:
    assert len({load(FIXTURES / name).fingerprint for name in FOLDERS}) == len(FOLDERS)


def test_what_is_kept_beside_each(tmp_path: Path) -> None:
    for number, network in enumerate((exact(), real())):
        save(network, tmp_path / str(number), {"seed": number})
        assert load(tmp_path / str(number)).about == {"seed": number}
        assert load(tmp_path / str(number)).fingerprint == network.fingerprint


def test_a_network_of_ours_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    save(exact(), tmp_path / "net")
    save(real(), tmp_path / "net")
    assert isinstance(load(tmp_path / "net"), SoftmaxNetwork)
    (tmp_path / "llama").mkdir()
    (tmp_path / "llama" / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": 4096}))
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    for name in ("llama", "photos"):
        with pytest.raises(BadInput, match=f"{name}: exists and is no network that Byheart wrote.*; choose another"):
            save(real(), tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["llama", "net", "photos"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "no such file; expected a folder with a network"),
        ("{", "cannot be read"),
        ("[]", "cannot be read ([] found; expected a JSON object)"),
        ("{}", "format None; expected a network: byheart-exact-1,"),
        ('{"format": "byheart-softmax-9"}', "format 'byheart-softmax-9'; expected a network"),
        ('{"format": ["byheart"]}', r"format ['byheart']; expected a network"),
        ('{"model_type": "byheart", "about": 5}', "about is 5; expected an object"),
    ],
)
def test_folders_without_a_network_are_refused_by_name(tmp_path: Path, config: str | None, message: str) -> None:
    (tmp_path / "net").mkdir()
    if config is not None:
        (tmp_path / "net" / "config.json").write_text(config)
    with pytest.raises(BadInput) as caught:
        load(tmp_path / "net")
    assert str(caught.value).startswith(f"{tmp_path / 'net' / 'config.json'}: {message}")


@pytest.mark.parametrize("name", FOLDERS)
def test_damaged_weights_are_refused_by_name(name: str, tmp_path: Path) -> None:
    save(load(FIXTURES / name), tmp_path / "net")
    (tmp_path / "net" / "model.safetensors").write_bytes(b"")
    with pytest.raises(BadInput, match=r"net: model\.safetensors cannot be read .* the folder is incomplete"):
        load(tmp_path / "net")


def test_only_networks_of_texts_speak() -> None:
    for network in (exact(), real()):
        with pytest.raises(BadInput, match="answers tasks"):
            generate(network, [0], tokens=1)
        with pytest.raises(BadInput, match="answers tasks"):
            generate_all(network, [[0]], end=0, tokens=[1])


@pytest.mark.parametrize("name", ["texts", "llama", "pairs"])
def test_networks_of_texts_speak(name: str) -> None:
    """Both ways to speak say the texts that lie beside the folders."""
    from byheart.tasks.tokenizers import from_files

    network = load(FIXTURES / name)
    tokenizer = from_files(network.files)
    texts, end = network.about["texts"], network.about["end"]
    prompts, lengths = [text["prompt"] for text in texts], [text["tokens"] for text in texts]
    for text, said in zip(texts, generate_all(network, prompts, end=end, tokens=lengths), strict=True):
        alone = list(generate(network, text["prompt"], end=end, tokens=text["tokens"] + 1))
        assert alone == [*said, end]
        assert tokenizer.decode([*text["prompt"], *said]) == (FIXTURES / text["name"]).read_bytes()


def test_what_was_put_beside_a_network_is_kept(tmp_path: Path) -> None:
    save(exact(), tmp_path / "net")
    (tmp_path / "net" / "notes.txt").write_text("years of work")
    with pytest.raises(BadInput, match=r"net: exists and is no network that Byheart wrote \(it holds 'notes.txt'\)"):
        save(real(), tmp_path / "net")
    assert (tmp_path / "net" / "notes.txt").read_text() == "years of work"


def test_a_link_in_a_folder_is_kept(tmp_path: Path) -> None:
    """Byheart writes none; a relative one would lead elsewhere as soon as the folder is moved aside."""
    save(exact(), tmp_path / "net")
    (tmp_path / "net" / "model.safetensors").rename(tmp_path / "weights")
    (tmp_path / "net" / "model.safetensors").symlink_to("../weights")
    with pytest.raises(BadInput, match=r"net: exists and is no network that Byheart wrote \(it holds 'model.safe"):
        save(real(), tmp_path / "net")
    assert not (tmp_path / "net-new").exists()


def test_links_are_followed(tmp_path: Path) -> None:
    save(exact(), tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    save(real(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert isinstance(load(tmp_path / "real"), SoftmaxNetwork)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_permissions_are_those_of_any_new_file(mask: int, tmp_path: Path) -> None:
    """Readable by others unless the user's files are not: a private text stays private."""
    before = os.umask(mask)
    try:
        save(real(), tmp_path / "net")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "net").iterdir()} == {0o666 & ~mask}
    assert (tmp_path / "net").stat().st_mode & 0o777 == 0o777 & ~mask
