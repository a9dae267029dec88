"""Keep pytest from collecting the Python files of recorded folders: they are data here."""

collect_ignore = ["files"]
