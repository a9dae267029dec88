"""The program ``byheart``, and ``python -m byheart``. It imports the commands, which takes half a second, last."""

import sys


def main() -> None:
    """Run the command, and exit."""
    try:
        from byheart.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
