"""The functions to approximate: they give one number per token, and their values move with the tokens.

A function takes float64 [S, n, d], S sequences of n tokens in [0, 1]^d, and gives float64 [S, n]: one output per token.
(The theorem has d' outputs; d' functions, approximated one by one, are the same thing.) A :class:`Target` checks its
shapes, that its numbers are finite, and, on random points, permutation-equivariance. Continuity, which the theorem also
asks for, cannot be checked from outside.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from byheart.errors import BadInput, did_you_mean
from byheart.tasks.arrays import Floats

Function: TypeAlias = Callable[[Floats], Floats]

_CHUNK = 1 << 22
_CHECKED = 1000
_TOLERANCE = 1e-9
_LARGEST = 1e100


def _levels(points: Floats) -> Floats:
    """Return the mean of every token's coordinates, [S, n]."""
    return np.asarray(points.mean(axis=2), np.float64)


def attention(points: Floats) -> Floats:
    """Compute a softmax attention head: the mean of all t_j, weighted by exp(4⟨x_k, x_j⟩), where t is the token's mean.

    >>> attention(np.array([[[0.0], [1.0]]])).round(3).tolist()
    [[0.5, 0.982]]
    """
    weights = np.exp(4 * points @ points.transpose(0, 2, 1))
    return np.asarray((weights @ _levels(points)[:, :, None])[:, :, 0] / weights.sum(axis=2), np.float64)


def contrast(points: Floats) -> Floats:
    """Compute the token minus the mean of all tokens.

    >>> contrast(np.array([[[0.0], [1.0]]])).tolist()
    [[-0.5, 0.5]]
    """
    levels = _levels(points)
    return np.asarray(levels - levels.mean(axis=1, keepdims=True), np.float64)


def rank(points: Floats) -> Floats:
    """Compute a smooth rank: the mean over all tokens j of 1 / (1 + exp(−8(t_k − t_j))), where t is the token's mean.

    >>> rank(np.array([[[0.0], [1.0], [0.5]]])).round(2).tolist()
    [[0.17, 0.83, 0.5]]
    """
    levels = _levels(points)
    return np.asarray((1 / (1 + np.exp(8 * (levels[:, None, :] - levels[:, :, None])))).mean(axis=2), np.float64)


def variance(points: Floats) -> Floats:
    """Compute the variance of the tokens' means, the same for all tokens, times 4: from 0 to 1.

    >>> variance(np.array([[[0.0], [1.0]]])).tolist()
    [[1.0, 1.0]]
    """
    levels = _levels(points)
    return np.repeat(4 * levels.var(axis=1, keepdims=True), points.shape[1], axis=1)


def wave(points: Floats) -> Floats:
    """Compute a wave whose phase is the mean of all tokens: ½ sin(2π(t_k + mean t)); the hardest of the examples.

    >>> wave(np.array([[[0.0], [0.5]]])).tolist()
    [[0.5, -0.5]]
    """
    levels = _levels(points)
    return np.asarray(np.sin(2 * np.pi * (levels + levels.mean(axis=1, keepdims=True))) / 2, np.float64)


FUNCTIONS: dict[str, Function] = {
    "attention": attention,
    "contrast": contrast,
    "rank": rank,
    "variance": variance,
    "wave": wave,
}


@dataclass(frozen=True)
class Target:
    """A function and its name; calling it gives checked values."""

    name: str
    function: Function

    def __call__(self, points: Floats) -> Floats:
        """Return values [S, n] at ``points`` [S, n, d]; raise BadInput if the function fails or gives other shapes."""
        _, length, dim = points.shape
        each = max(1, _CHUNK // (length * length * dim))  # a function may look at all pairs of tokens
        return np.concatenate([self._values(points[start : start + each]) for start in range(0, len(points), each)])

    def _values(self, points: Floats) -> Floats:
        expected = points.shape[:2]
        try:
            with np.errstate(all="ignore"):
                given_back = np.asarray(self.function(points.copy()))
                if np.iscomplexobj(given_back):
                    raise BadInput(f"{self.name}: gives complex numbers; expected real ones")
                values = np.array(given_back, dtype=np.float64)
        except BadInput:
            raise
        except (Exception, SystemExit) as error:
            given = f"float64 {list(points.shape)}"
            raise BadInput(f"{self.name}: raised {type(error).__name__} ({error}) on an array of {given}") from error
        if values.shape != expected:
            gives = f"{self.name}: gives shape {values.shape} on points {points.shape}"
            raise BadInput(f"{gives}; expected {expected}, one number per token")
        wrong = np.argwhere(~(np.abs(values) <= _LARGEST))
        if len(wrong):
            example, token = wrong[0]
            gives = f"{self.name}: gives {values[example, token]} for token {token} of {_words(points[example])}"
            raise BadInput(f"{gives}; expected numbers, of size at most {_LARGEST:g}, everywhere in [0, 1]")
        return values


def find(name: str) -> Target:
    """Return the function called ``name``: one of :data:`FUNCTIONS`, or ``path/to/file.py:function``.

    A file is run as Python code, as ``import`` would.

    >>> find("contrast").name
    'contrast'
    >>> find("contrst")
    Traceback (most recent call last):
    byheart.errors.BadInput: no function is called 'contrst'; did you mean 'contrast'? Your own is given as \
path/to/file.py:function
    """
    if name in FUNCTIONS:
        return Target(name, FUNCTIONS[name])
    path, colon, own = name.rpartition(":")
    if not colon:
        meant = did_you_mean(name, FUNCTIONS, f"there are {', '.join(FUNCTIONS)}.")
        raise BadInput(f"no function is called {name!r}; {meant} Your own is given as path/to/file.py:function")
    return Target(name, _load(Path(path), own))


def _load(path: Path, name: str) -> Function:
    if path.suffix != ".py" or not path.is_file():
        raise BadInput(f"{path}: no such Python file; expected path/to/file.py:function")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise BadInput(f"{path}: cannot be run: {type(error).__name__} ({error})") from error
    function: Function | None = getattr(module, name, None)
    if not callable(function):
        own = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise BadInput(f"{path}: has no function {name!r}; it has {', '.join(own) or 'none'}")
    return function


def check_equivariance(target: Target, length: int, dim: int, rng: np.random.Generator) -> None:
    """Raise BadInput, with an example, if the values do not move with the tokens; on random points, up to rounding.

    Half of the points are from {0, ½, 1}, so that equal tokens occur.
    """
    shape = (_CHECKED, length, dim)
    points = np.concatenate([rng.random(shape), rng.integers(3, size=shape) / 2])
    orders = rng.permuted(np.tile(np.arange(length), (len(points), 1)), axis=1)
    moved = np.take_along_axis(points, orders[:, :, None], axis=1)
    before, after = target(points), target(moved)
    expected = np.take_along_axis(before, orders, axis=1)
    wrong = np.abs(after - expected).max(axis=1)
    i = int(wrong.argmax())
    if wrong[i] > _TOLERANCE * max(1.0, float(np.abs(before).max())):
        raise BadInput(
            f"{target.name}: is not permutation-equivariant: on {_words(points[i])} it answers {_words(before[i])}, "
            f"on the same tokens in the order {_words(moved[i])} it answers {_words(after[i])}; "
            "expected the same numbers in the new order"
        )


def _words(values: Floats) -> str:
    """Write nested numbers with three digits."""
    return f"[{', '.join(_words(value) for value in values)}]" if values.ndim else f"{float(values):.3g}"
