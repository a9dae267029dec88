"""One case: files on the disk, one command, and what may be wrong with what it did."""

import os
import re
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from tests.fuzz.folders import changed_folder
from tests.fuzz.mutate import Files, changed_weights, mutated
from tests.fuzz.oracle import stated, wrong
from tests.fuzz.seeds import Command, Seed
from tests.fuzz.used import contradiction, opinion

from byheart.cli.main import main
from byheart.errors import BadInput

Mode: TypeAlias = Literal["files", "flips", "used"]
"""What is changed: files of any kind, a weight, or what lies in a network's folder, which others are asked about."""
GOOD = {0, 1, 2}
_NOTE = re.compile(r"stopped with |[\d,]+ facts? .* given again|.*: half a line at the end")
"""Lines on stderr that are no refusal, and may come before one."""


@dataclass(frozen=True)
class Case:
    """The case with this number: the same for the same seed, always."""

    number: int
    seed: Seed
    files: Files
    damage: str
    command: Command

    @property
    def title(self) -> str:
        """What it is, in one line."""
        return f"{self.number}: {self.seed.name}, {self.damage or 'nothing changed'}: byheart {' '.join(self.command)}"


def case(seeds: list[Seed], seed: int, number: int, mode: Mode = "files") -> Case:
    """Mutated files and a command; a network with one weight changed; or a folder that may still be certified."""
    rng = np.random.default_rng([seed, number])
    usable = [one for one in seeds if one.weights or mode == "files" or (mode == "used" and one.answers)]
    chosen = usable[rng.integers(len(usable))]
    if mode == "used" or (mode == "files" and rng.random() < 0.3 and chosen.affirming):
        commands = chosen.affirming if mode == "used" else chosen.commands
        folder = chosen.affirming[0][1]
        files, damage = changed_folder(chosen.files, folder, rng, [one.files for one in usable])
        return Case(number, chosen, files, damage, commands[rng.integers(len(commands))])
    if mode == "flips":
        key = "net/model.safetensors"
        files = chosen.files | {key: changed_weights(chosen.files[key], rng)}
        return Case(number, chosen, files, "one weight", (*chosen.commands[0], "--json"))
    files, damage = mutated(chosen.files, rng)
    return Case(number, chosen, files, damage, chosen.commands[rng.integers(len(chosen.commands))])


def tried(one: Case, place: Path, mode: Mode) -> tuple[str, bool]:
    """Run a case in ``place``: what was found ("" if nothing), and whether it says something.

    A flip does if it changed an answer; a folder, if it was certified with other files than it was written with.
    """
    lay_out(one.files, place)
    before = everything(place.parent)
    os.chdir(place)
    code, out, err = said(one.command)
    found = _complaint(code, err)
    after, own = everything(place.parent), _own(one.command)
    for name in before.keys() | after.keys():
        inner = name.removeprefix(f"{place.name}/")
        if before.get(name) != after.get(name) and not inner.startswith(own):
            found = found or f"{name} was changed, made or removed"
    changed = False
    if mode == "used":
        if code != 0:
            return found, False
        found = found or contradiction(one.seed, one.command, place) or opinion(one.command, place, one.number)
        changed = one.files != one.seed.files
    elif one.command[:2] == ("certify", "net") and (mode == "flips" or code == 0):
        try:
            mistakes = wrong(place / "net", _questions(one.command, place))
        except BadInput as refusal:
            return found or (f"certified what is refused: {refusal}" if code == 0 else ""), False
        changed = mistakes > 0
        if code == 0 and mistakes > stated(out):
            found = found or f"certified, and {mistakes} answers are wrong"
    return found, changed


def lay_out(files: Files, place: Path) -> None:
    """Write a case's files, and something beside them that no command may touch."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name, content in {**files, "precious.txt": b"precious"}.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match content:
            case bytes() | bytearray():
                path.write_bytes(content)
            case "fifo":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case ("link", target):
                path.symlink_to(target if target != "precious.txt" else place / target)


def said(command: Command) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command, run here."""
    streams = [os.memfd_create(name) for name in ("out", "err")]
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream, number)
    code: Any = None
    try:
        main(list(command))
    except SystemExit as stop:
        code = stop.code
    texts = []
    for stream in streams:
        texts.append(os.pread(stream, 1 << 20, 0).decode(errors="replace"))
        os.close(stream)
    return (0 if code is None else code if isinstance(code, int) else 1), texts[0], texts[1]


def everything(folder: Path) -> dict[str, Any]:
    """All that there is below a folder: what files hold, where links point, and what else there is."""
    found: dict[str, Any] = {}
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        kind = stat.S_IFMT(mode)
        if not stat.S_ISDIR(mode):
            what = path.read_bytes() if stat.S_ISREG(mode) else os.readlink(path) if stat.S_ISLNK(mode) else b""
            found[str(path.relative_to(folder))] = (kind, what)
    return found


def _complaint(code: int, err: str) -> str:
    if code not in GOOD:
        return f"exit code {code}: {' / '.join(err.strip().splitlines()[-4:])}"
    if "Traceback" in err or "Warning" in err:
        return f"on stderr: {' / '.join(err.strip().splitlines()[-3:])}"
    if "there is not enough memory" in err:  # which is to be known before it is taken
        return f"it grew: {err.strip().splitlines()[-1]}"
    lines = [line for line in err.strip().splitlines() if not _NOTE.match(line)]
    return f"{len(lines)} lines on stderr: {lines[:2]}" if code == 2 and len(lines) != 1 else ""


def _own(command: Command) -> tuple[str, ...]:
    """How the names begin that a command may write to."""
    if command[0] == "certify":
        return ("own", f"{command[1]}/certificate.json")
    return ("own", "net/") if command[0] == "edit" or command[-1] == "net" else ("own",)


def _questions(command: Command, place: Path) -> list[Path]:
    return [place / word for word in command if word.endswith((".txt", ".npz", ".jsonl", ".csv"))]
