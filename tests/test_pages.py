"""README and pages are true: their Python is run as doctests, their commands are run and their output is compared.

Blocks of a page are run in their order, in one folder that holds LICENSE and the examples. In a ``console`` block
``...`` stands for anything, on a line of its own for any number of lines; times may differ. What begins with
``byheart:`` is a refusal, with exit code 2.
"""

import doctest
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from byheart.cli.main import main
from byheart.cli.parsing import parse
from byheart.constructions import CONSTRUCTIONS

ROOT = Path(__file__).parents[1]
PAGES = sorted(str(page.relative_to(ROOT)) for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
ELSEWHERE = {"docs/clusters.md"}
"""Run by test_clusters.py: their commands need SLURM, Kubernetes or Ray."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", flags=re.MULTILINE)


def blocks(page: str) -> list[tuple[str, str]]:
    """What is run of a page: language and text."""
    found = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [(language, text) for language, text in found if language in ("console", "python")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transformers_is_asked: None) -> Iterator[Path]:
    """A folder to be in, with LICENSE and the examples; afterwards threads and constructions are as before."""
    threads, constructions = torch.get_num_threads(), dict(CONSTRUCTIONS)
    shutil.copy(ROOT / "LICENSE", tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    torch.set_num_threads(threads)
    CONSTRUCTIONS.clear()
    CONSTRUCTIONS.update(constructions)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")  # a Qwen2-MoE without a shared expert
@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE and blocks(page)])
def test_a_page_says_what_is_printed(page: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known: dict[str, Any] = {}
    for language, text in blocks(page):
        if language == "python":
            run_python(text, page, known)
        else:
            run_commands(text, capsys)
    drawn = re.findall(r"^drew (\S+)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [picture for picture in drawn if (folder / picture).stat().st_size < 10_000] == []
    for picture in folder.glob("*.svg"):
        assert picture.read_text() == (ROOT / "docs" / "drawn" / picture.name).read_text(), picture.name


def run_python(text: str, page: str, known: dict[str, Any]) -> None:
    """A block as a doctest, in the names that the blocks before it have left."""
    test = doctest.DocTestParser().get_doctest(text, known, page, page, 0)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, clear_globs=False)
    assert runner.failures == 0
    known |= test.globs


def run_commands(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands of a block, in this process."""
    found = COMMAND.findall(text)
    assert found
    for command, expected in found:
        program, *arguments = shlex.split(command)
        assert program == "byheart"
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        said = capsys.readouterr()
        refused = expected.startswith("byheart: ")
        assert (stopped.value.code or 0) == (2 if refused else 0), f"{command}: {said.err}"
        seen = said.err if refused else said.out
        assert re.fullmatch(pattern(expected), plain(seen)), f"{command} printed:\n{seen}"


def plain(output: str) -> str:
    """Without trailing blanks, the values of times, and the widths that a time gives to a column and to its rule."""
    lines = [re.sub(r"\d+\.\d s\b", "T s", line).rstrip() for line in output.splitlines()]
    lines = [re.sub(r"(?<=\S) {2,}", "  ", re.sub(r"─+", "─", line)) for line in lines]
    return "\n".join(re.sub(r" +T s", " T s", line) for line in lines) + "\n"


def pattern(expected: str) -> str:
    """The expected output as a regular expression."""
    lines = plain(expected).splitlines(keepends=True)
    return "".join(r"(?:.*\n)*" if line == "...\n" else re.escape(line).replace(r"\.\.\.", ".*") for line in lines)


def test_a_page_that_is_wrong_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    run_commands("$ byheart --version\nbyheart ...\n", capsys)
    with pytest.raises(AssertionError, match="printed"):
        run_commands("$ byheart --version\nbyheart 17.4\n", capsys)
    assert plain(" a  b 0.3 s\n ─────\n") == plain(" a   b 10.3 s\n ──────\n") != plain(" a  c 0.3 s\n ─────\n")
    with pytest.raises(AssertionError):
        run_python(">>> 1 + 1\n3\n", "a page", {})


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    assert list(broken(page, (ROOT / page).read_text(encoding="utf-8"))) == []


def broken(page: str, text: str) -> Iterator[str]:
    """Links of a page to files that are not there, or to headings that a page does not have."""
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them.

    Lower case, no punctuation, hyphens for blanks.
    """
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_that_lead_nowhere_are_found() -> None:
    text = "[a](docs/trust.md) [b](docs/none.md) [c](docs/trust.md#counting) [d](docs/trust.md#lies) [e](https://x.org)"
    assert list(broken("README.md", text)) == ["docs/none.md", "docs/trust.md#lies"]


@pytest.mark.parametrize("page", PAGES)
def test_no_formula_is_broken_into_a_list(page: str) -> None:
    assert made_lists((ROOT / page).read_text(encoding="utf-8")) == []


def made_lists(text: str) -> list[str]:
    """Lines of paragraphs that begin with a plus or a times and so become items of a list; ours begin with a hyphen."""
    return re.findall(r"^[+*] .*$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.MULTILINE)


def test_a_formula_that_is_broken_into_a_list_is_found() -> None:
    assert made_lists("It takes N\n+ 1 weights.\n\n- an item\n\n```\n+ 2\n```\n    + 3\n") == ["+ 1 weights."]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= 9_000


def test_every_wish_of_the_readme_is_a_command() -> None:
    wishes = re.findall(r"^\| [^|]+ \| `(byheart [^`]+)` \| \[", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert len(wishes) >= 10
    for wish in wishes:
        assert parse(shlex.split(wish.replace(" --construction mine.py", ""))[1:])
