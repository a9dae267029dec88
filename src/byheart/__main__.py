"""The program ``byheart``, and ``python -m byheart``, which import the commands last: that takes half a second."""

import atexit
import os
import sys
from contextlib import suppress


def main() -> None:
    """Run the command, and exit."""
    try:
        from byheart.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


def program() -> None:
    """Run the command, and end the process at once, as Python itself would need half a second to do if it has torch."""
    code: object = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main()
