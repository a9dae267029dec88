"""``byheart export``: what it refuses before anything is written, and what it says of what it wrote."""

import json
import sys
from pathlib import Path

import pytest

from .conftest import Run

FIXTURES = Path(__file__).parents[1] / "fixtures" / "0.1.0"
LLAMA = FIXTURES / "llama"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((LLAMA,), "neither is given; expected either --gguf FILE or --onnx FILE"),
        ((LLAMA, "--gguf", "a", "--onnx", "b"), "both are given; expected either --gguf FILE or --onnx FILE"),
        ((LLAMA, "--gguf", LLAMA / "x.gguf"), "is also what is read"),
        ((LLAMA, "--gguf", "."), "is no file; expected a name for one"),
        (("nowhere", "--onnx", "x.onnx"), "nowhere/config.json: no such file"),
        (
            (FIXTURES / "texts", "--gguf", "x"),
            "texts: llama.cpp has no model for a float Transformer; compile the same",
        ),
        ((FIXTURES / "folding", "--onnx", "x"), "folding: ONNX has no model for an exact network"),
    ],
)
def test_what_it_refuses(options: tuple[object, ...], message: str, tmp_path: Path, run: Run, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in run("export", *options).complaint
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["gguf", "onnx"])
def test_without_a_package_it_says_how_to_get_it(package: str, tmp_path: Path, run: Run, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    said = run("export", LLAMA, f"--{package}", tmp_path / "x").complaint
    assert f"needs {package}, which is not installed" in said
    assert said.endswith(f"pip install -e '.[{package}]'")
    assert not list(tmp_path.iterdir())


def test_it_writes_gguf(tmp_path: Path, run: Run) -> None:
    pytest.importorskip("gguf", reason="the extra gguf is not installed")
    path = tmp_path / "x.gguf"
    said = run("export", LLAMA, "--gguf", path)
    assert said.code == 0
    assert said.out.startswith(
        f"{path}: 92 tensors, read back and equal bit for bit; llama.cpp needs a cache of 32 bits"
    )
    told = json.loads(run("export", LLAMA, "--gguf", path, "--json").out)
    assert told == {"file": str(path), "tensors": 92, "bytes": path.stat().st_size}
