"""Saying one token after the other: greedy, with what the attention has read kept from step to step.

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
"""So few tokens are said by the module: compiled code takes as long to load (and the first time, to be compiled)."""
AT_ONCE = 256
"""Tokens that compiled code says before anybody hears them."""
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
    """The first so many ``tokens`` of a speech, or up to ``end``."""
    for token in islice(speech, tokens):
        yield token
        if token == end:
            return
        if token >= vocab:
            raise BadInput(f"the answer is label {token}; expected a token below {vocab} to go on with")


def _speech(module: Transformer, prompt: list[int], guess: int, *, compiled: bool) -> Iterator[int]:
    """All that follows the prompt, without end; by compiled code as long as that proves what it says."""
    said = [*prompt]
    for token in _proved(_decoder(module), prompt) if compiled else ():
        said.append(token)
        yield token
    # What lies farther back than all attention reaches changes nothing.
    given, cache = said[-module.sees :], None
    if len(said) > len(prompt) and len(given) > 1:  # the last token alone, as if the module had said all
        _, cache = _step(module, given[:-1], None, 1)
        given = given[-1:]
    yield from _by_module(module, said, given, cache, guess)


def _decoder(module: Transformer) -> "Recital | None":
    from byheart.networks.transformer.program import Recital  # needs numba

    return Recital.of(module)


def _proved(decoder: "Recital | None", prompt: list[int]) -> Iterator[int]:
    """What follows the prompt, as far as it is proved."""
    if decoder is not None and decoder.hear(prompt):
        while found := decoder.say(AT_ONCE):
            yield from found


def _by_module(
    module: Transformer, said: Sequence[int], given: list[int], cache: Cache | None, guess: int
) -> Iterator[int]:
    """All that follows what was ``said``, whose last tokens are ``given``; those before these made ``cache``."""
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
    """What follows each of the ``last`` tokens; those before are read in portions."""
    portion = at_once(module.spec)
    while len(tokens) > max(portion, last):
        early = min(portion, len(tokens) - last)
        _, cache = module.mix(torch.tensor([tokens[:early]], device=module.device), cache)
        tokens = tokens[early:]
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


def generate_all(
    network: TransformerNetwork,
    prompts: Sequence[Sequence[int]],
    *,
    end: int,
    tokens: Sequence[int],
    report: Report | None = None,
) -> list[list[int]]:
    """What follows each of the prompts, up to the token ``end`` (left out), but no more than its entry of ``tokens``.

    By compiled code one after the other, if there is much to say; what that cannot prove, by the module side by side.
    ``report`` hears of tokens.
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
    """The same in one batch. A text that is over leaves it; so does one that has said as many as it may."""
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
