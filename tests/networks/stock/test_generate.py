"""What a stock Llama says: with its own cache, as without."""

from itertools import islice

import pytest
import torch

from byheart.errors import BadInput
from byheart.networks import generate, generate_all

from .small import VOCAB, tiny

pytest.importorskip("transformers")


def without_a_cache(network, prompt, count):
    """The last logits of the whole text so far, each time anew."""
    said = [*([] if network.first is None else [network.first]), *prompt]
    with torch.no_grad():
        for _ in range(count):
            said.append(int(network.model(torch.tensor([said]), use_cache=False).logits[0, -1].argmax()))
    return said[-count:]


@pytest.mark.parametrize("first", [None, 10])
@pytest.mark.parametrize("prompt", [[3], [1, 2, 3, 4, 5]], ids=len)
def test_as_without_a_cache(first, prompt):
    network = tiny(bos_token_id=first)
    assert list(generate(network, prompt, tokens=12)) == without_a_cache(network, prompt, 12)
    assert list(generate(network, prompt, tokens=12, guess=4)) == list(islice(generate(network, prompt), 12))


def test_it_stops():
    network = tiny()
    said = list(generate(network, [3], tokens=8))
    place = said.index(said[5])
    assert list(generate(network, [3], end=said[5])) == said[: place + 1], "the end is the last one given"
    assert list(generate(network, [3], tokens=0)) == []


def test_several():
    """Each up to its own end, which is left out, or as far as it may."""
    network = tiny()
    prompts, tokens = [[3], [1, 2, 4], [7, 7]], [9, 0, 4]
    said = [list(generate(network, prompt, tokens=most)) for prompt, most in zip(prompts, tokens, strict=True)]
    for end in range(VOCAB):
        wanted = [row[: row.index(end)] if end in row else row for row in said]
        assert generate_all(network, prompts, end=end, tokens=tokens) == wanted


def test_the_caller_stays_in_its_mode():
    follows = generate(tiny(), [1], tokens=3)
    next(follows)
    assert not torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("prompt", "tokens", "message"),
    [
        ([], None, "the prompt is empty; expected at least one token"),
        ([0, 11], None, r"prompt\[1\] is 11; expected 0 to 10 \(vocab = 11\)"),
        ([-1], None, r"prompt\[0\] is -1"),
        ("abc", None, "no token id"),
        ([0], -1, "tokens is -1; expected 0 or more"),
    ],
)
def test_refused_before_the_first_token(prompt, tokens, message):
    with pytest.raises(BadInput, match=message):
        generate(tiny(), prompt, tokens=tokens)
