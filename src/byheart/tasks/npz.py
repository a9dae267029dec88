"""Tasks as ``.npz`` files: the arrays by their names, and ``kind``, ``label_count`` and ``vocab`` as scalars."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput
from byheart.files.archives import Arrays, read_arrays
from byheart.tasks.base import Task
from byheart.tasks.query import KINDS, QueryLabels, QueryTargets, QueryTask
from byheart.tasks.task import NarrowNextToken, NextToken, NextTokenDistribution, SeqToSeq

INPUTS = ("tokens", "vectors", "contexts")
ANSWERS = ("labels", "probabilities", "targets")
ALSO = {"contexts": "queries", "probabilities": "weights"}
"""The optional array that goes with each of these."""
SIZES = ("label_count", "vocab")


def write(task: Task, file: BinaryIO) -> None:
    """Write ``task`` to a file that is open for writing bytes."""
    sizes = {} if isinstance(task, QueryTask) else {"vocab": task.vocab}
    if "labels" in task.arrays or sizes:
        sizes = {"label_count": task.label_count, **sizes}
    arrays: dict[str, npt.ArrayLike] = {"kind": task.kind, **sizes, **task.arrays}
    np.savez(file, **arrays)  # type: ignore[arg-type]  # no array is called allow_pickle


def read(path: Path, *, narrow: bool = False) -> Task:
    """Read a task from a file; ``narrow``: a next-token task as :class:`NarrowNextToken`.

    The scalars may be missing: what is asked for shows in the answers, and sizes have defaults.
    """
    arrays = read_arrays(path, narrow=narrow)
    try:
        known = (*INPUTS, *ANSWERS, *ALSO.values(), *SIZES, "kind")
        if unknown := sorted(set(arrays) - set(known)):
            raise BadInput(f"unknown array {unknown[0]!r}; expected only {', '.join(known)}")
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
