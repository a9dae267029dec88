"""The user's own constructions on the command line: ``--construction mine.py``, as often as wanted.

They are registered before anything is parsed, so that they have a subcommand, flags and help like all others.
"""

from pathlib import Path

FLAG = "--construction"
COMMANDS = (["bounds"], ["build"], ["compare"], ["task", "check"])
"""Where the flag is understood."""


def register_own(given: list[str]) -> list[str]:
    """Register the constructions in the files named by ``--construction``; the command line without them."""
    if not any(given[: len(command)] == command for command in COMMANDS):
        return given
    rest: list[str] = []
    words = iter(given)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag != FLAG:
            rest.append(word)
        elif (file := value if equals else next(words, "")) != "":
            from byheart.constructions.registry import from_file, register

            register(from_file(Path(file)))
        else:
            rest.append(word)  # and the parser will say what is missing
    return rest
