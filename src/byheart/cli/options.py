"""Metadata for the fields of a command, and the options that several commands share.

See :mod:`byheart.cli.arguments` for how a dataclass becomes a command.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, TypeVar


@dataclass(frozen=True)
class Arg:
    """Metadata of a field: everything about its argument that neither the type nor the docstring says."""

    metavar: str = ""
    """Placeholder for the value; two words for a pair of values."""
    help: str = ""
    """Text that takes the place of the field's docstring."""
    aliases: Sequence[str] = ()
    """Short flags, such as "-o"."""
    positional: bool = False
    """True if the argument has no flag."""
    repeated: bool = False
    """True if the flag takes one value, and may be repeated."""


T = TypeVar("T")
Positional = Annotated[T, Arg(positional=True)]

Json: TypeAlias = Annotated[bool, Arg(help="Print one JSON object instead of tables.")]
FactFiles: TypeAlias = Annotated[
    tuple[Path, ...],
    Arg(
        metavar="PATH",
        help="Facts, prompts with their completions: .jsonl, .csv, .tsv, .parquet, or a folder. May be given several "
        "times.",
        repeated=True,
    ),
]
Columns: TypeAlias = Annotated[
    tuple[str, str] | None,
    Arg(
        metavar="PROMPT COMPLETION",
        help="Names of the two columns or keys that hold the facts (default: prompt and completion, or question and "
        "answer, or text, or messages).",
    ),
]
ExecutorName: TypeAlias = Annotated[
    Literal["local", "processes", "ray"],
    Arg(
        help="Where to compute: local (in this process), processes (one per CPU core), or ray (the Ray cluster at "
        "RAY_ADDRESS, or else one on this machine). The result is the same.",
    ),
]
WorkersNumber: TypeAlias = Annotated[
    int | None,
    Arg(help="Number of processes, or of tasks on Ray, at a time (default: the number of cores)."),
]
OwnConstructions: TypeAlias = Annotated[
    tuple[Path, ...],
    Arg(
        metavar="MINE.PY",
        help="A Python file with a construction of your own; it is executed. May be given several times.",
        repeated=True,
    ),
]
