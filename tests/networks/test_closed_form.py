"""Folders in their closed form: what Byheart writes passes, today's and earlier; one more file or key does not."""

import argparse
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from byheart import verify
from byheart.certificates.certifying import certify, load_closed
from byheart.certificates.judges import judge_asked
from byheart.cli.certify import CertifyCommand
from byheart.errors import BadInput
from byheart.networks import save
from byheart.networks.closed_form import EARLIER_CODE, HARMLESS, unchanged
from byheart.networks.folders import CONFIG, GRID
from byheart.networks.transformer.modeling import modeling
from byheart.tasks.tokenizers import Bytes

TESTS = Path(__file__).parents[1]
GOLDEN, RELEASED = TESTS / "golden" / "files", TESTS / "fixtures" / "0.1.0"
NETWORKS = sorted(
    path.parent
    for root in (GOLDEN, RELEASED)
    for path in root.glob("*/config.json")
    if (path.parent / "model.safetensors").exists() and path.parent.name not in ("base", "planted", "planted-bits")
)

TEXT = "It was the best of times, it was the worst of times, it was the age of wisdom"
Change = Callable[[Path], object]


def with_keys(name: str, **more: Any) -> Change:
    """Return a change of a JSON file: more keys, or other values."""

    def change(folder: Path) -> None:
        path = folder / name
        content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        path.write_text(json.dumps(content | more), encoding="utf-8")

    return change


def with_file(name: str, content: str = "{}") -> Change:
    """Return a change that adds a file."""

    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")

    return change


def with_tensor(folder: Path) -> None:
    """Add a tensor to the weights."""
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, "transformer.wte.weight": np.zeros((3, 2), np.float32)}, folder / "model.safetensors")


def with_metadata(folder: Path) -> None:
    """Say in the file of weights that they are of another framework."""
    save_file(load_file(folder / "model.safetensors"), folder / "model.safetensors", {"format": "mlx"})


def with_index(folder: Path) -> None:
    """Split the weights, and leave the whole file: transformers reads the whole one."""
    shutil.copy(folder / "model.safetensors", folder / "model-00001-of-00001.safetensors")
    names = load_file(folder / "model.safetensors")
    places = dict.fromkeys(names, "model-00001-of-00001.safetensors")
    index = {"metadata": {"total_size": 1}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def with_code(folder: Path) -> None:
    """Change the code that transformers would run."""
    with (folder / "modeling_byheart.py").open("a", encoding="utf-8") as file:
        file.write("# more\n")


@pytest.mark.parametrize("folder", NETWORKS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_byheart_wrote_is_closed(folder: Path, tmp_path: Path) -> None:
    """Recorded folders, those of the release before too; and what is written today of the same networks."""
    save(load_closed(folder), tmp_path / "again")
    load_closed(tmp_path / "again")


def with_end(token: int) -> Change:
    """Return a change after which all files agree that texts end at one of their tokens, where generating stops."""

    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if "spec" in config:
            with_keys("config.json", about=config["about"] | {"end": token})(folder)
        with_keys("config.json", eos_token_id=token, pad_token_id=token)(folder)
        with_keys("generation_config.json", eos_token_id=token, pad_token_id=token)(folder)

    return change


def with_unknown(folder: Path) -> None:
    """Say that the last byte pair is what unknown prompts are answered, so that generating stops at it, too."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    token = config["spec"]["labels"] - 1
    about = config["about"] | {"refuse": {"by": "print", "bits": 16, "token": token}}
    with_keys("config.json", about=about, eos_token_id=[256, token])(folder)
    with_keys("generation_config.json", eos_token_id=[256, token])(folder)


LIES: list[tuple[str, str, Change]] = [
    ("texts", "eos_token_id", with_end(ord("e"))),
    ("bpe", "eos_token_id", with_unknown),
    ("stock", "attn_implementation", with_keys("config.json", attn_implementation="sdpa")),
    ("stock", "dtype", with_keys("config.json", dtype=None)),
    ("texts", "transformers_weights", with_keys("config.json", transformers_weights="other.safetensors")),
    ("texts", "quantization_config", with_keys("config.json", quantization_config={"quant_method": "awq"})),
    ("texts", "vocab_size", with_keys("config.json", vocab_size=258)),
    ("texts", "auto_map", with_keys("config.json", auto_map={"AutoModelForCausalLM": "other.Model"})),
    ("texts", "eos_token_id", with_keys("config.json", eos_token_id=3)),
    ("texts", "other.safetensors", with_file("other.safetensors")),
    ("texts", "model-1.safetensors", with_file("model-1.safetensors")),
    ("texts", "adapter_config.json", with_file("adapter_config.json")),
    ("texts", "added_tokens.json", with_file("added_tokens.json")),
    ("texts", "tokenizer.model", with_file("tokenizer.model")),
    ("texts", "config.5.0.json", with_file("config.5.0.json")),
    ("texts", "chat_template.jinja", with_file("chat_template.jinja")),
    ("texts", "original", with_file("original/x.json")),
    ("texts", "post_processor", with_keys("tokenizer.json", post_processor={"type": "ByteLevel"})),
    ("texts", "truncation", with_keys("tokenizer.json", truncation={"max_length": 3})),
    ("texts", "tokenizer_class", with_keys("tokenizer_config.json", tokenizer_class="LlamaTokenizer")),
    ("texts", "extra_special_tokens", with_keys("tokenizer_config.json", extra_special_tokens={"a": "e"})),
    ("texts", "added_tokens_decoder", with_keys("tokenizer_config.json", added_tokens_decoder={})),
    ("texts", "tokenizer", with_keys("tokenizer_config.json", byheart_tokenizer="loaded")),
    ("texts", "do_sample", with_keys("generation_config.json", do_sample=True)),
    ("texts", "temperature", with_keys("generation_config.json", temperature=2.0)),
    ("texts", "metadata", with_metadata),
    ("texts", "expected one of them", with_index),
    ("texts", "is not the code", with_code),
    ("folding", "model_type", with_keys("config.json", model_type="gpt2")),
    ("folding", "architectures", with_keys("config.json", architectures=["GPT2LMHeadModel"])),
    ("folding", "n_embd", with_keys("config.json", n_embd=2)),
    ("folding", "transformer.wte.weight", with_tensor),
    ("folding", "tokenizer.json", with_file("tokenizer.json")),
    ("folding", "modeling_byheart.py", with_file("modeling_byheart.py")),
    ("dana", "model_type", with_keys("config.json", model_type="gpt2")),
    ("dana", "transformer.wte.weight", with_tensor),
    ("trained", "model_type", with_keys("config.json", model_type="gpt2")),
    ("trained", "transformer.wte.weight", with_tensor),
    ("stock", "transformers_weights", with_keys("config.json", transformers_weights="other.safetensors")),
    ("stock", "bos_token_id", with_keys("config.json", bos_token_id=3)),
    ("stock", "transformer.wte.weight", with_tensor),
    ("stock", "modeling_byheart.py", with_file("modeling_byheart.py")),
]


@pytest.mark.parametrize(("name", "named", "change"), LIES, ids=[f"{name}-{named}" for name, named, _ in LIES])
def test_more_is_refused_by_name(name: str, named: str, change: Change, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / name, tmp_path / name))
    load_closed(folder)
    change(folder)
    with pytest.raises(BadInput, match=named):
        load_closed(folder)


SECOND = [lie for lie in LIES if lie[0] in ("texts", "folding", "dana") and lie[1] != "metadata"]
"""Lies about networks that verify.py knows. Files of weights may say anything of themselves: it runs none."""


@pytest.mark.parametrize(("name", "named", "change"), SECOND, ids=[f"{name}-{named}" for name, named, _ in SECOND])
def test_verify_refuses_the_same(name: str, named: str, change: Change, tmp_path: Path) -> None:
    """verify.py, which shares no code with Byheart, knows the same files, keys and tensors."""
    folder = Path(shutil.copytree(GOLDEN / name, tmp_path / name))
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    task = {"texts": None, "folding": GOLDEN / "t.npz", "dana": GOLDEN / "t.npz"}[name]
    texts = [str(tmp_path / "a.txt")] if task is None else []
    given = {"texts": texts, "task": task and str(task), "facts": [], "tolerance": None, "sample": 1, "seed": 0}
    assert verify.verify(argparse.Namespace(folder=str(folder), **given))["wrong"] == 0
    change(folder)
    with pytest.raises(
        ValueError, match=r"Byheart writes|at another token|the one for bytes|known here|other tensors|expected parts"
    ):
        verify.verify(argparse.Namespace(folder=str(folder), **given))


@pytest.mark.parametrize("name", ["tokenizer.json", "modeling_byheart.py", "config.json", "more.json"])
@pytest.mark.parametrize("by", ["command", "function"])
def test_a_folder_that_changes_meanwhile_is_not_certified(
    name: str, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written to between the check of the folder and the hashes; it has the same size and time after."""
    folder = Path(shutil.copytree(GOLDEN / "texts", tmp_path / "texts"))
    (folder / "certificate.json").unlink()
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")

    def judged(*given: Any) -> Any:
        content, times = (folder / name).read_bytes() if (folder / name).exists() else b"{}", (folder / CONFIG).stat()
        (folder / name).write_bytes(content[::-1])
        os.utime(folder / name, ns=(times.st_atime_ns, times.st_mtime_ns))
        return judge_asked(*given)

    monkeypatch.setattr("byheart.certificates.certifying.judge_asked", judged)
    command = CertifyCommand(folder, (tmp_path / "a.txt",)).run
    with pytest.raises(BadInput, match="was changed while it was checked"):
        (command if by == "command" else partial(certify, folder, tmp_path / "a.txt"))()
    assert not (folder / "certificate.json").exists()


def test_links_lead_nowhere(tmp_path: Path) -> None:
    """Who asks what has changed must not walk through the user's whole disk."""
    folder = Path(shutil.copytree(GOLDEN / "texts", tmp_path / "texts"))
    (tmp_path / "disk").mkdir()
    (folder / "x").symlink_to("../disk")
    with unchanged(folder):
        (tmp_path / "disk" / "more.txt").write_text("")
    with pytest.raises(BadInput, match="holds 'x'"):
        load_closed(folder)


def test_verify_has_the_same_lists() -> None:
    assert HARMLESS.keys() | {GRID} == verify.HARMLESS
    assert {hashlib.sha256(modeling().encode()).hexdigest(), *EARLIER_CODE} == verify.CODE
    for content in Bytes().files().values():
        assert hashlib.sha256(content).hexdigest() in verify.TOKENIZERS


def test_a_task_says_whether_there_is_an_end(tmp_path: Path) -> None:
    """A network of token ids has no tokenizer: the user's task has no end, so transformers must not stop anywhere."""
    for name in ("float", "stock"):
        folder = Path(shutil.copytree(GOLDEN / name, tmp_path / name))
        assert certify(folder, GOLDEN / "t.npz").certified
        with_end(3)(folder)
        with pytest.raises(BadInput, match="eos_token_id = 3"):
            certify(folder, GOLDEN / "t.npz")


def test_nothing_is_said_after_a_text_in_a_batch(tmp_path: Path) -> None:
    """Without generation_config.json, transformers fills up the shorter texts of a batch as config.json says."""
    folder = Path(shutil.copytree(TESTS / "fixtures" / "0.1.0" / "llama", tmp_path / "llama"))
    (folder / "generation_config.json").unlink()
    with_keys("config.json", pad_token_id=256)(folder)
    load_closed(folder)
    with_keys("config.json", pad_token_id=ord("e"))(folder)
    with pytest.raises(BadInput, match="pad_token_id = 101"):
        load_closed(folder)


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_harmless_files_are_left_alone(name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / "texts", tmp_path / "texts"))
    (folder / name).write_text("{}", encoding="utf-8")
    load_closed(folder)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "config.json", "model.safetensors"])
def test_a_file_that_is_missing_is_named(name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / "texts", tmp_path / "texts"))
    (folder / name).unlink()
    with pytest.raises(BadInput, match=name):
        load_closed(folder)


def test_a_link_to_a_folder_is_not_followed(tmp_path: Path) -> None:
    """A link to "/" would have every file of the machine looked at."""
    folder = Path(shutil.copytree(GOLDEN / "texts", tmp_path / "texts"))
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b.txt").touch()
    (folder / "more").symlink_to(tmp_path / "elsewhere")
    with unchanged(folder):
        (tmp_path / "elsewhere" / "b.txt").write_text("changed", encoding="utf-8")
    with pytest.raises(BadInput, match="holds 'more'"):
        certify(folder, tmp_path / "a.txt")
