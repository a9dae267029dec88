"""What trained networks are made of: six kinds of steps, in blocks with or without a skip connection.

A network is a list of blocks, and a block a list of steps f_1, …, f_k. A block takes every vector x of the stream to
f_k(… f_1(x)), or to x + f_k(… f_1(x)) with ``skip``. Matrices are [out, in], as ``torch.nn.Linear`` keeps them:

===========  ==========================================================================================================
step         what it does with the vector x_s at place s
===========  ==========================================================================================================
embedding    the row of W_E [ω, d] that token s names; only as the very first step
positions    x_s + W_pos[s], W_pos [n, d]; without W_pos, x_s + sinusoids: sin and cos of s·10000^(−2i/d), in turn
norm         (x − mean)/√(variance + epsilon), then · gain, + bias [d], where they are; the variance is Σ(x_i − mean)²/d
attention    W_O · (heads' averages Σ_s a_s v_s) + b_O; q, k, v = W x + b, cut into ``heads`` equal pieces;
             a = softmax_s(q·k_s/√over)
affine       W x + b; with ``rows``, only its first ``rows`` rows
activation   gelu (x Φ(x)), gelu_tanh (its approximation by tanh, as GPT-2 has it), relu or tanh, of every entry
===========  ==========================================================================================================

Attention is causal: a token sees itself and what stands before it. Where a query stands beside a context, the query
sees the context only. Any bias may be missing.

Steps name their tensors; two steps may name the same one (tied embeddings). As JSON, a step is an object with the names
of its fields, and ``"step"`` for its kind.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from reprlib import repr as shortened
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from byheart.errors import BadInput

Function = Literal["gelu", "gelu_tanh", "relu", "tanh"]
FUNCTIONS: tuple[str, ...] = get_args(Function)
MOST = 1 << 53
"""No number of heads, rows or what scores are divided by is larger."""
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class TokenTable:
    """Rows of a table, one for every token.

    ``padded``: the token ω, one beyond the table, is none. It fills up sequences that are shorter than others, behind
    their last token.
    """

    kind: ClassVar[str] = "embedding"
    W_E: str
    padded: bool = False

    def width(self, before: int | None, shapes: Shapes) -> int:
        """d, how wide the stream is behind it."""
        if before is not None:
            raise BadInput("embedding stands behind another step; expected it to be the very first")
        return _shape(shapes, self.W_E, (None, None))[1]


@dataclass(frozen=True)
class PositionTable:
    """A vector for every place, which is added: rows of a table, or sinusoids, which have no weights."""

    kind: ClassVar[str] = "positions"
    W_pos: str | None = None

    def width(self, before: int, shapes: Shapes) -> int:
        """As before."""
        if self.W_pos is not None:
            _shape(shapes, self.W_pos, (None, before))
        return before


@dataclass(frozen=True)
class Norm:
    """Layer norm, as ``torch.nn.LayerNorm`` has it."""

    kind: ClassVar[str] = "norm"
    epsilon: float
    gain: str | None = None
    bias: str | None = None

    def width(self, before: int, shapes: Shapes) -> int:
        """As before."""
        for name in (self.gain, self.bias):
            if name is not None:
                _shape(shapes, name, (before,))
        return before


@dataclass(frozen=True)
class TrainedAttention:
    """Softmax attention; W_Q, W_K [H·d_h, d], W_V [H·d_v, d] and W_O [out, H·d_v], heads one below the other."""

    kind: ClassVar[str] = "attention"
    heads: int
    over: int
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
        """That of W_O."""
        asked, _ = _shape(shapes, self.W_Q, (None, before))
        _shape(shapes, self.W_K, (asked, before))
        read, _ = _shape(shapes, self.W_V, (None, before))
        after, _ = _shape(shapes, self.W_O, (None, read))
        if asked % self.heads or read % self.heads:
            sizes = f"{self.W_Q} has {asked} rows and {self.W_V} {read}"
            raise BadInput(f"{sizes}; expected multiples of heads = {shortened(self.heads)}")
        for name, size in ((self.b_Q, asked), (self.b_K, asked), (self.b_V, read), (self.b_O, after)):
            if name is not None:
                _shape(shapes, name, (size,))
        return after


@dataclass(frozen=True)
class AffineMap:
    """W x + b; the unembedding too."""

    kind: ClassVar[str] = "affine"
    W: str
    b: str | None = None
    rows: int | None = None

    def width(self, before: int, shapes: Shapes) -> int:
        """The rows of W that count."""
        there, _ = _shape(shapes, self.W, (None, before))
        if self.rows is not None and self.rows > there:
            raise BadInput(f"rows is {shortened(self.rows)}; {self.W} has {there}")
        after = there if self.rows is None else self.rows
        if self.b is not None:
            _shape(shapes, self.b, (after,))
        return after


@dataclass(frozen=True)
class Activation:
    """A function of every entry."""

    kind: ClassVar[str] = "activation"
    function: Function

    def width(self, before: int, shapes: Shapes) -> int:
        """As before."""
        return before


Step: TypeAlias = TokenTable | PositionTable | Norm | TrainedAttention | AffineMap | Activation
STEPS: dict[str, type[Step]] = {step.kind: step for step in get_args(Step)}


@dataclass(frozen=True)
class StepSequence:
    """Steps one after the other, and whether what goes in is added to what comes out."""

    steps: tuple[Step, ...]
    skip: bool = False

    def width(self, before: int | None, shapes: Shapes) -> int:
        """How wide the stream is behind the block; BadInput if a tensor does not fit."""
        now = before
        for step in self.steps:
            if now is None and not isinstance(step, TokenTable):
                now = _width_read(step, shapes)
            now = step.width(now, shapes)  # type: ignore[arg-type]  # None is for embeddings alone
        assert now is not None
        if self.skip and now != before:
            came = "token ids" if before is None else f"{before} entries"
            raise BadInput(f"a block with skip takes {came} to {now}; expected as many")
        return now

    def as_json(self) -> dict[str, Any]:
        """The block as config.json has it; what is missing is omitted."""
        return {"skip": self.skip, "steps": [_step_as_json(step) for step in self.steps]}


def tensors_of(step: Step) -> list[str]:
    """The names of a step's tensors, in the order of its fields."""
    named = (getattr(step, field.name) for field in fields(step) if field.type in (str, str | None))
    return [name for name in named if name is not None]


def _width_read(step: Step, shapes: Shapes) -> int:
    """How wide the vectors are that a network without embedding reads, by its first step."""
    if isinstance(step, AffineMap | TrainedAttention):
        return _shape(shapes, step.W if isinstance(step, AffineMap) else step.W_Q, (None, None))[1]
    if isinstance(step, PositionTable) and step.W_pos is not None:
        return _shape(shapes, step.W_pos, (None, None))[1]
    raise BadInput(f"the first step is {step.kind}; expected an embedding, or one whose tensor says how wide it reads")


def _shape(shapes: Shapes, name: str, expected: tuple[int | None, ...]) -> tuple[int, ...]:
    """The shape of a tensor, if it is as expected; None is any size."""
    if name not in shapes:
        raise BadInput(f"{shortened(name)} is no tensor of the network; there are {', '.join(sorted(shapes)[:3])}, …")
    found = shapes[name]
    if len(found) != len(expected) or any(w is not None and w != size for w, size in zip(expected, found, strict=True)):
        wanted = ", ".join("any" if size is None else str(size) for size in expected)
        raise BadInput(f"{name} is {list(found)}; expected [{wanted}], to fit the steps before it")
    return found


def _step_as_json(step: Step) -> dict[str, Any]:
    values = {field.name: getattr(step, field.name) for field in fields(step)}
    defaults = {field.name: field.default for field in fields(step)}
    return {"step": step.kind, **{name: value for name, value in values.items() if value != defaults[name]}}


def blocks_from_json(value: object) -> tuple[StepSequence, ...]:
    """The blocks of a config.json; BadInput if anything in them is strange.

    >>> blocks_from_json([{"skip": False, "steps": [{"step": "embedding", "W_E": "table"}]}])
    (StepSequence(steps=(TokenTable(W_E='table', padded=False),), skip=False),)
    """
    if not isinstance(value, list) or not value:
        raise BadInput(f"config.json: blocks is {shortened(value)}; expected a list of blocks")
    return tuple(_block(block) for block in value)


def _block(value: object) -> StepSequence:
    if not isinstance(value, dict) or value.keys() != {"skip", "steps"}:
        raise BadInput(f"config.json: a block is {shortened(value)}; expected an object with skip and steps")
    if not isinstance(value["skip"], bool):
        raise BadInput(f"config.json: skip is {shortened(value['skip'])}; expected true or false")
    if not isinstance(value["steps"], list) or not value["steps"]:
        raise BadInput(f"config.json: steps is {shortened(value['steps'])}; expected a list of steps")
    return StepSequence(tuple(_step(step) for step in value["steps"]), value["skip"])


def _step(value: object) -> Step:
    kind = value.get("step") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str) or kind not in STEPS:
        raise BadInput(f"config.json: a step is {shortened(value)}; expected 'step' to be one of {', '.join(STEPS)}")
    made, known = STEPS[kind], {field.name: field for field in fields(STEPS[kind])}
    for name, entry in value.items():
        if name == "step":
            continue
        if name not in known:
            raise BadInput(f"config.json: {kind} has {shortened(name)}; expected {', '.join(known)}")
        allowed, expected = _RULES[known[name].type]
        if not allowed(entry):
            raise BadInput(f"config.json: {kind}.{name} is {shortened(entry)}; expected {expected}")
    try:
        return made(**{name: entry for name, entry in value.items() if name != "step"})
    except TypeError as error:  # the names were checked: one is missing
        raise BadInput(f"config.json: {kind} lacks something ({error})") from error


def _is_name(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return type(value) is int and 1 <= value <= MOST


def _is_epsilon(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1 and math.isfinite(value)  # type: ignore[operator,arg-type]


_RULES: dict[Any, tuple[Any, str]] = {
    str: (_is_name, "the name of a tensor"),
    str | None: (_is_name, "the name of a tensor, or nothing"),
    int: (_is_count, "a whole number from 1 on"),
    int | None: (_is_count, "a whole number from 1 on, or nothing"),
    bool: (lambda value: isinstance(value, bool), "true or false"),
    float: (_is_epsilon, "a number from 0 to 1"),
    Function: (lambda value: value in FUNCTIONS, " or ".join(FUNCTIONS)),
}
"""Which values a field may have in a config.json, by its type, and in words."""
