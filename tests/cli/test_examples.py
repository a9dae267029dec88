"""The examples in the help, typed one after the other in a folder that has a book and nothing else."""

import shlex
from pathlib import Path

import pytest

from byheart.cli.commands import BYHEART, every_command

from .conftest import Run

EXAMPLES = [
    example.partition(" # ")[0]
    for about in (BYHEART, *(entry.about for _, entry in every_command()))
    for example in about.examples
]
LEFT_OUT = {
    "trains, or builds everything": (
        "theorems",
        "lab run",
        "lab search",
        "lab save",
        "lab capacity",
        "lab plot --shipped all",
        "approximate",
        "bounds",
        "certify net --task net/task.npz",
    ),
    "shows what was trained": ("lab list runs", "lab show", "lab compare runs", "lab merge", "lab plot runs"),
    "needs data of one's own, or a model": (
        "q.npz",
        "compare --task",
        "constant.npz",
        "collapse",
        "--model llama",
        "export",
        "plant",
        "certify net --facts",
    ),
}
"""Parts of examples that are not run here, by the reason."""
SMALLER = {
    "--examples 1000 --length 32": "--examples 40 --length 4",
    "--examples 100 ": "--examples 40 --length 4 ",
    "--vocab 500 --examples 1000": "--vocab 20 --examples 10",
}
"""Sizes in examples, and smaller ones that are run instead."""
BOOK = "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse."


def left_out(example: str) -> bool:
    return any(part in example for parts in LEFT_OUT.values() for part in parts)


@pytest.mark.slow
def test_examples_run_in_their_order(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda _: True)
    Path("book.txt").write_text(BOOK)
    Path("facts.csv").write_text("prompt,completion\ncapital of France,Paris\n2 + 2,4\n")
    typed = list(dict.fromkeys(example for example in EXAMPLES if not left_out(example)))
    assert len(typed) >= 25
    for example in typed:
        for large, small in SMALLER.items():
            example = example.replace(large, small)  # noqa: PLW2901
        said = run(*shlex.split(example)[1:])
        expected = (0, 1) if "task check" in example else (0,)  # a hypothesis may not hold
        assert said.code in expected, f"{example}: {said.err}"
    for made in ("book/certificate.json", "net/config.json", "words.npz", "parameters.png", "explorer.html"):
        assert Path(made).exists()


def test_what_is_left_out_is_there() -> None:
    parts = [part for parts in LEFT_OUT.values() for part in parts]
    assert [part for part in [*parts, *SMALLER] if not any(part in f"{example} " for example in EXAMPLES)] == []
