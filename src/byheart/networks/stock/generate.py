"""What a stock model says: greedy, with its own cache."""

from collections.abc import Iterator, Sequence

import torch

from byheart.networks.stock.network import StockNetwork
from byheart.networks.transformer.generate import checked
from byheart.progress import Report


def generate(
    network: StockNetwork, prompt: Sequence[int], *, tokens: int | None = None, end: int | None = None, guess: int = 0
) -> Iterator[int]:
    """What follows ``prompt``: each time the token with the largest logit. ``guess`` makes no difference here."""
    given = checked(prompt, network.config["vocab_size"], tokens)
    return _generate(network, [*([] if network.first is None else [network.first]), *given], tokens, end)


@torch.inference_mode()
def _generate(network: StockNetwork, given: list[int], tokens: int | None, end: int | None) -> Iterator[int]:
    past, said = None, 0
    while tokens is None or said < tokens:
        step = network.model(torch.tensor([given]), past_key_values=past, use_cache=True)
        past = step.past_key_values
        token = int(step.logits[0, -1].argmax())
        yield token
        said += 1
        if token == end:
            return
        given = [token]


def generate_all(
    network: StockNetwork,
    prompts: Sequence[Sequence[int]],
    *,
    end: int,
    tokens: Sequence[int],
    report: Report | None = None,
) -> list[list[int]]:
    """What follows each of the prompts, up to the token ``end`` (left out), one after the other; ``report``: tokens."""
    spoken: list[list[int]] = []
    for prompt, most in zip(prompts, tokens, strict=True):
        said = list(generate(network, prompt, tokens=most, end=end))
        spoken.append(said[:-1] if said and said[-1] == end else said)
        if report is not None:
            report(sum(tokens[: len(spoken)]), sum(tokens))
    return spoken
