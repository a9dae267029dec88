"""README and pages are true: their Python is run as doctests, their commands are run and their output is compared.

In a ``console`` block ``...`` stands for anything, on a line of its own for any number of lines; times may differ. What
begins with ``byheart:`` is a refusal, with exit code 2.
"""

import doctest
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def test_the_python_of_the_readme_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = "\n".join(blocks("README.md", "python"))
    assert ">>>" in source
    examples = doctest.DocTestParser().get_doctest(source, {}, "README.md", "README.md", 0)
    flags = doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=flags)
    runner.run(examples)
    assert runner.failures == 0


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/trust.md"])
def test_links_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (ROOT / page).parent.joinpath(link).exists()] == []


@pytest.mark.slow
@pytest.mark.parametrize(("page", "least"), [("README.md", 7), ("docs/trust.md", 3)])
def test_commands_print_what_the_page_says(tmp_path: Path, page: str, least: int) -> None:
    shutil.copy(ROOT / "LICENSE", tmp_path)
    ran = 0
    for block in blocks(page, "console"):
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, flags=re.MULTILINE):
            program, *arguments = shlex.split(command)
            assert program == "byheart"
            found = subprocess.run(
                [sys.executable, "-m", "byheart", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
            )
            refused = expected.startswith("byheart: ")
            assert found.returncode == (2 if refused else 0), f"{command}: {found.stderr}"
            said = found.stderr if refused else found.stdout
            assert re.fullmatch(pattern(expected), plain(said)), f"{command} printed:\n{said}"
            ran += 1
    assert ran >= least
    for picture in ("compare.png", "constant.png", "approximation.png") if page == "README.md" else ():
        assert (tmp_path / picture).stat().st_size > 10_000


def plain(output: str) -> str:
    """Without trailing blanks and without the values of times."""
    lines = [re.sub(r"\d+\.\d s\b", "T s", line).rstrip() for line in output.splitlines()]
    return "\n".join(re.sub(r" +T s", " T s", line) for line in lines) + "\n"


def pattern(expected: str) -> str:
    """The expected output as a regular expression."""
    lines = plain(expected).splitlines(keepends=True)
    return "".join(r"(?:.*\n)*" if line == "...\n" else re.escape(line).replace(r"\.\.\.", ".*") for line in lines)
