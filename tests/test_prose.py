"""Docstrings and names are plain English: what ruff's rules for docstrings cannot see."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import byheart

SOURCE = Path(byheart.__file__).parent
ROOT = Path(__file__).parents[1]
PATHS = sorted(SOURCE.rglob("*.py"))
FOLDERS = sorted({path.relative_to(SOURCE).parts[0] for path in PATHS})
ROOMS = {name: [path for path in PATHS if path.relative_to(SOURCE).parts[0] == name] for name in FOLDERS}
ROOMS |= {name: sorted((ROOT / name).glob("*.py")) for name in ("benchmarks", "examples", "docs")}
"""Paths of each folder of the package, each module at its top, and each folder of scripts."""

START = re.compile(r"(Of|Than|Those|That|And|So many|As|Where|Who|What)\b")
"""Words that make a fragment of the first sentence: it lacks the thing that it is about."""
SO_MANY = re.compile(r"\bso (many|much)\b(?! (that|as)\b)", re.IGNORECASE)
"""A quantity without its name."""
UNITS = "bits|bytes|parameters|weights|tokens|words|seconds|steps|µs|rows|columns|units|questions|one|two"
WHOLES = (
    "byte|column|context|core|epoch|example|fact|head|key|layer|line|parameter|process|question|row|second|sequence"
    "|step|text|thread|token|vector|weight|word"
)
PER = re.compile(rf"\b({UNITS}) an? ({WHOLES})\b", re.IGNORECASE)
"""The article for *per*, as in "bits a parameter"."""

REPEATED_CLASSES = {"ByheartForCausalLM"}
"""Names of more than one class: Hugging Face finds this one by its name."""


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring: of the module, classes, functions, constants and fields."""
    for node in ast.walk(tree):
        for statement in body if isinstance(body := getattr(node, "body", None), list) else []:
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield statement.lineno, " ".join(text.split())


def faults(text: str) -> list[str]:
    """Return what is wrong with a docstring."""
    errors = []
    if start := START.match(text):
        errors.append(f"starts with {start[0]!r}")
    if match := SO_MANY.search(text):
        errors.append(f"says {match[0]!r}")
    if match := PER.search(text):
        errors.append(f"says {match[0]!r} for 'per'")
    if len(re.sub(r">>>.*", "", text).split()) == 1:
        errors.append("is one word")
    return errors


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_are_plain_english(room: str) -> None:
    assert ROOMS[room]
    assert [
        f"{path.name}:{line} {fault}: {text[:60]}"
        for path in ROOMS[room]
        for line, text in docstrings(ast.parse(path.read_text(encoding="utf-8")))
        for fault in faults(text)
    ] == []


@pytest.mark.parametrize(
    "text",
    [
        "Of a word of each table.",
        "So many labels have to be right.",
        "Where the certificate is.",
        "And how many layers it has.",
        "Rates of so many models.",
        "The cost in bits a parameter.",
        "Parameters.",
    ],
)
def test_foreign_docstrings_are_found(text: str) -> None:
    assert faults(text)
    (docstring,) = docstrings(ast.parse(f"class A:\n    SIZE = 1\n    {text!r}\n"))
    assert docstring == (3, text)


@pytest.mark.parametrize("text", ["Return bits per parameter.", "There are so many that it fails.", "Assert it."])
def test_plain_docstrings_pass(text: str) -> None:
    assert faults(text) == []


def repeated(names: Iterable[str], most: int) -> set[str]:
    """Return the names that occur more than ``most`` times."""
    return {name for name, count in Counter(names).items() if count > most}


def test_a_class_name_stands_for_one_class() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in PATHS]
    classes = [node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert len(classes) > 300
    assert repeated(classes, 1) <= REPEATED_CLASSES


def test_a_module_name_occurs_at_most_twice() -> None:
    assert repeated(["a", "b", "a", "a"], 2) == {"a"}
    assert repeated((path.stem for path in PATHS if not path.stem.startswith("__")), 2) == set()
