"""docs/elsewhere.md: the blocks that need more libraries, or longer (make gguf, make lens, make onnx)."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from ..test_pages import ROOT, blocks, folder, run_commands, run_python

PAGE = "docs/elsewhere.md"
NEEDS = {
    "llama.cpp": ("gguf", "llama_cpp"),
    "ONNX Runtime": ("onnx", "onnxscript", "onnxruntime"),
    "TransformerLens": ("transformer_lens",),
}
"""The packages that a section needs."""
BLOCK = re.compile(r"^```(shell-session|pycon)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
__all__ = ["folder"]


def more() -> dict[str, list[tuple[str, str]]]:
    """What test_pages.py leaves out of the page: language and text, by section."""
    _, *sections = re.split(r"^## ", (ROOT / PAGE).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {section.partition("\n")[0]: found for section in sections if (found := BLOCK.findall(section))}


def test_every_section_is_run() -> None:
    assert more().keys() == NEEDS.keys()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of other people's packages
@pytest.mark.parametrize("section", NEEDS)
def test_what_a_section_says(section: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if section == "ONNX Runtime" and os.environ.get("ONNX") != "all":
        pytest.skip("takes half a minute: make onnx")
    for package in NEEDS[section]:
        pytest.importorskip(package, reason="not installed: make gguf, make lens")
    known: dict[str, Any] = {}
    for _, text in blocks(PAGE):
        run_python(text, PAGE, known)
    for language, text in more()[section]:
        if language == "pycon":
            run_python(text, PAGE, known)
        else:
            run_commands(text, capsys)
