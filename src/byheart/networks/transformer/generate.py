"""Saying one token after the other: greedy, with what the attention has read kept from step to step."""

import operator
from collections.abc import Iterator, Sequence

import torch

from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.networks.transformer.module import Cache, Transformer
from byheart.networks.transformer.network import TransformerNetwork

GRAM = 5
"""So many tokens must have been said before, in this order, for a guess at what follows."""


def generate(
    network: TransformerNetwork,
    prompt: Sequence[int],
    *,
    tokens: int | None = None,
    end: int | None = None,
    guess: int = 0,
) -> Iterator[int]:
    """What follows ``prompt``: each time the token with the largest logit, the first of equals.

    Stops after ``tokens`` tokens, or after the token ``end``, which is the last one given. Without both, it goes on.
    The prompt is checked here, not when the first token is asked for.

    ``guess``: try the next so many tokens at once, copied from where the last few were said before, and keep those that
    are right. What is said is the same, and sooner where a text repeats itself.

    >>> from byheart.networks.transformer import Spec
    >>> from byheart.networks.transformer.network import from_arrays
    >>> import numpy as np
    >>> spec = Spec(3, 3, 1, 3, "float32", embeds=(0, 1, 2), unembeds=(0, 1, 2), sublayers=())
    >>> next_one = np.roll(np.eye(3, dtype=np.float32), 1, axis=0)  # 0, 1, 2, 0, …
    >>> tensors = {"embedding.W_E": np.eye(3, dtype=np.float32), "unembedding.W_U": next_one}
    >>> network = from_arrays(spec, tensors | {"unembedding.b_U": np.zeros(3, np.float32)})
    >>> list(generate(network, [0], tokens=4)), list(generate(network, [0], end=2))
    ([1, 2, 0, 1], [1, 2])
    """
    return _generate(network.module, checked(prompt, network.spec.vocab, tokens), tokens, end, guess)


def _generate(module: Transformer, prompt: list[int], tokens: int | None, end: int | None, guess: int) -> Iterator[int]:
    memory = _Memory(prompt)
    # What lies farther back than all attention reaches changes nothing.
    given = prompt[-module.sees :]
    cache: Cache | None = None
    count = 0
    while tokens is None or count < tokens:
        guessed = memory.guess(guess)
        found, cache = _step(module, [*given, *guessed], cache, 1 + len(guessed))
        right = next((k for k, token in enumerate(guessed) if token != found[k]), len(guessed))
        cache = [kept[:, :, : kept.shape[2] - len(guessed) + right] for kept in cache]
        for token in found[: right + 1]:
            yield token
            count += 1
            if token == end or count == tokens:
                return
            if token >= module.spec.vocab:
                raise BadInput(f"the answer is label {token}; expected a token below {module.spec.vocab} to go on with")
            memory.add(token)
        given = found[right : right + 1]


# Step by step: a generator that were in this mode as a whole would leave its caller in it.
@torch.inference_mode()
def _step(module: Transformer, tokens: list[int], cache: Cache | None, last: int) -> tuple[list[int], Cache]:
    """What follows each of the ``last`` tokens."""
    stream, cache = module.mix(torch.tensor([tokens], device=module.device), cache)
    found: list[int] = module.answer(stream[0, -last:]).argmax(dim=1).tolist()
    return found, cache


class _Memory:
    """What was said, and where every run of ``GRAM`` tokens was said last."""

    def __init__(self, said: Sequence[int]) -> None:
        self.said: list[int] = []
        self.after: dict[tuple[int, ...], int] = {}
        for token in said:
            self.add(token)

    def add(self, token: int) -> None:
        if len(self.said) >= GRAM:
            self.after[tuple(self.said[-GRAM:])] = len(self.said)
        self.said.append(token)

    def guess(self, count: int) -> list[int]:
        place = self.after.get(tuple(self.said[-GRAM:])) if count else None
        return [] if place is None else self.said[place : place + count]


def checked(prompt: Sequence[int], vocab: int, tokens: int | None = None) -> list[int]:
    """The prompt as numbers; BadInput if it is none, or if a negative number of ``tokens`` is to follow."""
    if tokens is not None and tokens < 0:
        raise BadInput(f"tokens is {tokens}; expected 0 or more")
    try:
        numbers = [operator.index(token) for token in prompt]
    except TypeError as error:
        raise BadInput(f"the prompt has something that is no token id ({error}); expected whole numbers") from error
    if not numbers:
        raise BadInput("the prompt is empty; expected at least one token")
    for place, number in enumerate(numbers):
        if not 0 <= number < vocab:
            raise BadInput(f"prompt[{place}] is {number}; expected 0 to {vocab - 1} (vocab = {vocab})")
    return numbers


@torch.inference_mode()
def generate_all(
    network: TransformerNetwork, prompts: Sequence[Sequence[int]], *, end: int, tokens: Sequence[int]
) -> list[list[int]]:
    """What follows each of the prompts, up to the token ``end`` (left out), said side by side in one batch.

    A text that is over leaves the batch; so does one that has said as many as its entry of ``tokens``.
    """
    module = network.module
    spoken: list[list[int]] = [[] for _ in prompts]
    longest = max(len(prompt) for prompt in prompts)
    places = len(prompts) * (longest * module.spec.widest + module.spec.reach * module.spec.stream)
    check_memory(8 * places, f"to recite {len(prompts):,} texts side by side")
    padded = torch.zeros(len(prompts), longest, dtype=torch.long)
    given = torch.zeros(len(prompts), longest)
    for row, prompt in enumerate(prompts):
        padded[row, longest - len(prompt) :] = torch.tensor(checked(prompt, module.spec.vocab))
        given[row, longest - len(prompt) :] = 1
    speaking = torch.arange(len(prompts))
    stream, cache = module.mix(padded.to(module.device), None, given.to(module.device))
    logits = module.answer(stream[:, -1])
    while True:
        found = logits.argmax(dim=1)
        for row, token in zip(speaking.tolist(), found.tolist(), strict=True):
            if token != end:
                spoken[row].append(token)
        full = torch.tensor([len(spoken[row]) >= tokens[row] for row in speaking.tolist()], device=found.device)
        going = (found != end) & ~full
        if not going.all():
            speaking, found = speaking[going.cpu()], found[going]
            cache = [kept[:, going] for kept in cache]
            if not len(speaking):
                return spoken
        logits, cache = module.step(found[:, None], cache)
