"""``byheart``, and ``python -m byheart``: what begins before the commands are imported, which takes half a second."""

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
