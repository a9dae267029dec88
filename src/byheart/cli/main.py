"""``byheart``: the way in. Parses, runs, and turns errors into one line and an exit code."""

import io
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import byheart
from byheart.cli.output import BAD_INPUT, DONE, NOT_TRUE, OUR_MISTAKE, hush, say, visible
from byheart.cli.result import Result, print_json, show
from byheart.errors import BadInput


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
        command = _parse(given)
        result = command.run()
        if isinstance(result, Result):
            show(result, as_json=command.json)
        code = result if isinstance(result, int) else DONE if result.is_true else NOT_TRUE
    except BadInput as error:
        code = _refuse(str(error), given)
    except OSError as error:
        code = _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error), given)
    except KeyboardInterrupt:
        code = 130
    except SystemExit as stop:  # after help
        code = DONE if stop.code is None else stop.code if isinstance(stop.code, int) else BAD_INPUT
    except BaseException as error:  # a panic of a library in Rust is no Exception
        if _is_out_of_memory(error):
            more = "expected more of it: close other programs, or ask for less at a time"
            return _refuse(f"there is not enough memory ({str(error) or 'nobody says for what'}); {more}", given)
        # Not 1, which says that something is not true: here nothing is known.
        with suppress(OSError):
            traceback.print_exc()
            sys.stderr.write("byheart: this is a mistake of Byheart's own, not of yours; please report it\n")
        code = OUR_MISTAKE
    return code


def _parse(given: list[str]) -> Any:
    """The command; SystemExit after help."""
    from byheart.cli.parsing import parse

    try:
        return parse(given)
    except BrokenPipeError:  # in the middle of the help
        hush()
        sys.exit(DONE)


def _is_out_of_memory(error: BaseException) -> bool:
    """PyTorch has types of its own for it, and on a CPU none.

    >>> _is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory")), _is_out_of_memory(KeyError())
    (True, False)
    """
    told = isinstance(error, RuntimeError) and any(
        what in str(error) for what in ("can't allocate memory", "out of memory")
    )
    return told or isinstance(error, MemoryError)


def _refuse(message: str, given: list[str]) -> int:
    line = visible(" ".join(message.split()))
    with suppress(OSError):
        sys.stderr.write(f"byheart: {line}\n")
    if "--json" in given:
        with suppress(OSError):
            print_json({"error": line})
    return BAD_INPUT
