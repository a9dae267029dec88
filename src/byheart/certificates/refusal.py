"""Proof that a network with a store of keys or prints refuses all other contexts, from its tensors and the facts.

The network's last five sublayers are called number, store, entry, compare and known. Letters: row and column are the
two numbers that the index reads; x is a context; d_k is the final value of the compared feature k.

1. *The index names an entry.* For every context, row and column are integers and their squares stand beside them, and
   no sum in the network is rounded. (:mod:`.every_context` follows all features, once per value of the scale, a power
   of two that the reading of the index multiplies by.) So the units of ``store`` and ``entry`` read
   one row and one column, or none. One stored entry, or zeros, is added to the compared features.
2. *d_k is a difference.* Only two sublayers write the compared features: one writes −key(x), the other is ``entry``.
   Nothing is rounded, so d_k = stored_k − key_k(x), or −key_k(x) if no entry was read.
3. *Every difference is counted.* Only ``compare`` writes the count that ``known`` reads. It adds a number f(d_k) ≥ 0
   for each compared feature, with f(d) ≥ 1 unless d = 0. So the count is at least 1 unless all d_k are 0.
4. *The count decides.* From a count of 1 on, the units of ``known`` that are 1 do not depend on anything else that it
   reads; only ``known`` writes the features that the logits are made from; and the logits of what it then writes are
   largest for *unknown*, strictly. So a context that is answered has the key of a stored entry, or the key 0.

If the network keeps whole keys:

5. *Keys are contexts.* Every token has a digit that is not 0, and nothing has the digit 0. Two attention sublayers make
   key_k(x) = Σ_τ C_kτ·digit(x, τ), where τ counts tokens from the last one back. In each k the weights C_kτ grow so
   fast that the largest one for which two contexts differ outweighs all smaller ones; and each τ from 0 to W − 1 is in
   one of the sums. So equal keys have equal digits in the last W places.
6. *Digits are tokens.* The digit of a token that occurs in the facts is no other token's. No context of the facts is
   longer than W − 1. So a context with the key of one of them has as many tokens, and the same.
7. *No other entries.* Every stored entry has the key of a context of the facts, or the key 0, which no context has.
   Together: **only the contexts of the facts are answered**. ∎

If the network keeps prints:

5. Sums modulo p = 1021 are made layer by layer. All weights of the steps after each attention sublayer are multiples of
   p, and the sums that they leave lie between 0 and p − 1. So a print is made of R numbers, each the result of L layers
   of sums modulo p; two of them are packed into one lane, without loss.
6. The weights of the sums are those that NumPy draws, evenly from 0 to p − 1, for the seed that the folder states; the
   digits are 1, −1, 2, −2, … in the order of the tokens, and different modulo p. No other sublayer reads these sums.
7. If two contexts differ in the last W places, then each layer loses that difference with probability at most 1/p. So
   one of the R numbers is equal with probability at most L/p, and all with at most (L/p)^R ≤ 2^−b.
8. Every stored entry has the print of a context of the facts, or the print 0, which is that of the empty context.
   Together: another context that was chosen without a look at these weights has the print that the index leads it to
   **with probability at most 2^−b**, if the index was made without a look at them, too. ∎

The probability is over the seed. Whoever chose the seed may have tried many, so this says nothing about a folder of
somebody who did not draw it at random.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.certificates.every_context import ContextFreeValues, Unproved, heads_offsets, last_bit
from byheart.errors import BadInput
from byheart.networks import Network
from byheart.networks.about import Refusal, refuse_of
from byheart.networks.transformer.spec import GatedBlocks, Sublayer, WindowAttention
from byheart.networks.transformer.transformer_network import TransformerNetwork
from byheart.tasks import Questions
from byheart.tasks.contexts import Contexts

TAIL = ("number", "store", "entry", "compare", "known")
"""Names of the last five sublayers."""
PRIME = 1021
"""Modulus p of the sums that prints are made of."""
APART = 1 << 32
"""Last number of the seed that the weights of prints are drawn with."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RefusalStatus:
    """A network's refusal of other contexts, and the reason why it is not proved, if it should be."""

    refusal: Refusal
    doubt: str

    def __str__(self) -> str:
        rate = f"NOT proved, {self.doubt}" if self.doubt else self.refusal.rate
        return f"any other context: unknown, token {self.refusal.token}; {rate}"

    def as_json(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return {**self.refusal._asdict(), "proved": self.refusal.proves and not self.doubt, "doubt": self.doubt}


def judge_refusal(network: Network, questions: Questions) -> RefusalStatus | None:
    """Judge a network's claim to refuse contexts that are none of these questions; return None if it claims nothing."""
    try:
        refusal = refuse_of(network)
    except BadInput:  # the folder's claim makes no sense
        return None
    if refusal is None or not isinstance(questions, Contexts):
        return None
    if not refusal.proves:
        return RefusalStatus(refusal, "")
    assert isinstance(network, TransformerNetwork), "no other kind refuses"
    return RefusalStatus(refusal, doubt(network, questions))


def doubt(network: TransformerNetwork, contexts: Contexts) -> str:
    """Return why there is no proof that the network refuses all contexts but these; return "" if there is."""
    try:
        _Proof(network, contexts).check()
    except BadInput as error:
        return str(error)
    return ""


class _Proof:
    """The steps of the proof for one network and the contexts of its facts."""

    def __init__(self, network: TransformerNetwork, contexts: Contexts) -> None:
        self.network, self.contexts, self.layers = network, contexts, network.spec.sublayers
        if tuple(layer.name for layer in self.layers[-len(TAIL) :]) != TAIL:
            raise Unproved("it has no store")
        refusal = refuse_of(network)
        if refusal is None or not refusal.proves:
            raise Unproved("its folder does not say that it refuses by what is stored")
        self.refusal = refusal
        self.named = {layer.name: layer for layer in self.layers}
        self.values = ContextFreeValues(network)
        self.weights = self.values.weights
        self.number, self.store, self.entry, self.compare, self.known = (self._block(name) for name in TAIL)
        self.compared = self.compare.reads

    def _block(self, name: str) -> GatedBlocks:
        layer = self.named.get(name)
        if not isinstance(layer, GatedBlocks):
            raise Unproved(f"{name} is no feed-forward sublayer")
        return layer

    def _attention(self, name: str) -> WindowAttention:
        layer = self.named.get(name)
        if not isinstance(layer, WindowAttention):
            raise Unproved(f"it has no attention sublayer {name}")
        return layer

    def check(self) -> None:
        """Raise Unproved unless every step holds."""
        self._check_writers()
        ends = self._check_index()
        self._check_counting()
        self._check_known()
        self._check_store(self._keys() if self.refusal.by == "key" else self._prints(ends))

    def _check_writers(self) -> None:
        """Check which sublayers write which features, as steps 2 to 4 say."""
        source = "key_lanes" if self.refusal.by == "key" else "pack"
        self._check_written(self.compared, (source, "entry"))
        self._check_written(self.compare.writes, ("compare",))
        self._check_written(self.known.writes, ("known",))
        self._check_written(self.store.writes, ("store",))
        alike = {
            "compare": len(set(self.compare.writes)) == 1 and len(set(self.compared)) == len(self.compared),
            "known": self.known.reads == self.compare.writes[:1] and self.known.groups == 1,
            "unembedding": self.network.spec.unembeds == self.known.writes,
            "entry": self.entry.up_reads == self.store.writes and set(self.compared) <= set(self.entry.writes),
            source: self.named.get(source) is not None and self.named[source].writes == self.compared,
        }
        for name, holds in alike.items():
            if not holds:
                raise Unproved(f"{name} does not read or write the features that it should")

    def _check_written(self, features: Sequence[int], writers: Sequence[str]) -> None:
        """Check that these sublayers, and no others, write some features."""
        own = set(features)
        names = {layer.name for layer in self.layers if own & set(layer.writes)}
        if own & set(self.network.spec.embeds):
            names.add("embedding")
        if names != set(writers):
            raise Unproved(f"{', '.join(sorted(names ^ set(writers)))}: writes, or does not write, what is compared")

    def _check_index(self) -> list[list[float]]:
        """Check step 1; return the ends of the sums of prints after each of their sublayers."""
        before, ends = self.layers[: -len(TAIL)], []
        cut = next((i for i, layer in enumerate(before) if layer.name.startswith(("digits_", "scales"))), None)
        if cut is None or "scales" not in self.named:
            raise Unproved("its index has no scale")
        for layer in before[:cut]:
            self.values.apply(layer)
            if layer.name.startswith("prints_"):
                ends.append([*self.values.of(layer.writes).low, *self.values.of(layer.writes).high])
        reads = [range(0), range(0)]
        for case in self._cases(before[cut:]):
            for place, feature in enumerate(self.number.reads):
                numbers = case.integers(feature)
                if numbers is None or numbers.start < 0 or len(self.number.reads) != len(reads):
                    raise Unproved("the index may name no entry, but something between two")
                reads[place] = range(max(reads[place].stop, numbers.stop))
        for feature, numbers in zip(self.number.reads, reads, strict=True):
            case.widen(feature, numbers)
        for layer in (self.number, self.store, self.entry, self.compare):
            case.apply(layer)
        self.values = case
        return ends

    def _cases(self, layers: Sequence[Sublayer]) -> Iterator[ContextFreeValues]:
        """Yield the values before ``number``, once for every value of the scale; ``layers`` start with its digits."""
        middle = next((i + 1 for i, layer in enumerate(layers) if layer.name == "squares"), 0)
        feature, scale = self.named["scales"].reads[-1], layers[middle - 1].writes[-1]
        later = sorted({f for layer in layers[middle:] for f in (*layer.reads, *getattr(layer, "up_reads", ()))})
        offsets = self.values.integers(feature)
        if offsets is None or not middle or set(later) & set(self.named["scales"].reads):
            raise Unproved("scales: reads something else than a few integers, which nothing else reads")
        done, parts = set(), [offsets]
        while parts:
            part, case = parts.pop(), self.values.copied()
            case.widen(feature, part)
            try:
                for layer in layers[:middle]:
                    case.apply(layer)
                is_settled = bool(case.of([scale]).low == case.of([scale]).high)
            except Unproved:
                if len(part) == 1:
                    raise
                is_settled = False
            if not is_settled:
                half = len(part) // 2
                parts += [part[half:], part[:half]]
                continue
            state = tuple(array.tobytes() for array in case.of(later))
            if state not in done:
                done.add(state)
                for layer in layers[middle:]:
                    case.apply(layer)
                yield case

    def _check_counting(self) -> None:
        """Check step 3."""
        for lane in range(len(self.compared)):
            for low, high, added in self.values.pieces_of(self.compare, lane):
                if added < 0 or (added < 1 and not low == high == 0):
                    raise Unproved(f"compare: a difference between {low:g} and {high:g} is not counted")

    def _check_known(self) -> None:
        """Check step 4."""
        known, weights = self.known, self.weights
        most = float(self.values.of(known.reads).high[0])
        W, b = weights["known.W_gate"][0, :, 0], weights.get("known.b_gate", np.zeros(known.units))
        states = [self.values.states("known", W, np.full(known.units, count), b.reshape(-1)) for count in (1.0, most)]
        on = states[0]
        up = weights["known.W_up"][0]
        if known.up != "dense" or (states[0] != states[1]).any() or up[on].any():
            raise Unproved("known: what it writes where something differs depends on more than that")
        bias = weights["known.b_up"][0] if known.up_bias else np.zeros(known.units)
        out = weights["known.W_out"][0][:, on] @ bias[on]
        logits = weights["unembedding.W_U"] @ out + weights["unembedding.b_U"]
        whole = all(np.array_equal(array, np.rint(array)) for array in (out, weights["known.W_out"], bias[on]))
        W_U, b_U = weights["unembedding.W_U"], weights["unembedding.b_U"]
        grain = min(last_bit(W_U).min(), last_bit(b_U).min())
        fits = (np.abs(W_U * out).sum(axis=1) + np.abs(b_U)).max() <= self.values.bits * grain / 2
        best = np.flatnonzero(logits == logits.max())
        if not whole or not fits or best.tolist() != [self.refusal.token]:
            raise Unproved(f"unembedding: token {self.refusal.token} is not said wherever something differs")

    def _digits(self, feature: int) -> Array:
        """Check step 6 for digits; return the digit of every token: [ω]."""
        self._check_written((feature,), ("embedding",))
        embeds = self.network.spec.embeds
        if embeds.count(feature) != 1:
            raise Unproved("embedding: the digit is written twice")
        digits = self.weights["embedding.W_E"][:, embeds.index(feature)]
        used = np.unique(self.contexts.tokens)
        values, counts = np.unique(digits, return_counts=True)
        if not digits.all() or (digits != np.rint(digits)).any():
            raise Unproved("embedding: a token has a digit that is 0 or no integer")
        if (counts[np.searchsorted(values, digits[used])] > 1).any():
            raise Unproved("embedding: a token of the facts has the digit of another token")
        return digits

    def _keys(self) -> Array:
        """Check steps 5 and 6 for keys; return minus the keys of all contexts of the facts: [N, lanes]."""
        inner, outer = self._attention("key_digits"), self._attention("key_lanes")
        self._check_written(outer.reads, ("key_digits",))
        if inner.writes != outer.reads or len(inner.reads) != 1 or len(inner.writes) != 1:
            raise Unproved("key_lanes: does not read the one feature that key_digits writes")
        digits = self._digits(inner.reads[0])
        C: dict[int, Array] = {}
        for near, weight in self._mix(inner):
            for far, weights in self._mix(outer):
                C[near + far] = C.get(near + far, 0) + weights[:, 0] * weight[0, 0]
        width = next(tau for tau in range(len(C) + 1) if tau not in C or not C[tau].any())
        table = np.stack([C[tau] for tau in range(width)], axis=1) if width else np.zeros((len(self.compared), 0))
        if any(C[tau].any() for tau in C if tau >= width):
            raise Unproved("key_lanes: reads a token farther back, and none before it")
        _check_unique(table, digits)
        if self._longest >= width:
            raise Unproved(f"key_lanes: reads {width:,} tokens; the longest context has {self._longest:,}")
        return self._summed(digits, table)

    @property
    def _longest(self) -> int:
        """Number of tokens of the facts' longest context."""
        places = self.contexts.places
        return int((places - self._starts(places)).max()) + 1

    def _starts(self, places: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the first place of the sequence that each place lies in."""
        starts = np.asarray(self.contexts.starts, dtype=np.int64)
        return starts[np.searchsorted(starts, places, side="right") - 1]

    def _mix(self, layer: WindowAttention) -> Iterator[tuple[int, Array]]:
        """Yield each head's distance in tokens, and its matrix [writes, reads] for the features there."""
        W_V, W_O, size = self.weights[f"{layer.name}.W_V"], self.weights[f"{layer.name}.W_O"], layer.d_head
        for head, offset in enumerate(heads_offsets(self.weights, layer, self.values.far)):
            part = slice(head * size, (head + 1) * size)
            yield offset * layer.dilation, W_O[:, part] @ W_V[part]

    def _summed(self, digits: Array, table: Array) -> Array:
        """Return Σ_τ C_kτ·digit(x, τ) for the contexts of all questions: [N, lanes]."""
        places = np.asarray(self.contexts.places, dtype=np.int64)
        starts, sums = self._starts(places), np.zeros((len(places), len(table)))
        for tau in range(table.shape[1]):
            at = places - tau
            digit = np.where(at >= starts, digits[self.contexts.tokens[np.maximum(at, 0)]], 0.0)
            for lane in np.flatnonzero(table[:, tau]):
                sums[:, lane] += digit * table[lane, tau]
        return sums

    def _prints(self, ends: Sequence[list[float]]) -> Array:
        """Check steps 5 to 7 for prints; return minus the prints of all contexts of the facts: [N, lanes].

        ``ends`` are the smallest and the largest values after each sublayer that makes prints.
        """
        layers = [layer for layer in self.layers if layer.name.startswith("prints_")]
        mixing = [layer for layer in layers if isinstance(layer, WindowAttention)]
        if not mixing or layers[0] is not mixing[0] or len(mixing[0].reads) != 1:
            raise Unproved("it has no sums of digits for prints")
        digits, count = self._digits(mixing[0].reads[0]), len(mixing[0].writes)
        _check_alphabet(digits, np.unique(self.contexts.tokens))
        for before, after in pairwise(layers):
            if before.writes != after.reads:
                raise Unproved(f"{after.name}: does not read what {before.name} writes")
        for layer, bounds, following in zip(layers, ends, [*layers[1:], None], strict=True):
            if not isinstance(layer, WindowAttention) and (self.weights[f"{layer.name}.W_out"] % PRIME).any():
                raise Unproved(f"{layer.name}: a weight is no multiple of {PRIME}")
            if (following is None or following in mixing) and not (min(bounds) >= 0 and max(bounds) < PRIME):
                raise Unproved(f"{layer.name}: leaves something else than a number modulo {PRIME}")
        self._check_apart([layer.name for layer in layers], {f for layer in mixing for f in layer.writes})
        self._check_pack(layers[-1].writes)
        if len(mixing) ** count << (self.refusal.bits or 0) > PRIME**count:
            raise Unproved(f"pack: {count} sums in {len(mixing)} layers are no print of {self.refusal.bits} bits")
        weights, width = self._check_drawn(mixing, count)
        if self._longest >= width:
            raise Unproved(f"prints_0: {width:,} tokens are read; the longest context has {self._longest:,}")
        sums = np.stack([self._hashed(digits, mixing, [w[k] for w in weights]) for k in range(count)], axis=1)
        prints: Array = -(PRIME * sums[:, ::2] + sums[:, 1::2])
        return prints

    def _check_apart(self, names: Sequence[str], features: set[int]) -> None:
        """Check that no other sublayer reads or writes the sums."""
        for layer in self.layers:
            uses = {*layer.reads, *layer.writes, *getattr(layer, "up_reads", ()), *getattr(layer, "routes", ())}
            if uses & features and layer.name not in (*names, "pack"):
                raise Unproved(f"{layer.name}: uses the sums of a print")

    def _check_pack(self, sums: Sequence[int]) -> None:
        """Check that two sums are packed into each lane: −(p·first + second)."""
        pack = self._block("pack")
        plain = (pack.act, pack.units, pack.bias, pack.up, pack.reads) == ("relu", 1, False, "none", tuple(sums))
        W_in, W_out = self.weights["pack.W_in"], self.weights["pack.W_out"]
        if not plain or W_in.shape[2] != 2 or (W_in != np.array([PRIME, 1])).any() or (W_out != -1).any():
            raise Unproved("pack: does not pack two sums into one lane")

    def _check_drawn(self, mixing: Sequence[WindowAttention], count: int) -> tuple[list[NDArray[np.int64]], int]:
        """Check that weights are those drawn for the seed; return them, and the number of tokens that sums reach."""
        recipe = self.network.about.get("recipe")
        draw = recipe.get("draw") if isinstance(recipe, dict) else None
        if not isinstance(draw, list | tuple) or not all(type(part) is int and 0 <= part < 1 << 63 for part in draw):
            raise Unproved("its folder states no seed for the weights of prints")
        rng, reach, drawn = np.random.default_rng([*draw, APART]), 1, []
        for layer in mixing:
            heads = list(self._mix(layer))
            weights = rng.integers(0, PRIME, (count, layer.window))
            each = np.eye(count) if layer is not mixing[0] else np.ones((count, 1))
            expected = [(k * layer.dilation, weights[:, k, None] * each) for k in range(layer.window)]
            same = len(heads) == len(expected) and all(
                offset == wanted and np.array_equal(mix, sums)
                for (offset, mix), (wanted, sums) in zip(heads, expected, strict=True)
            )
            if not same or layer.dilation > reach:
                raise Unproved(f"{layer.name}: its weights are not those that are drawn for the folder's seed")
            reach += layer.reach
            drawn.append(weights)
        return drawn, reach

    def _hashed(self, digits: Array, mixing: Sequence[WindowAttention], weights: Sequence[Any]) -> Array:
        """Return one of a print's sums modulo p, for all questions' contexts: [N]."""
        tokens = self.contexts.tokens
        start = self._starts(np.arange(len(tokens)))
        sums = digits[tokens].astype(np.int64)
        for layer, weight in zip(mixing, weights, strict=True):
            total = np.zeros_like(sums)
            for k in range(layer.window):
                at = np.arange(len(tokens)) - k * layer.dilation
                total += weight[k] * np.where(at >= start, sums[np.maximum(at, 0)], 0)
            sums = total % PRIME
        at_questions: Array = sums[np.asarray(self.contexts.places, dtype=np.int64)].astype(np.float64)
        return at_questions

    def _check_store(self, lanes: Array) -> None:
        """Check the last step: each stored entry is 0 or minus a row of ``lanes``, which are minus the facts' keys."""
        columns = self.entry.units
        words = self.weights["store.W_out"][0].reshape(self.entry.groups, columns, -1)
        scale = self.weights["entry.W_up"] * self.weights["entry.W_out"][:, 0, :]
        groups = [self.entry.writes.index(feature) for feature in self.compared]
        if len(self.entry.writes) != self.entry.groups or any(self.entry.writes.count(f) > 1 for f in self.compared):
            raise Unproved("entry: writes a compared feature twice")
        stored = (words * scale[:, :, None])[groups].reshape(len(groups), -1).T
        facts = np.concatenate([-lanes, np.zeros((1, len(groups)))])
        if not set(map(bytes, np.unique(stored + 0.0, axis=0))) <= set(map(bytes, np.unique(facts + 0.0, axis=0))):
            raise Unproved("store.W_out does not hold these facts and no others")


def _check_unique(table: Array, digits: Array) -> None:
    """Check that no lane k maps different digits c that it reads (or 0) to one sum Σ_τ C_kτ·c_τ; ``table`` is C."""
    values = np.unique(np.append(digits, 0.0))
    spread = int(values[-1] - values[0])
    if (table != np.rint(table)).any():
        raise Unproved("key_lanes: a weight is no integer")
    for lane, row in enumerate(table):
        below = 0
        for weight in sorted(abs(int(weight)) for weight in row[row != 0]):
            if weight <= spread * below:
                raise Unproved(f"key_lanes: lane {lane} is the same for different tokens")
            below += weight


def _check_alphabet(digits: Array, used: NDArray[np.integer]) -> None:
    """Check that the used tokens have the digits 1, −1, 2, −2, …, in order, and all others the next one."""
    order = np.arange(len(used) + 1)
    values = (order // 2 + 1) * np.where(order % 2, -1, 1)
    expected = np.full(len(digits), values[-1])
    expected[used] = values[:-1]
    if not np.array_equal(digits, expected) or 2 * np.abs(values).max() >= PRIME:
        raise Unproved(
            "embedding: digits are not 1, −1, 2, −2, … in the order of the tokens, and below half of a prime"
        )
