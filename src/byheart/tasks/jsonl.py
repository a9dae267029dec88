"""Tasks as ``.jsonl`` files: an optional header line, then one JSON object per example.

A next-token task reads::

    {"task": "next-token", "label_count": 10, "vocab": 200}
    {"tokens": [17, 3, 99], "label": 3}

Sequence-to-sequence tasks have ``labels``, distributions ``probabilities`` and maybe a ``weight``; ``vectors`` may
stand for ``tokens``. Tasks of contexts and queries have a ``context``, a ``query`` and a ``label`` or a ``target``, one
number or a list of them; a context that all examples share stands in the header instead.
"""

import json
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.files.reading import JSON_TAKES, lines, parsed
from byheart.files.room import Growing
from byheart.tasks.base import Task
from byheart.tasks.checks import EXACT_IN_FLOAT64, BadEntry
from byheart.tasks.query import KINDS, QueryLabels, QueryTargets, QueryTask
from byheart.tasks.task import NarrowNextToken, NextToken, NextTokenDistribution, SeqToSeq

PORTION = 1 << 16
"""Numbers that are kept wide until they are made narrow together."""


class Column:
    """Integers of 64 bits, or real numbers, that lists of lists of them leave behind.

    >>> column = Column(real=False)
    >>> column.add([[1, 2], [3, 4]], depth=2)
    >>> column.add(300, depth=0)
    >>> column.joined()
    array([  1,   2,   3,   4, 300], dtype=uint16)
    """

    def __init__(self, *, real: bool) -> None:
        self._fresh = array("d" if real else "q")
        self._held = Growing(dtype="d" if real else "u1")

    def add(self, numbers: Any, depth: int) -> None:
        """More numbers: one, or ``depth`` lists within each other."""
        if depth > 1:
            for few in numbers:
                self.add(few, depth - 1)
        elif depth:
            self._fresh.extend(numbers)
        else:
            self._fresh.append(numbers)
        if len(self._fresh) >= PORTION:
            self._pack()

    def _pack(self) -> None:
        """Put what came last to the rest: without a sign, and narrow, as long as all can be."""
        if not self._fresh:
            return
        part, held = np.array(self._fresh), self._held.dtype
        if held.kind == "u":
            narrow = np.min_scalar_type(part.max()) if part.min() >= 0 else part.dtype
            self._held.widen(np.promote_types(held, narrow) if narrow.kind == "u" else narrow)
        self._held.extend(part)
        del self._fresh[:]

    def joined(self) -> npt.NDArray[Any]:
        """All of them, one after the other, as wide as the widest."""
        self._pack()
        return self._held.array if len(self._held) else np.array(self._fresh)


ANSWER_KEYS = {
    NextToken.kind: "label",
    SeqToSeq.kind: "labels",
    NextTokenDistribution.kind: "probabilities",
    QueryLabels.kind: "label",
    QueryTargets.kind: "target",
}
SINGULAR = {"contexts": "context", "queries": "query", "weights": "weight"}
"""What one example's part of an array is called, where that differs; answers have :data:`ANSWER_KEYS`."""
DEPTHS = {"tokens": 1, "vectors": 2, "label": 0, "labels": 1, "probabilities": 1, "weight": 0}
DEPTHS |= {"context": 2, "query": 1, "target": 0}
SIZES = ("label_count", "vocab")
REAL = ("vectors", "probabilities", "weight", "context", "query", "target")
KEEPS = 4
"""Bytes for every byte of a file, in memory or on the disk, when all its examples are read."""

Object = dict[str, Any]


def write(task: Task, file: BinaryIO) -> None:
    """Write ``task`` to a file that is open for writing bytes. Floats are written so that they come back exactly."""
    header: Object = {"task": task.kind}
    arrays = task.arrays
    if isinstance(task, QueryTask):
        if isinstance(task, QueryLabels):
            header["label_count"] = task.label_count
        if task.shared:
            header["context"] = arrays.pop("contexts").tolist()
    else:
        header |= {"label_count": task.label_count, "vocab": task.vocab}
    file.write(f"{json.dumps(header)}\n".encode())
    keys = [_key(task.kind, name) for name in arrays]
    for rows in zip(*arrays.values(), strict=True):
        example = {key: row.tolist() for key, row in zip(keys, rows, strict=True)}
        file.write(f"{json.dumps(example)}\n".encode())


def _key(kind: str, name: str) -> str:
    return ANSWER_KEYS[kind] if name == KINDS[kind].answers_name else SINGULAR.get(name, name)


def read(path: Path, *, narrow: bool = False) -> Task:
    """Read a task from a file, a line at a time; ``narrow``: a next-token task as :class:`NarrowNextToken`."""
    numbered = _objects(path)
    first: tuple[int, Object] = next(numbered, (0, {}))
    header: Object = {}
    if "task" in first[1]:
        header_line, header = first
        with _at(f"{path}:{header_line}"):
            _check_header(header)
        first = next(numbered, (0, {}))
    if not first[0]:
        raise BadInput(f"{path}: no examples; expected one JSON object per line")
    with _at(f"{path}:{first[0]}"):
        kind = header["task"] if header else _likely_kind(first[1])
    names = _array_names(kind, first[1], shared="context" in header)
    examples = ExampleColumns({name: _key(kind, name) for name in names})
    for line, example in chain([first], numbered):
        with _at(f"{path}:{line}"):
            examples.add(line, example)
    fields: Object = {name: header[name] for name in SIZES if name in header}
    fields |= examples.arrays()
    if "context" in header:
        fields["contexts"] = header["context"]
    try:
        return (NarrowNextToken if narrow and kind == NextToken.kind else KINDS[kind])(**fields)
    except BadEntry as error:
        line = header_line if "context" in header and error.name == "contexts" else examples.lines[error.example]
        raise BadInput(f"{path}:{line}: {error}") from error
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def _array_names(kind: str, example: Object, *, shared: bool) -> list[str]:
    """The arrays that the examples make up, going by the first of them."""
    if issubclass(KINDS[kind], QueryTask):
        names = ["queries"] if shared else ["contexts", "queries"]
    else:
        names = ["vectors" if "vectors" in example else "tokens"]
    names.append(KINDS[kind].answers_name)
    return [*names, "weights"] if kind == NextTokenDistribution.kind and "weight" in example else names


@contextmanager
def _at(place: str) -> Iterator[None]:
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from error


def _objects(path: Path) -> Iterator[tuple[int, Object]]:
    """The objects of a file with their line numbers, from 1; blank lines are skipped."""
    number = 0
    for number, line in lines(path, takes=JSON_TAKES, keeps=KEEPS):
        if line.strip():
            with _at(f"{path}:{number}"):
                yield number, parsed(line.removesuffix(b"\n"))
    if not number:
        raise BadInput(f"{path}: the file is empty")


def _check_header(header: Object) -> None:
    if header["task"] not in list(KINDS):
        raise BadInput(f"task is {shortened(header['task'])}; expected one of {', '.join(KINDS)}")
    sizes: tuple[str, ...] = SIZES
    if issubclass(KINDS[header["task"]], QueryTask):
        sizes = ("label_count", "context") if header["task"] == QueryLabels.kind else ("context",)
    if unknown := sorted(header.keys() - {"task", *sizes}):
        raise BadInput(f"unknown key {unknown[0]!r}; expected only task, {', '.join(sizes)}")
    if "context" in header:
        _shape("context", header["context"], DEPTHS["context"])


def _likely_kind(example: Object) -> str:
    for kind, key in ANSWER_KEYS.items():
        if key in example and ("query" in example) == issubclass(KINDS[kind], QueryTask):
            return kind
    raise BadInput(f"no answer; expected one of the keys {', '.join(dict.fromkeys(ANSWER_KEYS.values()))}")


class ExampleColumns:
    """What examples hold, key by key, in arrays that grow; all have the keys of the first, and its shapes."""

    def __init__(self, keys: dict[str, str]) -> None:
        """The ``keys`` by the names of their arrays."""
        self._keys = keys
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._columns = {key: Column(real=key in REAL) for key in keys.values()}
        self.lines = array("q")
        """Of each example."""

    def add(self, line: int, example: Object) -> None:
        """One more; BadInput if it has not exactly the keys, or other shapes."""
        if example.keys() != self._columns.keys():
            keys = " and ".join(self._columns)
            raise BadInput(f"found the keys {', '.join(sorted(example))}; expected {keys}")
        for key, column in self._columns.items():
            depth = 1 if key == "target" and isinstance(example[key], list) else DEPTHS[key]
            shape = _shape(key, example[key], depth)
            if self._shapes.setdefault(key, shape) != shape:
                raise BadInput(f"{key} has shape {shape}; expected {self._shapes[key]}, as on line {self.lines[0]}")
            column.add(example[key], depth)
        self.lines.append(line)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by their names."""
        shapes = {key: (len(self.lines), *shape) for key, shape in self._shapes.items()}
        return {name: self._columns[key].joined().reshape(shapes[key]) for name, key in self._keys.items()}


def _shape(key: str, value: Any, depth: int) -> tuple[int, ...]:
    """The shape of nested lists of numbers."""
    if depth == 0:
        _check_numbers(key, [value])
        return ()
    if not isinstance(value, list):
        raise BadInput(f"{key} holds {shortened(value)}; expected a list")
    if depth == 1:
        _check_numbers(key, value)
        return (len(value),)
    shapes = {_shape(key, item, depth - 1) for item in value}
    if len(shapes) > 1:
        raise BadInput(f"{key} is ragged; expected vectors of one dimension")
    return (len(value), *next(iter(shapes), ()))


def _check_numbers(key: str, values: list[Any]) -> None:
    types = set(map(type, values))
    allowed, expected = ({int, float}, "numbers") if key in REAL else ({int}, "integers")
    if not types <= allowed:
        wrong = next(value for value in values if type(value) not in allowed)
        raise BadInput(f"{key} holds {shortened(wrong)}; expected {expected}")
    if key in REAL and int in types and any(abs(value) > EXACT_IN_FLOAT64 for value in values if type(value) is int):
        raise BadInput(f"{key} holds an integer beyond 2^53; expected numbers that float64 holds exactly")
