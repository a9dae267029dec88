"""Read the notes on texts and facts in config.json. They are checked, because a folder may come from anyone."""

from reprlib import repr as shortened
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

from byheart.errors import BadInput
from byheart.files.decoding import Such, Within, decode
from byheart.networks.network import Network

MAX_TOKENS = (1 << 31) - 1
"""Largest number of tokens of a text, and largest token id."""
MAX_PRINT = 64
"""Largest number of bits of a fingerprint."""


class TextNote(TypedDict):
    """Note in config.json about a text that the network recites."""

    name: Annotated[str, Such(lambda name: name != "" and "\0" not in name, "the name of a text")]
    tokens: Annotated[int, Within(0, MAX_TOKENS)]
    prompt: list[int]


class FactsNote(TypedDict):
    """Note in config.json about the facts that a network was compiled from."""

    count: Annotated[int, Within(1, MAX_TOKENS)]
    longest: Annotated[int, Within(1, MAX_TOKENS)]
    """Number of tokens of the longest completion."""


class _RefuseNote(TypedDict, total=False):
    """Note in config.json about how a network refuses contexts that it has not memorized."""

    by: Literal["print", "stored print", "key"]
    bits: Annotated[int, Within(1, MAX_PRINT)] | None
    token: Annotated[int, Within(1, MAX_TOKENS)]


def texts_of(network: Network) -> list[TextNote]:
    """Return the name, length and prompt of every text that a network was compiled from."""
    texts: list[TextNote] = decode(list[TextNote], network.about.get("texts", []), "config.json: about.texts")
    return texts


def needed_prompt(network: Network) -> str:
    """Return what a prompt must have so that a text follows; return "" if the network recites no texts."""
    window = network.about.get("window")
    if not isinstance(window, int) or not texts_of(network) or facts_of(network) is not None:
        return ""
    return f"a text's beginning, or its last {f'{window:,} tokens' if window > 1 else 'token'}"


def facts_of(network: Network) -> FactsNote | None:
    """Return the note on the facts that a network was compiled from; None if it was compiled from something else."""
    facts = network.about.get("facts")
    return None if facts is None else decode(FactsNote, facts, "config.json: about.facts")


def end_of(network: Network) -> int | None:
    """Return the token that ends a text; None if the network was compiled from a task."""
    hint: Any = None | Annotated[int, Such(lambda value: 0 <= value <= MAX_TOKENS, "a token")]
    end: int | None = decode(hint, network.about.get("end"), "config.json: about.end")
    return end


class Refusal(NamedTuple):
    """The way in which a network refuses contexts that it has not memorized."""

    by: Literal["print", "stored print", "key"]
    """Means to recognize a context: its fingerprint in the table or in a store, or its whole key."""
    bits: int | None
    """Number of bits of the fingerprint; None for whole keys."""
    token: int
    """Token that answers other contexts."""

    @property
    def proves(self) -> bool:
        """True if the rate of wrong answers is proved."""
        return self.by != "print"

    @property
    def rate(self) -> str:
        """Sentence on how often the network answers contexts that it has not memorized."""
        if self.bits is None:
            return "no other is answered: proved, for all of it is compared"
        if self.by == "stored print":
            rate = f"answered all the same with probability 2^-{self.bits} at most"
            return f"{rate}: proved, if the seed was drawn at random by whoever compiled it"
        return f"answered all the same: 1 in {1 << self.bits:,}, if the hash acts like a random function"


def refuse_of(network: Network) -> Refusal | None:
    """Return how a network refuses contexts; None if it refuses nothing.

    Raise BadInput unless the token *unknown* is the last label, and ends no text.
    """
    value = network.about.get("refuse")
    if value is None:
        return None
    note = decode(_RefuseNote, value, "config.json: about.refuse")
    by, bits, token = note.get("by", "print"), note.get("bits"), note.get("token")
    last = getattr(getattr(network, "spec", None), "labels", 0) - 1
    if (bits is None) != (by == "key") or token is None or token != last or token == end_of(network):
        expected = f"expected by what, bits unless by key, and the last token, {last}"
        raise BadInput(f"config.json: about.refuse is {shortened(value)}; {expected}")
    return Refusal(by, bits, token)
