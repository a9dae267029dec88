"""``byheart theorems``: every form is built as the commands say, the table, its page, and its exit code."""

from dataclasses import replace
from pathlib import Path

import pytest

from byheart.cli import theorems
from byheart.cli.main import main
from byheart.cli.theorems import build_theorems, markdown, statement
from byheart.constructions import build, known
from byheart.constructions.construction import Theorem, flags

from .conftest import Run


def test_every_theorem_has_its_statement():
    found = build_theorems(build=False)
    papers = {entry.paper or "Byheart" for entry in known().values() if entry.theorems}
    assert {row.paper for row in found if not row.theorem.paper} == papers
    names = [(row.paper, row.theorem.name, row.form) for row in found]
    assert len(set(names)) == len(names)
    for row in found:
        assert row.command.startswith(("byheart ", "python benchmarks/"))
        assert all(statement(row.theorem))


@pytest.mark.slow
def test_every_form_is_certified_and_the_page_says_so():
    found = build_theorems()
    for row in found:
        assert row.built is None or row.built.certified, f"{row.paper}, {row.theorem.name}, {row.form}"
    told = Path("docs/theorems.md").read_text(encoding="utf-8")
    assert list(map(without_bits, told.splitlines())) == list(map(without_bits, markdown(found).splitlines()))


def without_bits(line):
    """A row without what the last bits of floats on another machine may change: the bits of its largest weight; and
    all its numbers where directions are searched for.
    """
    cells = line.split(" | ")
    return cells[: 2 if "--radius" in line else 5] + cells[6:] if line.startswith("|") else line


BOUNDS = sorted({row.command for row in build_theorems(build=False) if row.command.startswith("byheart bounds ")})


@pytest.mark.parametrize("command", BOUNDS)
def test_what_shows_a_bound_is_a_command(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main(command.split()[1:])
    assert stop.value.code == 0
    assert "Proved" in capsys.readouterr().out


def test_the_counterexample_is_what_its_commands_print(work: Path, run: Run) -> None:
    lines = [line.strip() for line in markdown([]).splitlines() if line.startswith("    byheart")]
    draw, build, refusal = lines
    assert run(*draw.split()[1:]).code == 0
    assert run(*build.split()[1:]).complaint.startswith(refusal)
    text = " ".join(markdown([]).split())
    narrow = text.partition("`byheart build dana-2025 --task c.npz --model-dim 4 --head-dim 1 ")[2].partition("`")[0]
    assert run(*build.split()[1:7], "--head-dim", 1, *narrow.split()).code == 0
    assert run("certify", "net", "--task", "c.npz", "--json").json["certified"] is True


@pytest.mark.parametrize("limit", ["depth", "bits"])
@pytest.mark.parametrize("name", ["vardi-2022", "kajitsuka-sato-2025"])
def test_trade_offs_are_shown_where_they_are_to_be_seen(name, limit):
    """Below the plain network, which the row names; and fewer layers or bits take more parameters."""
    (theorem,) = [theorem for theorem in known()[name].theorems if theorem.name == limit]
    task, allowed = theorem.task.draw(), theorem.stated[limit]
    plain = build("interpolate", task).account.dense
    fewer, more = (build(name, task, **{limit: number}).account.dense for number in (allowed, allowed // 2))
    assert fewer < min(more, plain)
    assert f"the plain network takes {plain:,} parameters" in theorem.differs


@pytest.mark.parametrize("paper", ["Yang & Yang 2026", "Kim, Moon & Yun 2025"])
def test_networks_that_are_not_the_papers_are_ours(paper):
    forms = {row.form for row in build_theorems(build=False) if row.paper == paper and row.theorem.task is not None}
    assert forms == {"ours"}


def test_one_construction():
    found = build_theorems(["madden-2024"])
    assert [row.form for row in found] == ["as stated", "", ""]
    assert found[0].built is not None
    assert found[0].built.certified
    assert "378 parameters" in found[0].in_words()
    assert found[0].in_words().endswith("; certified")
    lines = [line for line in markdown(found).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(found)
    assert "| 378 | 30 | 4 | 64 | yes |" in lines[2]


def test_what_is_not_certified(monkeypatch):
    built = theorems.build_and_certify
    monkeypatch.setattr(theorems, "build_and_certify", lambda *given: replace(built(*given), certified=False))
    row = build_theorems(["madden-2024"])[0]
    assert row.in_words().endswith("NOT certified")
    assert "| NO |" in markdown([row])


def test_a_theorem_that_shows_nothing():
    said = {"says": "", "assumes": "", "limits": ""}
    with pytest.raises(ValueError, match="expected settings to build with on a task, or a command that shows it"):
        Theorem("Theorem 0", **said)
    assert flags({"bits": 53, "positions": True}) == "--bits 53 --positions"


def test_the_table(work: Path, run: Run) -> None:
    said = run("theorems", "madden-2024", "-o", "page.md")
    assert said.code == 0
    assert "Madden, Fox & Thrampoulidis 2024, upper bound" in said.out
    assert "as stated: byheart build madden-2024" in said.out
    assert (work / "page.md").read_text().startswith("# Theorem by theorem\n")


def test_statements_alone(run: Run) -> None:
    said = run("theorems", "--brief", "--json")
    assert said.code == 0
    rows = said.json["theorems"]
    assert all(row["built"] is None for row in rows)
    assert {"paper", "name", "says", "assumes", "limits", "task", "form", "command"} <= rows[0].keys()


def test_a_name_that_there_is_not(run: Run) -> None:
    said = run("theorems", "kim-2032")
    assert said.code == 2
    assert "no construction is called 'kim-2032'; did you mean 'kim-2023'" in said.err
