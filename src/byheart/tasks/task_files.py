"""Read and write tasks: ``.npz`` for arrays, ``.jsonl`` for people and scripts.

**.npz**: the arrays by their names, and ``kind``, ``label_count`` and ``vocab`` as scalars.

**.jsonl**: an optional header line, then one JSON object per example. A next-token task reads::

    {"task": "next-token", "label_count": 10, "vocab": 200}
    {"tokens": [17, 3, 99], "label": 3}

Sequence-to-sequence tasks have ``labels``, distributions ``probabilities`` and optionally a ``weight``. ``vectors`` may
replace ``tokens``. Tasks of contexts and queries have a ``context``, a ``query`` and a ``label`` or a ``target``, which
is a number or a list of numbers. A context that all examples share is in the header instead.
"""

import json
import os
import re
import zipfile
from array import array
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.files.archives import Arrays, read_arrays
from byheart.files.memory import GrowingArray
from byheart.files.untrusted import MEMORY_PER_JSON_BYTE, parse_object, read_lines
from byheart.files.writing import check_file, new_file
from byheart.tasks.arrays import EXACT_IN_FLOAT64, BadEntry
from byheart.tasks.task import (
    KINDS,
    NarrowNextToken,
    NextToken,
    NextTokenDistribution,
    QueryLabels,
    QueryTargets,
    QueryTask,
    SeqToSeq,
    Task,
)

PORTION = 1 << 16
"""Number of integers that are collected before they are packed into a narrow type."""


class Column:
    """All numbers of nested lists, as 64-bit integers or real numbers.

    >>> column = Column(real=False)
    >>> column.add([[1, 2], [3, 4]], depth=2)
    >>> column.add(300, depth=0)
    >>> column.joined()
    array([  1,   2,   3,   4, 300], dtype=uint16)
    """

    def __init__(self, *, real: bool) -> None:
        self._fresh = array("d" if real else "q")
        self._held = GrowingArray(dtype="d" if real else "u1")

    def add(self, numbers: Any, depth: int) -> None:
        """Append numbers: a single one, or those of ``depth`` nested lists."""
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
        """Pack the recent numbers: unsigned and narrow, as long as all numbers fit."""
        if not self._fresh:
            return
        part, held = np.array(self._fresh), self._held.dtype
        if held.kind == "u":
            narrow = np.min_scalar_type(part.max()) if part.min() >= 0 else part.dtype
            self._held.widen(np.promote_types(held, narrow) if narrow.kind == "u" else narrow)
        self._held.extend(part)
        del self._fresh[:]

    def joined(self) -> npt.NDArray[Any]:
        """Return all numbers in one array."""
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
"""Key of one example's part of an array, where it differs from the array's name; answers have :data:`ANSWER_KEYS`."""
DEPTHS = {"tokens": 1, "vectors": 2, "label": 0, "labels": 1, "probabilities": 1, "weight": 0}
DEPTHS |= {"context": 2, "query": 1, "target": 0}
SIZES = ("label_count", "vocab")
REAL = ("vectors", "probabilities", "weight", "context", "query", "target")
KEPT_PER_BYTE = 4
"""Bytes in memory or on the disk per byte of a file, once all its examples are read."""

Object = dict[str, Any]


def write_jsonl(task: Task, file: BinaryIO) -> None:
    """Write ``task`` to a file that is open for writing bytes. Floats are written so that they are restored exactly."""
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


def read_jsonl(path: Path, *, narrow: bool = False) -> Task:
    """Read a task from a file line by line; ``narrow`` makes a next-token task a :class:`NarrowNextToken`."""
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
        kind = header["task"] if header else _likely_kind_of_example(first[1])
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
    """Return the names of the examples' arrays, judged by the first example."""
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
    """Yield the objects of a file with their line numbers, from 1; blank lines are skipped."""
    number = 0
    for number, line in read_lines(path, memory_per_byte=MEMORY_PER_JSON_BYTE, kept_per_byte=KEPT_PER_BYTE):
        if line.strip():
            with _at(f"{path}:{number}"):
                yield number, parse_object(line.removesuffix(b"\n"))
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


def _likely_kind_of_example(example: Object) -> str:
    for kind, key in ANSWER_KEYS.items():
        if key in example and ("query" in example) == issubclass(KINDS[kind], QueryTask):
            return kind
    raise BadInput(f"no answer; expected one of the keys {', '.join(dict.fromkeys(ANSWER_KEYS.values()))}")


class ExampleColumns:
    """Columns of all examples, by key. All examples have the keys and shapes of the first."""

    def __init__(self, keys: dict[str, str]) -> None:
        """Start empty columns; ``keys`` maps names of arrays to keys of examples."""
        self._keys = keys
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._columns = {key: Column(real=key in REAL) for key in keys.values()}
        self.lines = array("q")
        """Line of each example."""

    def add(self, line: int, example: Object) -> None:
        """Add an example; raise BadInput if it has other keys or shapes."""
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
        """Return the arrays by name."""
        shapes = {key: (len(self.lines), *shape) for key, shape in self._shapes.items()}
        return {name: self._columns[key].joined().reshape(shapes[key]) for name, key in self._keys.items()}


def _shape(key: str, value: Any, depth: int) -> tuple[int, ...]:
    """Return the shape of nested lists of numbers."""
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


INPUTS = ("tokens", "vectors", "contexts")
ANSWERS = ("labels", "probabilities", "targets")
ALSO = {"contexts": "queries", "probabilities": "weights"}
"""The optional array that belongs to each of these arrays."""


def write_npz(task: Task, file: BinaryIO) -> None:
    """Write ``task`` to a file that is open for writing bytes."""
    sizes = {} if isinstance(task, QueryTask) else {"vocab": task.vocab}
    if "labels" in task.arrays or sizes:
        sizes = {"label_count": task.label_count, **sizes}
    arrays: dict[str, npt.ArrayLike] = {"kind": task.kind, **sizes, **task.arrays}
    np.savez(file, **arrays)  # type: ignore[arg-type]  # no array is called allow_pickle


def read_npz(path: Path, *, narrow: bool = False) -> Task:
    """Read a task from a file; ``narrow`` makes a next-token task a :class:`NarrowNextToken`.

    The scalars may be missing: the kind shows in the answers, and sizes have defaults.
    """
    arrays = read_arrays(path, narrow=narrow)
    try:
        expected_names = (*INPUTS, *ANSWERS, *ALSO.values(), *SIZES, "kind")
        if strays := sorted(set(arrays) - set(expected_names)):
            raise BadInput(f"unknown array {strays[0]!r}; expected only {', '.join(expected_names)}")
        inputs = _one_of(INPUTS, arrays)
        answers = _one_of(ANSWERS, arrays)
        kind = _kind(arrays) if "kind" in arrays else _likely_kind(arrays)
        if answers != KINDS[kind].answers_name:
            raise BadInput(f"kind is {kind} and there is an array {answers!r}; expected {KINDS[kind].answers_name!r}")
        if (inputs == "contexts") != issubclass(KINDS[kind], QueryTask):
            raise BadInput(f"kind is {kind} and there is an array {inputs!r}; the two do not go together")
        fields: dict[str, Any] = {name: _scalar(name, arrays) for name in SIZES if name in arrays}
        fields |= {name: arrays[name] for name in (inputs, answers)}
        for beside, name in ALSO.items():
            if name in arrays:
                if beside not in fields:
                    raise BadInput(f"there is an array {name!r} but none called {beside!r}; they go together")
                fields[name] = arrays[name]
        return _made(kind, fields, narrow)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def _made(kind: str, fields: dict[str, Any], narrow: bool) -> Task:
    try:
        return (NarrowNextToken if narrow and kind == NextToken.kind else KINDS[kind])(**fields)
    except TypeError as error:
        # The names were checked; what is left is one that this kind does not have, or lacks.
        raise BadInput(f"the arrays {', '.join(fields)} do not make a {kind} task: {error}") from error


def _one_of(names: Collection[str], arrays: Arrays) -> str:
    present = [name for name in names if name in arrays]
    if len(present) != 1:
        raise BadInput(f"{len(present) or 'none'} of the arrays {' and '.join(names)} found; expected one of them")
    return present[0]


def _scalar(name: str, arrays: Arrays) -> Any:
    array = arrays[name]
    if array.shape != ():
        raise BadInput(f"{name} has shape {array.shape}; expected a scalar")
    return array.item()


def _kind(arrays: Arrays) -> str:
    kind = _scalar("kind", arrays)
    if kind not in KINDS:
        raise BadInput(f"kind is {kind!r}; expected one of {', '.join(KINDS)}")
    return str(kind)


def _likely_kind(arrays: Arrays) -> str:
    if "contexts" in arrays:
        return QueryTargets.kind if "targets" in arrays else QueryLabels.kind
    if "probabilities" in arrays:
        return NextTokenDistribution.kind
    return NextToken.kind if arrays.get("labels", np.zeros(1)).ndim == 1 else SeqToSeq.kind


TASK_READERS = {".npz": read_npz, ".jsonl": read_jsonl}
WRITERS = {".npz": write_npz, ".jsonl": write_jsonl}


def load(path: str | os.PathLike[str], *, narrow: bool = False) -> Task:
    """Read a task from a ``.npz`` or ``.jsonl`` file.

    ``narrow`` keeps the ids of a next-token task in narrow types, for callers that only need its contexts.

    >>> load("nowhere.npz")
    Traceback (most recent call last):
    byheart.errors.BadInput: nowhere.npz: No such file or directory
    """
    source = Path(path)
    extension = check_extension(source)
    try:
        return TASK_READERS[extension](source, narrow=narrow)
    except OSError as error:
        raise BadInput(f"{source}: {error.strerror or error}") from error


def save(task: Task, path: str | os.PathLike[str]) -> None:
    """Write ``task`` to a ``.npz`` or ``.jsonl`` file, completely or not at all. Only a task is replaced.

    >>> import tempfile
    >>> from byheart.tasks import NextToken
    >>> task = NextToken(tokens=[[0, 1], [2, 2]], labels=[1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(task, f"{folder}/task.jsonl")
    ...     print(Path(folder, "task.jsonl").read_text(), end="")
    ...     load(f"{folder}/task.jsonl") == task
    {"task": "next-token", "label_count": 2, "vocab": 3}
    {"tokens": [0, 1], "label": 1}
    {"tokens": [2, 2], "label": 0}
    True
    """
    target = Path(path)
    write, looks_like_one = WRITERS[check_extension(target)], LOOKS_LIKE[check_extension(target)]

    def check(path: Path) -> None:
        check_file(path)
        if path.exists() and path.stat().st_size > 0 and not looks_like_one(path):
            raise BadInput(f"{target}: exists and is no task; choose another name or remove it")

    with new_file(target, check) as draft, draft.open("wb") as file:
        write(task, file)


def check_extension(path: Path) -> str:
    """Return the extension of a task's file; raise BadInput if it has another, or is a folder."""
    if path.is_dir():
        raise BadInput(f"{path}: is a folder; expected a task file, {' or '.join(TASK_READERS)}")
    if path.suffix not in TASK_READERS:
        how = "; byheart task text and byheart task facts make one of a text or of facts" if path.exists() else ""
        raise BadInput(f"{path}: unknown extension {path.suffix!r}; expected {' or '.join(TASK_READERS)}{how}")
    return path.suffix


def _looks_like_npz(path: Path) -> bool:
    """Return True if a file is an archive of arrays with names of a task's arrays."""
    known = {f"{name}.npy" for name in (*INPUTS, *ANSWERS, *ALSO.values(), *SIZES, "kind")}
    try:
        with zipfile.ZipFile(path) as archive:
            return known.issuperset(archive.namelist())
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


def _looks_like_jsonl(path: Path) -> bool:
    """Return True if a file begins with an object whose first key is a task's."""
    with path.open("rb") as file:
        begin = re.match(rb'\s*\{\s*"(\w+)"\s*:', file.read(200))
    return begin is not None and begin[1].decode() in {*DEPTHS, *SIZES, "task"}


LOOKS_LIKE = {".npz": _looks_like_npz, ".jsonl": _looks_like_jsonl}
"""Functions that return True if a file may be a task. They take a short look and check nothing."""
