"""``byheart``: parse the command line, run the command, and turn errors into one line and an exit code."""

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
    """Run a command and exit: 0 done, 1 not true, 2 bad input, 70 a bug in Byheart, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stderr is None:  # closed: nobody reads errors
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:  # the next file to be opened would become stdout
        sys.stderr.write("byheart: stdout is closed; expected somewhere to write the results\n")
        sys.exit(BAD_INPUT)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without √ is no reason to stop
    code = _run(words)
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has seen enough; the exit code stays
        hush()
    except OSError as error:
        hush()
        code = code or _refuse(f"stdout: {error.strerror}", [])
    sys.exit(code)


def _run(words: list[str]) -> int:
    """Run a command, print its errors to stderr, and return the exit code."""
    try:
        if words == ["--version"]:
            say(f"byheart {byheart.__version__}")
            return DONE
        command = _parse(words)
        result = command.run()
        if isinstance(result, Result):
            show(result, as_json=command.json)
        code = result if isinstance(result, int) else DONE if result.is_true else NOT_TRUE
    except BadInput as error:
        code = _refuse(str(error), words)
    except OSError as error:
        code = _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error), words)
    except KeyboardInterrupt:
        code = 130
    except SystemExit as stop:  # after help
        code = DONE if stop.code is None else stop.code if isinstance(stop.code, int) else BAD_INPUT
    except BaseException as error:  # a panic in a Rust library is not an Exception
        if _is_out_of_memory(error):
            advice = "close other programs, or choose a smaller input"
            return _refuse(f"there is not enough memory ({str(error) or 'for an unknown purpose'}); {advice}", words)
        # Not exit code 1, which means that a claim is not true: here nothing is known.
        with suppress(OSError):
            traceback.print_exc()
            sys.stderr.write("byheart: this is a bug in Byheart, not a mistake of yours; please report it\n")
        code = OUR_MISTAKE
    return code


def _parse(words: list[str]) -> Any:
    """Return the command, or raise SystemExit after printing help."""
    from byheart.cli.parsing import parse

    try:
        return parse(words)
    except BrokenPipeError:  # in the middle of the help
        hush()
        sys.exit(DONE)


def _is_out_of_memory(error: BaseException) -> bool:
    """Return True for an error that means too little memory. PyTorch on a CPU tells only by the message.

    >>> _is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory")), _is_out_of_memory(KeyError())
    (True, False)
    """
    phrases = ("can't allocate memory", "out of memory")
    in_torch = isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in phrases)
    return in_torch or isinstance(error, MemoryError)


def _refuse(message: str, words: list[str]) -> int:
    """Print an error as one line, and as JSON if the command line asks for it."""
    line = visible(" ".join(message.split()))
    with suppress(OSError):
        sys.stderr.write(f"byheart: {line}\n")
    if "--json" in words:
        with suppress(OSError):
            print_json({"error": line})
    return BAD_INPUT
