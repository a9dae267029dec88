"""The texts that come with Byheart are these, whatever Python runs."""

import hashlib
import sys
import tomllib
from importlib import resources
from itertools import chain
from pathlib import Path

import pytest

from byheart.papers.madden_2024 import STORY, contexts, stories
from byheart.tasks.corpus import split_words
from byheart.tasks.shipped import docstrings, library_docstrings

SHA256 = "78b2db5a715415867900d9040e841a43d8b8e9d52e250efb5b6c554810d8a8ed"


def test_the_corpus_is_the_one_that_results_were_trained_on() -> None:
    assert hashlib.sha256("\n".join(docstrings()).encode()).hexdigest() == SHA256
    data = contexts(stories(docstrings(), 1000))
    assert data.counts.shape == (7254, 1788), "N contexts and ω tokens of the paper's largest n"


def test_every_line_is_a_story_and_no_two_are_equal() -> None:
    lines = docstrings()
    assert all(line == " ".join(split_words(line)) and len(split_words(line)) == STORY for line in lines)
    assert len(set(lines)) == len(lines)
    assert stories(lines, len(lines)) == [line.split() for line in lines], "none is lost"


@pytest.mark.skipif(sys.version_info[:3] != (3, 11, 7), reason="other versions of Python have other documentation")
def test_they_are_those_of_pythons_library() -> None:
    assert stories(chain.from_iterable(library_docstrings()), 300) == [line.split() for line in docstrings()[:300]]


def test_they_are_packaged_with_their_licence() -> None:
    licence = resources.files("byheart.tasks.shipped").joinpath("LICENSE").read_text(encoding="utf-8")
    assert "Python Software Foundation; All Rights Reserved" in licence
    assert "Changes made" in licence
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert "src/byheart/tasks/shipped/LICENSE" in project["project"]["license-files"]
