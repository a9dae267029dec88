"""``python -m byheart`` is ``byheart``."""

from byheart.cli.main import main

main()
