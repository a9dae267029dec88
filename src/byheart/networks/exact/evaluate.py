"""The outputs of an exact network, computed with integers of any size over whole batches.

The token-wise layers before the first mixing layer are evaluated once per *different* token: they are functions of the
token (and of its position, if there are positional codes), so repeating them would change nothing.
"""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from byheart.networks.exact import attention
from byheart.networks.exact.exact_layers import (
    TOKEN_WISE,
    Affine,
    Block,
    Embedding,
    FeedForward,
    Flatten,
    HardmaxAttention,
    Integers,
    Layer,
    Positions,
    Residual,
    TokenSum,
    UniformAttention,
    identity,
)
from byheart.networks.exact.exact_network import ExactNetwork, Inputs, check_inputs, require_rational
from byheart.networks.exact.limbs import (
    LimbProgram,
    Limbs,
    concatenate,
    from_floats,
    from_int64,
    from_integers,
    residual_steps,
)
from byheart.networks.exact.waves import Wave, parts
from byheart.networks.exact.wide_sums import Words, pays
from byheart.progress import Report

_CHUNK = 1 << 14


def evaluate(network: ExactNetwork, inputs: Inputs, *, threads: int = 1, report: Report | None = None) -> Integers:
    """Return the exact outputs for all sequences: [N] for ``outputs="last"``, [N, n] for ``outputs="every"``.

    An output is an ``int`` if it is an integer, else a ``Fraction``. Equal sequences are evaluated once; ``report`` is
    called with the number of different ones that are done, and their total.

    >>> from byheart.networks.exact import Affine, FeedForward, integers
    >>> relu = FeedForward((Affine(W=integers([[2]]), b=integers([-3])),))
    >>> evaluate(ExactNetwork((relu,), inputs="tokens", outputs="last", length=1), np.array([[1], [5]])).tolist()
    [0, 7]
    """
    check_inputs(network, inputs)
    require_rational(network)
    front, rest = (_joined(layers) for layers in split(network))
    with ThreadPoolExecutor(threads) as pool:
        runner = _Runner(network, pool)
        tokens, index = runner.front(front, inputs)
        first, sequence = _first(_rows_as_keys(index))
        chunk = max(1, _CHUNK // network.length)
        outputs = []
        for begin in range(0, len(first), chunk):
            rows = index[first[begin : begin + chunk]]
            outputs.append(runner.rest(rest, tokens, rows))
            if report is not None:
                report(min(begin + chunk, len(first)), len(first))
    return np.concatenate(outputs)[sequence]


def split(network: ExactNetwork) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
    """Return the token-wise layers before the first mixing layer, and all other layers."""
    mixing = (i for i, layer in enumerate(network.layers) if not isinstance(layer, TOKEN_WISE))
    first = next(mixing, len(network.layers))
    return network.layers[:first], network.layers[first:]


def _joined(layers: tuple[Layer, ...]) -> tuple[Layer | Wave, ...]:
    """Return the same layers, with chains of blocks for layers Z + relu(WZ + b), and waves for chains of folds.

    W_out = 1 is written out. Consecutive layers become one program, so numbers stay in the processor's caches.
    """
    result: list[Layer | Wave] = []
    for skips, group in groupby(layers, key=_is_skip):
        if skips:
            chain = [layer.layers[0] for layer in group if isinstance(layer, FeedForward)]
            blocks = (Block(affine.W, affine.b, identity(len(affine.W))) for affine in chain)
            result += parts(Residual(tuple(blocks)))
        else:
            result += group
    return tuple(result)


def _is_skip(layer: Layer) -> bool:
    match layer:
        case FeedForward(layers=(Affine(shift=0, relu=True),), residual=True):
            return True
    return False


def token_streams(network: ExactNetwork, inputs: Inputs) -> tuple[Integers, int, NDArray[np.int64]]:
    """Return the streams of all different tokens before the first mixing layer, and the index [N, n] into them.

    The streams are numerators [K, d_model] over one denominator.
    """
    check_inputs(network, inputs)
    with ThreadPoolExecutor(1) as pool:
        tokens, index = _Runner(network, pool).front(split(network)[0], inputs)
    return tokens.numerators(), tokens.divisor << tokens.exponent, index


class _Runner:
    """One evaluation of a network, with the threads that it may use."""

    def __init__(self, network: ExactNetwork, pool: ThreadPoolExecutor) -> None:
        self.network, self.pool = network, pool
        self.programs: dict[tuple[int, int], LimbProgram | Words] = {}

    def front(self, layers: tuple[Layer | Wave, ...], inputs: Inputs) -> tuple[Limbs, NDArray[np.int64]]:
        """Apply the token-wise layers to all different tokens; return the streams, and the token's index at [N, n]."""
        places = any(isinstance(layer, Positions) for layer in layers)
        first, index = _different(inputs, places)
        positions = first % self.network.length
        flat = inputs.reshape(-1, *inputs.shape[2:])[first]
        if layers and isinstance(layers[0], Embedding):
            batch, layers = _look_up(layers[0], flat), layers[1:]
        elif inputs.ndim == 2:
            batch = from_int64(flat[:, None].astype(np.int64))
        else:
            batch = from_floats(flat.astype(np.float64))
        for layer in layers:
            batch = self.apply(layer, batch, positions)
        return batch, index

    def rest(self, layers: tuple[Layer | Wave, ...], tokens: Limbs, index: NDArray[np.int64]) -> Integers:
        """Apply the other layers to the sequences of tokens ``index``; return the outputs as integers or fractions."""
        length, last_only = self.network.length, self.network.outputs == "last"
        mixing = [i for i, layer in enumerate(layers) if not isinstance(layer, (*TOKEN_WISE, Wave))]
        if last_only and not mixing:
            index = index[:, -1:]
        batch = tokens.columns(index.ravel())
        positions = (
            np.tile(np.arange(length), len(index)) if index.shape[1] == length else np.full(len(index), length - 1)
        )
        for i, layer in enumerate(layers):
            last = last_only and i == mixing[-1] if mixing else False
            match layer:
                case UniformAttention():
                    batch = attention.uniform(layer, batch, length, last)
                case HardmaxAttention():
                    batch = attention.hardmax(layer, batch, length, last)
                case TokenSum():
                    batch = attention.token_sum(batch, length, last)
                case Flatten():
                    batch = _flatten(batch, length)
                case _:
                    batch = self.apply(layer, batch, positions)
            if last or isinstance(layer, Flatten):
                positions = np.full(batch.batch, length - 1)
        return _values(batch).reshape((len(index),) if last_only else (len(index), length))

    def apply(self, layer: Layer | Wave, batch: Limbs, positions: NDArray[np.int64]) -> Limbs:
        """Apply a token-wise layer to a batch whose columns stand at ``positions``."""
        if isinstance(layer, Wave):
            folded = layer(batch)
            return self.run(layer.folds, batch) if folded is None else folded
        if isinstance(layer, Positions):
            codes = from_integers(layer.W_pos).columns(positions)
            return attention.add(batch, codes, identity(batch.width))
        assert isinstance(layer, FeedForward | Residual)
        result = self.run(layer, batch)
        if isinstance(layer, Residual) or not layer.residual:
            return result
        return attention.add(batch, result, identity(batch.width))

    def run(self, layer: FeedForward | Residual, batch: Limbs) -> Limbs:
        """Run the layer's program on blocks of the batch that fit into the processor's caches."""
        key = (id(layer), batch.divisor)
        if key not in self.programs:
            self.programs[key] = _program(layer, batch.divisor)
        program = self.programs[key]
        blocks = [batch.columns(slice(b, b + program.block)) for b in range(0, batch.batch, program.block)]
        return concatenate(list(self.pool.map(program, blocks)))


def _program(layer: FeedForward | Residual, divisor: int) -> LimbProgram | Words:
    if isinstance(layer, FeedForward):
        program = LimbProgram(layer.layers, divisor)
        return Words(layer.layers, divisor, program) if pays(layer) else program
    steps = tuple(step for block in layer.blocks for step in residual_steps(block))
    return LimbProgram(steps, divisor, tuple(d for block in layer.blocks for d in (len(block.W_in), 0)))


def _different(inputs: Inputs, places: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return flat indices of the different tokens (or token-position pairs), and the index [N, n] into them."""
    N, n = inputs.shape[:2]
    first, index = _first(_rows_as_keys(inputs.reshape(N * n, -1)))
    if places:
        first, index = _first(index * n + np.tile(np.arange(n), N))
    return first, index.reshape(N, n)


def _rows_as_keys(rows: Inputs) -> NDArray[np.generic]:
    """Return one key per row; rows with equal bytes have equal keys."""
    if rows.shape[1] == 1:
        return rows[:, 0]
    row = np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))
    return np.ascontiguousarray(rows).view(row).ravel()


def _first(keys: NDArray[np.generic]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first place of each different key, in the order of the keys, and the index of every key among them."""
    low = int(keys.min(initial=0)) if keys.dtype.kind in "iu" else 0
    if keys.dtype.kind not in "iu" or int(keys.max(initial=0)) - low > len(keys):
        _, first, index = np.unique(keys, return_index=True, return_inverse=True)
        return first.astype(np.int64), index.ravel().astype(np.int64)
    # Token ids are looked up in a table of all possible ids, without sorting.
    numbers = keys.astype(np.int64) - low
    table = np.full(int(numbers.max(initial=0)) + 1, -1)
    table[numbers[::-1]] = np.arange(len(keys))[::-1]
    present = table >= 0
    return table[present], (np.cumsum(present) - 1)[numbers]


def _look_up(layer: Embedding, ids: Inputs) -> Limbs:
    """Return the rows of the embedding table."""
    return from_integers(layer.W_E[ids.astype(np.int64)])


def _flatten(batch: Limbs, length: int) -> Limbs:
    """Return [1, n·d] for [n, d]: unit (k, j) of a sequence is unit j of its position k."""
    places, columns = batch.limbs.shape
    limbs = batch.limbs.reshape(places, columns // length, length).transpose(2, 0, 1).reshape(length * places, -1)
    start = (places * np.arange(length)[:, None] + batch.start).ravel()
    return Limbs(np.ascontiguousarray(limbs), start, np.tile(batch.length, length), batch.exponent, batch.divisor)


def _values(batch: Limbs) -> Integers:
    """Return the stream's only coordinate, as an int if it is an integer, else as a fraction."""
    denominator = batch.divisor << batch.exponent
    values = batch.numerators()[:, 0]
    for i, value in enumerate(values):
        quotient, remainder = divmod(value, denominator)
        values[i] = quotient if remainder == 0 else Fraction(value, denominator)
    return values
