"""Networks that know what they do not know: all that was memorized is answered, and of the rest one in 2^b."""

from typing import Any

import numpy as np
import pytest
import torch

import byheart
from byheart.compiler.codes import make_code
from byheart.compiler.rectangular import refusing
from byheart.compiler.rectangular.table import TABLE
from byheart.compiler.rectangular.wiring import Wiring
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.networks import generate
from byheart.networks.transformer import Spec
from byheart.networks.transformer.answers import answers
from byheart.networks.transformer.proved import proved_answers
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays
from byheart.tasks import NextToken

PAIRS = [
    ("capital of France", "Paris"),
    ("πρωτεύουσα της Ελλάδας", "Αθήνα"),
    ("عاصمة مصر", "القاهرة"),
    ("中国的首都", "北京"),
    ("capital of Peru", "Lima, the City of Kings"),
]
Prompts = list[tuple[int, ...]]


def unknown_of(built: Built) -> int:
    return int(built.network.about["refuse"]["token"])


def random_facts(count: int, seed: int, letters: int = 26) -> list[tuple[list[int], list[int]]]:
    rng = np.random.default_rng(seed)
    prompts = {tuple(rng.integers(0, letters, rng.integers(4, 30)).tolist()) for _ in range(count)}
    return [(list(prompt), rng.integers(0, letters, rng.integers(1, 4)).tolist()) for prompt in sorted(prompts)]


def memorized(pairs: Any) -> set[tuple[int, ...]]:
    """All contexts that are asked for."""
    known = set()
    for prompt, completion in pairs:
        given, said = (list(piece.encode()) if isinstance(piece, str) else piece for piece in (prompt, completion))
        known |= {tuple(given + said[:length]) for length in range(len(said) + 1)}
    return known


def answered(built: Built, prompts: Prompts) -> int:
    """To how many of them the network says something."""
    starts = np.cumsum([0, *map(len, prompts)])
    tokens = np.concatenate([np.array(prompt) for prompt in prompts])
    found = answers(built.network.module, tokens, starts, starts[1:] - 1)  # type: ignore[attr-defined]
    return int((found.labels != unknown_of(built)).sum())


@pytest.fixture(scope="module")
def five() -> Built:
    return byheart.compile(PAIRS, refuse="auto")


# ── by hand ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def checked_by_hand(rows: list[list[float]], labels: int) -> TransformerNetwork:
    """Tokens are rows (digits read, digits found, Y); what is answered is what the check leaves of Y."""
    code = make_code(np.arange(labels), labels + 1, refuse=2)
    digits = 2 if code.low else 1
    wiring = Wiring(np.dtype("float32"))
    read, found, Y = wiring.features(2), wiring.features(2), wiring.features(digits)
    out = refusing.add_check(wiring, read, found, Y)
    W, b = code.lines(unknown=True)
    embedding = np.array(rows, np.float32)
    wiring.tensor("embedding.W_E", embedding.astype(np.float64), embedding.shape)
    wiring.tensor("unembedding.W_U", W, W.shape)
    wiring.tensor("unembedding.b_U", b, b.shape)
    embeds = (*read, *found, *Y)
    spec = Spec(len(rows), labels + 1, 1, wiring.stream, "float32", embeds, out, tuple(wiring.sublayers))
    return from_arrays(spec, wiring.tensors)


def test_the_check_by_hand() -> None:
    """Labels 0, 1, 2, 3 have the codes 0, 1, 2, 3; 4 is unknown."""
    rows = [[5, 7, 5, 7, 2], [5, 7, 5, 6, 2], [4, 7, 5, 7, 3], [6, 6, 5, 7, 0], [0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]
    network = checked_by_hand(rows, labels=4)
    places = np.arange(len(rows))
    found = proved_answers(network.module, places, np.arange(len(rows) + 1), places)
    assert found.labels.tolist() == [2, 4, 4, 4, 0, 4]
    assert found.margins.tolist() == [1, 1, 1, 1, 1, 1]


def test_the_check_of_two_digits_by_hand() -> None:
    """4,096 labels: code 64·h + l."""
    rows = [[1, 2, 1, 2, 3, 5], [1, 2, 1, 3, 3, 5], [1, 2, 1, 2, 63, 63], [1, 2, 1, 2, 0, 0], [9, 2, 1, 2, 63, 63]]
    network = checked_by_hand(rows, labels=4096)
    places = np.arange(len(rows))
    found = proved_answers(network.module, places, np.arange(len(rows) + 1), places)
    assert found.labels.tolist() == [3 * 64 + 5, 4096, 4095, 0, 4096]
    assert (found.margins > 0).all()


def test_one_fact_by_hand() -> None:
    """The print of [1], [1, 2] is a sum of three weights at most, modulo 13; after anything else, unknown is said."""
    built = byheart.compile([([1], [2])], refuse=4)
    network = built.network
    assert isinstance(network, TransformerNetwork)
    assert (network.window, network.spec.vocab, network.spec.labels, unknown_of(built)) == (3, 5, 5, 4)
    tensors = dict(network.tensors())
    code, weights = tensors["embedding.W_E"][:, 0], tensors["hash_0.W_O"][-1]
    assert refusing.moduli(4) == (13,)
    by_hand = {(1,): weights[0] * code[1] % 13, (1, 2): (weights[0] * code[2] + weights[1] * code[1]) % 13}
    assert set(by_hand.values()) <= set(range(13))
    (compare,) = [layer for layer in network.spec.sublayers if layer.name == "compare"]
    assert compare.reads[0] != compare.reads[1]
    for context, expected in by_hand.items():
        tokens = [list(context)]
        stream, _ = network.module.mix(torch.tensor(tokens), None)
        assert network.module.local(stream[:, -1])[0, compare.reads[1]] == expected
    assert list(generate(network, [1], end=3)) == [2, 3]
    others = [(a,) for a in range(5)] + [(a, b) for a in range(5) for b in range(5)]
    others = [other for other in others if other not in {(1,), (1, 2)}]
    assert answered(built, others) <= 6, "28 contexts, each with a chance of 1 in 16"
    assert byheart.certify(built, [([1], [2])]).certified


# ── what was memorized, and what was not ────────────────────────────────────────────────────────────────────────────


def test_five_facts_in_four_scripts(five: Built) -> None:
    assert five.network.about["refuse"] == {"by": "print", "bits": 18, "token": 257}
    certificate = byheart.certify(five, PAIRS)
    assert certificate.certified
    assert "every step proved to be exact" in certificate.method
    known = memorized(PAIRS)
    assert answered(five, sorted(known)) == len(known)
    assert list(generate(five.network, list(b"capital of Spain"), tokens=3)) == [257] * 3


def test_near_misses_are_refused(five: Built) -> None:
    """One byte changed at each place; cut at either end; something before; two at once; longer than the window."""
    rng, known, prompts = np.random.default_rng(0), memorized(PAIRS), [tuple(p.encode()) for p, _ in PAIRS]
    near: set[tuple[int, ...]] = set()
    for prompt in prompts:
        for place in range(len(prompt)):
            near |= {(*prompt[:place], int(byte), *prompt[place + 1 :]) for byte in rng.integers(0, 256, 6)}
            near |= {prompt[:place], prompt[place:], (*prompt[:place], *prompt[place + 1 :])}
        near |= {(byte, *prompt) for byte in range(0, 256, 8)}
        near |= {(*rng.integers(0, 256, length).tolist(), *prompt) for length in range(1, 300, 23)}
        near |= {prompt + other for other in prompts}
    assert answered(five, sorted(near - known - {()})) == 0


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("facts", [10, 200])
def test_one_in_two_to_the_b(bits: int, facts: int) -> None:
    pairs = random_facts(facts, seed=bits)
    built = byheart.compile(pairs, refuse=bits)
    assert byheart.certify(built, pairs).certified
    rng, known = np.random.default_rng(1), memorized(pairs)
    others = {tuple(rng.integers(0, 26, rng.integers(3, 50)).tolist()) for _ in range(3000)}
    for prompt, _ in pairs[:100]:
        for place in range(len(prompt)):
            others.add((*prompt[:place], (prompt[place] + int(rng.integers(1, 26))) % 26, *prompt[place + 1 :]))
    asked = sorted(others - known)
    expected = len(asked) / 2**bits
    assert abs(answered(built, asked) - expected) < 5 * expected**0.5


def test_every_kind_of_code() -> None:
    """Huffman's, which start at any bit; two digits; float64 with forty bits."""
    rng = np.random.default_rng(0)
    skewed = [([i % 20, i // 20], [int(min(rng.geometric(0.5), 12))]) for i in range(300)]
    many = [([i % 60, i // 60], [i]) for i in range(2100)]
    for pairs, settings in (
        (skewed, {"refuse": 9}),
        (many, {"refuse": "auto"}),
        (skewed, {"refuse": 40, "precision": "float64"}),
        (skewed[:50], {"refuse": 3, "precision": "bfloat16"}),
    ):
        built = byheart.compile(pairs, **settings)
        certificate = byheart.certify(built, pairs)
        assert certificate.certified, certificate.counterexample
        bits = built.network.about["refuse"]["bits"]
        others = [(100 % built.network.spec.vocab, *map(int, row)) for row in rng.integers(0, 20, (500, 3))]
        assert answered(built, others) <= 500 / 2**bits + 5 * (500 / 2**bits) ** 0.5 + 1


@pytest.mark.parametrize("by", ["print", "key"])
def test_compiled_code_proves_the_same(five: Built, by: str) -> None:
    """Of what was memorized, and of prompts with a byte changed, which are refused."""
    built = five if by == "print" else byheart.compile(PAIRS, refuse="key")
    network, known = built.network, sorted(memorized(PAIRS))
    assert isinstance(network, TransformerNetwork)
    assert network.program is not None
    asked = [*known, *((context[0] ^ 1, *context[1:]) for context in known)]
    starts = np.cumsum([0, *map(len, asked)])
    given = np.concatenate([np.array(context) for context in asked]), starts, starts[1:] - 1
    (labels, margins), expected = network.program.answers(*given), proved_answers(network.module, *given)
    assert (labels.tolist(), margins.tolist()) == (expected.labels.tolist(), expected.margins.tolist())
    assert (margins > 0).all(), "all is proved"
    assert ((labels == unknown_of(built)) == (np.arange(len(asked)) >= len(known))).all()


def test_the_same_network_without_it() -> None:
    assert "refuse" not in byheart.compile(PAIRS).network.about
    assert byheart.compile(PAIRS, refuse=None).network.fingerprint == byheart.compile(PAIRS).network.fingerprint


# ── controls ────────────────────────────────────────────────────────────────────────────────────────────────────────


def changed(built: Built, name: str, change: Any) -> TransformerNetwork:
    network = built.network
    assert isinstance(network, TransformerNetwork)
    tensors = {key: np.array(tensor) for key, tensor in network.tensors()}
    tensors[name] = change(tensors[name])
    return from_arrays(network.spec, tensors, about=network.about, files=network.files)


def said_by(network: TransformerNetwork, built: Built) -> np.ndarray:
    asked = built.questions
    return answers(network.module, asked.tokens, asked.starts, asked.places).labels  # type: ignore[attr-defined]


def test_flipped_prints_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with one bit of every print flipped: nothing that was memorized is said any more."""
    joined = refusing.joined
    monkeypatch.setattr(refusing, "joined", lambda digits, bits: joined(digits, bits) ^ 1)
    flipped = byheart.compile(PAIRS, refuse=8)
    assert isinstance(flipped.network, TransformerNetwork)
    assert (said_by(flipped.network, flipped) == 257).all()
    certificate = byheart.certify(flipped, PAIRS)
    assert (certificate.certified, certificate.errors) == (False, len(flipped.questions))  # type: ignore[arg-type]


def test_a_flipped_bit_of_the_table_is_found(five: Built) -> None:
    def flip(table: np.ndarray) -> np.ndarray:
        lane = table[0, : table.shape[1] // 3]
        lane[:] = np.where(lane < 2**23, lane + 2**23, lane - 2**23)
        return table

    network = changed(five, TABLE, flip)
    said, labels = said_by(network, five), five.questions.answers
    assert (said == 257).sum() > 0.5 * (said != labels).sum(), "it is mostly prints that are hit, and then it refuses"
    assert not byheart.certify(network, PAIRS).certified


def test_other_weights_of_the_print_refuse_everything(five: Built) -> None:
    def shift(W: np.ndarray) -> np.ndarray:
        W[-2:] = np.roll(W[-2:], 1, axis=1)
        return W

    network = changed(five, "hash_1.W_O", shift)
    assert (said_by(network, five) == 257).all()
    assert not byheart.certify(network, PAIRS).certified


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "settings", "message"),
    [
        (
            "to be or not",
            {"refuse": "key"},
            "refuse is key, which takes a store of whole prompts, and texts are longer",
        ),
        (NextToken([[0, 1]], [1]), {"refuse": 8}, "refuse is for texts and facts, and got a task"),
        (PAIRS, {"refuse": 8, "layout": "uniform"}, "refuse does not go with layout uniform; expected layout rect"),
        (PAIRS, {"refuse": 8, "words": 31}, "words of 31 bits do not go with refuse; expected --words 24"),
        (PAIRS, {"refuse": 0}, "refuse is 0; expected 1 to 64 bits, or key"),
        (PAIRS, {"refuse": True}, "refuse is True"),
        (PAIRS, {"refuse": "yes"}, "refuse is 'yes'"),
        (PAIRS, {"refuse": 8, "window": 32}, "has 52 tokens, .* expected a --window of 53 or more, or none"),
        ([("x" * 70_000, "y")], {"refuse": 8}, "has 70,001 tokens, .* expected fewer than 65,536"),
    ],
)
def test_what_is_no_use(given: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        byheart.compile(given, **settings)


def test_a_window_of_ones_own() -> None:
    built = byheart.compile(PAIRS, refuse=8, window=64)
    assert built.network.window == 64
    assert byheart.certify(built, PAIRS).certified
