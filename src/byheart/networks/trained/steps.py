"""The layers of trained networks, each written once and evaluated over any arithmetic: floats or balls.

A network is a list of blocks, and a block is a list of steps f_1, …, f_k. A block maps every vector x of the stream to
f_k(… f_1(x)), or to x + f_k(… f_1(x)) with ``skip``. Matrices are [out, in], as in ``torch.nn.Linear``:

===========  ==========================================================================================================
step         result for the vector x_s at place s
===========  ==========================================================================================================
embedding    the row of W_E [ω, d] for the token at s; only as the very first step
positions    x_s + W_pos[s], W_pos [n, d]; without W_pos, x_s + sinusoids: sin and cos of s·10000^(−2i/d), alternating
norm         (x − mean)/√(variance + epsilon), then · gain, + bias [d], if present; the variance is Σ(x_i − mean)²/d
attention    W_O · (heads' averages Σ_s a_s v_s) + b_O; q, k, v = W x + b, cut into ``heads`` equal pieces;
             a = softmax_s(q·k_s/√over)
affine       W x + b; with ``rows``, only the first ``rows`` rows of W
activation   gelu (x Φ(x)), gelu_tanh (its approximation by tanh, as in GPT-2), relu or tanh, of every entry
===========  ==========================================================================================================

Attention is causal: a token sees itself and the tokens before it. If there is a query beside a context, the query sees
the context only. Any bias may be missing.

Steps name their tensors; two steps may name the same tensor (tied embeddings). In JSON, a step is an object with its
fields, and ``"step"`` for its kind.

**To add a layer**, add a class here: its fields (which are also its JSON), ``width`` and ``apply``; and a member of
``Step``. Both evaluators call ``apply``: :mod:`~byheart.networks.trained.evaluate` over float64 for all examples at
once, :mod:`~byheart.networks.trained.enclose` over balls for all different rows. An operation that no layer had before
becomes a method of :class:`Numbers` and of its two implementations. Then add the layer to ``verify.py``, which shares
no code with this module.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from reprlib import repr as shortened
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.files.decoding import Such, Within, decode

Function = Literal["gelu", "gelu_tanh", "relu", "tanh"]
Count = Annotated[int, Within(1, 1 << 53)]
"""Number of heads or rows, or divisor of squared scores."""
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
Array: TypeAlias = NDArray[Any]
"""Numbers of an arithmetic: float64, or objects that numpy adds, subtracts, multiplies and divides."""
Ids: TypeAlias = NDArray[np.int64]
Mix: TypeAlias = Callable[[Array, Array, Array], Array]
"""Function from q [A, H, c], k [S, H, c] and v [S, H, d_v] to the averages [..., H, d_v] of all who ask.

These are Σ_s softmax_s(q·k_s) v_s, over all s that each of them sees. An axis of length 1 instead of H in k or v means
that the heads share it."""


class Numbers(ABC):
    """An arithmetic, with the tensors of a network: what layers need beyond numpy's + − · /."""

    def __init__(self, weights: Mapping[str, NDArray[Any]]) -> None:
        self.weights = weights
        self._cache: dict[tuple[object, ...], Any] = {}

    def tensor(self, name: str) -> Array:
        """Return a whole tensor."""
        tensor: Array = self._cached(("tensor", name), lambda: self.exact(self.weights[name]))
        return tensor

    def rows(self, name: str, indices: Ids) -> Array:
        """Return some rows of a tensor [a, b], as an array with the shape of ``indices`` and one more axis."""
        return self.exact(self.weights[name][indices])

    def times(self, x: Array, name: str, rows: int | None = None) -> Array:
        """Return Wx for all vectors along the last axis of ``x``, with W a tensor or its first ``rows`` rows."""
        matrix = self._cached(("matrix", name, rows), lambda: self.matrix(self.weights[name][:rows].T))
        return self.product(x.reshape(-1, x.shape[-1]), matrix).reshape(*x.shape[:-1], -1)

    def per_head(self, x: Array, name: str, *, transposed: bool = False) -> Array:
        """Return W_h x_h for the H vectors of each x [A, H, c], with W_h head h's rows of a tensor; or W_hᵀ x_h."""
        H = x.shape[1]

        def parts() -> list[Any]:
            heads = self.weights[name].reshape(H, -1, self.weights[name].shape[1])
            return [self.matrix(head if transposed else head.T) for head in heads]

        matrices = self._cached(("heads", name, H, transposed), parts)
        return np.stack([self.product(x[:, h], matrix) for h, matrix in enumerate(matrices)], axis=1)

    def _cached(self, key: tuple[object, ...], make: Callable[[], Any]) -> Any:
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    @abstractmethod
    def exact(self, array: NDArray[Any]) -> Array:
        """Return floats as numbers."""

    @abstractmethod
    def matrix(self, array: NDArray[Any]) -> Any:
        """Return floats [a, b] as the second operand of :meth:`product`."""

    @abstractmethod
    def product(self, x: Array, matrix: Any) -> Array:
        """Return the matrix product."""

    @abstractmethod
    def sinusoids(self, places: Ids, dim: int) -> Array:
        """Return sines in the even coordinates, and cosines in the odd ones, of s·10000^(−2i/dim): [..., dim]."""

    @abstractmethod
    def scalar(self, numerator: int, denominator: int = 1) -> Any:
        """Return a rational number."""

    @property
    @abstractmethod
    def pi(self) -> Any:
        """The number π."""

    @abstractmethod
    def sqrt(self, x: Any) -> Any:
        """Return √x of a number."""

    @abstractmethod
    def rsqrt(self, x: Any) -> Any:
        """Return 1/√x of a number, or of all entries."""

    @abstractmethod
    def exp(self, x: Array) -> Array:
        """Return e^x of all entries."""

    @abstractmethod
    def erfc(self, x: Array) -> Array:
        """Return the complementary error function of all entries."""

    @abstractmethod
    def tanh(self, x: Array) -> Array:
        """Return tanh of all entries."""

    @abstractmethod
    def relu(self, x: Array) -> Array:
        """Return max(x, 0) of all entries."""


class Layer:
    """A step, with the defaults of a step that neither changes the width of the stream nor has a map."""

    kind: ClassVar[str]
    depth: ClassVar[int] = 0
    """Number of weight layers: 1 for an embedding, attention and an affine map, and 0 otherwise."""

    def width(self, before: Any, shapes: Shapes) -> int:
        """Return the width of the stream after the step; raise BadInput if a tensor does not fit."""
        return int(before)

    def reads(self, shapes: Shapes) -> int | None:
        """Return the width of the vectors that the step reads as a network's first, if its tensors determine it."""
        return None

    def widest(self, shapes: Shapes) -> int:
        """Return the largest number of rows of its maps."""
        return 0

    def apply(self, x: Array, places: Ids, over: Numbers) -> Array:
        """Return the results for the vectors along the last axis of ``x``, which stand at ``places``."""
        raise NotImplementedError(self.kind)


@dataclass(frozen=True)
class TokenTable(Layer):
    """Rows of a table, one per token.

    ``padded``: token ω, one beyond the table, is padding. It fills up sequences that are shorter than others, after
    their last token.
    """

    kind: ClassVar[str] = "embedding"
    depth: ClassVar[int] = 1
    W_E: str
    padded: bool = False

    def width(self, before: int | None, shapes: Shapes) -> int:
        """Return d."""
        if before is not None:
            raise BadInput("embedding stands behind another step; expected it to be the very first")
        return _shape(shapes, self.W_E, (None, None))[1]

    def widest(self, shapes: Shapes) -> int:
        """Return d."""
        return shapes[self.W_E][1]

    def apply(self, x: Array, places: Ids, over: Numbers) -> Array:
        """Return the rows of token ids ``x``."""
        return over.rows(self.W_E, x)


@dataclass(frozen=True)
class PositionTable(Layer):
    """A vector per place, which is added: rows of a table, or sinusoids, which have no weights."""

    kind: ClassVar[str] = "positions"
    W_pos: str | None = None

    def width(self, before: int, shapes: Shapes) -> int:
        """Return ``before``."""
        if self.W_pos is not None:
            _shape(shapes, self.W_pos, (None, before))
        return before

    def reads(self, shapes: Shapes) -> int | None:
        """Return d; sinusoids have any."""
        return None if self.W_pos is None else _shape(shapes, self.W_pos, (None, None))[1]

    def apply(self, x: Array, places: Ids, over: Numbers) -> Array:
        """Return the sum of ``x`` and the vectors of ``places``."""
        return x + (over.sinusoids(places, x.shape[-1]) if self.W_pos is None else over.rows(self.W_pos, places))


@dataclass(frozen=True)
class Norm(Layer):
    """Layer norm, as in ``torch.nn.LayerNorm``."""

    kind: ClassVar[str] = "norm"
    epsilon: Annotated[float, Within(0, 1)]
    gain: str | None = None
    bias: str | None = None

    def width(self, before: int, shapes: Shapes) -> int:
        """Return ``before``."""
        for name in (self.gain, self.bias):
            if name is not None:
                _shape(shapes, name, (before,))
        return before

    def apply(self, x: Array, places: Ids, over: Numbers) -> Array:
        """Return all vectors, normalized."""
        dim = x.shape[-1]
        centred = x - x.sum(axis=-1, keepdims=True) / dim
        variance = (centred * centred).sum(axis=-1, keepdims=True) / dim
        result: Array = centred * over.rsqrt(variance + self.epsilon)
        result = result if self.gain is None else result * over.tensor(self.gain)
        return result if self.bias is None else result + over.tensor(self.bias)


@dataclass(frozen=True)
class TrainedAttention(Layer):
    """Softmax attention; W_Q, W_K [H·d_h, d], W_V [H·d_v, d] and W_O [out, H·d_v], with the heads' rows in order."""

    kind: ClassVar[str] = "attention"
    depth: ClassVar[int] = 1
    heads: Count
    over: Count
    """Scores are divided by √over: the head's dimension in most networks."""
    W_Q: str
    W_K: str
    W_V: str
    W_O: str
    b_Q: str | None = None
    b_K: str | None = None
    b_V: str | None = None
    b_O: str | None = None

    def width(self, before: int, shapes: Shapes) -> int:
        """Return the number of rows of W_O."""
        queries, _ = _shape(shapes, self.W_Q, (None, before))
        _shape(shapes, self.W_K, (queries, before))
        values, _ = _shape(shapes, self.W_V, (None, before))
        after, _ = _shape(shapes, self.W_O, (None, values))
        if queries % self.heads or values % self.heads:
            sizes = f"{self.W_Q} has {queries} rows and {self.W_V} {values}"
            raise BadInput(f"{sizes}; expected multiples of heads = {shortened(self.heads)}")
        for name, size in ((self.b_Q, queries), (self.b_K, queries), (self.b_V, values), (self.b_O, after)):
            if name is not None:
                _shape(shapes, name, (size,))
        return after

    def reads(self, shapes: Shapes) -> int | None:
        """Return the number of columns of W_Q."""
        return _shape(shapes, self.W_Q, (None, None))[1]

    def widest(self, shapes: Shapes) -> int:
        """Return the largest number of rows of W_Q, W_V and W_O."""
        return max(shapes[name][0] for name in (self.W_Q, self.W_V, self.W_O))

    def attend(self, asking: Array, seen: Array, over: Numbers, mix: Mix, *, keys: bool, values: bool) -> Array:
        """Return the results [..., out] of all who ask; their vectors are rows of ``asking`` [A, d].

        ``mix`` knows which rows ask, and which rows of ``seen`` [S, d] they see. Keys and values of all that is seen
        are computed if ``keys`` and ``values`` say so. If few ask, this is saved, by two identities:

        1. q·(W_K x + b_K) = (W_Kᵀ q)·x + q·b_K, and q·b_K is the same for all x, so it cancels in the softmax.
        2. The weights sum to 1, so the average of W_V x + b_V is W_V · (the average of x) + b_V.
        """
        q = self._per_head(_affine(asking, self.W_Q, self.b_Q, over) * over.rsqrt(over.scalar(self.over)))
        shared = seen[:, None]
        if keys:
            k = self._per_head(_affine(seen, self.W_K, self.b_K, over))
        else:
            q, k = over.per_head(q, self.W_K, transposed=True), shared
        if values:
            mixed = mix(q, k, self._per_head(_affine(seen, self.W_V, self.b_V, over)))
            mixed = mixed.reshape(len(mixed), -1)
        else:
            mixed = over.per_head(mix(q, k, shared), self.W_V)
            mixed = mixed.reshape(len(mixed), -1)
            mixed = mixed if self.b_V is None else mixed + over.tensor(self.b_V)
        return _affine(mixed, self.W_O, self.b_O, over)

    def _per_head(self, x: Array) -> Array:
        return x.reshape(len(x), self.heads, -1)


@dataclass(frozen=True)
class AffineMap(Layer):
    """W x + b; also the unembedding."""

    kind: ClassVar[str] = "affine"
    depth: ClassVar[int] = 1
    W: str
    b: str | None = None
    rows: Count | None = None

    def width(self, before: int, shapes: Shapes) -> int:
        """Return the number of rows of W that are used."""
        rows, _ = _shape(shapes, self.W, (None, before))
        if self.rows is not None and self.rows > rows:
            raise BadInput(f"rows is {shortened(self.rows)}; {self.W} has {rows}")
        after = rows if self.rows is None else self.rows
        if self.b is not None:
            _shape(shapes, self.b, (after,))
        return after

    def reads(self, shapes: Shapes) -> int | None:
        """Return the number of columns of W."""
        return _shape(shapes, self.W, (None, None))[1]

    def widest(self, shapes: Shapes) -> int:
        """Return the number of rows of W that are used."""
        return self.rows or shapes[self.W][0]

    def apply(self, x: Array, places: Ids, over: Numbers) -> Array:
        """Return W x + b for all vectors."""
        return _affine(x, self.W, self.b, over, self.rows)


def _affine(x: Array, W: str, b: str | None, over: Numbers, rows: int | None = None) -> Array:
    result = over.times(x, W, rows)
    return result if b is None else result + over.tensor(b)


@dataclass(frozen=True)
class Activation(Layer):
    """A function of every entry."""

    kind: ClassVar[str] = "activation"
    function: Function

    def apply(self, x: Array, places: Ids, over: Numbers) -> Array:
        """Return the function of every entry; the forms of GELU are those in which no digits cancel."""
        match self.function:
            case "relu":
                return over.relu(x)
            case "tanh":
                return over.tanh(x)
            case "gelu":  # x Φ(x)
                result: Array = x * over.erfc(x * -over.rsqrt(over.scalar(2))) / 2
            case "gelu_tanh":  # x (1 + tanh(√(2/π)(x + 0.044715 x³)))/2, and 1 + tanh y = 2/(1 + e^(−2y))
                twice, cubic = -2 * over.sqrt(2 / over.pi), over.scalar(44715, 10**6)
                result = x / (1 + over.exp(twice * (x + cubic * x * x * x)))
        return result


Step: TypeAlias = TokenTable | PositionTable | Norm | TrainedAttention | AffineMap | Activation
STEPS: dict[str, type[Step]] = {step.kind: step for step in get_args(Step)}


@dataclass(frozen=True)
class StepSequence:
    """Steps in order, and whether the block's input is added to its output."""

    steps: tuple[Step, ...]
    skip: bool = False

    def width(self, before: int | None, shapes: Shapes) -> int:
        """Return the width of the stream after the block; raise BadInput if a tensor does not fit."""
        width = before
        for step in self.steps:
            if width is None and not isinstance(step, TokenTable):
                width = width_read(step, shapes)
            width = step.width(width, shapes)  # type: ignore[arg-type]  # None is for embeddings alone
        assert width is not None
        if self.skip and width != before:
            read = "token ids" if before is None else f"{before} entries"
            raise BadInput(f"a block with skip takes {read} to {width}; expected as many")
        return width

    def as_json(self) -> dict[str, Any]:
        """Return the block as in config.json, without fields that have their default."""
        return {"skip": self.skip, "steps": [_step_as_json(step) for step in self.steps]}


def tensors_of(step: Step) -> list[str]:
    """Return the names of a step's tensors, in the order of its fields."""
    names = (getattr(step, field.name) for field in fields(step) if field.type in (str, str | None))
    return [name for name in names if name is not None]


def width_read(step: Step, shapes: Shapes) -> int:
    """Return the width of the vectors that a network without embedding reads, from its first step."""
    width = step.reads(shapes)
    if width is None:
        expected = "an embedding, or a step whose tensor determines the width of vectors"
        raise BadInput(f"the first step is {step.kind}; expected {expected}")
    return width


def _shape(shapes: Shapes, name: str, expected: tuple[int | None, ...]) -> tuple[int, ...]:
    """Return the shape of a tensor; raise BadInput unless it is as expected, where None is any size."""
    if name not in shapes:
        raise BadInput(f"{shortened(name)} is no tensor of the network; there are {', '.join(sorted(shapes)[:3])}, …")
    shape = shapes[name]
    if len(shape) != len(expected) or any(e is not None and e != size for e, size in zip(expected, shape, strict=True)):
        sizes = ", ".join("any" if size is None else str(size) for size in expected)
        raise BadInput(f"{name} is {list(shape)}; expected [{sizes}], to fit the steps before it")
    return shape


def _step_as_json(step: Step) -> dict[str, Any]:
    values = {field.name: getattr(step, field.name) for field in fields(step)}
    defaults = {field.name: field.default for field in fields(step)}
    return {"step": step.kind, **{name: value for name, value in values.items() if value != defaults[name]}}


@dataclass(frozen=True)
class _BlockNote:
    """A block in config.json."""

    skip: bool
    steps: Annotated[list[dict[str, Any]], Such(bool, "a list of steps")]


def blocks_from_json(value: object) -> tuple[StepSequence, ...]:
    """Return the blocks of a config.json; raise BadInput if anything in them is unknown or out of range."""
    hint: Any = Annotated[list[_BlockNote], Such(bool, "a list of blocks")]
    blocks = decode(hint, value, "config.json: blocks")
    return tuple(StepSequence(tuple(map(_step, block.steps)), block.skip) for block in blocks)


def _step(value: dict[str, Any]) -> Step:
    kind = value.get("step")
    if not isinstance(kind, str) or kind not in STEPS:
        raise BadInput(f"config.json: a step is {shortened(value)}; expected 'step' to be one of {', '.join(STEPS)}")
    return decode(STEPS[kind], {name: entry for name, entry in value.items() if name != "step"}, f"config.json: {kind}")
