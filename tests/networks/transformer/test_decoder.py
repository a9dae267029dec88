"""What compiled code says is what the module says; what it cannot prove, the module says."""

import math
from dataclasses import dataclass, replace
from itertools import islice, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import byheart
from byheart.compiler import CompilerSettings
from byheart.compiler.rectangular.dimensions import WORDS
from byheart.networks.transformer import GatedBlocks, Spec, WindowAttention
from byheart.networks.transformer import generate as speaking
from byheart.networks.transformer.answers import answers
from byheart.networks.transformer.generate import generate, generate_all
from byheart.networks.transformer.interpreter import PLAN
from byheart.networks.transformer.program import Recital
from byheart.networks.transformer.proved import Proved
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays
from byheart.tasks import random_next_token
from byheart.tasks.contexts import Contexts

from .small import drawn, evaluated, hand_built, proved_logits

FORMATS = [(precision, word) for precision, words in WORDS.items() for word in words]
TEXTS = {"one": "It was the best of times, it was the worst of times\n", "two": "It is a far, far better thing\n"}


def decoded(network: TransformerNetwork, tokens: list[int]) -> np.ndarray:
    """The logits after each of ``tokens``, nan where they are not proved: side by side, and one by one the same."""
    program = network.program
    assert program is not None
    side_by_side, one_by_one = (proved_logits(program, tokens, lanes) for lanes in (program.lanes, 1))
    assert np.array_equal(side_by_side, one_by_one, equal_nan=True)
    return side_by_side


def by_module(network: TransformerNetwork, tokens: list[int]) -> np.ndarray:
    with torch.no_grad():
        logits: np.ndarray = network.module(torch.tensor([tokens]))[0].numpy()
    return logits


def same_bits(network: TransformerNetwork, tokens: list[int]) -> bool:
    """In the network's own format; 0 and −0 are one number."""
    expected = by_module(network, tokens) + 0
    found = decoded(network, tokens)
    return found.astype(expected.dtype).tobytes() == expected.tobytes() and np.array_equal(found, expected)


def same_answers(network: TransformerNetwork, contexts: Contexts) -> bool:
    """Those that ``proved`` proves, all of them, where all tokens are given."""
    asked = contexts.tokens, contexts.starts, contexts.places
    expected = answers(Proved(network.module), *asked)
    assert network.program is not None
    labels, margins = network.program.answers(*asked)
    return labels.tolist() == expected.labels.tolist() and margins.tolist() == expected.margins.tolist()


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_every_logit_of_a_task(form: tuple[str, int]) -> None:
    """Of contexts that were asked for, and of 200 tokens that nobody has seen."""
    task = random_next_token(examples=300, length=9, vocab=40, labels=30, rng=np.random.default_rng(0))
    built = byheart.compile(task, settings=CompilerSettings(*form))
    network = built.network
    assert same_answers(network, built.questions)
    assert network.program is not None
    rows = zip(network.spec.sublayers, network.program.arrays[0], strict=True)
    general = {layer.name for layer, row in rows if getattr(layer, "act", "relu") == "sigmoid" and not row[PLAN]}
    assert {name.split("_")[0] for name in general} <= {"halve", "kind"}, "all others have a plan of their own"
    for tokens in [*task.inputs[:5].tolist(), np.random.default_rng(1).integers(0, 40, 200).tolist()]:
        assert same_bits(network, tokens)


@pytest.mark.parametrize("window", [1, 8, 64, 512])
def test_every_logit_of_texts(window: int) -> None:
    """One, two and three layers of hashing; every text from its start, where tokens are missing."""
    rng = np.random.default_rng(window)
    text = bytes(rng.integers(97, 99 if window > 8 else 123, 2 * window + 20).tolist())
    texts = TEXTS if window == 8 else {"random": text if window > 1 else b"abcdefgh"}
    built = byheart.compile(texts, window=None if window == 8 else window)
    for begin, end in pairwise(built.questions.starts):
        assert same_bits(built.network, built.questions.tokens[begin:end].tolist())
    assert same_answers(built.network, built.questions)


def test_every_logit_of_byte_pairs() -> None:
    pytest.importorskip("tokenizers")
    built = byheart.compile(TEXTS, tokenizer="bpe", vocab=300)
    assert same_bits(built.network, built.questions.tokens.tolist())


def test_by_hand() -> None:
    """Codes 1, 2, 4; y = max(0, x_t + 10·x_{t−1} − 10), logits (y, 5 − y)."""
    network = from_arrays(*hand_built())
    assert decoded(network, [0, 2, 1]).tolist() == [[0, 5], [4, 1], [32, -27]]
    assert np.isnan(decoded(replace(network, weights=changed(network, "less.b_in", 2.0**-20)), [2, 1])[1]).all()


def changed(network: TransformerNetwork, name: str, by: float) -> dict[str, torch.Tensor]:
    return {**network.weights, name: network.weights[name] + by}


@pytest.mark.parametrize("seed", range(5))
def test_sublayers_of_all_kinds(seed: int) -> None:
    """Groups, gates, features that are written to twice, keys without queries; against loops in NumPy."""
    spec, tensors = drawn(np.random.default_rng(seed))
    tokens = np.random.default_rng(seed).integers(0, 11, 40)
    assert np.array_equal(decoded(from_arrays(spec, tensors), tokens.tolist()), evaluated(spec, tensors, tokens))


NASTY = st.one_of(
    st.integers(-4, 4).map(float),
    st.tuples(st.integers(-(2**24), 2**24), st.integers(-40, 40)).map(lambda pair: math.ldexp(*pair)),
    st.sampled_from([0.0, -0.0, 1.0, 2.0**12, -(2.0**12), 0.1, 105.0, -104.9, 2.0**127, -(2.0**127), 2.0**-140, 2e38]),
)


@st.composite
def hostile(draw: st.DrawFn) -> TransformerNetwork:
    """Small networks, half of them with numbers that overflow, vanish, and are rounded."""
    numbers = draw(st.sampled_from([st.integers(-4, 4).map(lambda whole: 2.0**12 * whole), NASTY]))
    precision = draw(st.sampled_from(["float32", "float64"]))
    up = draw(st.sampled_from(["none", "dense", "diagonal"]))
    act, biased = draw(st.sampled_from(["sigmoid", "relu"])), draw(st.booleans())
    attention = WindowAttention(
        "look", (0, 1), (2, draw(st.sampled_from([2, 3]))), window=2, dilation=1, heads=2, d_head=1
    )
    ups: tuple[int, ...] = () if up == "none" else (3, 0)
    ffn = GatedBlocks(
        "units", act, (2, 1), (4, 4), units=1 if up == "diagonal" else 2, groups=2, bias=biased, up=up, up_reads=ups
    )
    spec = Spec(2, 2, 2, 5, precision, (0, 1), (4, 3), (attention, ffn))  # type: ignore[arg-type]
    tensors = {
        name: np.reshape(draw(st.lists(numbers, min_size=math.prod(shape), max_size=math.prod(shape))), shape)
        for name, shape in spec.shapes().items()
    }
    for name in draw(st.sampled_from([["look.W_Q"], ["look.W_K"], ["look.W_Q", "look.W_K"]])):
        tensors[name] = 0 * np.nan_to_num(tensors[name])
    if draw(st.booleans()):
        tensors["look.bias"] = np.array([[0, -1e4], [-1e4, 0]])
    return from_arrays(spec, {name: tensor.astype(precision) for name, tensor in tensors.items()})


@given(hostile(), st.lists(st.integers(0, 1), min_size=1, max_size=4))
@settings(max_examples=50)
def test_hostile_networks(network: TransformerNetwork, tokens: list[int]) -> None:
    """Whatever is said is what the module says, and the code that certificates rest on, where that can prove it."""
    decoder = Recital.of(network.module)
    if decoder is None:
        return
    found, prover = decoded(network, tokens), Proved(network.module)
    stream, _ = prover.mix(torch.tensor([tokens]), None)
    proved, known = prover.answer(stream[0]).numpy(), ~np.isnan(found).any(axis=1)
    both = known & ~np.isnan(proved).any(axis=1)
    assert np.array_equal(found[known], by_module(network, tokens)[known])
    assert np.array_equal(found[both], proved[both])
    asked = np.array([*tokens, *tokens]), np.array([0, len(tokens), 2 * len(tokens)]), np.arange(2 * len(tokens))
    assert network.program is not None
    labels, margins = network.program.answers(*asked)
    once, sure = answers(network.module, *asked), ~np.isnan(margins)
    assert np.array_equal(labels[sure], once.labels[sure])
    assert np.array_equal(margins[sure], once.margins[sure])
    assert (sure.reshape(2, -1) >= known).all(), "what lies before does not count, and nothing is left of it"


def test_hostile_networks_that_are_known_to_be() -> None:
    """2^60 + 1 − 2^60 is 0 in one order and 1 in another; a sigmoid between the marks; keys that overflow."""
    add = GatedBlocks("add", "relu", (1, 2, 3), (0,), units=1, bias=False)
    gate = GatedBlocks("gate", "sigmoid", (1,), (0,), units=1, bias=False)
    look = WindowAttention("look", (1, 2, 3), (0,), window=1, dilation=1, heads=1, d_head=1)
    ones, keys = [[1.0, 1.0, 1.0]], [[1.5 * 2.0**127, -1.5 * 2.0**127, 1.5 * 2.0**127]]
    inner = {"add.W_in": [ones], "add.W_out": [[[1]]]}
    held = {"look.W_Q": [[0] * 3], "look.W_V": ones, "look.W_O": [[1]], "look.bias": [[0]]}
    for layer, tensors, stream, known in (
        (add, inner, [4, 1, -4], True),
        (add, inner, [2.0**60, 1, -(2.0**60)], False),
        (gate, {"gate.W_in": [[[1]]], "gate.W_out": [[[1]]]}, [20, 0, 0], True),
        (gate, {"gate.W_in": [[[1]]], "gate.W_out": [[[1]]]}, [19, 0, 0], False),
        (look, held | {"look.W_K": ones}, [1, 1, 1], True),
        (look, held | {"look.W_K": keys}, [1, 1, 1], False),
    ):
        spec = Spec(1, 2, 1, 4, "float32", (0, 1, 2, 3), (0,), (layer,))  # type: ignore[arg-type]
        named = {"embedding.W_E": [[0, *stream]], "unembedding.W_U": [[1], [-1]], "unembedding.b_U": [0, 0], **tensors}
        network = from_arrays(spec, {name: np.array(tensor, np.float32) for name, tensor in named.items()})
        assert bool(np.isfinite(decoded(network, [0])).all()) is known, stream


def test_attention_that_is_not_constant_has_no_decoder() -> None:
    spec, tensors = drawn(np.random.default_rng(0))
    assert Recital.of(from_arrays(spec, tensors).module) is not None
    assert Recital.of(from_arrays(spec, tensors | {"near.W_Q": tensors["near.W_K"] + 1}).module) is None
    assert Recital.of(from_arrays(spec, tensors | {"near.bias": 0 * tensors["near.bias"]}).module) is None, "thirds"


@dataclass(frozen=True)
class Louder(GatedBlocks):
    """A sublayer of another kind, whatever it does."""

    volume: int = 2


def test_a_sublayer_that_is_not_known_has_no_decoder() -> None:
    spec, tensors = hand_built()
    louder = replace(spec, sublayers=(spec.sublayers[0], Louder("less", "relu", reads=(1,), writes=(2,), units=1)))
    assert Recital.of(from_arrays(spec, tensors).module) is not None
    assert Recital.of(from_arrays(louder, tensors).module) is None


def turning_inexact(at: int) -> TransformerNetwork:
    """Counts to 40, over and over; from token ``at`` on its logits hold a third, which is rounded."""
    vocab, third = 40, np.float32(1) / 3
    spec = Spec(vocab, vocab, 1, vocab, "float32", tuple(range(vocab)), tuple(range(vocab)), ())
    codes, follows = np.eye(vocab, dtype=np.float32), np.roll(np.eye(vocab, dtype=np.float32), 1, axis=0)
    codes[at], follows[:, (at + 1) % vocab] = (
        codes[at] + third * codes[(at + 1) % vocab],
        follows[:, (at + 1) % vocab] * 3,
    )
    follows[3, (at + 1) % vocab] = third
    biases = np.zeros(vocab, np.float32)
    return from_arrays(spec, {"embedding.W_E": codes, "unembedding.W_U": follows, "unembedding.b_U": biases})


@pytest.mark.parametrize("at", [0, 1, 7, 39])
def test_the_module_goes_on_where_nothing_is_proved(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network = turning_inexact(at)
    plain = list(generate(network, [0], tokens=100))
    decoder = Recital.of(network.module)
    assert decoder is not None
    assert decoder.hear([0])
    assert decoder.say(100) == plain[:at] if at else decoder.say(100) == []
    monkeypatch.setattr(speaking, "FEW", 0)
    assert list(generate(network, [0], tokens=100)) == plain
    assert list(islice(generate(network, [0]), 100)) == plain
    assert generate_all(network, [[0], [5, 6]], end=39, tokens=[100, 2]) == [plain[: plain.index(39)], [7, 8]]


def test_a_network_of_random_numbers_is_said_by_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, tensors = drawn(np.random.default_rng(5))
    rng = np.random.default_rng(6)
    network = from_arrays(spec, {name: rng.normal(size=tensor.shape) for name, tensor in tensors.items()})
    plain = list(generate(network, [1, 2], tokens=30))
    monkeypatch.setattr(speaking, "FEW", 0)
    assert list(generate(network, [1, 2], tokens=30)) == plain


def test_a_whole_text_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """By compiled code alone: the module may not even be asked."""
    built = byheart.compile(TEXTS)
    network, end = built.network, built.questions.end
    assert end is not None
    monkeypatch.setattr(speaking, "FEW", 0)
    monkeypatch.setattr(speaking, "_by_module", None)
    monkeypatch.setattr(speaking, "_side_by_side", None)
    prompts = [text["prompt"] for text in built.questions.beginnings]
    spoken = generate_all(network, prompts, end=end, tokens=[60, 60])
    assert [bytes([*prompt, *said]).decode() for prompt, said in zip(prompts, spoken, strict=True)] == [*TEXTS.values()]
    assert [*prompts[1], *generate(network, prompts[1], end=end)] == [*TEXTS["two"].encode(), end]


def test_progress_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speaking, "FEW", 0)
    heard: list[tuple[int, int]] = []
    generate_all(turning_inexact(39), [[0], [5]], end=9, tokens=[3, 4], report=lambda *steps: heard.append(steps))
    assert heard == [(3, 7), (7, 7)]


def test_what_lies_farther_back_than_it_sees_is_left_out() -> None:
    network = from_arrays(*drawn(np.random.default_rng(3)))
    tokens = np.random.default_rng(3).integers(0, 5, 50).tolist()
    decoder = Recital.of(network.module)
    assert decoder is not None
    assert decoder.hear(tokens)
    assert decoder.say(1) == [int(by_module(network, tokens)[-1].argmax())]
    again = decoder.again()
    assert again.hear(tokens[-3:])
    assert again.say(1) == [int(by_module(network, tokens[-3:])[-1].argmax())], "nothing is left of what was said"
