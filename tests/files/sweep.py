"""A command in forked children, stopped at its k-th file operation, for every k.

    python sweep.py kill|fail SCENARIO FOLDER [in-two]

What counts as an operation is what Python's audit hooks see (opening for writing, renaming, removing, folders,
permissions, truncating, locking), what they do not see and is wrapped here (fsync, write, pwrite, Linux's renameat2),
and the end of the command. ``kill`` ends the child with SIGKILL before the operation. ``fail`` lets the operation fail,
as on a full disk; what removes things does not need room, and does not fail. ``in-two``: as on a system that cannot
exchange names. Prints how often it was stopped, or ends with the first thing that was not as it should be.
"""

import io
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # threads do not survive a fork

from byheart.certificates import certificate as certificates
from byheart.cli.main import main
from byheart.files import replacement
from byheart.networks import load

TEXT = "to be or not to be, nobler\n"
FOREIGN = {"notes.txt": b"years of work", ".net-draft": b"mine", ".hidden/letter": b"Dear"}
CHANGING = ("os.rename", "os.mkdir", "os.chmod", "os.truncate", "os.link", "os.symlink", "fcntl.flock")
REMOVING = ("os.remove", "os.rmdir")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
COMPILE = ("compile", "text.txt", "-o", "net")
BUILD = ("build", "interpolate", "--task", "t.npz", "-o", "net")


@dataclass(frozen=True)
class Scenario:
    """What is there, what is run, and what to run afterwards to see that nothing is in the way."""

    before: tuple[tuple[str, ...], ...]
    command: tuple[str, ...]
    again: tuple[str, ...]


SCENARIOS = {
    "build": Scenario((("build", "vardi-2022", "--task", "t.npz", "-o", "net"),), BUILD, BUILD),
    "build-new": Scenario((), BUILD, BUILD),
    "compile": Scenario(((*COMPILE, "--seed", "1"),), COMPILE, BUILD),
    "edit": Scenario((COMPILE,), ("edit", "net", "--set", "nobler=s", "-o", "net"), BUILD),
    "certify": Scenario((BUILD,), ("certify", "net", "--task", "t.npz"), BUILD),
    "certify-again": Scenario((COMPILE,), ("certify", "net", "text.txt"), ("certify", "net", "text.txt")),
    "recheck": Scenario((COMPILE,), ("certify", "net", "text.txt", "--recheck", "--as-used", "no"), COMPILE),
    "task": Scenario(
        (("task", "random", "--examples", "4", "-o", "net.npz"),),
        ("task", "random", "--examples", "5", "-o", "net.npz"),
        ("task", "random", "--examples", "6", "-o", "net.npz"),
    ),
}


class Stop:
    """Counts operations below a folder, and stops at one of them."""

    def __init__(self, at: int, how: str, folder: Path) -> None:
        self.count, self.at, self.how, self.folder = 0, at, how, str(folder)

    def step(self, *, removes: bool = False) -> None:
        if self.how == "fail" and removes:
            return
        self.count += 1
        if self.count != self.at:
            return
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(28, "No space left on device")

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, str) and flags & WRITING and os.path.abspath(path).startswith(self.folder):
                self.step()
        elif event in CHANGING or event in REMOVING:
            self.step(removes=event in REMOVING)

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def stopped(*arguments: Any) -> Any:
            self.step()
            return function(*arguments)

        return stopped

    def install(self) -> None:
        for name in ("fsync", "write", "pwrite"):
            setattr(os, name, self.before(getattr(os, name)))
        if replacement._renameat2 is not None:
            replacement._renameat2 = self.before(replacement._renameat2)
        sys.addaudithook(self.hear)


def run(command: tuple[str, ...], folder: Path, stop: Stop | None = None) -> tuple[int, str]:
    """The exit code of a command in a child of its own (negative: the signal), and what it said on stderr."""
    said = folder.with_suffix(".said")
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if stop is not None:
            stop.install()
        try:
            main(command)
        except SystemExit as ended:
            if stop is not None and stop.how == "kill":
                stop.step()
            os._exit(int(ended.code or 0) if stop is None or stop.count >= stop.at else 99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.read_text()


def run_here(command: tuple[str, ...], folder: Path) -> None:
    """Run a command that succeeds in this process, where children find what it imported and compiled."""
    with chdir(folder), redirect_stdout(io.StringIO()):
        try:
            main(command)
        except SystemExit as ended:
            if ended.code:
                raise


def held(folder: Path) -> dict[str, bytes]:
    """The files of a network, or the one file of that name, and what they hold; without the certificate."""
    if folder.is_file():
        return {"": folder.read_bytes()}
    names = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


def check_complete(work: Path, after: Path, either: list[dict[str, bytes]], target: str) -> None:
    """The old or the new stands under the name, its certificate about it; one that was certified has a certificate."""
    net = work / target
    replacement.recover(net)
    found = held(net) if net.exists() else {}
    assert found in either, f"neither old nor new: {sorted(found)}"
    if found == either[1] != either[0] and (after / target / "certificate.json").exists():
        assert (net / "certificate.json").exists(), "the new one is there without its certificate"
    if net.is_dir():
        network = load(net)
        if (net / "certificate.json").exists():
            certificate = certificates.read(net / "certificate.json")
            assert certificate.certified, "not certified"
            assert network.is_named(certificate.weights), "the certificate is about other weights"
    for name, content in FOREIGN.items():
        assert (work / name).read_bytes() == content, f"{name} is not what it was"


def leftovers(work: Path, known: set[str]) -> set[str]:
    return {str(path.relative_to(work)) for path in work.rglob("*")} - known


def prepared(scenario: Scenario, folder: Path) -> Path:
    folder.mkdir()
    (folder / "text.txt").write_text(TEXT)
    for name, content in FOREIGN.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    make = ("task", "random", "--examples", "6", "--length", "3", "--vocab", "9", "--labels", "3", "-o", "t.npz")
    for command in (make, *scenario.before):
        run_here(command, folder)
    return folder


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def sweep(how: str, name: str, folder: Path) -> int:
    """Stop the command at every operation; how many there are."""
    scenario = SCENARIOS[name]
    target = "net.npz" if name == "task" else "net"
    before = prepared(scenario, folder / "before")
    for extra, command in (("after", scenario.command), ("again", scenario.again)):
        shutil.copytree(before, folder / extra)
        run_here(command, folder / extra)
    after, again = folder / "after", folder / "again"
    either = [held(before / target) if (before / target).exists() else {}, held(after / target)]
    known = {str(path.relative_to(again)) for path in again.rglob("*")} | {f"{target}/certificate.json"}
    code, at = -signal.SIGKILL, 1
    while code != 99:
        work = folder / "work"
        shutil.copytree(before, work)
        code, said = run(scenario.command, work, Stop(at, how, work))
        check_complete(work, after, either, target)
        if how == "kill":
            assert code in (-signal.SIGKILL, 99), said
            code_again, said = run(scenario.again, work)
            assert code_again == 0, said
            assert held(work / target) == held(again / target)
            assert not leftovers(work, known), f"{leftovers(work, known)} after {at}"
        elif code != 99:
            check_failed(before, work, after, (code, said), target)
        shutil.rmtree(work)
        at += 1
    return at - 1


def check_failed(before: Path, work: Path, after: Path, said: tuple[int, str], target: str) -> None:
    """One line, exit code 2, and everything as it was, or kept where it says, or on its place but not yet for good."""
    code, words = said
    if code == 0:  # what could not be removed is left to the next writer
        assert held(work / target) == held(after / target)
        return
    assert code == 2, said
    assert words.startswith("byheart: "), said
    assert words.count("\n") == 1, said
    assert "No space left on device" in words, said
    found = everything(work)
    if kept := [name for name in found if name.startswith(f"{target}-new/")]:
        assert f"is in {work / target}-new" in words, said
        assert held(work / f"{target}-new") == held(after / target)
        found = {name: content for name, content in found.items() if name not in kept}
    if not (work / target).exists() or held(work / target) != held(after / target):
        assert found == everything(before), f"{set(found) ^ set(everything(before))}"
    assert not [path for path in work.rglob("*") if path.name.endswith(".byheart")]


if __name__ == "__main__":
    how, name, folder = sys.argv[1:4]
    if sys.argv[4:] == ["in-two"]:
        replacement._renameat2 = None
    print(json.dumps({"operations": sweep(how, name, Path(folder))}))
