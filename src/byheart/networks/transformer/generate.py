"""Greedy generation, one token after the other, with a cache of what attention has read.

The module says them; or, if there are many, compiled code (:class:`.program.Recital`), which proves every token to be
what the module says. From the first token on that is not proved, the module goes on.
"""

import operator
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import torch

from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.networks.transformer.answers import at_once
from byheart.networks.transformer.module import Cache, Transformer
from byheart.networks.transformer.transformer_network import TransformerNetwork
from byheart.progress import Report

if TYPE_CHECKING:
    from byheart.networks.transformer.program import Recital

FEW = 1000
"""Fewest tokens that compiled code says; loading it takes as long as the module takes for fewer."""
AT_ONCE = 256
"""Number of tokens that compiled code says before they are handed on."""
GRAM = 5
"""Number of tokens that must have been said before, in the same order, for a guess at what follows."""


def generate(
    network: TransformerNetwork,
    prompt: Sequence[int],
    *,
    tokens: int | None = None,
    end: int | None = None,
    guess: int = 0,
) -> Iterator[int]:
    """Return the tokens that follow ``prompt``: each has the largest logit, and is the first of equals.

    The iterator stops after ``tokens`` tokens, or after the token ``end``, which it yields. Without both, it goes on.
    The prompt is checked here, not when the first token is asked for.

    ``guess`` is the number of tokens to try at once, copied from where the last few were said before; those that are
    right are kept. It changes no token, and saves time where a text repeats itself.

    >>> from byheart.networks.transformer import Spec
    >>> from byheart.networks.transformer.transformer_network import from_arrays
    >>> import numpy as np
    >>> spec = Spec(3, 3, 1, 3, "float32", embeds=(0, 1, 2), unembeds=(0, 1, 2), sublayers=())
    >>> next_one = np.roll(np.eye(3, dtype=np.float32), 1, axis=0)  # 0, 1, 2, 0, …
    >>> tensors = {"embedding.W_E": np.eye(3, dtype=np.float32), "unembedding.W_U": next_one}
    >>> network = from_arrays(spec, tensors | {"unembedding.b_U": np.zeros(3, np.float32)})
    >>> list(generate(network, [0], tokens=4)), list(generate(network, [0], end=2))
    ([1, 2, 0, 1], [1, 2])
    """
    given = checked(prompt, network.spec.vocab, tokens)
    speech = _speech(network.module, given, guess, compiled=tokens is None or tokens >= FEW)
    return _until(speech, network.spec.vocab, tokens, end)


def _until(speech: Iterator[int], vocab: int, tokens: int | None, end: int | None) -> Iterator[int]:
    """Yield the first ``tokens`` tokens of a speech, or those up to ``end``."""
    for token in islice(speech, tokens):
        yield token
        if token == end:
            return
        if token >= vocab:
            raise BadInput(f"the answer is label {token}; expected a token below {vocab} to go on with")


def _speech(module: Transformer, prompt: list[int], guess: int, *, compiled: bool) -> Iterator[int]:
    """Yield the tokens that follow the prompt, without end; by compiled code as long as that proves them."""
    said = [*prompt]
    for token in _proved(_decoder(module), prompt) if compiled else ():
        said.append(token)
        yield token
    # Tokens farther back than all attention reaches change nothing.
    given, cache = said[-module.sees :], None
    if len(said) > len(prompt) and len(given) > 1:  # the last token alone, as if the module had said all
        _, cache = _step(module, given[:-1], None, 1)
        given = given[-1:]
    yield from _by_module(module, said, given, cache, guess)


def _decoder(module: Transformer) -> "Recital | None":
    from byheart.networks.transformer.program import Recital  # needs numba

    return Recital.of(module)


def _proved(decoder: "Recital | None", prompt: list[int]) -> Iterator[int]:
    """Yield the tokens that follow the prompt as far as they are proved."""
    if decoder is not None and decoder.hear(prompt):
        while found := decoder.say(AT_ONCE):
            yield from found


def _by_module(
    module: Transformer, said: Sequence[int], given: list[int], cache: Cache | None, guess: int
) -> Iterator[int]:
    """Yield the tokens that follow those in ``said``; its last ones are ``given``, those before are in ``cache``."""
    memory = _Memory(said)
    while True:
        guessed = memory.guess(guess)
        found, cache = _step(module, [*given, *guessed], cache, 1 + len(guessed))
        right = next((k for k, token in enumerate(guessed) if token != found[k]), len(guessed))
        cache = [kept[:, :, : kept.shape[2] - len(guessed) + right] for kept in cache]
        for token in found[: right + 1]:
            yield token
            memory.add(token)
        given = found[right : right + 1]


# Step by step: a generator that were in this mode as a whole would leave its caller in it.
@torch.inference_mode()
def _step(module: Transformer, tokens: list[int], cache: Cache | None, last: int) -> tuple[list[int], Cache]:
    """Return the next token after each of the ``last`` tokens, and the cache; read those before in portions."""
    portion = at_once(module.spec)
    while len(tokens) > max(portion, last):
        early = min(portion, len(tokens) - last)
        _, cache = module.mix(torch.tensor([tokens[:early]], device=module.device), cache)
        tokens = tokens[early:]
    stream, cache = module.mix(torch.tensor([tokens], device=module.device), cache)
    found: list[int] = module.answer(stream[0, -last:]).argmax(dim=1).tolist()
    return found, cache


class _Memory:
    """All tokens so far, and the place after the last occurrence of every run of ``GRAM`` tokens."""

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
    """Return the prompt as numbers; raise BadInput if it has others, or if ``tokens`` is negative."""
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


def generate_all(
    network: TransformerNetwork,
    prompts: Sequence[Sequence[int]],
    *,
    end: int,
    tokens: Sequence[int],
    report: Report | None = None,
) -> list[list[int]]:
    """Return the tokens that follow each prompt, up to ``end``, which is left out, and at most its entry of ``tokens``.

    Compiled code says one text after the other if there are many tokens; the module says those that it cannot prove,
    side by side. ``report`` counts tokens.
    """
    module, spoken = network.module, [list[int]() for _ in prompts]
    given = [checked(prompt, module.spec.vocab) for prompt in prompts]
    decoder = _decoder(module) if sum(tokens) >= FEW else None
    left = []
    for row, prompt in enumerate(given):
        most = max(1, tokens[row])
        speech = _proved(None if decoder is None else decoder.again(), prompt)
        said = list(_until(speech, module.spec.vocab, most, end))
        ended = said[-1:] == [end]
        spoken[row] = said[:-1] if ended else said
        if not ended and len(said) < most:
            left.append(row)
        elif report is not None:
            report(sum(tokens[: row + 1]), sum(tokens))
    if left:
        rest = _side_by_side(module, [given[row] for row in left], end, [tokens[row] for row in left], report)
        for row, said in zip(left, rest, strict=True):
            spoken[row] = said
    return spoken


@torch.inference_mode()
def _side_by_side(
    module: Transformer, prompts: Sequence[list[int]], end: int, tokens: Sequence[int], report: Report | None
) -> list[list[int]]:
    """Say all texts in one batch. A text leaves it at its end, or after its entry of ``tokens``."""
    spoken: list[list[int]] = [[] for _ in prompts]
    longest = max(len(prompt) for prompt in prompts)
    places = len(prompts) * (longest * module.spec.widest + module.spec.reach * module.spec.stream)
    check_memory(8 * places, f"to recite {len(prompts):,} texts side by side")
    padded = torch.zeros(len(prompts), longest, dtype=torch.long)
    given = torch.zeros(len(prompts), longest)
    for row, prompt in enumerate(prompts):
        padded[row, longest - len(prompt) :] = torch.tensor(prompt)
        given[row, longest - len(prompt) :] = 1
    speaking = torch.arange(len(prompts))
    stream, cache = module.mix(padded.to(module.device), None, given.to(module.device))
    logits = module.answer(stream[:, -1])
    while True:
        found = logits.argmax(dim=1)
        for row, token in zip(speaking.tolist(), found.tolist(), strict=True):
            if token != end:
                spoken[row].append(token)
        if report is not None:
            report(sum(map(len, spoken)), sum(tokens))
        full = torch.tensor([len(spoken[row]) >= tokens[row] for row in speaking.tolist()], device=found.device)
        going = (found != end) & ~full
        if not going.all():
            speaking, found = speaking[going.cpu()], found[going]
            cache = [kept[:, going] for kept in cache]
            if not len(speaking):
                return spoken
        logits, cache = module.step(found[:, None], cache)
