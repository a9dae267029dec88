"""A store of keys or prints: that no other context is answered is proved from the tensors, and damage is seen."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byheart
from byheart.certificates.judges import asked
from byheart.certificates.refusal import doubt, judge_refusal
from byheart.compiler.rectangular.table import TABLE
from byheart.constructions.built import Built
from byheart.networks.transformer.answers import answers
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays
from byheart.tasks.contexts import Contexts

GOLDEN = Path(__file__).parents[1] / "golden" / "files"
PAIRS = [([0], [1, 2]), ([0, 0], [2]), ([2, 1, 0], [0]), ([1], [0])]
"""Three tokens; 3 ends, and 4 is unknown."""
UNKNOWN = 4
MEMORIZED = {(*prompt, *words[:length]) for prompt, words in PAIRS for length in range(len(words) + 1)}
CONTEXTS = [context for length in range(1, 6) for context in product(range(5), repeat=length)]


def parts_of(built: Built) -> tuple[TransformerNetwork, Contexts]:
    assert isinstance(built.network, TransformerNetwork)
    assert isinstance(built.questions, Contexts)
    return built.network, built.questions


def changed(network: TransformerNetwork, name: str, change: Any) -> TransformerNetwork:
    tensors = {key: np.array(tensor) for key, tensor in network.tensors()}
    tensors[name] = change(tensors[name])
    return from_arrays(network.spec, tensors, about=network.about, files=network.files)


def flipped(network: TransformerNetwork, name: str, entry: int, bit: int) -> TransformerNetwork:
    def flip(tensor: Any) -> Any:
        words = tensor.reshape(-1).view(np.uint32)
        words[entry] ^= np.uint32(1 << bit)
        return tensor

    return changed(network, name, flip)


def other_contexts_answered(network: TransformerNetwork) -> set[tuple[int, ...]]:
    """Of all contexts of up to five tokens."""
    starts = np.cumsum([0, *map(len, CONTEXTS)])
    tokens = np.concatenate([np.array(context) for context in CONTEXTS])
    labels = answers(network.module, tokens, starts, starts[1:] - 1).labels
    return {context for context, label in zip(CONTEXTS, labels, strict=True) if label != UNKNOWN} - MEMORIZED


@pytest.fixture(scope="module")
def key() -> Built:
    return byheart.compile(PAIRS, refuse="key")


@pytest.fixture(scope="module")
def prints() -> Built:
    return byheart.compile(PAIRS, refuse=30)


@pytest.mark.parametrize(
    ("refuse", "precision"), [("key", "float64"), ("key", "bfloat16"), (64, "float64"), (30, "bfloat16")]
)
def test_every_precision_is_proved(refuse: Any, precision: Any) -> None:
    assert doubt(*parts_of(byheart.compile(PAIRS, refuse=refuse, precision=precision))) == ""


@pytest.mark.parametrize("refuse", ["key", 40])
def test_longer_facts_are_proved(refuse: Any) -> None:
    """Several rows and columns, several lanes, and a hash of two layers or more."""
    rng = np.random.default_rng(3)
    prompts = sorted({tuple(rng.integers(0, 60, rng.integers(8, 30)).tolist()) for _ in range(150)})
    pairs = [(list(prompt), rng.integers(0, 60, 3).tolist()) for prompt in prompts]
    assert doubt(*parts_of(byheart.compile(pairs, refuse=refuse))) == ""


@pytest.mark.parametrize("name", ["refuse-key", "refuse-30"])
def test_recorded_folders(name: str) -> None:
    """Networks that an earlier version compiled are proved, too, and not for other facts."""
    network = byheart.load(GOLDEN / name)
    assert isinstance(network, TransformerNetwork)
    facts = {"capital of France": "Paris", "capital of Peru": "Lima", "中国的首都": "北京"}
    contexts = asked(network, list(facts.items()))
    assert doubt(network, contexts) == ""
    fewer = asked(network, list(facts.items())[:-1])
    assert doubt(network, fewer)


def test_facts_in_another_order(key: Built) -> None:
    network, _ = parts_of(key)
    assert doubt(network, parts_of(byheart.compile(PAIRS[::-1], refuse="key"))[1]) == ""


def test_whatever_the_index_says(key: Built) -> None:
    """With other words in the index, facts are lost; that nothing else is answered is proved all the same."""
    network, contexts = parts_of(key)
    rng = np.random.default_rng(0)
    assert doubt(changed(network, TABLE, lambda words: rng.permuted(words, axis=2)), contexts) == ""
    halves = changed(network, TABLE, lambda words: words + 0.5)
    assert doubt(halves, contexts)


@pytest.mark.parametrize("bit", [0, 12, 22, 23, 29])
def test_one_bit_of_a_stored_key(key: Built, bit: int) -> None:
    network, contexts = parts_of(key)
    store = dict(network.tensors())["store.W_out"]
    entry = int(np.flatnonzero(store[0, : 2 * (store.shape[1] // 4)])[0])  # a lane of a key, not of a label
    assert doubt(flipped(network, "store.W_out", entry, bit), contexts)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("compare.W_in", lambda weights: weights + 1),
        ("compare.W_in", lambda weights: weights * [[[1], [0], [1]]]),
        ("compare.W_out", lambda weights: -weights),
        ("compare.W_out", lambda weights: weights * [[[0, 1, 1]]]),
        ("compare.b_in", lambda weights: weights - 3000),
        ("known.b_gate", lambda weights: weights + 1e4),
        ("known.W_gate", lambda weights: -weights),
        ("known.W_up", lambda weights: weights + 1),
        ("known.W_out", lambda weights: -weights),
        ("unembedding.b_U", lambda weights: weights[::-1]),
        ("embedding.W_E", lambda weights: weights * [[1, 0]] + [[0, 1]]),
        ("embedding.W_E", lambda weights: weights - [[0, 1]]),
        ("key_lanes.W_O", lambda weights: weights * 0),
        ("key_digits.W_O", lambda weights: weights * 0 + 1),
        ("key_digits.bias", lambda weights: weights * 0),
        ("entry.b_gate", lambda weights: weights + 1e4),
        ("entry.W_up", lambda weights: weights * 2),
        ("store.b_in", lambda weights: weights + 1e4),
        ("number.W_up", lambda weights: weights / 2),
        ("hash_0.W_O", lambda weights: weights + 0.5),
        ("bits_0.W_out", lambda weights: weights * 0.75),
        ("integer_0.W_in", lambda weights: weights / 1024),
    ],
)
def test_damage_is_seen(key: Built, name: str, change: Any) -> None:
    network, contexts = parts_of(key)
    assert doubt(changed(network, name, change), contexts)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("prints_0.W_O", lambda weights: np.roll(weights, 1)),
        ("prints_0_mod_0.W_out", lambda weights: weights + 1),
        ("prints_above_0.W_out", lambda weights: weights + 1),
        ("pack.W_in", lambda weights: weights[:, :, ::-1]),
        ("embedding.W_E", lambda weights: weights * [[1, 2]]),
        ("compare.W_out", lambda weights: -weights),
        ("store.W_out", lambda weights: weights + 1),
    ],
)
def test_damaged_prints_are_seen(prints: Built, name: str, change: Any) -> None:
    network, contexts = parts_of(prints)
    assert doubt(network, contexts) == ""
    assert doubt(changed(network, name, change), contexts)


@pytest.mark.parametrize("seed", range(12))
def test_random_flips(key: Built, seed: int) -> None:
    """One bit anywhere: if the proof still holds, then nothing else is answered, for all contexts of five tokens."""
    network, contexts = parts_of(key)
    rng = np.random.default_rng(seed)
    tensors = {name: tensor for name, tensor in network.tensors() if not name.startswith("hash")}
    name = str(rng.choice(list(tensors)))
    entry, bit = int(rng.integers(tensors[name].size)), int(rng.integers(23))
    other = flipped(network, name, entry, bit)
    if doubt(other, contexts) == "":
        assert not other_contexts_answered(other)


def test_the_flips_can_let_others_pass(key: Built) -> None:
    """A control: a comparison that leaves lanes out answers contexts that were never memorized."""
    network, contexts = parts_of(key)
    blind = changed(network, "key_lanes.W_O", lambda weights: weights * 0)
    blind = changed(
        blind, "store.W_out", lambda words: words * (np.arange(words.shape[1]) >= words.shape[1] // 2)[:, None]
    )
    assert other_contexts_answered(blind)
    assert doubt(blind, contexts)


def test_other_facts(key: Built) -> None:
    network, contexts = parts_of(key)
    store = changed(network, "store.W_out", lambda entries: entries[:, ::-1])
    assert doubt(store, contexts) == "store.W_out does not hold these facts and no others"
    fewer = parts_of(byheart.compile(PAIRS[:-1], refuse="key"))[1]
    assert doubt(network, fewer)
    plain, asked = parts_of(byheart.compile(PAIRS, refuse=4))
    assert doubt(plain, asked) == "it has no store"


@pytest.mark.parametrize(
    ("refuse", "claim"),
    [(30, {"by": "key"}), (30, {"by": "stored print", "bits": 64}), ("key", {"by": "stored print", "bits": 64})],
)
def test_a_false_claim(refuse: Any, claim: Any) -> None:
    """Nothing differs but what the folder says of how it refuses."""
    network, contexts = parts_of(byheart.compile(PAIRS, refuse=refuse))
    about = {**network.about, "refuse": {**claim, "token": UNKNOWN}}
    assert doubt(from_arrays(network.spec, dict(network.tensors()), about=about), contexts)


@pytest.mark.parametrize("draw", [[1, 0], [0], None, ["0", 0], [-1, 0]])
def test_a_print_s_seed(prints: Built, draw: Any) -> None:
    network, contexts = parts_of(prints)
    about = {**network.about, "recipe": {"draw": draw}}
    assert "seed" in doubt(from_arrays(network.spec, dict(network.tensors()), about=about), contexts)


def test_the_status(key: Built, prints: Built) -> None:
    status = judge_refusal(*parts_of(key))
    assert status is not None
    assert (status.as_json()["proved"], status.doubt) == (True, "")
    of_prints = judge_refusal(*parts_of(prints))
    assert str(of_prints).endswith("proved, if the seed was drawn at random by whoever compiled it")
    network, contexts = parts_of(byheart.compile(PAIRS))
    assert judge_refusal(network, contexts) is None
