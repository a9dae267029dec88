"""``byheart theorems``: the table, its page, and its exit code."""

from pathlib import Path

from tests.cli.conftest import Run


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
    assert "no construction is called 'kim-2032'" in said.err
