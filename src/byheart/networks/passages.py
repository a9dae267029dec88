"""Find a prompt in the texts that a network recites.

A network answers the contexts that it was compiled from: the last ``window`` tokens at each place of its texts, or all
tokens from a beginning on. A shorter prompt from the middle of a text is none of them, and what follows it means
nothing. To answer every context of k tokens or more, a network would need (window − k) times as many questions. But it
recites its texts from their beginnings, and the prompt can be looked for there.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from byheart.networks.about import facts_of, texts_of
from byheart.networks.kinds import generate, generate_all
from byheart.networks.network import Network
from byheart.progress import Report


@dataclass(frozen=True)
class Passage:
    """A prompt in a text, and what follows it there."""

    name: str
    """Name of the text."""
    start: int
    """Byte of the text at which the prompt begins."""
    content: bytes
    """The prompt and what follows it."""
    tokens: int
    """Number of tokens that follow the prompt."""


def recites_texts(network: Network) -> bool:
    """Return True if the network recites its texts from their beginnings; behind an edited answer it cannot."""
    return bool(texts_of(network)) and facts_of(network) is None and not network.about.get("edits")


def is_beginning(network: Network, prompt: Sequence[int]) -> bool:
    """Return True if ``prompt`` begins a text, and is all that the network needs to go on with that text."""
    for text in texts_of(network):
        known, more = text["prompt"], len(prompt) - len(text["prompt"])
        if more >= 0 and known == list(prompt[: len(known)]):
            speech = generate(network, known, tokens=more) if more else ()
            if all(said == token for said, token in zip(chain(known, speech), prompt, strict=False)):
                return True
    return False


def find_passage(
    network: Network,
    prompt: bytes,
    decode: Callable[[Sequence[int]], bytes],
    *,
    end: int,
    tokens: int | None = None,
    report: Report | None = None,
) -> Passage | None:
    """Return the first passage of the texts that begins with ``prompt``, with ``tokens`` tokens behind it.

    The network recites one text after the other until the prompt is found.
    """
    for text in texts_of(network):
        known = text["prompt"]
        said = [*known, *generate_all(network, [known], end=end, tokens=[text["tokens"]], report=report)[0]]
        start = decode(said).find(prompt)
        if start >= 0:
            stop = start + len(prompt)
            heard = bisect_left(range(len(said)), stop, key=lambda count: len(decode(said[:count])))
            said = said if tokens is None else said[: heard + tokens]
            return Passage(text["name"], start, decode(said)[start:], len(said) - heard)
    return None
