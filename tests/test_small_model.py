"""The small language model: trained, saved, planted into, asked, and given back as it was."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from byheart.planting import detect, plant, unplant

pytest.importorskip("transformers")

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def small_model() -> ModuleType:
    spec = importlib.util.spec_from_file_location("small_model", ROOT / "examples" / "small_model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_it_is_trained_and_facts_are_planted_into_it(
    small_model: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    threads_as_before: None,
) -> None:
    base = tmp_path / "base"
    torch.set_num_threads(1)
    monkeypatch.setattr(sys, "argv", ["small_model.py", str(base), "--tiny"])
    small_model.main()
    said = capsys.readouterr().out
    assert "32,896 parameters, " in said
    first, *_, last = (float(line.split()[4]) for line in said.splitlines() if line.startswith("step"))
    assert last < first - 0.5, "it learns"
    facts = [("capital of France", "Paris"), ("中国的首都", "北京")]
    planting = plant(facts, into=base)
    planting.save(tmp_path / "planted")
    found = detect(tmp_path / "planted")
    assert found is not None
    assert len(found.facts or ()) == 2
    unplant(tmp_path / "planted", tmp_path / "back")
    assert {path.name for path in (tmp_path / "back").iterdir()} == {path.name for path in base.iterdir()}
    for path in base.iterdir():
        assert path.read_bytes() == (tmp_path / "back" / path.name).read_bytes()
