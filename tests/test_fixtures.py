"""Folders and certificates that Byheart 0.1.0 wrote: read, named by the same fingerprints, and true today."""

from pathlib import Path

import pytest

from byheart.certificates import read, recheck
from byheart.networks import load

FIXTURES = Path(__file__).parent / "fixtures" / "0.1.0"
QUESTIONS = {
    "causal": "causal.jsonl",
    "dana-2025": "next.jsonl",
    "edited": "a.txt",
    "facts": "next.jsonl",
    "folding": "next.jsonl",
    "kajitsuka-sato-2024": "seq.jsonl",
    "kajitsuka-sato-2025": "vectors.npz",
    "kim-2023": "seq.jsonl",
    "llama": "c.txt",
    "llama-facts": "next.jsonl",
    "madden-2024": "dist.npz",
    "mahdavi-2024": "labels.npz",
    "pairs": "a.txt",
    "short": "a.txt",
    "targets": "targets.npz",
    "texts": ["a.txt", "b.txt"],
    "trained": "trained.npz",
}


def test_every_folder_is_tried() -> None:
    assert sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()) == sorted(QUESTIONS)


@pytest.mark.parametrize("name", QUESTIONS)
def test_certificates_hold(name: str) -> None:
    files = QUESTIONS[name]
    given = FIXTURES / files if isinstance(files, str) else [FIXTURES / file for file in files]
    claimed = read(FIXTURES / name / "certificate.json")
    assert claimed.certified
    assert load(FIXTURES / name).is_named(claimed.weights)
    edits = {"of wisdom": "!"} if name == "edited" else None
    again = recheck(FIXTURES / name / "certificate.json", FIXTURES / name, given, edits=edits)
    assert again.certified
    assert (again.checked, again.errors) == (claimed.checked, 0)
