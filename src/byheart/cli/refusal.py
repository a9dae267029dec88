"""What tyro's box says about a command line that it does not take, in one line: expected, got, an example."""

import re

from byheart.cli.menu import About

KINDS = {"INT": "a whole number, in digits", "FLOAT": "a number"}
"""What the help calls a kind of value, in words."""


def in_one_line(box: str, prog: str, said: About) -> str:
    """The sentence for a box whose lines are not broken; what is not known of is told in tyro's words.

    >>> box = "╭─ Missing argument ─╮\\n│ Missing value for argument '--task'. Expected 1 values. │\\n│ ─── │\\n│ For …"
    >>> in_one_line(box, "byheart compare", About("Compare.", ("byheart compare --task t.npz # all",)))
    'compare: --task: expected a value, got none; as in: byheart compare --task t.npz'
    """
    parts = re.split(r"^[│|] [─-]+ [│|]$", box, flags=re.MULTILINE)
    told = [re.findall(r"^[│|] (.*?) *[│|]$", part, flags=re.MULTILINE) for part in parts]
    about = told[1] if len(told) > 2 else []
    return f"{prog.removeprefix('byheart ')}: {_wrong(told[0], about)}; as in: {said.examples[0].partition(' # ')[0]}"


def _wrong(lines: list[str], about: list[str]) -> str:
    """What was expected and what was there; ``about`` is the help of the option in question, where tyro adds it."""
    text = " ".join(" ".join(lines).split())
    if text.startswith("Missing from "):
        return f"expected {' and '.join(_missing(lines))}, got none"
    if found := re.fullmatch(r"Unrecognized options: (.*)", text):
        return f"expected no more words, got {found[1]}"
    if found := re.fullmatch(r"Missing value for argument '(.*)'\..*", text):
        return f"{found[1]}: expected a value, got none"
    if found := re.fullmatch(r"invalid choice ('.*') for argument '(.*)'\. Expected one of \((.*)\)\.", text):
        return f"{found[2]}: expected one of {found[3].replace(chr(39), '').rstrip(',')}; got {found[1]}"
    if (found := re.match(r"Error parsing (.*?): .*?('[^']*')\]?\.?(?: Got errors:.*)?$", text)) and about[1:]:
        expected = about[1].strip().removeprefix(found[1]).strip()
        return f"{found[1]}: expected {KINDS.get(expected, expected)}, got {found[2]}"
    return text


def _missing(lines: list[str]) -> list[str]:
    """What is missing: an option in its longest spelling; of a word that has no name, what it is."""
    names = []
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if re.match(r" {4}\S", line):
            name = line.strip().rpartition(", ")[2]
            what = below.strip().partition(" (required)")[0].partition(".")[0]
            names.append(name if name.startswith("-") or not what else f"{name} ({what[0].lower()}{what[1:]})")
    return names
