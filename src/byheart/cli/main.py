"""``byheart``: the way in. Parses, runs, and turns errors into one line and an exit code."""

import io
import os
import shutil
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import tyro
from tyro.conf import subcommand

import byheart
from byheart.cli.approximate import ApproximateCommand
from byheart.cli.bounds import BoundsCommand
from byheart.cli.build import build_command, check_name
from byheart.cli.certify import CertifyCommand
from byheart.cli.collapse import CollapseCommand
from byheart.cli.compare import CompareCommand
from byheart.cli.compile import CompileCommand
from byheart.cli.edit import EditCommand
from byheart.cli.explore import ExploreCommand
from byheart.cli.lab import LabCommand
from byheart.cli.output import BAD_INPUT, DONE, OUR_MISTAKE, hush, print_json, say, visible, with_example
from byheart.cli.own import register_own
from byheart.cli.recite import ReciteCommand
from byheart.cli.show import ShowCommand
from byheart.cli.task import TaskCommand
from byheart.cli.theorems import TheoremsCommand
from byheart.errors import BadInput

_TASK = with_example(
    "Make, show and check tasks.",
    "byheart task random --examples 1000 --length 32 --vocab 200 --labels 10 -o t.npz",
)
_BOUNDS = with_example(
    "All bounds and the true counts of our constructions at given sizes.",
    "byheart bounds --examples 10000 --length 32 --labels 2 --vocab 1000",
)
_BUILD = with_example(
    "Build a network that has memorized a task; --construction mine.py adds a construction of your own.",
    "byheart build kajitsuka-sato-2025 --task t.npz -o net",
)
_CERTIFY = with_example(
    "Check every answer of a saved network, exactly, and write the certificate.",
    "byheart certify net --task t.npz --controls    or, for texts:  byheart certify book book.txt",
)
_COMPARE = with_example(
    "Build every construction on the same tasks, certify each, and print one table per task.",
    "byheart compare --task tags.npz labels.npz --plot compare.png",
)
_THEOREMS = with_example(
    "Every theorem that Byheart runs: what it says, and its network as stated beside ours, certified on one task.",
    "byheart theorems    or:  byheart theorems kajitsuka-sato-2025 dana-2025 -o theorems.md",
)
_APPROXIMATE = with_example(
    "Approximate a permutation-equivariant function of sequences by a Transformer: quantise, memorize the grid.",
    "byheart approximate --function rank --length 3 --epsilon 0.3 0.2 0.1 --plot rank.png",
)
_COMPILE = with_example(
    "Compile texts, or a next-token task, into a float Transformer that says them word for word. No training.",
    "byheart compile book.txt -o book",
)
_RECITE = with_example(
    "Recite from a compiled network.",
    "byheart recite book --tokens 500",
)
_EDIT = with_example(
    "Change what a compiled network answers to one context, and nothing else.",
    "byheart edit book --set 'Call me Ishmael=!'",
)
_SHOW = with_example(
    "Show where a network's parameters are; with --task, which head of a softmax network holds which example.",
    "byheart show book --plot parameters.png    or:  byheart show net --task q.npz --plot heads.png",
)
_COLLAPSE = with_example(
    "Collapse an exact Transformer to the plain ReLU network that answers as it does on sequences of equal tokens.",
    "byheart collapse net -o plain    then:  byheart certify plain --task constant.npz",
)
_EXPLORE = with_example(
    "Write and open the explorer: a page on which networks recite, bounds have sliders, and bits can be flipped.",
    "byheart explore    or, with a compiled network of your own:  byheart explore poem",
)
_LAB = with_example(
    "Train small Transformers by the thousand: the papers' experiments, and your own.",
    "byheart lab run dana-2025-1 --scale short    then:  byheart lab show runs/dana-2025-1-short",
)
_ABOUT = (
    "Byheart: a dataset in, a Transformer that has memorized it out, with an honest parameter count beside every known "
    "bound, and a certificate that anyone can re-check."
)
_NARROWEST = 20
"""Columns that help is laid out for at least: with a few less, laying it out does not end."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0 done, 1 not true, 2 bad input, 70 our own mistake, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stderr is None:  # closed: what would be said there is said to nobody
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:  # nor may a file that is opened next take its number
        sys.stderr.write("byheart: stdout is closed; expected somewhere to write the results\n")
        sys.exit(BAD_INPUT)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no √ is no reason to stop
    code = _run(given)
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has seen enough, and the code is what it is
        hush()
    except OSError as error:
        hush()
        code = code or _refuse(f"stdout: {error.strerror}", [])
    sys.exit(code)


def _run(given: list[str]) -> int:
    """The exit code of a command, whose errors are told on stderr."""
    try:
        if given == ["--version"]:
            say(f"byheart {byheart.__version__}")
            return DONE
        code: int = _parse(given := register_own(given)).run()
    except BadInput as error:
        code = _refuse(str(error), given)
    except OSError as error:
        code = _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error), given)
    except KeyboardInterrupt:
        code = 130
    except SystemExit as stop:  # after help, or a command line that is not understood
        code = stop.code if isinstance(stop.code, int) else BAD_INPUT
    except BaseException:  # a panic of a library in Rust is no Exception
        # Not 1, which says that something is not true: here nothing is known.
        with suppress(OSError):
            traceback.print_exc()
            sys.stderr.write("byheart: this is a mistake of Byheart's own, not of yours; please report it\n")
        code = OUR_MISTAKE
    return code


def _command() -> Any:
    """Every command; ``build`` has a subcommand for every construction that is registered by now."""
    return (
        Annotated[TaskCommand, subcommand("task", description=_TASK)]
        | Annotated[BoundsCommand, subcommand("bounds", description=_BOUNDS)]
        | Annotated[build_command(), subcommand("build", description=_BUILD)]
        | Annotated[CertifyCommand, subcommand("certify", description=_CERTIFY)]
        | Annotated[CompareCommand, subcommand("compare", description=_COMPARE)]
        | Annotated[TheoremsCommand, subcommand("theorems", description=_THEOREMS)]
        | Annotated[ApproximateCommand, subcommand("approximate", description=_APPROXIMATE)]
        | Annotated[CompileCommand, subcommand("compile", description=_COMPILE)]
        | Annotated[ReciteCommand, subcommand("recite", description=_RECITE)]
        | Annotated[EditCommand, subcommand("edit", description=_EDIT)]
        | Annotated[ShowCommand, subcommand("show", description=_SHOW)]
        | Annotated[CollapseCommand, subcommand("collapse", description=_COLLAPSE)]
        | Annotated[ExploreCommand, subcommand("explore", description=_EXPLORE)]
        | Annotated[LabCommand, subcommand("lab", description=_LAB)]
    )


def _parse(given: list[str]) -> Any:
    """The command; on a bad command line tyro has said why on stderr."""
    config = (tyro.conf.FlagCreatePairsOff,)
    check_name(given)
    if shutil.get_terminal_size().columns < _NARROWEST:
        os.environ["COLUMNS"] = str(_NARROWEST)
    try:
        return tyro.cli(_command(), prog="byheart", description=_ABOUT, args=given, config=config)
    except SystemExit as stop:
        if stop.code == BAD_INPUT and "--json" in given:
            print_json({"error": "the command line is not understood; stderr says why"})
        raise
    except BrokenPipeError:  # in the middle of the help
        hush()
        sys.exit(DONE)


def _refuse(message: str, given: list[str]) -> int:
    line = visible(" ".join(message.split()))
    with suppress(OSError):
        sys.stderr.write(f"byheart: {line}\n")
    if "--json" in given:
        with suppress(OSError):
            print_json({"error": line})
    return BAD_INPUT
