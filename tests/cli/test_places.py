"""Where commands write to: what may be there, what must not, and who else writes there."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from byheart.cli import build as building
from byheart.files.replacement import Replacement
from byheart.networks.folders import check_destination, replacing

from .conftest import Run

Everything = Callable[[Path], dict[str, bytes]]
BUILD = ("build", "interpolate", "--task", "t.npz")
TEXT = b"to be or not to be, that is the question: whether 'tis nobler"


@pytest.fixture
def book(work: Path, run: Run) -> Path:
    """A network that recites text.txt, which lies beside it."""
    (work / "text.txt").write_bytes(TEXT)
    assert run("compile", "text.txt", "-o", "book").code == 0
    return work / "book"


@pytest.mark.parametrize(
    "command",
    [
        (*BUILD, "-o", "net"),
        ("compile", "text.txt", "-o", "book"),
        ("edit", "book", "-o", "book", "--set", "nobler=s"),
        ("approximate", "--function", "rank", "--length", "2", "--epsilon", "0.9", "-o", "net"),
        ("task", "random", "-o", "t.npz"),
        ("certify", "net", "--task", "t.npz"),
        ("recite", "book", "-o", "text.txt"),
    ],
    ids=lambda command: command[0],
)
def test_two_writers(
    network: Path, book: Path, work: Path, run: Run, everything: Everything, command: tuple[str, ...]
) -> None:
    """The second is told before it has worked for long, and nothing is lost or mixed."""
    place = {"edit": "book", "certify": "net/certificate.json"}.get(command[0], command[-1])
    before = everything(work)
    first = Replacement(work / place, lambda _: None)
    assert f"{place}: Byheart process {os.getpid()} on " in run(*command).complaint.replace(f"{work}/", "")
    first.release()
    assert everything(work) == before
    assert run(*command).code == 0


def test_a_certificate_that_is_being_written_keeps_its_network_from_being_replaced(network: Path, run: Run) -> None:
    first = Replacement(network / "certificate.json", check_destination)
    assert "net: exists and is no network that Byheart wrote (it holds '.certificate.json.byheart')" in (
        run(*BUILD, "-o", "net").complaint
    )
    first.release()
    assert run(*BUILD, "-o", "net").code == 0


def test_a_network_that_is_replaced_while_it_is_certified(
    network: Path, run: Run, monkeypatch: pytest.MonkeyPatch, everything: Everything
) -> None:
    """Its certificate would be about weights that are not there any more."""
    import byheart.cli.certify as command

    certify = command.certify_asked

    def slowly(*arguments: object) -> object:
        with replacing(network) as new:
            for name, content in others.items():
                (new / name).write_bytes(content)
        return certify(*arguments)

    assert run("build", "vardi-2022", "--task", "t.npz", "-o", "other").code == 0
    others = everything(network.with_name("other"))
    monkeypatch.setattr(command, "certify_asked", slowly)
    complaint = run("certify", "net", "--task", "t.npz").complaint
    assert "net: was changed" in complaint
    assert everything(network) == others


def test_notes_that_are_written_while_a_network_is_built(
    network: Path, work: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stay, and so does what was built."""
    build = building.build

    def slowly(*given: object, **options: object) -> object:
        (network / "notes.txt").write_text("years of work")
        return build(*given, **options)

    monkeypatch.setattr(building, "build", slowly)
    complaint = run(*BUILD, "-o", "net").complaint
    assert "it holds 'notes.txt'" in complaint
    assert complaint.endswith(f"what was to be there is in {work / 'net-new'}")
    assert (network / "notes.txt").read_text() == "years of work"
    assert run("certify", "net-new", "--task", "t.npz").code == 0


@pytest.mark.parametrize(
    "strange", ["grid/notes.txt", "tokenizer.json/notes.txt", ".certificate.json.byheart/notes.txt"]
)
def test_what_is_hidden_under_a_name_of_ours_is_not_ours(
    network: Path, work: Path, run: Run, everything: Everything, strange: str
) -> None:
    (network / strange).parent.mkdir()
    (network / strange).write_text("years of work")
    before = everything(work)
    assert "net: exists and is no network that Byheart wrote (it holds " in run(*BUILD, "-o", "net").complaint
    assert everything(work) == before


@pytest.mark.parametrize(
    "command",
    [
        ("build", "interpolate", "--task", "net/t.npz", "-o", "net"),
        ("compile", "book/tokenizer.json", "-o", "book"),
        ("edit", "book", "-o", "book", "--set", "nobler=s", "--files", "book/tokenizer.json"),
        ("certify", "book", "text.txt", "-o", "text.txt"),
        ("certify", "net", "--task", "t.npz", "-o", "t.npz"),
        ("recite", "book", "-o", "book/config.json"),
        ("recite", "book", "--all-to", "book"),
        ("task", "text", "text.txt", "words.npz", "-o", "words.npz"),
        ("show", "book", "--plot", "book/tokenizer.png"),
        ("compare", "--task", "t.npz", "t.png", "--plot", "t.png"),
        ("collapse", "net", "-o", "net"),
        ("explore", "book", "--no-open", "-o", "book/explorer.html"),
    ],
    ids=" ".join,
)
def test_what_is_read_is_not_written(
    network: Path, book: Path, work: Path, run: Run, everything: Everything, command: tuple[str, ...]
) -> None:
    (work / "t.png").write_bytes(b"a task, perhaps")
    (work / "words.npz").write_bytes(b"words")
    before = everything(work)
    complaint = run(*command).complaint
    assert any(words in complaint for words in ("is also what is read", "not a certificate", "is no network that"))
    assert everything(work) == before


@pytest.mark.parametrize("place", ["pipe.npz", "nowhere.npz", "folder.npz", "/dev/full"])
@pytest.mark.parametrize(
    "command",
    [
        ("task", "random", "-o"),
        ("certify", "net", "--task", "t.npz", "-o"),
        ("recite", "book", "--tokens", "3", "-o"),
        (*BUILD, "-o"),
    ],
    ids=lambda command: command[0],
)
def test_what_is_no_place(
    network: Path, book: Path, work: Path, run: Run, command: tuple[str, ...], place: str
) -> None:
    os.mkfifo(work / "pipe.npz")
    (work / "nowhere.npz").symlink_to("missing")
    (work / "folder.npz").mkdir()
    (work / "folder.npz" / "notes.txt").touch()
    before = sorted(work.rglob("*"))
    assert place in run(*command, place).complaint
    assert sorted(work.rglob("*")) == before


def test_links_are_written_through(network: Path, book: Path, work: Path, run: Run) -> None:
    (work / "far").mkdir()
    for name in ("t.npz", "net", "text.txt"):
        (work / name).rename(work / "far" / name)
        (work / name).symlink_to(f"far/{name}")
    assert run("task", "random", "--examples", 5, "-o", "t.npz").code == 0
    assert run(*BUILD, "-o", "net").code == 0
    assert run("certify", "net", "--task", "t.npz").code == 0
    assert run("recite", "book", "-o", "text.txt").code == 0
    assert all((work / name).is_symlink() for name in ("t.npz", "net", "text.txt"))
    assert (work / "far" / "net" / "certificate.json").exists()
    assert sorted(path.name for path in (work / "far").iterdir()) == ["net", "t.npz", "text.txt"]


def test_texts_that_are_recited_into_a_folder_do_not_replace_others(
    book: Path, work: Path, run: Run, everything: Everything
) -> None:
    """Their names are the network's, not the user's: what is there stays, unless it is the same."""
    assert run("recite", "book", "--all-to", ".").code == 0
    (work / "text.txt").write_text("years of work")
    before = everything(work)
    complaint = run("recite", "book", "--all-to", ".").complaint
    assert "text.txt: exists and says something else; remove it, or choose another folder" in complaint
    (work / "said").mkdir()
    (work / "said" / "text.txt").symlink_to("../elsewhere.txt")
    assert "text.txt: is not in said" in run("recite", "book", "--all-to", "said").complaint
    (work / "said" / "text.txt").unlink()
    (work / "said").rmdir()
    assert everything(work) == before


def test_no_results_are_lost_to_a_table(work: Path, run: Run, everything: Everything) -> None:
    assert run("lab", "run", "dana-2025-1", "-o", "run").code == 0
    before = everything(work)
    for name in ("results.jsonl", "config.json"):
        assert "is also what is read" in run("lab", "show", "run", "--csv", f"run/{name}").complaint
    assert everything(work) == before
    assert run("lab", "show", "run", "--csv", "run/all.csv").code == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
@pytest.mark.parametrize("option", [(), ("--json",)])
def test_output_that_nobody_can_take(network: Path, work: Path, option: tuple[str, ...]) -> None:
    """Not 1, which says that something is not true."""
    command = [sys.executable, "-m", "byheart", "show", "net", *option]
    with Path("/dev/full").open("wb") as full:
        found = subprocess.run(command, cwd=work, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (found.returncode, found.stderr) == (2, "byheart: [Errno 28] No space left on device\n")


INTERRUPTED = """
import builtins, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests may ignore it
real, module = builtins.__import__, sys.argv[1]
def importing(name, *rest):
    if name == module:
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *rest)
builtins.__import__ = importing
from byheart.__main__ import main
sys.argv[1:] = ["show", "nowhere"]
main()
"""


@pytest.mark.parametrize("module", ["byheart.cli.main", "argparse", "byheart.networks"])
def test_ctrl_c_while_importing(module: str, work: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, module]
    found = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "")


def test_ctrl_c_while_building(network: Path, work: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    before = sorted(work.rglob("*"))
    monkeypatch.setattr(building, "build", interrupted)
    for folder in ("net", "deep/net"):
        said = run(*BUILD, "-o", folder)
        assert (said.code, said.out, said.err) == (130, "", "")
    assert sorted(work.rglob("*")) == before
