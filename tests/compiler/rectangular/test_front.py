"""The front's places against a hash in plain Python integers, with the weights as they are stored.

Both fronts': the network's, and the compiled loop that solving uses.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from byheart.compiler.codes import make_code
from byheart.compiler.rectangular.address import addresses_of, find_addresses, hash_sums
from byheart.compiler.rectangular.dimensions import WORDS, TableSizes, plan
from byheart.compiler.rectangular.front import LIMIT, PRIMES, FrontPositions, add_front, sees, state_moduli
from byheart.compiler.rectangular.refusing import moduli
from byheart.compiler.rectangular.wiring import Wiring
from byheart.networks.transformer import Spec, WindowAttention
from byheart.networks.transformer.module import Transformer
from byheart.networks.transformer.transformer_network import from_arrays

Window = list[int | None]


def sizes_for(word: int = 24, precision: str = "float32", questions: int = 20_000, labels: int = 256) -> TableSizes:
    labels_of_all = np.random.default_rng(0).integers(0, labels, questions)
    return plan(make_code(labels_of_all, labels), precision=precision, word=word)


class Alone:
    """A front alone, as a network."""

    def __init__(
        self, sizes: TableSizes, vocab: int, window: int, seed: int = 0, precision: str = "float32", refuse: int = 0
    ) -> None:
        self.sizes, self.vocab, self.window = sizes, vocab, window
        self.wiring = wiring = Wiring(np.dtype(precision))
        self.prints = moduli(refuse)
        self.front: FrontPositions = add_front(wiring, sizes, vocab, window, np.random.default_rng(seed), self.prints)
        wiring.tensor("unembedding.W_U", np.zeros((1, 1)), (1, 1))
        wiring.tensor("unembedding.b_U", np.zeros(1), (1,))
        self.tensors = wiring.tensors
        embeds, layers = tuple(range(sizes.code_features)), tuple(wiring.sublayers)
        self.spec = Spec(vocab, 1, window, wiring.stream, precision, embeds, (0,), layers)
        self.module: Transformer = from_arrays(self.spec, self.tensors).module

    @property
    def layers(self) -> list[tuple[int, int, list[list[list[int]]]]]:
        """Span, dilation and weights [out][offset][in] of every attention."""
        found = []
        for layer in self.spec.sublayers:
            if isinstance(layer, WindowAttention):
                W_O = self.tensors[f"{layer.name}.W_O"]
                mix = W_O.reshape(len(layer.writes), layer.window, len(layer.reads)).astype(np.int64)
                assert np.array_equal(mix, W_O.reshape(mix.shape))
                found.append((layer.window, layer.dilation, mix.tolist()))
        return found

    def hashed(self, window: Window) -> list[int]:
        """The sums of the last layer, each modulo its modulus; None is a missing token."""
        W_E = self.tensors["embedding.W_E"]
        states = [None if token is None else [int(code) for code in W_E[token]] for token in window]
        layers = self.layers
        for number, (span, dilation, mix) in enumerate(layers):
            last = number == len(layers) - 1
            states_of = (*state_moduli(self.sizes).tolist(), *PRIMES)
            moduli = (*self.sizes.moduli, *self.prints) if last else states_of[: len(mix)]
            after: list[list[int] | None] = []
            for place in range(len(states)):
                if window[place] is None or (last and place < len(states) - 1):
                    after.append(None)
                    continue
                seen = [place - k * dilation for k in range(span)]
                heads = [states[at] if at >= 0 else None for at in seen]
                sums = [
                    sum(
                        w * x
                        for row, state in zip(rows, heads, strict=True)
                        if state
                        for w, x in zip(row, state, strict=True)
                    )
                    for rows in mix
                ]
                assert max(sums) < LIMIT
                after.append([total % modulus for total, modulus in zip(sums, moduli, strict=True)])
            states = after
        assert states[-1] is not None
        return states[-1]

    def expected(self, window: Window) -> list[int]:
        """Rows, columns, offset, kind, route."""
        sizes = self.sizes
        start, spread, *pairs, offset = (sums := self.hashed(window))[:6]
        at = min(max(start - sizes.margin, 0), sizes.starts - 1)
        digits = [digit for pair in pairs for digit in divmod(pair, sizes.columns + 1)]
        high, low = divmod(offset, sizes.bases[-1])
        exponents = sizes.exponents
        bits = exponents[0][high] + exponents[1][low // sizes.grain]
        return [at + spread // 7, at + spread % 7, *digits, bits, *sums[6:]]

    @torch.no_grad()
    def found(self, windows: list[Window]) -> np.ndarray:
        tokens = torch.tensor([[token or 0 for token in window] for window in windows])
        mask = torch.tensor([[token is not None for token in window] for window in windows])
        stream, _ = self.module.mix(tokens, None, mask)
        front = self.front
        values = self.module.local(stream[:, -1]).double().numpy()
        assert np.array_equal(values[:, front.rows[1::2]], values[:, front.rows[::2]] ** 2)
        assert np.array_equal(values[:, front.columns[1::2]], values[:, front.columns[::2]] ** 2)
        assert np.abs(values).max() < LIMIT
        places = values[:, [*front.rows[::2], *front.columns[::2]]]
        hashed = values[:, [*front.kind, *front.route, *front.prints]]
        return np.concatenate([places, -np.log2(values[:, front.scale]), hashed], axis=1)

    def looped(self, windows: list[Window]) -> np.ndarray:
        """The same by the compiled loop, every window a sequence without what is missing."""
        sequences = [[token for token in window if token is not None] for window in windows]
        starts = np.cumsum([0, *map(len, sequences)])
        tokens = np.array([token for sequence in sequences for token in sequence], dtype=np.int32)
        sums = hash_sums(self.wiring, self.sizes, tokens, starts, starts[1:] - 1)
        at = addresses_of(sums, self.sizes)
        return np.concatenate([at.rows, at.columns, at.offset[:, None], sums[:, 6:]], axis=1)


def random_windows(rng: np.random.Generator, count: int, length: int, vocab: int) -> list[Window]:
    """Whole windows, and ones of which the first tokens are missing."""
    windows: list[Window] = rng.integers(0, vocab, (count, length)).tolist()
    for number, window in enumerate(windows):
        if number % 2:
            missing = int(rng.integers(0, length))
            window[:missing] = [None] * missing
    return windows


def check(alone: Alone, count: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    windows = random_windows(rng, count, alone.window, alone.vocab)
    expected = [alone.expected(window) for window in windows]
    assert alone.found(windows).tolist() == expected
    if not alone.prints:  # which the compiled loop does not know: the network's own front is asked for them
        assert alone.looped(windows).tolist() == expected


@pytest.mark.parametrize("window", [1, 2, 3, 8, 16, 64])
@pytest.mark.parametrize("form", [("float32", 24), ("float32", 31), ("float64", 53)], ids=str)
def test_windows(window: int, form: tuple[str, int]) -> None:
    precision, word = form
    sizes = sizes_for(word, precision, labels=200)
    check(Alone(sizes, 257, window, seed=window, precision=precision), count=24)


@pytest.mark.parametrize("window", [1, 8, 40, 128])
@pytest.mark.parametrize("refuse", [1, 8, 21])
def test_prints(window: int, refuse: int) -> None:
    check(Alone(sizes_for(), 258, window, seed=window, refuse=refuse), count=12)


@pytest.mark.parametrize("window", [1, 2, 8])
def test_prints_beside_a_stirred_hash(window: int) -> None:
    check(Alone(replace(sizes_for(), stirred=True), 258, window, refuse=8), count=12)


@pytest.mark.parametrize("vocab", [258, 50_000])
def test_another_token_changes_a_sum_for_the_print(vocab: int) -> None:
    """So no pair of prompts that differ in one place is lost on the way, whatever the draw."""
    alone = Alone(sizes_for(), vocab, 64, refuse=8)
    codes = alone.tensors["embedding.W_E"][:, 0].astype(np.int64)
    assert len(set(codes.tolist())) == vocab
    assert codes.max() - codes.min() < PRIMES[1] * PRIMES[2]
    weights = np.array(alone.layers[0][2])[3:, :, 0]
    assert (weights > 0).all()
    assert (weights < np.array(PRIMES)[:, None]).all()


@pytest.mark.parametrize("window", [1, 2, 8, 16])
@pytest.mark.parametrize("vocab", [2, 257, 60_000])
def test_stirred(window: int, vocab: int) -> None:
    check(Alone(replace(sizes_for(31), stirred=True), vocab, window), count=24)


@pytest.mark.parametrize("window", [512, pytest.param(1024, marks=pytest.mark.slow)])
def test_long_windows(window: int) -> None:
    check(Alone(sizes_for(), 257, window), count=6)


@pytest.mark.parametrize("vocab", [1, 2, 3, 2000, 60_000, 600_000])
@pytest.mark.parametrize("features", [1, 2])
def test_vocabularies(vocab: int, features: int) -> None:
    alone = Alone(replace(sizes_for(), code_features=features), vocab, 8)
    codes = alone.tensors["embedding.W_E"]
    assert codes.shape == (vocab, features)
    assert codes.min() >= 1, "a token must differ from a missing one"
    if vocab <= 2000:
        assert all(len(np.unique(column)) == vocab for column in codes.T)
    check(alone, count=24)


@pytest.mark.parametrize("questions", [1, 100, 2_000_000])
@pytest.mark.parametrize("precision", list(WORDS))
def test_tables_of_all_sizes(questions: int, precision: str) -> None:
    code = make_code(np.arange(256), 256)
    few = (
        make_code(np.arange(questions) % 256, 256)
        if questions < 256
        else replace(code, histogram=(0,) * 8 + (questions,))
    )
    for word in WORDS[precision]:
        sizes = plan(few, precision=precision, word=word, lots=False)
        alone = Alone(sizes, 257, 16, precision="float64" if precision == "float64" else "float32")
        check(alone, count=16)


@pytest.mark.parametrize(("vocab", "window"), [(2, 1), (257, 1), (257, 64), (2000, 8), (60_000, 512), (600_000, 8)])
@pytest.mark.parametrize("stirred", [False, True])
def test_no_sum_reaches_the_limit(vocab: int, window: int, stirred: bool) -> None:
    """Whatever the tokens: every weight times the largest that its input can be."""
    alone = Alone(replace(sizes_for(31), stirred=stirred), vocab, window)
    largest = alone.tensors["embedding.W_E"].max(axis=0).tolist()
    for _, _, mix in alone.layers:
        worst = [sum(w * x for row in rows for w, x in zip(row, largest, strict=True)) for rows in mix]
        assert max(worst) < LIMIT
        largest = [modulus - 1 for modulus in state_moduli(alone.sizes).tolist()]


def test_order_and_every_token_matter() -> None:
    """512 tokens: each of them, and their order, change the places."""
    alone = Alone(sizes_for(), 257, 512)
    rng = np.random.default_rng(0)
    window: Window = rng.integers(0, 257, 512).tolist()
    others = [window]
    for place in (0, 1, 63, 64, 300, 510, 511):
        other = list(window)
        other[place] = (int(other[place] or 0) + 1) % 257
        others.append(other)
    others.append([*window[:-2], window[-1], window[-2]])
    others.append([None, *window[1:]])
    assert len(np.unique(alone.found(others), axis=0)) == len(others)


def test_what_lies_before_the_window_does_not_matter() -> None:
    alone = Alone(sizes_for(), 257, 16)
    rng = np.random.default_rng(0)
    window: Window = rng.integers(0, 257, 16).tolist()
    longer: list[Window] = [[*rng.integers(0, 257, 9).tolist(), *window] for _ in range(4)]
    assert len(np.unique(alone.found(longer), axis=0)) == 1
    assert np.array_equal(alone.found(longer)[0], alone.found([window])[0])


def test_places_in_the_middle_of_sequences() -> None:
    """The compiled loop, asked for a few places of two long sequences: what lies in the other one is not seen."""
    alone, rng = Alone(sizes_for(), 257, 64), np.random.default_rng(0)
    tokens, starts, ends = (
        rng.integers(0, 257, 300, dtype=np.int32),
        np.array([0, 110, 300]),
        np.array([3, 109, 112, 260]),
    )
    at = find_addresses(alone.wiring, alone.sizes, tokens, starts, ends)
    for number, (begin, end) in enumerate(zip([0, 0, 110, 110], ends.tolist(), strict=True)):
        window: Window = tokens[max(begin, end - 63) : end + 1].tolist()
        expected = alone.expected([None] * (64 - len(window)) + window)
        assert [*at.rows[number], *at.columns[number], at.offset[number]] == expected


def test_places_by_hand() -> None:
    """One token of code 5, weights 1: every sum is 5."""
    alone = Alone(TableSizes(24, 0, columns=1, starts=9, margin=3, aligned=8, exponent_share=0), 1, 1)
    for name, value in (("embedding.W_E", 5.0), ("hash_0.W_O", 1.0)):
        alone.wiring.tensors[name][:] = value
    at = find_addresses(alone.wiring, alone.sizes, np.zeros(1, np.int32), np.array([0, 1]), np.array([0]))
    # Start 5 − 3 = 2; rows + 5 // 7, + 5 % 7; columns of 5 mod 4 = 1 = (0, 1) in base 2; grain 85: offset 0 is 8 bits.
    assert (at.rows.tolist(), at.columns.tolist()) == ([[2, 7]], [[0, 1] * 3])
    assert (at.offset.tolist(), at.kind) == ([8], None)


def test_stirred_by_hand() -> None:
    """One token of code 1000, weights 1: its states are what is left of it, and every sum is theirs."""
    sizes = TableSizes(24, 0, columns=99, starts=3000, margin=0, aligned=8, exponent_share=0, stirred=True)
    alone = Alone(sizes, 1, 1)
    for name, value in (("embedding.W_E", 1000.0), ("hash_0.W_O", 1.0), ("hash_1.W_O", 1.0)):
        alone.wiring.tensors[name][:] = value
    at = find_addresses(alone.wiring, sizes, np.zeros(1, np.int32), np.array([0, 1]), np.array([0]))
    # 1000 mod 509, 503, 499, 491, 487 = 491, 497, 2, 18, 26, in all 1034. Modulo 49 that is 5 = (0, 5) in base 7; in
    # base 100 it is (10, 34); modulo 3·85 it is 14, the first of three offsets.
    assert (at.rows.tolist(), at.columns.tolist()) == ([[1034, 1039]], [[10, 34] * 3])
    assert at.offset.tolist() == [8]


@pytest.mark.parametrize("columns", [5, 23, 29])
def test_stirred_sums_have_no_divisor(columns: int) -> None:
    """Of any seed: what divides all weights of a sum and its modulus would divide the sum; without stirring some do."""
    for stirred in (False, True):
        found = set()
        for seed in range(20):
            sizes = replace(sizes_for(), columns=columns, stirred=stirred)
            W_O = Alone(sizes, 50_000, 1, seed).tensors[f"hash_{int(stirred)}.W_O"].astype(np.int64)
            found |= set(np.gcd(np.gcd.reduce(W_O, axis=1), sizes.moduli).tolist())
        assert (found == {1}) == stirred


@pytest.mark.parametrize(
    ("window", "sight"), [(1, 1), (7, 7), (8, 8), (9, 16), (12, 16), (24, 24), (65, 128), (512, 512)]
)
def test_how_far_it_sees(window: int, sight: int) -> None:
    assert sees(window) == sight
    assert Alone(sizes_for(), 5, window).module.sees == sight
    assert Alone(replace(sizes_for(), stirred=True), 5, window).module.sees == sight


def test_places_are_spread_evenly() -> None:
    """Each row and column gets its share: no value occurs twice as often as it should."""
    alone = Alone(sizes_for(), 257, 8)
    found = alone.found(np.random.default_rng(0).integers(0, 257, (20_000, 8)).tolist()).astype(np.int64)
    for column in found[:, 2:8].T:
        times = np.bincount(column, minlength=alone.sizes.columns + 1)
        assert len(times) == alone.sizes.columns + 1
        assert times.min() > 0.7 * times.mean()
        assert times.max() < 1.4 * times.mean()


@pytest.mark.parametrize("stirred", [False, True])
def test_places_of_millions(stirred: bool) -> None:
    """Six million questions have pairs of columns with more values than sums of 8 bytes reach: stirred, they do."""
    code = replace(make_code(np.arange(256), 256), histogram=(0,) * 8 + (6_000_000,))
    alone = Alone(replace(plan(code, precision="float32", word=24, shards=1), stirred=stirred), 256, 8)
    tokens, starts = np.random.default_rng(0).integers(0, 256, 800_000, dtype=np.int32), np.arange(0, 800_001, 8)
    at = find_addresses(alone.wiring, alone.sizes, tokens, starts, starts[1:] - 1)
    times = np.stack([np.bincount(column, minlength=alone.sizes.columns + 1) for column in at.columns.T])
    assert (times.min() == 0) != stirred
    assert (0.7 * times.mean() < times.min() <= times.max() < 1.4 * times.mean()) == stirred
