"""One token after the other."""

from itertools import islice

import numpy as np
import pytest
import torch

from byheart.errors import BadInput
from byheart.networks.transformer import Spec
from byheart.networks.transformer.generate import generate, generate_all
from byheart.networks.transformer.transformer_network import from_arrays

from .small import drawn


def counting(vocab, labels):
    """After k comes k + 1, until there is no such label; then label 0."""
    spec = Spec(vocab, labels, 1, vocab, "float32", tuple(range(vocab)), tuple(range(vocab)), ())
    follows = np.zeros((labels, vocab), np.float32)
    follows[(np.arange(vocab) + 1) % labels, np.arange(vocab)] = 1
    tensors = {"embedding.W_E": np.eye(vocab, dtype=np.float32), "unembedding.W_U": follows}
    return from_arrays(spec, tensors | {"unembedding.b_U": np.zeros(labels, np.float32)})


def test_it_stops():
    network = counting(5, 5)
    assert list(generate(network, [0, 2], tokens=4)) == [3, 4, 0, 1]
    assert list(generate(network, [0, 2], end=0)) == [3, 4, 0]
    assert list(generate(network, [0, 2], tokens=2, end=0)) == [3, 4]
    assert list(generate(network, [0], tokens=0)) == []
    assert list(islice(generate(network, [0]), 7)) == [1, 2, 3, 4, 0, 1, 2]


@pytest.mark.parametrize("length", [1, 3, 30])
def test_as_without_a_cache(length):
    spec, tensors = drawn(np.random.default_rng(5))
    network = from_arrays(spec, tensors)
    said = np.random.default_rng(5).integers(0, 5, length).tolist()
    found = list(generate(network, said, tokens=20))
    with torch.no_grad():
        for _ in range(20):
            said.append(int(network.module(torch.tensor([said]))[0, -1].argmax()))
    assert found == said[length:]


def test_the_caller_stays_in_its_mode():
    follows = generate(counting(5, 5), np.array([1]), tokens=3)
    assert next(follows) == 2
    assert not torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([], "the prompt is empty; expected at least one token"),
        ([0, 5], r"prompt\[1\] is 5; expected 0 to 4 \(vocab = 5\)"),
        ([-1], r"prompt\[0\] is -1; expected 0 to 4"),
        ([0.5], "no token id"),
        ("abc", "no token id"),
    ],
)
def test_prompts_that_are_none(prompt, message):
    with pytest.raises(BadInput, match=message):
        generate(counting(5, 5), prompt)


def test_a_negative_number_of_tokens():
    with pytest.raises(BadInput, match="tokens is -1; expected 0 or more"):
        generate(counting(5, 5), [0], tokens=-1)


def test_a_label_that_is_no_token():
    follows = generate(counting(3, 7), [1])
    assert next(follows) == 2
    assert next(follows) == 3
    with pytest.raises(BadInput, match="the answer is label 3; expected a token below 3 to go on with"):
        next(follows)


@pytest.mark.parametrize("guess", [1, 3, 16])
def test_guesses_change_nothing(guess):
    """Counting repeats itself, so that guesses are right; the drawn network's are mostly wrong."""
    for network in (counting(5, 5), from_arrays(*drawn(np.random.default_rng(5)))):
        plain = list(generate(network, [0, 2], tokens=40))
        assert list(generate(network, [0, 2], tokens=40, guess=guess)) == plain


def test_side_by_side_is_one_after_the_other():
    """Prompts of different lengths, texts that end at different times, one that never does."""
    network, rng = from_arrays(*drawn(np.random.default_rng(5))), np.random.default_rng(1)
    prompts = [rng.integers(0, 5, length).tolist() for length in (1, 9, 4, 4)]
    tokens = [30, 7, 1, 20]
    said = [list(generate(network, prompt, tokens=most)) for prompt, most in zip(prompts, tokens, strict=True)]
    for end in range(5):
        wanted = [row[: row.index(end)] if end in row else row for row in said]
        assert generate_all(network, prompts, end=end, tokens=tokens) == wanted
