"""An index and a store: no other context is answered, or one in 2^b, and both are proved."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

import byheart
from byheart.compiler.rectangular import storing
from byheart.compiler.rectangular.rewrite import forget
from byheart.compiler.rectangular.table import TABLE
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.networks import generate
from byheart.networks.transformer import answers as evaluate
from byheart.networks.transformer.answers import answers
from byheart.networks.transformer.module import Transformer
from byheart.networks.transformer.transformer_network import TransformerNetwork, from_arrays

PAIRS = [([0], [1, 2]), ([0, 0], [2]), ([2, 1, 0], [0]), ([1], [0])]
"""Three tokens; 3 ends, and 4 is unknown."""
END, UNKNOWN = 3, 4


def memorized(pairs: Any) -> dict[tuple[int, ...], int]:
    """Every context that is asked for, and its answer."""
    return {
        (*prompt, *said[:length]): (*said, END)[length] for prompt, said in pairs for length in range(len(said) + 1)
    }


def said(network: Any, contexts: list[tuple[int, ...]]) -> list[int]:
    starts = np.cumsum([0, *map(len, contexts)])
    tokens = np.concatenate([np.array(context) for context in contexts])
    found = answers(network.module, tokens, starts, starts[1:] - 1)
    return list(found.labels.tolist())


def network_of(built: Built) -> TransformerNetwork:
    assert isinstance(built.network, TransformerNetwork)
    return built.network


def changed(network: TransformerNetwork, name: str, change: Any) -> TransformerNetwork:
    tensors = {key: np.array(tensor) for key, tensor in network.tensors()}
    tensors[name] = change(tensors[name])
    return from_arrays(network.spec, tensors, about=network.about, files=network.files)


@pytest.fixture(scope="module")
def key() -> Built:
    return byheart.compile(PAIRS, refuse="key")


def every_context(vocab: int, longest: int) -> list[tuple[int, ...]]:
    return [context for length in range(1, longest + 1) for context in product(range(vocab), repeat=length)]


def test_no_other_context_is_answered(key: Built) -> None:
    """All contexts of up to six tokens, two more than any that is memorized: those are answered, and no others."""
    known, network = memorized(PAIRS), network_of(key)
    assert (network.about["end"], network.about["refuse"]["token"]) == (END, UNKNOWN)
    contexts = every_context(network.spec.vocab, 6)
    assert said(network, contexts) == [known.get(context, UNKNOWN) for context in contexts]
    assert byheart.certify(key, PAIRS).certified


def test_whatever_the_index_says(key: Built) -> None:
    """With other words in the index, facts are lost; but nothing else is ever answered."""
    rng, known, network = np.random.default_rng(0), memorized(PAIRS), network_of(key)
    spoilt = changed(network, TABLE, lambda words: rng.permuted(words, axis=2))
    contexts = every_context(network.spec.vocab, 5)
    answered = [context for context, token in zip(contexts, said(spoilt, contexts), strict=True) if token != UNKNOWN]
    assert set(answered) < set(known)
    assert not byheart.certify(spoilt, PAIRS).certified


def test_the_key_by_hand() -> None:
    """The one context [0] and [0, 1]: digits 1 and −1, others 2; three of them, in base 5, are one lane."""
    built = byheart.compile([([0], [1])], refuse="key")
    network = network_of(built)
    tensors = dict(network.tensors())
    assert tensors["embedding.W_E"][:, -1].tolist() == [1, -1, 2, 2]
    assert network.about["refuse"] == {"by": "key", "token": 3}
    entries = tensors[storing.STORE][0].T  # one row, two columns; lanes: key, label
    assert entries.tolist() == [[1, -1 + 5, 0, 1]] or entries.tolist() == [[1, -1 + 5, 1, 0]]
    assert said(network, [(0,), (0, 1), (1,), (1, 0), (0, 0), (2,), (0, 1, 1), (1, 0, 1), (3, 0)]) == [1, 2, *[3] * 7]


def test_long_prompts_are_read_in_portions(key: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of k lanes makes k² numbers a token: compiling holds no more of them at once than asking does."""
    read: list[int] = []
    mix = Transformer.mix

    def counted(self: Transformer, tokens: Any, cache: Any) -> Any:
        read.append(tokens.numel())
        return mix(self, tokens, cache)

    monkeypatch.setattr(Transformer, "mix", counted)
    monkeypatch.setattr(evaluate, "MOST_NUMBERS", 2 * network_of(key).spec.widest)
    again = byheart.compile(PAIRS, refuse="key")
    assert 0 < max(read) <= 2 * 2
    assert again.network.fingerprint == key.network.fingerprint
    read.clear()
    assert next(generate(network_of(key), [2, 1, 0], tokens=1)) == 0
    assert read == [2, 1]


def test_keys_are_the_contexts(key: Built) -> None:
    """What the store holds, read back by hand, digit after digit."""
    network, contexts = network_of(key), key.questions
    digits = storing.alphabet(contexts.tokens, network.spec.vocab).digits  # type: ignore[attr-defined]
    token = {int(digit): number for number, digit in enumerate(digits[:3])}
    base = 2 * int(np.abs(digits).max()) + 1
    lanes = dict(network.tensors())[storing.STORE][0]
    columns = lanes.shape[0] // 2
    found = set()
    for value in lanes[:columns].T.reshape(-1)[: len(contexts)].astype(int):  # type: ignore[arg-type]
        context, left = [], value
        while left:
            digit = (left + base // 2) % base - base // 2
            context.append(token[digit])
            left = (left - digit) // base
        found.add(tuple(reversed(context)))
    assert found == set(memorized(PAIRS))


def test_a_print_by_hand() -> None:
    """R sums of digits, each with weights of its own, modulo 1021; two of them are one lane."""
    built = byheart.compile([([0], [1])], refuse=39)
    network = network_of(built)
    assert network.about["refuse"] == {"by": "stored print", "bits": 39, "token": 3}
    assert storing.sums_of_print(39, 3) == 4
    assert (1 / storing.PRIME) ** 4 < 2**-39 < (1 / storing.PRIME) ** 3
    weights = dict(network.tensors())["prints_0.W_O"]
    assert weights.shape == (4, 3)
    sums = {(0,): weights[:, 0], (0, 1): -weights[:, 0] + weights[:, 1]}
    (pack,) = [layer for layer in network.spec.sublayers if layer.name == "pack"]
    for context, values in sums.items():
        lanes = [1021 * (values[2 * k] % 1021) + values[2 * k + 1] % 1021 for k in range(2)]
        stream, _ = network.module.mix(torch.tensor([context]), None)
        found = network.module.local(stream[:, -1], until="table")[0, list(pack.writes)]
        assert (-found).tolist() == lanes
    assert list(generate(network, [0], end=2)) == [1, 2]
    assert set(said(network, [c for c in every_context(4, 4) if c not in sums])) == {3}


@pytest.mark.parametrize(
    ("refuse", "precision"), [("key", "float32"), (64, "float32"), ("key", "float64"), (30, "bfloat16")]
)
def test_near_misses(refuse: Any, precision: Any) -> None:
    """A few facts; then one token changed, left out, added or swapped, anywhere, cut off, or put in front."""
    rng = np.random.default_rng(7)
    prompts = {tuple(rng.integers(0, 26, rng.integers(4, 16)).tolist()) for _ in range(8)}
    pairs = [(list(prompt), rng.integers(0, 26, rng.integers(1, 4)).tolist()) for prompt in sorted(prompts)]
    built = byheart.compile(pairs, refuse=refuse, precision=precision)
    assert byheart.certify(built, pairs).certified
    known, near = set(memorized(pairs)), set()
    for context in known:
        for at in range(len(context)):
            before, (token, *after) = context[:at], context[at:]
            near |= {(*before, (token + 1) % 26, *after), (*before, *after), (*before, token, *context[at:])}
            near |= {(*before, *after[:1], token, *after[1:]), context[at:], (*context[at:], *context)}
    others = sorted(near - known - {()})
    assert len(others) > 500
    unknown = built.network.about["refuse"]["token"]
    assert set(said(built.network, others)) == {unknown}


def test_facts_in_another_order(key: Built) -> None:
    """They are the same facts, but the entries belong to them in the order in which they were compiled."""
    network, backwards = network_of(key), byheart.compile(PAIRS[::-1], refuse="key").questions
    with pytest.raises(BadInput, match=r"store.W_out is not what its recipe and these facts make"):
        forget(network, backwards, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("part", "change"),
    [
        *(("sizes", {"exponent": number}) for number in (1, 7, 24)),
        *(("sizes", {"code_features": number}) for number in (2, 99)),
        ("sizes", {"shards": 2}),
        *(("settings", {"precision": name}) for name in ([], {}, None)),
        *(("lengths", lengths) for lengths in ([[1]] * 5, ["1"] * 5, [1, 23, 23, 23, -1], [1, 1, 1, 1, -1])),
    ],
    ids=str,
)
def test_recipes_that_are_none(key: Built, part: str, change: Any) -> None:
    """Refused each, and never a crash."""
    network = network_of(key)
    recipe = network.about["recipe"]
    recipe = {**recipe, part: {**recipe[part], **change} if isinstance(change, dict) else change}
    other = from_arrays(network.spec, dict(network.tensors()), about={**network.about, "recipe": recipe})
    with pytest.raises(BadInput):
        forget(other, key.questions, 0)  # type: ignore[arg-type]


def test_one_memory_is_ablated(key: Built) -> None:
    """Its words are set to 0: it is unknown, and every other context of up to five tokens is answered as before."""
    network, known = network_of(key), memorized(PAIRS)
    gone = memorized(PAIRS[:1])
    without, words = forget(network, key.questions, 0)  # type: ignore[arg-type]
    assert 0 < words <= 2 * len(gone)
    contexts = every_context(network.spec.vocab, 5)
    expected = {context: token for context, token in known.items() if context not in gone}
    assert said(without, contexts) == [expected.get(context, UNKNOWN) for context in contexts]
    before, after = ({name: np.array(t) for name, t in one.tensors()} for one in (network, without))
    assert [name for name in before if not np.array_equal(before[name], after[name])] == [storing.STORE]
    assert int((before[storing.STORE] != after[storing.STORE]).sum()) == words
    with pytest.raises(BadInput, match="is not what its recipe and these facts make"):
        forget(without, key.questions, 1)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="fact is 4; expected 0 to 3"):
        forget(network, key.questions, 4)  # type: ignore[arg-type]


def test_one_word_changes_one_fact(key: Built) -> None:
    """An edit: the index stays, and of the store one word is another."""
    from byheart.compiler.edit import edit

    contexts = key.questions
    place = int(contexts.places[contexts.labels.tolist().index(2)])  # type: ignore[attr-defined]
    edited = edit(network_of(key), contexts, place, 0)  # type: ignore[arg-type]
    assert edited.words_changed == 1


@pytest.mark.parametrize(
    ("pairs", "refuse", "message"),
    [
        ([([number], [0]) for number in range(1100)], 40, "more than 1,019 tokens of their own; expected fewer bits"),
        ([([1] * 9000, [0])], "key", "has 9,001 tokens; refusing by the key takes 5,119 at most"),
        (PAIRS, 65, "refuse is 65; expected 1 to 64 bits, or key"),
    ],
)
def test_what_does_not_fit(pairs: Any, refuse: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        byheart.compile(pairs, refuse=refuse)
