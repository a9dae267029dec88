"""A command's options: those that several commands share, and how tyro fills them from the command line.

What tyro makes of a dataclass is shown as people read it: ``--out PATH`` and not ``{None}|PATH``, ``[PATH ...]`` and
not ``[[PATH [PATH ...]]]``, and a default only where there is one to tell.
"""

import io
import os
import re
import shutil
import sys
import types
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, is_dataclass, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import tyro
from tyro.conf import DisallowNone, FlagCreatePairsOff, Positional, UseAppendAction, arg, subcommand
from tyro.constructors import ConstructorRegistry, StructConstructorSpec

from byheart.cli.menu import NARROWEST, About, Menu, columns, prose
from byheart.cli.own import FLAG
from byheart.cli.refusal import in_one_line
from byheart.errors import BadInput, did_you_mean

Json: TypeAlias = Annotated[bool, arg(help="Print one JSON object instead of tables.")]
FactFiles: TypeAlias = Annotated[
    UseAppendAction[tuple[Path, ...]],
    arg(
        name="facts",
        metavar="PATH",
        help="Facts, prompts with their completions: .jsonl, .csv, .tsv, .parquet, or a folder. May be given several "
        "times.",
    ),
]
Columns: TypeAlias = Annotated[
    tuple[str, str] | None,
    arg(
        name="columns",
        metavar="PROMPT COMPLETION",
        help="Which columns or keys of the facts to take (default: prompt and completion, or question and answer, or "
        "text, or messages).",
    ),
]
ExecutorName: TypeAlias = Annotated[
    Literal["local", "processes", "ray"],
    arg(
        name="executor",
        help="Where the work is done: local (here), processes (one a CPU core), or ray (a Ray cluster, that at "
        "RAY_ADDRESS or else one on this machine). The result is the same.",
    ),
]
WorkersNumber: TypeAlias = Annotated[
    int | None,
    arg(name="workers", metavar="INT", help="For processes and ray: so many at a time (default: as many as cores)."),
]
OwnConstructions: TypeAlias = Annotated[
    UseAppendAction[tuple[Path, ...]],
    arg(
        name=FLAG.removeprefix("--"),
        metavar="MINE.PY",
        help="A Python file with a construction of your own; it is executed. May be given several times.",
    ),
]


def filled(command: Any, prog: str, said: About, given: list[str]) -> Any:
    """The command with its options.

    SystemExit after help; BadInput says in one line what is wrong.
    """
    if shutil.get_terminal_size().columns < NARROWEST:
        os.environ["COLUMNS"] = str(NARROWEST)
    try:
        return _tyro(command, prog, said, given)
    except _Stopped as stop:
        if stop.code:
            _check_options(command, prog, said, given)
            raise BadInput(in_one_line(_box(command, prog, said, given), prog, said)) from None
        sys.stdout.write(_wrapped(stop.out))
        sys.exit(stop.code)


def _box(command: Any, prog: str, said: About, given: list[str]) -> str:
    """What tyro says is wrong, where no line is broken, and nothing coloured."""
    before, target = os.environ.get("COLUMNS"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    os.environ["COLUMNS"] = "10000"
    try:
        with redirect_stdout(target), redirect_stderr(target):
            _tyro(command, prog, said, given)
    except _Stopped as stop:
        return re.sub("\x1b[^m]*m", "", stop.err)
    finally:
        os.environ.pop("COLUMNS")
        os.environ |= {} if before is None else {"COLUMNS": before}
    return ""


def _check_options(command: Any, prog: str, said: About, given: list[str]) -> None:
    """BadInput, with the closest one, for a word that looks like an option and is none in the command's help."""
    known: set[str] = set()
    try:
        _tyro(command, prog, said, ["--help"])
    except _Stopped as stop:
        for line in stop.out.splitlines():
            if re.match(r"\W*-", line):
                known |= set(re.findall(r"--[a-z][a-z-]*", line))
    for word in given:
        option = word.partition("=")[0].replace("_", "-")
        if option.startswith("--") and option != "--" and option not in known:
            raise BadInput(f"{prog} has no option {option}; {did_you_mean(option, sorted(known))}")


@dataclass
class _Stopped(Exception):  # noqa: N818 (it is no error: help ends like that)
    """Tyro has written something, and wants to exit."""

    code: int
    out: str
    err: str


def _tyro(command: Any, prog: str, said: About, given: list[str]) -> Any:
    """The command as tyro fills it; or what it writes instead."""
    out, err = _Caught(sys.stdout), _Caught(sys.stderr)
    options: dict[str, Any] = {"config": (FlagCreatePairsOff,), "registry": _plain()}
    try:
        with redirect_stdout(out), redirect_stderr(err):
            return tyro.cli(command, prog=prog, description=str(said), args=given, **options)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
        raise _Stopped(code, out.getvalue(), err.getvalue()) from None


class _Caught(io.StringIO):
    """What is written, kept for a moment; with the colours and letters that where it goes allows."""

    def __init__(self, target: Any) -> None:
        super().__init__()
        self._target = target

    def isatty(self) -> bool:
        return bool(self._target.isatty())

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return str(self._target.encoding)


def _wrapped(text: str) -> str:
    """Help whose lines of prose and usage, which tyro does not break, are broken; boxes and examples stay."""
    return "\n".join("\n".join(_broken(line)) for line in text.split("\n"))


def _broken(line: str) -> list[str]:
    plain = re.sub("\x1b[^m]*m", "", line)
    if len(plain) <= columns() or not plain[0].isalpha():
        return [line]
    return prose(line, "    " if plain.startswith("usage:") else "")


def _plain() -> ConstructorRegistry:
    """How options are shown: as tyro takes a dataclass apart, with plainer words for what may be left out."""
    registry, asked = ConstructorRegistry(), False

    @registry.struct_rule
    def rule(info: Any) -> StructConstructorSpec | None:
        nonlocal asked
        if asked or not is_dataclass(info.type):
            return None
        asked = True
        try:
            found = ConstructorRegistry.get_struct_spec(info)
        finally:
            asked = False
        if not isinstance(found, StructConstructorSpec):
            return found  # type: ignore[return-value] # a default that does not fit, which tyro explains
        fields = (replace(field, type=_shown(field.type, field.default)) for field in found.fields)
        return replace(found, fields=tuple(fields))

    return registry


def _shown(hint: Any, default: Any) -> Any:
    """An option's type, annotated with how its value and its default are written."""
    kind, *metadata = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if is_dataclass(kind) or is_dataclass(default):
        return hint
    said: list[Any] = [arg(help_behavior_hint=_default)] if _may_be_left_out(kind, default) else []
    members = get_args(kind)
    if get_origin(kind) in (Union, types.UnionType) and type(None) in members:
        if default is None:
            said.append(DisallowNone)
        elif len(members) == 2:
            said.append(arg(metavar=f"{_name(members[0])}|None"))
    elif get_origin(kind) is tuple and members[1:] == (...,) and UseAppendAction not in metadata:
        several = f"{_name(members[0])} ..."
        said.append(arg(metavar=f"[{several}]" if Positional in metadata else several))
    return Annotated[(kind, *said, *metadata)] if said or metadata else kind


def _may_be_left_out(kind: Any, default: Any) -> bool:
    missing = default in (tyro.MISSING, tyro.MISSING_NONPROP) if not hasattr(default, "shape") else False
    return not missing or get_origin(kind) is tuple


def _default(value: str) -> str:
    """What stands behind an option's help: its default, if it says anything.

    >>> _default("None"), _default("3")
    ('', '(default: 3)')
    """
    return "" if value in ("None", "False", "") else f"(default: {value})"


def _name(kind: Any) -> str:
    """A type in capitals.

    >>> _name(int)
    'INT'
    """
    return str(getattr(kind, "__name__", "VALUE")).upper()


def everything(menu: Menu) -> Any:
    """All commands as one type, for those who want to know all of them at once: completion of words by the shell."""
    members = []
    for name, entry in menu.items():
        kind = entry.load()
        if entry.of:
            kind = make_dataclass(f"{name}_menu", [("command", Annotated[everything(kind), arg(name="")])])
        members.append(Annotated[kind, subcommand(name, description=entry.about.first)])
    return Union[tuple(members)]  # noqa: UP007 (of so many)
