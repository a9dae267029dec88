"""What a network that says texts or facts notes about them, checked: its folder may come from anywhere."""

from typing import Any, Literal, NamedTuple

from byheart.errors import BadInput
from byheart.networks.network import Network

MOST_TOKENS = (1 << 31) - 1
"""Of a text, as when it was compiled."""
MOST_PRINT = 64
"""Bits of a print."""


def texts_of(network: Network) -> list[dict[str, Any]]:
    """Name, length and prompt of the texts that a network was compiled from; BadInput if they are none."""
    texts = network.about.get("texts", [])
    if not isinstance(texts, list) or not all(map(_is_text, texts)):
        raise BadInput("config.json: about.texts is no list of texts; expected name, tokens and prompt of each")
    return texts


def facts_of(network: Network) -> tuple[int, int] | None:
    """How many facts a network was compiled from, and the most tokens of a completion; None if it was from others."""
    facts = network.about.get("facts")
    if facts is None:
        return None
    found: list[Any] = [facts.get(key) if isinstance(facts, dict) else None for key in ("count", "longest")]
    if not all(type(number) is int and 0 < number <= MOST_TOKENS for number in found):
        raise BadInput("config.json: about.facts says nothing of facts; expected their count and the longest")
    return found[0], found[1]


def _is_text(text: object) -> bool:
    if not isinstance(text, dict):
        return False
    name, tokens, prompt = (text.get(key) for key in ("name", "tokens", "prompt"))
    named = isinstance(name, str) and name != "" and "\0" not in name
    counted = type(tokens) is int and 0 <= tokens <= MOST_TOKENS
    return named and counted and isinstance(prompt, list) and all(type(token) is int for token in prompt)


def end_of(network: Network) -> int | None:
    """The token that ends a text; None if the network was compiled from a task. BadInput if it is no token."""
    end = network.about.get("end")
    if end is not None and (type(end) is not int or not 0 <= end <= MOST_TOKENS):
        raise BadInput(f"config.json: about.end is {end!r}; expected a token, or null")
    return end


class Refusal(NamedTuple):
    """How a network refuses what it has not memorized, as its folder says."""

    by: Literal["print", "stored print", "key"]
    bits: int | None
    """Of a print."""
    token: int
    """*unknown*."""

    @property
    def proves(self) -> bool:
        """Whether it is by something whose rate is proved."""
        return self.by != "print"

    @property
    def rate(self) -> str:
        """How often another context is answered all the same."""
        if self.bits is None:
            return "no other is answered: proved, for all of it is compared"
        if self.by == "stored print":
            return f"answered all the same with probability 2^-{self.bits} at most, over the weights drawn: proved"
        return f"answered all the same: 1 in {1 << self.bits:,}, if the hash acts like a random function"


def refuse_of(network: Network) -> Refusal | None:
    """How a network refuses; None if it refuses nothing.

    BadInput unless the token for that is the last one, and ends no text.
    """
    refuse = network.about.get("refuse")
    if refuse is None:
        return None
    given = refuse if isinstance(refuse, dict) else {}
    by, bits, token = given.get("by", "print"), given.get("bits"), given.get("token")
    last = getattr(getattr(network, "spec", None), "labels", 0) - 1
    counted = bits is None if by == "key" else type(bits) is int and 1 <= bits <= MOST_PRINT
    fits = by in ("print", "stored print", "key") and counted and type(token) is int and 0 < token == last
    if not fits or token == end_of(network):
        expected = "expected by what, bits, and the last token, unknown"
        raise BadInput(f"config.json: about.refuse is none of this network; {expected}")
    return Refusal(by, bits, token)  # type: ignore[arg-type]  # a whole number, as was just found
