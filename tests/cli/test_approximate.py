"""``byheart approximate``: the table, the JSON, what it leaves behind, exit codes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byheart import networks
from byheart.approximation import find, measure
from byheart.networks import count
from byheart.networks.exact import ExactNetwork

Run = Callable[..., Any]
APPROXIMATE = ("approximate", "--samples", 2000, "--construction", "kajitsuka-sato-2025", "--function")
ROW = {
    *("epsilon", "close", "measured", "ramps", "cells", "step_bits", "ramp_bits", "sequences", "questions", "labels"),
    *("parameters", "nonzero", "max_bits", "depth", "width", "build_seconds", "certified", "certify_seconds"),
}


def test_the_table(work: Path, run: Run) -> None:
    said = run(*APPROXIMATE, "rank", "--length", 3, "--epsilon", 0.3, 0.1, 0.2)
    assert (said.code, said.err) == (0, "")
    assert "rank on [0, 1]^(3×1), d_2; grid: kajitsuka-sato-2025" in said.out
    rows = [line.split() for line in said.out.splitlines() if line.strip().startswith("0.")]
    assert [row[0] for row in rows] == ["0.3", "0.2", "0.1"]
    assert all(float(row[1]) < float(row[4]) < float(row[0]) for row in rows)
    assert [row[5:8] for row in rows] == [["2", "4", "12"], ["3", "10", "30"], ["5", "35", "105"]]
    assert all("yes" in " ".join(row) for row in rows)
    assert "measured on 2,000 random points" in said.out


def test_json(work: Path, run: Run) -> None:
    said = run(*APPROXIMATE, "contrast", "--length", 2, "--dim", 2, "--epsilon", 0.4, "--p", 1, "--json")
    assert (said.code, said.err) == (0, "")
    assert set(said.json) == {"function", "construction", "length", "dim", "p", "samples", "rows"}
    (row,) = said.json["rows"]
    assert set(row) == ROW
    assert row["close"]
    assert row["certified"]
    assert set(row["measured"]) == {"error", "low", "high", "samples"}
    assert row["questions"] == 2 * row["sequences"]


def test_the_softmax_attention_of_the_paper_is_the_default(work: Path, run: Run) -> None:
    said = run("approximate", "--function", "rank", "--length", 2, "--epsilon", 0.3, "--samples", 500, "--json")
    assert said.code == 0
    assert said.json["construction"] == "kajitsuka-sato-2024"


def test_the_finest_network_is_saved(work: Path, run: Run) -> None:
    said = run(*APPROXIMATE, "rank", "--length", 2, "--epsilon", 0.1, 0.3, "-o", "net", "--seed", 4)
    assert said.code == 0
    assert "saved the last in net" in said.out
    network = networks.load(work / "net")
    assert isinstance(network, ExactNetwork)
    assert f"{count(network).dense:,}" in said.out
    assert measure(network, find("rank"), samples=1000).high < 0.1
    about = network.about
    assert (about["function"], about["approximates"]["epsilon"], about["seed"]) == ("rank", 0.1, 4)
    shown = run("show", "net")
    assert shown.code == 0
    assert "quantise" in shown.out


def test_a_picture(work: Path, run: Run) -> None:
    said = run(*APPROXIMATE, "contrast", "--length", 2, "--epsilon", 0.3, 0.2, "--plot", "picture.png")
    assert said.code == 0
    assert "drew picture.png" in said.out
    assert (work / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_own_function(work: Path, run: Run) -> None:
    (work / "mine.py").write_text(
        "def square(x):\n    return (x[:, :, 0] - x[:, :, 0].mean(axis=1, keepdims=True)) ** 2\n"
    )
    said = run(*APPROXIMATE, "mine.py:square", "--length", 2, "--epsilon", 0.1)
    assert (said.code, said.err) == (0, "")
    assert "mine.py:square on" in said.out


def test_too_few_points_show_nothing(work: Path, run: Run) -> None:
    """Three points cannot show that the distance is small: exit code 1, and the table says why."""
    said = run("approximate", "--function", "wave", "--length", 1, "--epsilon", 0.2, "--samples", 3, *APPROXIMATE[3:5])
    assert said.code == 1
    assert "not shown: distance at most 0.2 (upper limit" in said.out


def test_a_function_that_hides_is_found_out(work: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that has changed by the time that the network is measured: far from it, exit code 1."""
    real = measure
    monkeypatch.setattr("byheart.approximation.measure", lambda network, _, **rest: real(network, find("wave"), **rest))
    said = run(*APPROXIMATE, "contrast", "--length", 2, "--epsilon", 0.2, "--json")
    assert said.code == 1
    (row,) = said.json["rows"]
    assert not row["close"]
    assert row["measured"]["low"] > 0.3


BAD = {
    "epsilon is 0.0; expected a positive number": ("rank", "--epsilon", 0),
    "no epsilon is given": ("rank", "--epsilon"),
    "p is 0.5; expected 1 to 100": ("rank", "--p", 0.5),
    "no function is called 'rnk'": ("rnk",),
    "missing.py: no such Python file": ("missing.py:f",),
    "bad.py: has no function 'g'; it has first": ("bad.py:g",),
    "bad.py:first: is not permutation-equivariant: on [[": ("bad.py:first",),
    "samples is 1; expected at least 2": ("rank", "--samples", 1),
    "picture.gif: expected a picture's name": ("rank", "--plot", "picture.gif"),
    "no/picture.png: its folder does not exist": ("rank", "--plot", "no/picture.png"),
    "t.npz: exists and is no network that Byheart wrote": ("rank", "--out", "t.npz"),
    "'dana-2025' does not memorize one label per token": ("rank", "--construction", "dana-2025"),
    "sequences; expected at most 200,000": ("rank", "--epsilon", 0.001),
}


@pytest.mark.parametrize("says", BAD)
def test_bad_input(work: Path, run: Run, says: str) -> None:
    (work / "bad.py").write_text("def first(x):\n    return x[:, :, 0] - x[:, :1, 0]\n")
    before = sorted(path for path in work.rglob("*") if "__pycache__" not in str(path))
    out = () if "--out" in BAD[says] else ("-o", "net")
    assert says in run(*APPROXIMATE, *BAD[says], *out).complaint
    assert sorted(path for path in work.rglob("*") if "__pycache__" not in str(path)) == before


def test_help(run: Run) -> None:
    said = run("approximate", "--help")
    assert said.code == 0
    assert "byheart approximate --function rank" in " ".join(said.out.split())


def test_the_same_seed_gives_the_same_numbers(work: Path, run: Run) -> None:
    rows = [
        run(*APPROXIMATE, "rank", "--length", 2, "--epsilon", 0.3, "--seed", seed, "--json").json["rows"][0]["measured"]
        for seed in (1, 1, 2)
    ]
    assert rows[0] == rows[1] != rows[2]
    assert np.isfinite(rows[0]["error"])


def test_what_was_certified_is_saved_and_checked_again(work: Path, run: Run) -> None:
    assert run("approximate", "--function", "rank", "--length", 2, "--epsilon", 0.3, "-o", "net").code == 0
    again = run("certify", "net/grid", "--task", "net/grid.npz", "--recheck")
    assert again.code == 0
    assert "certified: " in again.out


def test_bad_values_are_found_before_the_work(work: Path, run: Run) -> None:
    for flags in (("--epsilon", 0.3, 0), ("--samples", 1), ("--p", 0.5), ("--seed", -1), ("--plot", "no/x.png")):
        assert run("approximate", "--function", "no/such/file.py:f", *flags).code == 2
        said = run("approximate", "--function", "no/such/file.py:f", *flags).complaint
        assert "no such Python file" not in said, "the values are looked at first"
