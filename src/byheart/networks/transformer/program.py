"""A float Transformer as compiled code reads it: in flat arrays, which :mod:`.kernels` describes.

Left out are weights of attention that are 0, and keys and queries where either has no weights but 0, so that attention
looks at the same offsets always. Other networks have no program, nor have those with weights that go down to a bit of
``SMALLEST``.
"""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt
import torch

from byheart.files import memory
from byheart.networks.transformer import blocks, kernels
from byheart.networks.transformer.module import Transformer
from byheart.networks.transformer.proved import BELOW, BITS, FAR, HIGH, LARGEST, SMALLEST, unit
from byheart.networks.transformer.spec import Features, GatedBlocks, Mixture, Spec, WindowAttention, expert_name

Array = npt.NDArray[np.float64]
_KNOWN = {
    WindowAttention: {"name", "reads", "writes", "window", "dilation", "heads", "d_head"},
    GatedBlocks: {"name", "act", "reads", "writes", "units", "groups", "bias", "up", "up_reads", "up_bias"},
    Mixture: {"name", "act", "reads", "routes", "writes", "units", "experts", "groups", "bias"},
}
"""Sublayers that ``kernels`` knows, with all that they are made of: one that has more is not said without it."""
_UPS = {"none": kernels.NONE, "dense": kernels.DENSE, "diagonal": kernels.DIAGONAL}
WIDE, DENSE = 1 << 12, 1 << 10
"""Rows of lanes that ``blocks`` has at most; numbers of a second matrix of sigmoid units that are all added up."""


class _Refused(Exception):  # noqa: N818 - nobody's error: the module does it
    """The network has something that is neither skipped nor worked out."""


class KernelProgram:
    """The arrays that ``kernels`` describes, and how much room their loops need."""

    def __init__(self, module: Transformer) -> None:
        self.spec: Spec = module.spec
        self.ring, self.most = 0, 1
        self.rows, self.groups, self.mixed = 1, 1, module.mixing_width
        self._untouched = set(range(self.spec.stream)) - {*self.spec.embeds}
        self._tensors = {name: tensor.detach().double().numpy() for name, tensor in module.named_parameters()}
        self._weights: list[Array] = []
        self._features = [0]  # that index 0 is none
        self._size = 0
        spec, precision = self.spec, self.spec.precision
        embedding = [self._put(self._tensors["embedding.W_E"]), *self._written(spec.embeds)]
        if any((_units(tensor) <= SMALLEST[precision]).any() for tensor in self._tensors.values()):
            raise _Refused("a weight is so small that some machines take it for 0")
        if any({field.name for field in fields(layer)} != _KNOWN.get(type(layer)) for layer in spec.sublayers):
            raise _Refused("there is a sublayer that is not known here")
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
        table = np.zeros((len(layers), kernels.COLUMNS), np.int64)
        for row, layer in zip(table, layers, strict=True):
            row[list(layer)] = list(layer.values())
        if max(spec.labels, len(spec.unembeds)) <= WIDE:
            self.rows = max(self.rows, spec.labels, len(spec.unembeds))
        del self._tensors, W_U, b_U  # the weights have all of it by now
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
    def of(cls, module: Transformer) -> "KernelProgram | None":
        """None if attention is not constant, the network is on a GPU, or too large for a second copy of it."""
        layers = [layer for layer in module.spec.sublayers if isinstance(layer, WindowAttention)]
        numbers = 3 * sum(parameter.numel() for parameter in module.parameters())
        numbers += sum((layer.reach + blocks.LANES) * len(layer.reads) for layer in layers)
        numbers += sum(8 * layer.heads * layer.d_head * layer.window for layer in layers)
        numbers += 2 * blocks.LANES * module.spec.stream
        if module.device.type != "cpu" or 8 * numbers > memory.USABLE_SHARE * memory.available():
            return None
        try:
            with np.errstate(over="ignore"):  # bounds that are infinite, or 0, prove nothing
                return cls(module)
        except _Refused:
            return None

    def _put(self, given: npt.ArrayLike) -> int:
        """Where in ``weights`` some numbers are."""
        numbers = np.asarray(given, dtype=np.float64)
        self._weights.append(numbers.ravel())
        self._size += numbers.size
        return self._size - numbers.size

    def _list(self, numbers: Sequence[int]) -> int:
        """Where in ``features`` some numbers are."""
        self._features += numbers
        return len(self._features) - len(numbers)

    def _matrix(self, W: Array, b: Array | None = None) -> int:
        """Where W [groups, outputs, inputs] is: for each group two rows of units, W transposed, b if there is one."""
        units = _units(W).min(axis=2)
        bias_units = np.full(units.shape, np.inf) if b is None else _units(b)
        rows = [units[:, None], bias_units[:, None], W.transpose(0, 2, 1), *([] if b is None else [b[:, None]])]
        self.most = max(self.most, *W.shape[1:])
        return self._put(np.concatenate(rows, axis=1))

    def _written(self, features: Features) -> tuple[int, int, int]:
        """Features that are written to, how many, and if some are more than once, where these are listed."""
        places: dict[int, list[int]] = {}
        for output, feature in enumerate(features):
            places.setdefault(feature, []).append(output)
        self.most = max(self.most, len(features))
        first, targets = self._list(features), 0
        if len(places) < len(features):
            listed = [number for feature, outputs in places.items() for number in (feature, len(outputs), *outputs)]
            targets = self._list([len(places), *listed])
        return first, len(features), targets

    def _feed_forward(self, layer: GatedBlocks) -> dict[int, int]:
        tensors = {name: self._tensors[f"{layer.name}.{name}"] for name in layer.shapes()}
        row = self._first(layer, tensors) | {kernels.W_OUT: self._matrix(tensors["W_out"])}
        if layer.up != "none":
            row |= self._up(layer, tensors)
        return self._planned(row, self._plan(layer, row, tensors["W_out"]), layer)

    def _up(self, layer: GatedBlocks, tensors: dict[str, Array]) -> dict[int, int]:
        """What goes up."""
        row, groups = {kernels.W_UP: 0}, layer.groups
        row[kernels.UP_READS] = self._list(layer.up_reads)
        row[kernels.UP_WIDTH] = len(layer.up_reads) // groups  # of a diagonal one, as many as there are units
        row[kernels.UP_BIASED] = layer.up_bias
        if layer.up == "dense":
            row[kernels.W_UP] = self._matrix(tensors["W_up"], tensors.get("b_up"))
            return row
        row[kernels.W_UP], largest = self._put(tensors["W_up"]), np.abs(tensors["W_up"]).max()
        # What a unit that is 0 is multiplied with must be finite.
        row[kernels.MOST_UP] = self._put(LARGEST[self.spec.precision] / (2 * largest)) if largest > 1 else -1
        return row

    def _mixture(self, layer: Mixture) -> dict[int, int]:
        tensors = {name: self._tensors[f"{layer.name}.{name}"] for name in layer.shapes()}
        second = [self._matrix(tensors[expert_name(expert)]) for expert in range(layer.experts)]
        row = self._first(layer.block, tensors) | {
            kernels.W_OUT: second[0],
            kernels.ROUTES: self._list(layer.routes),
            kernels.ROUTE_WIDTH: len(layer.routes),
            kernels.W_ROUTE: self._matrix(tensors["W_route"][None], tensors["b_route"][None]),
            kernels.EXPERTS: layer.experts,
        }
        plan = blocks.ROWS if layer.act == "sigmoid" and layer.bias and self._fresh(layer.block) else blocks.ALONE
        return self._planned(row, plan, layer, [len(layer.routes), layer.experts])

    def _plan(self, layer: GatedBlocks, row: dict[int, int], W_out: Array) -> int:
        """How ``blocks`` works out a sublayer."""
        if layer.act == "relu":
            return blocks.ALONE if layer.up == "diagonal" else blocks.PRODUCTS
        if not layer.bias or layer.up == "dense":
            return blocks.ALONE
        if layer.up == "diagonal":
            return blocks.PICKS if row[kernels.MOST_UP] < 0 else blocks.ALONE
        if W_out[0].size <= DENSE and self._sums(W_out):
            return blocks.SUMS
        return blocks.ROWS if self._fresh(layer) else blocks.ALONE

    def _sums(self, W: Array) -> bool:
        """Whether no sum of some columns can be rounded."""
        total, precision = np.abs(W).sum(axis=2), self.spec.precision
        most = np.minimum(2.0 ** BITS[precision] * _units(W).min(axis=2) * BELOW, LARGEST[precision])
        return bool((total <= most).all())

    def _fresh(self, layer: GatedBlocks) -> bool:
        """Whether the features that every group writes to are neighbours, and nothing was written to them before."""
        writes = np.reshape(layer.writes, (layer.groups, -1))
        return self._untouched.issuperset(layer.writes) and bool((np.diff(writes, axis=1) == 1).all())

    def _planned(
        self, row: dict[int, int], plan: int, layer: WindowAttention | GatedBlocks | Mixture, rows: Sequence[int] = ()
    ) -> dict[int, int]:
        """The row of ``layers`` with its plan, if there is room for this many ``rows`` of lanes."""
        rows = [*rows, row[kernels.WIDTH], row.get(kernels.UP_WIDTH, 0) if plan == blocks.PRODUCTS else 0]
        rows += [row[kernels.UNITS]] if plan == blocks.PRODUCTS else []
        rows += [len(layer.writes)] if plan != blocks.ROWS else []
        groups = row.get(kernels.GROUPS, 1)
        self._untouched -= {*layer.writes}
        if plan == blocks.ALONE or (row[kernels.TARGETS] and plan == blocks.ROWS) or max(*rows, groups) > WIDE:
            return row | {kernels.PLAN: blocks.ALONE}
        self.rows, self.groups = max(self.rows, *rows), max(self.groups, groups)
        return row | {kernels.PLAN: plan}

    def scratch(self) -> tuple[npt.NDArray[np.int64] | Array, ...]:
        """Room for what ``kernels`` works out on the way."""
        return (*(np.zeros(self.most, np.int64) for _ in range(2)), *(np.zeros(self.most) for _ in range(5)))

    def _first(self, layer: GatedBlocks, tensors: dict[str, Array]) -> dict[int, int]:
        """What a sublayer reads, its first matrix, and where it writes."""
        groups, first = layer.groups, "in" if layer.up == "none" else "gate"
        row = {
            kernels.KIND: kernels.FEED_FORWARD,
            kernels.GROUPS: groups,
            kernels.UNITS: layer.units,
            kernels.READS: self._list(layer.reads),
            kernels.WIDTH: len(layer.reads) // groups,
            kernels.OUT: len(layer.writes) // groups,
            kernels.RELU: layer.act == "relu",
            kernels.BIASED: layer.bias,
            kernels.W_IN: self._matrix(tensors[f"W_{first}"], tensors.get(f"b_{first}")),
            kernels.UP: _UPS[layer.up],
            kernels.BOUNDS: self._bounds(tensors[f"W_{first}"], tensors.get(f"b_{first}")),
        }
        row[kernels.WRITES], _, row[kernels.TARGETS] = self._written(layer.writes)
        return row

    def _bounds(self, W: Array, b: Array | None) -> int:
        """Where the largest |b| and the largest Σ|w| of a unit are, group by group."""
        most = np.zeros(len(W)) if b is None else np.abs(b).max(axis=1)
        return self._put(np.stack([most, np.abs(W).sum(axis=2).max(axis=1)], axis=1))

    def _attention(self, layer: WindowAttention) -> dict[int, int]:
        W_Q, W_K, W_V, W_O, bias = (self._tensors[f"{layer.name}.{name}"] for name in layer.shapes())
        if W_Q.any() and W_K.any():
            raise _Refused("what attention looks at depends on what it reads")
        weights = _softmax(bias, self.spec.precision)
        lists: list[int] = []
        numbers: list[float] = []
        for row, values in enumerate(W_V):
            at = weights[row // layer.d_head]
            offsets, entries = np.flatnonzero(at), np.flatnonzero(values)
            lists += [len(offsets), len(entries), *(layer.dilation * offsets).tolist(), *entries.tolist()]
            numbers += [*at[offsets].tolist(), *values[entries].tolist()]
        copies = lists[::4] == lists[1::4] == [1] * len(W_V) and set(numbers) == {1.0}
        self.most = max(self.most, len(layer.reads))
        sizes = np.abs([W_Q, W_K, W_V]).sum(axis=2).max()
        ring, slots = self.ring, layer.reach + blocks.LANES
        self.ring += slots * len(layer.reads)
        row_of = {
            kernels.KIND: kernels.ATTENTION,
            kernels.UNITS: layer.heads * layer.d_head,
            kernels.READS: self._list(layer.reads),
            kernels.WIDTH: len(layer.reads),
            kernels.OUT: len(layer.writes),
            kernels.W_IN: self._put(numbers),
            kernels.W_OUT: self._matrix(W_O[None]),
            kernels.RING: ring,
            kernels.SLOTS: slots,
            kernels.HEADS: self._list(lists),
            kernels.REACH: layer.reach,
            kernels.MOST_SEEN: self._put(LARGEST[self.spec.precision] / max(2 * sizes, 1.0)),
        }
        row_of[kernels.WRITES], _, row_of[kernels.TARGETS] = self._written(layer.writes)
        return self._planned(row_of, blocks.COPIES if copies else blocks.ALONE, layer, [len(W_V), len(layer.writes)])


def _softmax(bias: Array, precision: str) -> Array:
    """The weights [H, window] of constant attention: 0, or 1/k for k a power of two, as in ``proved``."""
    gap = bias.max(axis=1, keepdims=True) - bias
    top = gap == 0
    count = top.sum(axis=1, keepdims=True)
    if not (top | (gap >= FAR[precision])).all() or (count & (count - 1)).any():
        raise _Refused("a weight of attention is rounded")
    weights: Array = top / count
    return weights


def _units(numbers: Array) -> Array:
    found: Array = unit(torch.from_numpy(np.ascontiguousarray(numbers))).numpy()
    return found
