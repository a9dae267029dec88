"""Where newcomers stumbled: each stumble once, and what they are told now."""

import importlib.util
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from byheart.bounds import Letters
from byheart.constructions.planner import Planner
from byheart.errors import BadInput
from byheart.sizes import Size

from .conftest import Run

Everything = Callable[[Path], dict[str, bytes]]


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """As if a library were not installed."""
    there = importlib.util.find_spec

    def remove(package: str) -> None:
        monkeypatch.setitem(sys.modules, package, None)
        for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
            monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.setattr(
            "importlib.util.find_spec", lambda name, *rest: None if name == package else there(name, *rest)
        )

    return remove


@pytest.fixture
def texts(work: Path) -> Path:
    """Three texts that begin alike, and one that does not; none ends its last line."""
    folder = work / "texts"
    folder.mkdir()
    for name in ("one", "two", "three"):
        (folder / name).write_text(f"it is {name}")
    (folder / "alone").write_text("alone")
    return folder


def test_notices_are_summed_up(run: Run, texts: Path) -> None:
    said = run("compile", *sorted(texts.iterdir()), "-o", "net").out
    assert said.count("share") == 1
    assert "3 texts share their beginnings: begin one with at least 'it is o', for example" in said
    assert "alone, one, three and 1 more:" in said
    assert "shares its" not in said


def test_statistics_begin_a_line(run: Run, texts: Path) -> None:
    """The text comes out byte for byte, also into a pipe; what ends its line is on stderr."""
    assert run("compile", texts / "alone", "-o", "net").code == 0
    said = run("recite", "net")
    assert said.out == "alone"
    assert re.match(r"\n\d tokens in ", said.err)
    (texts / "alone").write_text("alone\n")
    assert run("compile", texts / "alone", "-o", "net").code == 0
    said = run("recite", "net")
    assert said.out == "alone\n"
    assert re.match(r"\d tokens in ", said.err)
    assert run("recite", "net", "-o", "said.txt").err[0].isdigit(), "no line of the terminal's to end"


def test_reciting_as_json(run: Run, texts: Path, work: Path) -> None:
    assert run("compile", *sorted(texts.iterdir()), "-o", "net").code == 0
    said = run("recite", "net", "--text", "two", "--json")
    assert said.err == ""
    assert (said.json["text"], said.json["tokens"]) == ("it is two", 2)
    assert said.json["seconds"] > 0
    assert run("recite", "net", "--json", "-o", "said.txt").json["file"] == "said.txt"
    assert (work / "said.txt").read_text() == "alone"
    files = run("recite", "net", "--json", "--all-to", "said").json["files"]
    assert files == ["said/alone", "said/one", "said/three", "said/two"]
    (work / "bytes").write_bytes(b"\xff\xfe")
    assert run("compile", "bytes", "-o", "net").code == 0
    assert run("recite", "net", "--json").json["base64"] == "//4="
    assert json.loads(run("recite", "net", "--json", "--text", "byts").out)["error"].endswith("did you mean 'bytes'?")


@pytest.mark.parametrize(
    ("package", "extra", "command"),
    [
        ("transformers", "hf", ["compile", "texts/one", "--layout", "uniform", "-o", "net"]),
        ("tokenizers", "hf", ["compile", "texts/one", "--tokenizer", "bpe", "-o", "net"]),
        ("matplotlib", "plots", ["lab", "plot", "--shipped", "dana-2025-2"]),
        ("matplotlib", "plots", ["lab", "plot", "--shipped", "all", "-o", "pages"]),
        ("matplotlib", "plots", ["lab", "capacity", "--plot", "ladder.png", "-o", "ladder"]),
        ("matplotlib", "plots", ["approximate", "--function", "rank", "-o", "net", "--plot", "rank.png"]),
        ("matplotlib", "plots", ["compare", "--task", "t.npz", "--plot", "compare.png"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_nothing_is_written_before_what_is_missing_is_known(
    run: Run,
    texts: Path,
    work: Path,
    without: Callable[[str], None],
    everything: Everything,
    package: str,
    extra: str,
    command: list[str],
) -> None:
    without(package)
    before = everything(work)
    complaint = run(*command).complaint
    assert f"needs {package}, which is not installed" in complaint
    assert complaint.endswith(f"in a clone of Byheart: pip install -e '.[{extra}]'")
    assert everything(work) == before


def test_what_is_missing_is_known_before_the_work(
    run: Run, texts: Path, without: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    without("transformers")
    monkeypatch.setattr("byheart.compiler.compile", lambda *_, **__: pytest.fail("compiled in vain"))
    assert "needs transformers" in run("compile", texts / "one", "--layout", "uniform", "-o", "net").complaint


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["task", "text", "texts", "-o", "x.npz"], "expected a file"),
        (["task", "show", "texts"], "expected a task file, .npz or .jsonl"),
        (["task", "random", "-o", "texts"], "expected a task file, .npz or .jsonl"),
        (["build", "folding", "--task", "texts", "-o", "x"], "expected a task file, .npz or .jsonl"),
        (["compare", "--task", "texts"], "expected a task file, .npz or .jsonl"),
        (["build", "folding", "--construction", "texts", "--task", "t.npz", "-o", "x"], "expected Python"),
        (["lab", "run", "texts"], "expected a name of byheart lab list, or a Python file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_folders_where_files_are_expected(run: Run, texts: Path, command: list[str], expected: str) -> None:
    complaint = run(*command).complaint
    assert complaint.startswith("byheart: texts: is a folder; ")
    assert expected in complaint


def test_a_folder_is_the_texts_in_it(run: Run, texts: Path) -> None:
    """All of them, compiled, certified, and for the second opinion too."""
    assert run("compile", "texts", "-o", "net").code == 0
    said = run("certify", "net", "texts", "--second-opinion")
    assert said.code == 0
    assert "second opinion: agrees (" in said.out


def test_points_that_are_too_far_apart(run: Run) -> None:
    """Within a radius of 1 two points are at most 2 apart: on a line, −1 and 1."""
    assert Letters(separation=2.0, radius=1.0).separation == 2
    with pytest.raises(BadInput, match="expected a separation of at most twice the radius: no two points within"):
        Letters(separation=2.1, radius=1.0)
    complaint = run("bounds", "--separation", "5", "--radius", "1").complaint
    assert "separation is 5.0 and radius is 1.0" in complaint


def test_plans_tell_how_far_they_are() -> None:
    """Both parts of `bounds` that take seconds come to their end, a step at a time."""
    planner = Planner(Size(examples=100, length=4, labels=2, vocab=10), "next-token", largest=1000)
    heard: list[tuple[int, int]] = []
    planner.smaller(report=lambda done, total, note="": heard.append((done, total)))
    total = heard[0][1]
    assert total > 2
    assert heard == [(done, total) for done in range(1, total + 1)]


def test_neither_and_both(run: Run, texts: Path) -> None:
    assert "no texts, no task and no facts are given; expected" in run("compile", "-o", "net").complaint
    assert (
        "texts and --task are given; expected"
        in run("compile", texts / "one", "--task", "t.npz", "-o", "net").complaint
    )


def test_a_trained_network_is_shown(run: Run, work: Path) -> None:
    assert run("lab", "save", "dana-2025-2", "--where", "head_dim=1", "seed=0", "-o", "net").code == 0
    assert "net: a trained network, " in run("show", "net").out
    complaint = run("show", "net", "--task", "net/task.npz").complaint
    assert complaint.endswith("only softmax networks have heads to show, and this is a trained network; omit --task")
