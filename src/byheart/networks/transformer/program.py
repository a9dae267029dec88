"""A float Transformer as compiled code reads it: in flat arrays, which :mod:`.interpreter` describes.

:class:`CompiledProgram` makes the arrays, and finds answers where all tokens are known. :class:`Recital` says one token
after the other. What they cannot prove is left to others: :mod:`.forced` and :mod:`.generate`.

Left out of the arrays are weights of attention that are 0, and keys and queries where either has no weights but 0, so
that attention always looks at the same offsets. Other networks have no program, nor have those with weights that go
down to a bit of ``SMALLEST``.
"""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt
import torch

from byheart.files import memory
from byheart.networks.transformer import interpreter as code
from byheart.networks.transformer.answers import Ids
from byheart.networks.transformer.module import Transformer
from byheart.networks.transformer.proved import BELOW, BITS, FAR, HIGH, LARGEST, SMALLEST, unit
from byheart.networks.transformer.spec import Features, GatedBlocks, Mixture, Spec, WindowAttention, expert_name

Array = npt.NDArray[np.float64]
_KNOWN = {
    WindowAttention: {"name", "reads", "writes", "window", "dilation", "heads", "d_head"},
    GatedBlocks: {"name", "act", "reads", "writes", "units", "groups", "bias", "up", "up_reads", "up_bias"},
    Mixture: {"name", "act", "reads", "routes", "writes", "units", "experts", "groups", "bias"},
}
"""Sublayers that the interpreter knows, with all their fields: a sublayer with more fields is something else."""
_UPS = {"none": code.NONE, "dense": code.DENSE, "diagonal": code.DIAGONAL}
WIDE = 1 << 15
"""Most rows of ``LANES`` numbers that there is room for; wider networks are read with fewer lanes."""
ENDLESS = 1 << 62
"""A place beyond all others: the end of the sequence that a recital goes on with."""
SMALL = 1 << 10
"""Most entries per group of a second matrix whose rows are added up for all open units."""


class _UnreadableError(Exception):
    """Raised for a network that the interpreter cannot read; the module runs it instead."""


class CompiledProgram:
    """The arrays of a network, and the room that the interpreter needs."""

    def __init__(self, module: Transformer) -> None:
        self.spec: Spec = module.spec
        self.ring, self.rows, self.groups, self.mixed = 0, 1, 1, module.mixing_width
        self._untouched = set(range(self.spec.stream)) - {*self.spec.embeds}
        self._tensors = {name: tensor.detach().double().numpy() for name, tensor in module.named_parameters()}
        self._weights: list[Array] = []
        self._features = [0]  # so that index 0 means none
        self._size = 0
        spec, precision = self.spec, self.spec.precision
        embedding = [self._put(self._tensors["embedding.W_E"]), *self._written(spec.embeds)]
        if any((_units(tensor) <= SMALLEST[precision]).any() for tensor in self._tensors.values()):
            raise _UnreadableError("a weight is so small that some machines take it for 0")
        if any({field.name for field in fields(layer)} != _KNOWN.get(type(layer)) for layer in spec.sublayers):
            raise _UnreadableError("a sublayer is of an unknown kind")
        layers = [
            self._attention(layer)
            if isinstance(layer, WindowAttention)
            else self._mixture(layer)
            if isinstance(layer, Mixture)
            else self._feed_forward(layer)
            for layer in spec.sublayers
        ]
        W_U, b_U = (self._tensors[f"unembedding.{name}"] for name in ("W_U", "b_U"))
        unembedding = [self._matrix(W_U[None], b_U[None]), self._list(spec.unembeds), len(spec.unembeds), spec.labels]
        last = max((i for i, layer in enumerate(spec.sublayers) if isinstance(layer, WindowAttention)), default=-1)
        limits = [2.0 ** BITS[precision], *(of[precision] for of in (FAR, HIGH, SMALLEST, LARGEST))]
        table = np.zeros((len(layers), code.COLUMNS), np.int64)
        for row, layer in zip(table, layers, strict=True):
            row[list(layer)] = list(layer.values())
        self.rows = max(self.rows, spec.labels, len(spec.embeds), len(spec.unembeds))
        del self._tensors, W_U, b_U  # they are in the weights by now
        weights = np.concatenate(self._weights)
        del self._weights
        self.arrays = (
            table,
            np.array(self._features, dtype=np.int64),
            weights,
            np.array(limits),
            np.array(embedding, dtype=np.int64),
            np.array(unembedding, dtype=np.int64),
            last + 1,
        )

    @classmethod
    def of(cls, module: Transformer) -> "CompiledProgram | None":
        """Return the network's program; None if attention varies, if it is on a GPU, or if memory is too small."""
        layers = [layer for layer in module.spec.sublayers if isinstance(layer, WindowAttention)]
        numbers = 3 * sum(parameter.numel() for parameter in module.parameters())
        numbers += sum((layer.reach + code.LANES) * len(layer.reads) for layer in layers)
        numbers += sum(8 * layer.heads * layer.d_head * layer.window for layer in layers)
        numbers += 2 * code.LANES * module.spec.stream
        if module.device.type != "cpu" or 8 * numbers > memory.USABLE_SHARE * memory.available():
            return None
        try:
            with np.errstate(over="ignore"):  # bounds that are infinite, or 0, prove nothing
                return cls(module)
        except _UnreadableError:
            return None

    @property
    def lanes(self) -> int:
        """Number of tokens to read at once where all of them are known."""
        return max(1, min(code.LANES, WIDE * code.LANES // max(self.rows, self.groups)))

    def workspace(self, lanes: int) -> tuple[object, ...]:
        """Return what the interpreter's ``read`` takes besides questions: the network, and room for ``lanes`` lanes."""
        rows = np.zeros((4, self.rows, lanes))
        work = (*rows, np.zeros((4, lanes)), np.zeros((2 + self.groups, lanes), np.int64))
        (mixing, settling, asked), numbers = np.zeros((3, lanes), np.bool_), np.zeros((3, lanes), np.int64)
        streams, held = np.zeros((2, lanes, self.spec.stream))
        spoilt = np.full(len(self.spec.sublayers), code.NEVER)
        states = ((work, mixing, spoilt), (work, settling, spoilt))
        lane = (numbers[0], asked, numbers[1], numbers[2], np.zeros(lanes))
        return (self.mixed, self.arrays, np.zeros(self.ring), streams, held, states, lane)

    def answers(
        self, tokens: npt.ArrayLike, starts: Ids, places: Ids, logits: Array | None = None
    ) -> tuple[Ids, Array]:
        """Return labels and margins at ``places``, which increase, of the sequences that begin at ``starts[:-1]``.

        The margin is nan where compiled code does not prove the answer. The rows of ``logits`` become those at the
        places.
        """
        ids, vocab = np.array(tokens, np.int64), self.spec.vocab
        if len(ids) and not 0 <= ids.min() <= ids.max() < vocab:
            raise IndexError(f"tokens are {ids.min()} to {ids.max()}; expected 0 to {vocab - 1}")
        return self.read(ids, 0, starts, places, 0, self.workspace(self.lanes), logits)[:2]

    def read(
        self,
        tokens: Ids,
        begin: int,
        starts: Ids,
        places: Ids,
        goes_on: int,
        workspace: tuple[object, ...],
        logits: Array | None = None,
    ) -> tuple[Ids, Array, int]:
        """Return labels and margins, as the interpreter's ``read`` finds them, and the number of tokens it returns."""
        labels, margins = np.full(len(places), -1), np.full(len(places), np.nan)
        rows = np.empty((0, self.spec.labels)) if logits is None else logits
        # Copies: arrays that cannot be written to have a type of their own, for which all would be compiled again.
        marks = np.array(starts, np.int64), np.array(places, np.int64)
        done = code.read(tokens, begin, *marks, goes_on, *workspace, labels, margins, rows)
        return labels, margins, int(done)

    def _put(self, given: npt.ArrayLike) -> int:
        """Put numbers into ``weights``; return where."""
        numbers = np.asarray(given, dtype=np.float64)
        self._weights.append(numbers.ravel())
        self._size += numbers.size
        return self._size - numbers.size

    def _list(self, numbers: Sequence[int]) -> int:
        """Put numbers into ``features``; return where."""
        self._features += numbers
        return len(self._features) - len(numbers)

    def _matrix(self, W: Array, b: Array | None = None) -> int:
        """Put down W [groups, outputs, inputs]: for each group two rows of units, W transposed, and b; return where."""
        units = _units(W).min(axis=2)
        bias_units = np.full(units.shape, np.inf) if b is None else _units(b)
        rows = [units[:, None], bias_units[:, None], W.transpose(0, 2, 1), *([] if b is None else [b[:, None]])]
        return self._put(np.concatenate(rows, axis=1))

    def _written(self, features: Features) -> tuple[int, int, int]:
        """Put down which features are written to; return where, how many, and where repeated ones are listed."""
        places: dict[int, list[int]] = {}
        for output, feature in enumerate(features):
            places.setdefault(feature, []).append(output)
        first, targets = self._list(features), 0
        if len(places) < len(features):
            listed = [number for feature, outputs in places.items() for number in (feature, len(outputs), *outputs)]
            targets = self._list([len(places), *listed])
        return first, len(features), targets

    def _feed_forward(self, layer: GatedBlocks) -> dict[int, int]:
        tensors = {name: self._tensors[f"{layer.name}.{name}"] for name in layer.shapes()}
        row = self._first(layer, tensors) | {code.W_OUT: self._matrix(tensors["W_out"])}
        if layer.up != "none":
            row |= self._up(layer, tensors)
        return self._planned(row, self._plan(layer, row, tensors["W_out"]), layer)

    def _up(self, layer: GatedBlocks, tensors: dict[str, Array]) -> dict[int, int]:
        """Return the columns that describe W_up and its bias."""
        row, groups = {code.W_UP: 0}, layer.groups
        row[code.UP_READS] = self._list(layer.up_reads)
        row[code.UP_WIDTH] = len(layer.up_reads) // groups  # if W_up is diagonal, the number of units
        row[code.UP_BIASED] = layer.up_bias
        if layer.up == "dense":
            row[code.W_UP] = self._matrix(tensors["W_up"], tensors.get("b_up"))
            return row
        row[code.W_UP], largest = self._put(tensors["W_up"]), np.abs(tensors["W_up"]).max()
        # A hidden unit that is 0 must not be multiplied by infinity.
        row[code.MOST_UP] = self._put(LARGEST[self.spec.precision] / (2 * largest)) if largest > 1 else -1
        return row

    def _mixture(self, layer: Mixture) -> dict[int, int]:
        tensors = {name: self._tensors[f"{layer.name}.{name}"] for name in layer.shapes()}
        second = [self._matrix(tensors[expert_name(expert)]) for expert in range(layer.experts)]
        row = self._first(layer.block, tensors) | {
            code.W_OUT: second[0],
            code.ROUTES: self._list(layer.routes),
            code.ROUTE_WIDTH: len(layer.routes),
            code.W_ROUTE: self._matrix(tensors["W_route"][None], tensors["b_route"][None]),
            code.EXPERTS: layer.experts,
        }
        plan = code.ROWS if layer.act == "sigmoid" and self._is_fresh(layer.block) else code.GENERAL
        self.rows = max(self.rows, len(layer.routes), layer.experts)
        return self._planned(row, plan, layer)

    def _plan(self, layer: GatedBlocks, row: dict[int, int], W_out: Array) -> int:
        """Choose the plan by which the interpreter applies a sublayer."""
        if layer.act == "relu" or layer.up == "dense":
            return code.GENERAL
        if layer.up == "diagonal":
            return code.PICKS if row[code.MOST_UP] < 0 else code.GENERAL
        if W_out[0].size <= SMALL and self._is_exact(W_out):
            return code.SUMS
        return code.ROWS if self._is_fresh(layer) else code.GENERAL

    def _is_exact(self, W: Array) -> bool:
        """Return True if the sum of any columns, in any order, cannot be rounded."""
        total, precision = np.abs(W).sum(axis=2), self.spec.precision
        most = np.minimum(2.0 ** BITS[precision] * _units(W).min(axis=2) * BELOW, LARGEST[precision])
        return bool((total <= most).all())

    def _is_fresh(self, layer: GatedBlocks) -> bool:
        """Return True if each group writes to neighbouring features that nothing else was written to before."""
        writes = np.reshape(layer.writes, (layer.groups, -1))
        is_first = self._untouched.issuperset(layer.writes) and len({*layer.writes}) == len(layer.writes)
        return is_first and bool((np.diff(writes, axis=1) == 1).all())

    def _planned(
        self, row: dict[int, int], plan: int, layer: WindowAttention | GatedBlocks | Mixture
    ) -> dict[int, int]:
        """Return the row of a sublayer with its plan, after noting which room it needs and where it writes."""
        self._untouched -= {*layer.writes}
        self.rows = max(self.rows, row[code.WIDTH], row[code.UNITS], row.get(code.UP_WIDTH, 0), len(layer.writes))
        self.groups = max(self.groups, row.get(code.GROUPS, 1))
        return row | {code.PLAN: plan}

    def _first(self, layer: GatedBlocks, tensors: dict[str, Array]) -> dict[int, int]:
        """Return the columns that say what a sublayer reads, its first matrix, and where it writes."""
        groups, first = layer.groups, "in" if layer.up == "none" else "gate"
        row = {
            code.KIND: code.FEED_FORWARD,
            code.GROUPS: groups,
            code.UNITS: layer.units,
            code.READS: self._list(layer.reads),
            code.WIDTH: len(layer.reads) // groups,
            code.OUT: len(layer.writes) // groups,
            code.RELU: layer.act == "relu",
            code.BIASED: layer.bias,
            code.W_IN: self._matrix(tensors[f"W_{first}"], tensors.get(f"b_{first}")),
            code.UP: _UPS[layer.up],
            code.BOUNDS: self._bounds(tensors[f"W_{first}"], tensors.get(f"b_{first}")),
        }
        row[code.WRITES], _, row[code.TARGETS] = self._written(layer.writes)
        return row

    def _bounds(self, W: Array, b: Array | None) -> int:
        """Put down the largest |b| and the largest Σ|w| of a unit, group by group; return where."""
        most = np.zeros(len(W)) if b is None else np.abs(b).max(axis=1)
        return self._put(np.stack([most, np.abs(W).sum(axis=2).max(axis=1)], axis=1))

    def _attention(self, layer: WindowAttention) -> dict[int, int]:
        W_Q, W_K, W_V, W_O, bias = (self._tensors[f"{layer.name}.{name}"] for name in layer.shapes())
        if W_Q.any() and W_K.any():
            raise _UnreadableError("what attention looks at depends on what it reads")
        weights = _softmax(bias, self.spec.precision)
        lists: list[int] = []
        numbers: list[float] = []
        for row, values in enumerate(W_V):
            at = weights[row // layer.d_head]
            offsets, entries = np.flatnonzero(at), np.flatnonzero(values)
            lists += [len(offsets), len(entries), *(layer.dilation * offsets).tolist(), *entries.tolist()]
            numbers += [*at[offsets].tolist(), *values[entries].tolist()]
        sizes = np.abs([W_Q, W_K, W_V]).sum(axis=2).max()
        ring, slots = self.ring, layer.reach + code.LANES
        self.ring += slots * len(layer.reads)
        columns = {
            code.KIND: code.ATTENTION,
            code.UNITS: layer.heads * layer.d_head,
            code.READS: self._list(layer.reads),
            code.WIDTH: len(layer.reads),
            code.OUT: len(layer.writes),
            code.W_IN: self._put(numbers),
            code.W_OUT: self._matrix(W_O[None]),
            code.RING: ring,
            code.SLOTS: slots,
            code.HEADS: self._list(lists),
            code.REACH: layer.reach,
            code.MOST_SEEN: self._put(LARGEST[self.spec.precision] / max(2 * sizes, 1.0)),
        }
        columns[code.WRITES], _, columns[code.TARGETS] = self._written(layer.writes)
        return self._planned(columns, code.GENERAL, layer)


def _softmax(bias: Array, precision: str) -> Array:
    """Return the weights [H, window] of constant attention: 0, or 1/k for k a power of two, as in ``proved``."""
    gap = bias.max(axis=1, keepdims=True) - bias
    top = gap == 0
    count = top.sum(axis=1, keepdims=True)
    if not (top | (gap >= FAR[precision])).all() or (count & (count - 1)).any():
        raise _UnreadableError("a weight of attention is rounded")
    weights: Array = top / count
    return weights


def _units(numbers: Array) -> Array:
    units: Array = unit(torch.from_numpy(np.ascontiguousarray(numbers))).numpy()
    return units


class Recital:
    """One recital, token after token; every token is proved to be what the module says.

    For one token the module makes some 300 calls, which take far longer than the numbers; compiled code is one loop.
    """

    def __init__(self, program: CompiledProgram) -> None:
        spec = program.spec
        self.vocab, self.sees = spec.vocab, spec.sees
        self._program, self._workspace = program, program.workspace(1)
        self._place, self._last = 0, -1

    @classmethod
    def of(cls, module: Transformer) -> "Recital | None":
        """Return a recital by the network, or None if it has no program."""
        program = CompiledProgram.of(module)
        return None if program is None else cls(program)

    def again(self) -> "Recital":
        """Return another recital by the same network."""
        return Recital(self._program)

    def hear(self, tokens: Sequence[int]) -> bool:
        """Read a prompt and return True if all of it is proved. Tokens that nothing can see any more are left out."""
        *before, self._last = tokens[-self.sees :]
        self._place = len(before)
        return self._run(before, 0, [])[1] == len(before)

    def say(self, count: int) -> list[int]:
        """Return the next ``count`` tokens; fewer if the one after these is not proved, or the last is no token."""
        tokens = [self._last, *(0 for _ in range(count - 1))]
        said, done = self._run(tokens, self._place, range(self._place, self._place + count))
        self._place += done
        self._last = said[done - 1] if done else self._last
        return said[:done]

    def _run(self, tokens: Sequence[int], begin: int, places: Sequence[int]) -> tuple[list[int], int]:
        ids, sequence = np.array(tokens, np.int64), np.array([0, ENDLESS])
        labels, _, done = self._program.read(ids, begin, sequence, np.array(places), self.vocab, self._workspace)
        return labels.tolist(), done
