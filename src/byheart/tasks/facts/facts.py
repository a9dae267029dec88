"""Facts, checked: each once, all texts or all token ids."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from byheart.errors import BadInput
from byheart.tasks.facts.fact import Fact, Piece, fact_of
from byheart.tasks.facts.rows import rows


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Facts:
    """Prompts with their completions, each to be said from its own prompt; frozen.

    >>> facts = Facts([("capital of France", "Paris"), ("capital of Peru", "Lima"), ("capital of France", "Paris")])
    >>> facts, facts.repeated
    (Facts(2), (('facts[2]', 'facts[0]'),))
    >>> Facts({"2 + 2": "4"}).facts[0].completion
    b'4'
    """

    facts: tuple[Fact, ...]
    repeated: tuple[tuple[str, str], ...]
    """Facts that are another one once more, and are left out: where they stand, and where that one does."""

    def __init__(self, given: Iterable[Any] | Mapping[str, str]) -> None:
        """From pairs (prompt, completion), records with usual keys, texts, or a dict of completions by prompts."""
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise BadInput(f"got {type(given).__name__}; expected pairs (prompt, completion), or a dict of them")
        entries = given.items() if isinstance(given, Mapping) else given
        found: dict[tuple[Piece | None, Piece], Fact] = {}
        repeated = []
        for number, entry in enumerate(entries):
            fact = fact_of(entry, f"facts[{number}]")
            first = found.setdefault((fact.prompt, fact.completion), fact)
            if first is not fact:
                repeated.append((fact.place, first.place))
        object.__setattr__(self, "facts", tuple(found.values()))
        object.__setattr__(self, "repeated", tuple(repeated))
        self._check()

    def _check(self) -> None:
        if not self.facts:
            raise BadInput("there are no facts; expected at least one")
        kinds: dict[type, Fact] = {}
        for fact in self.facts:
            for piece in (fact.completion, *([] if fact.prompt is None else [fact.prompt])):
                kinds.setdefault(type(piece), fact)
        if len(kinds) > 1:
            text, ids = kinds[bytes].place, kinds[tuple].place
            raise BadInput(f"{text} is text, and {ids} has token ids; expected facts of one kind")

    @classmethod
    def read(cls, *paths: str | Path, columns: Sequence[str] = ()) -> Self:
        """The facts in files; ``columns`` are the names of prompt and completion, where these are not usual ones."""
        if not paths:
            raise BadInput("no files given; expected at least one")
        if len(columns) > 2 or len(set(columns)) < len(columns):
            raise BadInput(f"columns are {', '.join(columns)}; expected two different names, or one for a text")
        found = (fact_of(row, place, columns) for path in map(Path, paths) for place, row in rows(path))
        try:
            return cls(found)
        except OSError as error:
            raise BadInput(f"{error.filename}: {error.strerror or error}") from error

    @property
    def are_ids(self) -> bool:
        """Whether they are token ids, and not texts."""
        return isinstance(self.facts[0].completion, tuple)

    def __len__(self) -> int:
        return len(self.facts)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.facts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,})"
