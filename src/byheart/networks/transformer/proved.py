"""A float Transformer whose every step is proved to be exact, so that no machine can compute anything else.

The network is evaluated in float64 once more, by code of its own. Beside every sum Σ t_j goes the check that no
rounding can happen in the format that the network is meant for (p bits: 24 in float32, 53 in float64): all t_j are
multiples of some power of two u, and neither those above 0 nor those below add up to more than 2^p·u. Then every
product and every partial sum, in whatever order, fused or not, is a multiple of u and at most 2^p·u: the format holds
it. By induction over the steps, float64 has the true values here, and any machine that follows IEEE 754 has the same in
the network's own format. (The sums of the check are themselves rounded; but rounding is monotone, and 2^p·u is a
float64: a true sum that is larger never comes out below it. So a sum has to come out below it, a single term may be
equal.)

A mixture takes the expert with the largest score: the scores are sums like all others, and one must be above the rest.

Two functions are not rational. *softmax*: a score below the largest by ``FAR`` or more gets the weight 0, the k largest
get 1/k each, k a power of two. *sigmoid*: 1 from ``HIGH`` on, 0 up to −``FAR``. What goes into it may be rounded, if it
is beyond these marks by more than that can do: n terms are off by at most 4n·2^−p·Σ|t_j|, the rounding of float64
included. Whatever else turns up is not proved. This assumes of a machine's exp that exp(0) = 1 and that below −``FAR``,
less than half the smallest number of the format, it gives 0; and of 1 + exp(−x) that it is 1 from ``HIGH`` on, where
the second term is less than a tenth of half a unit in the last place.

What is not proved becomes nan, and whatever depends on it does: an answer is either proved or no number.
"""

from collections.abc import Iterator, Sequence
from math import inf, sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from byheart.networks.transformer.answers import Answers, Ids, answers
from byheart.networks.transformer.module import Cache, Slice, Transformer
from byheart.networks.transformer.spec import GatedBlocks, Mixture, WindowAttention, expert_name
from byheart.progress import Report

BITS = {"float32": 24, "float64": 53}
FAR = {"float32": 105.0, "float64": 750.0}
HIGH = {"float32": 20.0, "float64": 40.0}
SMALLEST = {"float32": 2.0**-126, "float64": 2.0**-500}
"""No unit is smaller: nothing comes near numbers below the normal range, which some machines take for 0."""
LARGEST = {"float32": 2.0**128 - 2.0**104, "float64": 2.0**500}
"""No sum is larger."""
BELOW = 1 - 2.0**-53
"""Factor that makes a bound strict: 2^53·u becomes the float64 before it."""
READ = 1 << 11
"""Number of tokens to read at once, so few that all numbers of the proof stay in the processor's cache."""
PORTION, TERMS = 1 << 14, 1 << 24
"""Most sums that are checked term by term at a time, and most terms of these together, unless one has more."""
Places = tuple[Tensor, Tensor, Tensor]
"""Groups, rows and columns of sums."""


class Proved:
    """Runs as the ``Transformer`` that it is made from does; logits are float64, and nan where they are not proved."""

    def __init__(self, module: Transformer) -> None:
        self.spec, self.device = module.spec, module.device
        precision = self.spec.precision
        self.bits, self.far, self.high = 2.0 ** BITS[precision], FAR[precision], HIGH[precision]
        self.smallest, self.largest = SMALLEST[precision], LARGEST[precision]
        self.weights = {name: weight.detach().double() for name, weight in module.named_parameters()}
        mixtures = [layer for layer in self.spec.sublayers if isinstance(layer, Mixture)]
        names = {layer.name: [f"{layer.name}.{expert_name(k)}" for k in range(layer.experts)] for layer in mixtures}
        self.experts = {name: torch.stack([self.weights[own] for own in named]) for name, named in names.items()}
        for name, named in names.items():  # of each there is one copy
            self.weights |= dict(zip(named, self.experts[name], strict=True))
        self.units = {name: unit(weight) for name, weight in self.weights.items()}
        last = max((i for i, layer in enumerate(self.spec.sublayers) if isinstance(layer, WindowAttention)), default=-1)
        self.mixing, self.local = self.spec.sublayers[: last + 1], self.spec.sublayers[last + 1 :]
        self.mixed = module.mixing_width

    def mix(self, tokens: Tensor, cache: Cache | None) -> tuple[Tensor, Cache]:
        """Return the stream [B, T, ≤ D] after the last attention sublayer, and the cache."""
        batch, length = tokens.shape
        stream = torch.zeros(self.mixed, batch * length, dtype=torch.float64, device=self.device)
        stream = self.added(stream, self.spec.embeds, self.weights["embedding.W_E"][tokens.flatten()].T)
        past = iter(cache) if cache is not None else None
        kept: Cache = []
        for layer in self.mixing:
            if isinstance(layer, WindowAttention):
                stream, seen = self.attention(layer, stream, batch, next(past) if past is not None else None)
                kept.append(seen)
            else:
                stream = self.inner(layer, stream)
        return stream.view(-1, batch, length).permute(1, 2, 0), kept

    def answer(self, stream: Tensor) -> Tensor:
        """Return logits [M, C] from the stream [M, …] after the last attention sublayer."""
        inner = torch.cat([stream.T, stream.new_zeros(self.spec.stream - stream.shape[1], len(stream))])
        for layer in self.local:
            assert not isinstance(layer, WindowAttention)
            inner = self.inner(layer, inner)
        read = Slice(self.spec.unembeds).read(inner)
        return self.affine("unembedding.W_U", "unembedding.b_U", read[None])[0].T

    def attention(
        self, layer: WindowAttention, stream: Tensor, batch: int, past: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the stream after an attention sublayer, and its inputs, which the next positions look back to."""
        seen = Slice(layer.reads).read(stream)
        width, length = seen.shape[0], seen.shape[1] // batch
        missing = seen.new_zeros(width, batch, layer.reach)
        before = missing if past is None else past[:, :, past.shape[2] - layer.reach :]
        history = torch.cat([before, seen.view(width, batch, length)], dim=2)
        held = history.reshape(1, width, -1)

        def at(values: Tensor, offset: int) -> Tensor:
            """Return the values [H, d_head, B·T] at ``offset`` steps of the window back."""
            rows = values.view(layer.heads, layer.d_head, batch, -1)
            end = rows.shape[3] - offset * layer.dilation
            return rows[..., end - length : end].reshape(layer.heads, layer.d_head, -1)

        name, offsets = layer.name, range(layer.window)
        v = self.affine(f"{name}.W_V", None, held)[0]
        scores = self.weights[f"{name}.bias"].T[:, :, None]
        if self.weights[f"{name}.W_Q"].any() or self.weights[f"{name}.W_K"].any():
            q = self.affine(f"{name}.W_Q", None, seen[None]).view(layer.heads, layer.d_head, -1)
            k = self.affine(f"{name}.W_K", None, held)[0]
            scores = self.plus(torch.stack([self.score(q, at(k, offset), layer.d_head) for offset in offsets]), scores)
        weights = self.softmax(scores)
        if weights.shape[2] == 1 and (weights.amax(0) == 1).all() and not v.isnan().any():
            # Every head looks at one offset, always the same: nothing is added up.
            mixed = torch.stack([at(v, offset)[head] for head, offset in enumerate(weights.argmax(0)[:, 0].tolist())])
        else:
            mixed = self.sum([self.product(weights[offset][:, None], at(v, offset)) for offset in offsets])
        mixed = mixed.reshape(1, layer.heads * layer.d_head, -1)
        return self.added(stream, layer.writes, self.affine(f"{name}.W_O", None, mixed)[0]), history

    def score(self, q: Tensor, k: Tensor, d_head: int) -> Tensor:
        """Return q·k / √d_head, [H, M]."""
        dot = self.sum([self.product(q[:, i], k[:, i]) for i in range(d_head)])
        root = sqrt(d_head)
        power = root.is_integer() and not int(root) & (int(root) - 1)
        return dot / root if power else torch.where(dot == 0, dot, torch.nan)

    def softmax(self, scores: Tensor) -> Tensor:
        """Return the softmax over the first dimension, whose weights are 0 or 1/k; nan where others would occur."""
        gap = scores.amax(0) - scores
        top = gap == 0
        count = top.sum(0)
        known = (top | (gap >= self.far)).all(0) & ((count & (count - 1)) == 0)
        return torch.where(known, top.double() / count, torch.nan)

    def inner(self, layer: GatedBlocks | Mixture, stream: Tensor) -> Tensor:
        """Return the stream [D, M] after a sublayer that is no attention."""
        return self.mixture(layer, stream) if isinstance(layer, Mixture) else self.feed_forward(layer, stream)

    def mixture(self, layer: Mixture, stream: Tensor) -> Tensor:
        """Return the stream [D, M] after a mixture; nan where it is not proved which expert is taken."""
        name = layer.name
        scores = self.affine(f"{name}.W_route", f"{name}.b_route", Slice(layer.routes).read(stream)[None])[0]
        top = scores.amax(0)
        known = scores.isfinite().all(0) & ((scores == top).sum(0) == 1)
        read = Slice(layer.reads).read(stream).view(layer.groups, -1, stream.shape[1])
        gate = self.sigmoid if layer.act == "sigmoid" else self.relu
        hidden = gate(f"{name}.W_in", f"{name}.b_in" if layer.bias else None, read)
        value = self.of_experts(name, scores.argmax(0), hidden)
        value = torch.where(known, value, torch.nan)
        return self.added(stream, layer.writes, value.reshape(len(layer.writes), -1))

    def of_experts(self, name: str, expert: Tensor, hidden: Tensor) -> Tensor:
        """Return W_out of the expert [M] that every place takes, times the hidden units [G, units, M]."""
        W = self.experts[name]
        if (single := self.single(hidden)) is not None:
            index, factor = single
            groups = torch.arange(len(hidden), device=self.device)[:, None]
            return self.scaled(W[expert, groups, :, index[:, 0]].transpose(1, 2), factor)
        value = hidden.new_empty(len(hidden), W.shape[2], len(expert))
        for k in sorted({*expert.tolist()}):
            (places,) = (expert == k).nonzero(as_tuple=True)
            value[:, :, places] = self.affine(f"{name}.{expert_name(k)}", None, hidden[:, :, places])
        return value

    def feed_forward(self, layer: GatedBlocks, stream: Tensor) -> Tensor:
        """Return the stream [D, M] after a feed-forward sublayer."""
        name, groups = layer.name, layer.groups
        first = "in" if layer.up == "none" else "gate"
        read = Slice(layer.reads).read(stream).view(groups, -1, stream.shape[1])
        gate = self.sigmoid if layer.act == "sigmoid" else self.relu
        hidden = gate(f"{name}.W_{first}", f"{name}.b_{first}" if layer.bias else None, read)
        if layer.up != "none":
            up = Slice(layer.up_reads).read(stream).view(groups, -1, stream.shape[1])
            if layer.up == "dense":
                up = self.affine(f"{name}.W_up", f"{name}.b_up" if layer.up_bias else None, up)
            else:
                up = self.product(up, self.weights[f"{name}.W_up"][:, :, None])
            hidden = self.product(hidden, up)
        binary = layer.act == "sigmoid" and layer.up == "none"
        value = self.chosen(f"{name}.W_out", hidden)
        if value is None:
            value = self.affine(f"{name}.W_out", None, hidden, 1 / hidden if binary else None)
        return self.added(stream, layer.writes, value.view(len(layer.writes), -1))

    def sigmoid(self, name: str, bias: str | None, x: Tensor) -> Tensor:
        """Return σ(W x + b), which is 0 or 1; nan where neither is proved."""
        value, total = self.summed(name, bias, x)
        error = total * (4 * (x.shape[1] + 1) / self.bits)
        on, off = value - error >= self.high, value + error <= -self.far
        for places in self.some(~(on | off) & (value.abs() >= self.high), x.shape[1]):
            exact = self.closely(name, bias, x, unit(x), places)
            on[places] = exact & (value[places] >= self.high)
            off[places] = exact & (value[places] <= -self.far)
        known = on | off
        for places in self.some(known & (total > self.largest), x.shape[1]):
            # A sum may become infinite on the way, and is then beyond the mark; but the terms of the other sign must
            # not add up to infinity, too, however they are rounded.
            known[places] = torch.minimum(*sides(self.terms(name, bias, x, places), 1)) <= self.largest / 2
        return torch.where(known, on.double(), torch.nan)

    def relu(self, name: str, bias: str | None, x: Tensor) -> Tensor:
        """Return the ReLU of W x + b, with nan where it might be rounded."""
        return self.affine(name, bias, x).relu()

    def summed(self, name: str, bias: str | None, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return W x + b and |W||x| + |b| in groups, for W [G, a, b] or [a, b] and x [G, b, M]."""
        W = self.weights[name].view(len(x), -1, x.shape[1])
        value, total = torch.bmm(W, x), torch.bmm(W.abs(), x.abs())
        if bias is None:
            return value, total
        b = self.weights[bias].view(len(x), -1, 1)
        return value + b, total + b.abs()

    def affine(self, name: str, bias: str | None, x: Tensor, x_units: Tensor | None = None) -> Tensor:
        """Return W x + b in groups; nan where it might be rounded. ``x_units`` are the units of x if they are known.

        The unit of a sum is first taken to be the least of W's row times the least of x's column; where that is too
        small, its terms are looked at closely.
        """
        value, total = self.summed(name, bias, x)
        units, x_units = self.units[name].view(len(x), -1, x.shape[1]), unit(x) if x_units is None else x_units
        least = units.amin(2, keepdim=True) * x_units.amin(1, keepdim=True)
        if bias is not None:
            least = torch.minimum(least, self.units[bias].view(len(x), -1, 1))
        fits = self.fits(total, least * BELOW)
        for places in self.some(~fits & total.isfinite(), x.shape[1]):
            fits[places] = self.closely(name, bias, x, x_units, places)
        return torch.where(fits, value, torch.nan)

    def chosen(self, name: str, x: Tensor) -> Tensor | None:
        """Return W x if each column of x has at most one entry that is not 0; None otherwise."""
        if (single := self.single(x)) is None:
            return None
        index, factor = single
        W = self.weights[name].view(len(x), -1, x.shape[1])
        return self.scaled(W.gather(2, index.expand(-1, W.shape[1], -1)), factor)

    @staticmethod
    def single(x: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the index and the value of the only entry of each column that is not 0; None if one has more."""
        other = x != 0
        if other.sum(1).amax() > 1:
            return None
        index = other.to(torch.uint8).argmax(1, keepdim=True)
        return index, x.gather(1, index)

    def scaled(self, column: Tensor, factor: Tensor) -> Tensor:
        """Multiply columns by their factors."""
        return column * factor if ((factor == 0) | (factor == 1)).all() else self.product(column, factor)

    def closely(self, name: str, bias: str | None, x: Tensor, x_units: Tensor, places: Places) -> Tensor:
        """Return whether W x + b is exact at ``places``, by its terms. Two terms have no partial sum but their sum."""
        terms, units = self.terms(name, bias, x, places), self.terms(name, bias, x_units, places, units=True)
        partial = torch.where(terms.count_nonzero(1) <= 2, terms.sum(1).abs() / BELOW, one_sided(terms, 1))
        return self.fits(terms.abs(), units * BELOW).all(1) & self.fits(partial, units.amin(1))

    def terms(self, name: str, bias: str | None, x: Tensor, places: Places, *, units: bool = False) -> Tensor:
        """Return the terms of W x + b at some places; if ``units``, the units of the terms: x then holds those of x."""
        group, row, column = places
        kept = self.units if units else self.weights
        products = kept[name].view(len(x), -1, x.shape[1])[group, row] * x[group, :, column]
        return products if bias is None else torch.cat([products, kept[bias].view(len(x), -1, 1)[group, row]], dim=1)

    @staticmethod
    def some(where: Tensor, terms: int) -> Iterator[Places]:
        """Yield the indices where ``where`` is True, in portions; each index stands for a sum of ``terms`` terms."""
        group, row, column = where.nonzero().unbind(1)
        size = max(1, min(PORTION, TERMS // terms))
        for first in range(0, len(group), size):
            chosen = slice(first, first + size)
            yield group[chosen], row[chosen], column[chosen]

    def fits(self, total: Tensor, least: Tensor) -> Tensor:
        """Return True where sums of multiples of ``least``, none of them above ``total``, are never rounded."""
        small = (total <= self.bits * least) & (total <= self.largest) & (least >= self.smallest)
        return small | (total == 0)

    def product(self, one: Tensor, other: Tensor) -> Tensor:
        """Return the products of the entries; nan where one might be rounded."""
        value = one * other
        return torch.where(self.fits(value.abs(), unit(one) * unit(other) * BELOW), value, torch.nan)

    def sum(self, terms: Sequence[Tensor]) -> Tensor:
        """Add up tensors of one shape; nan where a sum in some order might be rounded."""
        together = torch.stack(list(terms))
        fits = self.fits(one_sided(together, 0), unit(together).amin(0))
        return torch.where(fits, together.sum(0), torch.nan)

    def added(self, stream: Tensor, features: Sequence[int], value: Tensor) -> Tensor:
        """Add ``value`` [features, M] to the stream, in place; features may be written to more than once."""
        places: dict[int, list[int]] = {}
        for row, feature in enumerate(features):
            places.setdefault(feature, []).append(row)
        for times in {len(rows) for rows in places.values()}:
            chosen = {feature: rows for feature, rows in places.items() if len(rows) == times}
            index = torch.tensor([*chosen], dtype=torch.long, device=stream.device)
            rows = torch.tensor([*chosen.values()], dtype=torch.long, device=stream.device)
            terms = [stream[index], *(value[rows[:, k]] for k in range(times))]
            stream[index] = self.sum(terms) if times > 1 else self.plus(*terms)
        return stream

    def plus(self, one: Tensor, other: Tensor) -> Tensor:
        """Add two tensors, whose only partial sum is the sum; nan where it might be rounded."""
        value = one + other
        return torch.where(self.fits(value.abs(), torch.minimum(unit(one), unit(other)) * BELOW), value, torch.nan)


def proved_answers(
    module: Transformer, tokens: NDArray[np.integer], starts: Ids, places: Ids, report: Report | None = None
) -> Answers:
    """Prove the answers of :func:`byheart.networks.transformer.answers.answers`; margins are nan where that fails."""
    return answers(Proved(module), tokens, starts, places, portion=READ, report=report)


def sides(terms: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the sums of positive and of negative terms, without signs; a little more if there are several."""

    def added(side: Tensor) -> Tensor:
        total = side.sum(dim)
        return torch.where((side > 0).sum(dim) > 1, total / BELOW, total)

    return added(terms.clamp(min=0)), added((-terms).clamp(min=0))


def one_sided(terms: Tensor, dim: int) -> Tensor:
    """Return the larger of both sides' sums: no partial sum is beyond it."""
    return torch.maximum(*sides(terms, dim))


def unit(x: Tensor) -> Tensor:
    """Return the value of the last bit of float64s that is set; infinity for 0, nan for nan.

    >>> unit(torch.tensor([12.0, -0.75, 8.0, 0.0], dtype=torch.float64)).tolist()
    [4.0, 0.25, 8.0, inf]
    """
    size = x.abs()
    bits = size.view(torch.int64)
    power = (bits & ((1 << 52) - 1)) == 0  # it is the hidden bit that is set last
    rest = (bits & (bits - 1)).view(torch.float64)
    return torch.where(power, size, size - rest).masked_fill_(size == 0, inf)
