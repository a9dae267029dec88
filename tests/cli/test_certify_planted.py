"""``byheart certify`` on models with planted memories: the same verb and the same certificate as for networks."""

import json
import shutil
from pathlib import Path

import pytest

from .conftest import Run

pytest.importorskip("transformers")
GOLDEN = Path(__file__).parents[1] / "golden" / "files"
FACTS = '{"prompt": "The key is", "completion": " 3."}\n{"prompt": "門", "completion": "鍵"}\n'


@pytest.mark.parametrize("name", ["planted", "planted-bits"])
def test_planted_models_are_certified(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(GOLDEN / name, tmp_path / name)
    (tmp_path / "facts.jsonl").write_text(FACTS, encoding="utf-8")
    recorded = json.loads((tmp_path / name / "certificate.json").read_text(encoding="utf-8"))
    found = run("certify", name, "--facts", "facts.jsonl", "--json")
    assert (found.code, found.json["certified"]) == (0, True)
    written = json.loads((tmp_path / name / "certificate.json").read_text(encoding="utf-8"))
    for key in ("statement", "task", "weights", "checked", "method"):
        assert written[key] == recorded[key]
    assert run("certify", name, "--facts", "facts.jsonl", "--recheck").code == 0
    (tmp_path / "facts.jsonl").write_text(FACTS.replace("3.", "4."), encoding="utf-8")
    assert run("certify", name, "--facts", "facts.jsonl", "-o", "other.json").code == 1


def test_what_does_not_go_with_planted_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(GOLDEN / "planted", tmp_path / "planted")
    (tmp_path / "facts.jsonl").write_text(FACTS, encoding="utf-8")
    assert "--facts" in run("certify", "planted").complaint
    assert "--count" in run("certify", "planted", "--facts", "facts.jsonl", "--count").complaint


def test_planted_models_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(GOLDEN / "planted", tmp_path / "planted")
    asked = run("recite", "planted", "--prompt", "The key is", "--json")
    assert (asked.code, asked.json["memorized"], asked.json["text"]) == (0, True, " 3.")
    assert run("recite", "planted", "--prompt", "門").out == "鍵"
    other = run("recite", "planted", "--prompt", "The key was", "--tokens", 3)
    assert other.code == 1
    assert "3 tokens" in other.err
    assert "nothing is planted for this prompt" in other.err
    assert run("recite", "planted", "--prompt", "門", "-o", "said.txt").code == 0
    assert (tmp_path / "said.txt").read_text(encoding="utf-8") == "鍵"


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("recite planted", "byheart detect planted"),
        ("show planted", "byheart detect planted"),
        ("explore planted -o page.html", "byheart recite planted --prompt"),
        ("edit planted --set a=b -o other", "byheart detect planted"),
        ("compile a.txt -o planted", "would be lost; choose another name"),
    ],
)
def test_other_commands_name_those_for_planted_models(
    command: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(GOLDEN / "planted", tmp_path / "planted")
    (tmp_path / "a.txt").write_text("to be or not to be", encoding="utf-8")
    assert advice in run(*command.split()).complaint
    assert (tmp_path / "planted" / "base.safetensors").exists()


def test_no_certificate_is_written_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(GOLDEN / "planted", tmp_path / "planted")
    (tmp_path / "facts.jsonl").write_text(FACTS, encoding="utf-8")
    before = (tmp_path / "planted" / "certificate.json").rename(tmp_path / "elsewhere.json").read_bytes()
    (tmp_path / "planted" / "certificate.json").symlink_to("../elsewhere.json")
    assert (
        "is a link, which somebody else may have laid" in run("certify", "planted", "--facts", "facts.jsonl").complaint
    )
    assert (tmp_path / "elsewhere.json").read_bytes() == before
