"""Claims about networks, as data, and the sentences that state them on a certificate."""

from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

from byheart.executors import Workplace
from byheart.progress import Report

Evaluator: TypeAlias = Literal["limbs", "flint"]
"""``limbs``: compiled code that evaluates batches. ``flint``: python-flint's rationals, one sequence at a time."""
Property: TypeAlias = Literal[
    "equals label", "rounds to label", "largest logit", "near target", "loss", "same network", "completions"
]
"""Property claimed of outputs, logits, real targets, all distributions together, two networks, or a planted memory."""
_SENTENCES: dict[Property, str] = {
    "equals label": "The network's output equals the label for {number} of the task, {arithmetic}",
    "rounds to label": "The network's output lies within ½ of the label for {number} of the task, {arithmetic}",
    "largest logit": "The label's logit is the largest for {number}, {arithmetic}",
    "near target": "The network's output lies within {tolerance!r} of the target for {number}{each}, {arithmetic}",
    "loss": "The network's loss exceeds the entropy of the data by at most {tolerance!r} nats",
    "completions": "from each of {prompts:,} prompts the completion is said greedily, token by token, if logits are "
    "numbers; {elsewhere}; paraphrases are not covered",
    "same network": "Both networks answer every sequence of {length} equal tokens alike, for {number}, {arithmetic}",
}


@dataclass(frozen=True)
class Claim:
    """A property, the number of answers that have it, the region where it holds, and the arithmetic."""

    property: Property
    arithmetic: str = ""
    """Meaning of the numbers, in words: "as real numbers"."""
    unit: str = "example"
    """Kind of answers: an example, a token, a prompt."""
    at_least: int | None = None
    """Number of answers that have to be right; None: all."""
    exactly: bool = False
    """True if the claim is how many answers are right, whatever that number is."""
    tolerance: float | None = None
    """Largest permitted error of real answers."""
    radius: float | None = None
    """Distance by which every vector of a question may move."""
    edited: int = 0
    """Number of questions whose labels differ from the user's file."""
    coordinates: int = 1
    """Length of each target."""
    length: int = 0
    """Number of equal tokens in the sequences on which two networks are compared."""
    prompts: int = 0
    """Number of planted prompts."""
    elsewhere: Literal["silent", "rarely"] | None = None
    """Behaviour of a planted memory after all other contexts. It speaks rarely if its hash acts like a random one."""
    bits: int = 0
    """For "rarely": a window that is not planted fires with probability 2^−bits."""
    windows: int = 0
    """For "rarely": number of windows per token."""


def sentence(claim: Claim, *, checked: int, right: int, undecided: int = 0) -> str:
    """Return the sentence that states a claim on a certificate, after ``checked`` answers were judged.

    >>> claim = Claim("largest logit", "as real numbers")
    >>> sentence(claim, checked=4, right=4)
    "The label's logit is the largest for every example, as real numbers."
    >>> sentence(Claim("largest logit", "as real numbers", exactly=True), checked=4, right=3)
    "The label's logit is the largest for exactly 3 of 4 examples, as real numbers."
    """
    answers = f"{checked:,} {claim.unit}s"
    if claim.exactly and undecided:
        number = f"at least {right:,} and at most {right + undecided:,} of {answers}"
    elif claim.exactly:
        number = f"exactly {right:,} of {answers}"
    elif claim.at_least is not None:
        number = f"at least {claim.at_least:,} of {answers}"
    else:
        number = answers if claim.property == "same network" else f"every {claim.unit}"
    template = _SENTENCES[claim.property]
    if claim.unit == "question":
        template = template.replace(" for {number}", ", for {number}")
    parts = {
        "number": number,
        "arithmetic": claim.arithmetic,
        "tolerance": claim.tolerance,
        "each": f", in each of {claim.coordinates} coordinates" if claim.coordinates > 1 else "",
        "length": claim.length,
        "prompts": claim.prompts,
        "elsewhere": _elsewhere(claim),
    }
    statement = template.format(**parts)
    statement += f"; the labels of {claim.edited:,} are not those of the file" if claim.edited else ""
    moved = f" So it does wherever every vector is moved by at most {claim.radius!r}." if claim.radius else ""
    end = "" if claim.property == "completions" else "."
    return f"{statement}{end}{moved}"


def _elsewhere(claim: Claim) -> str:
    """Describe a planted memory after contexts that are not planted."""
    if claim.elsewhere == "silent":
        return "after no other context is any logit changed, for all ids are compared (proved)"
    rate = f"a window that is not planted fires with probability at most 2^-{claim.bits}"
    return f"{rate} if the hash acts like a random function (a token has {claim.windows} windows)"


@dataclass(frozen=True)
class JudgeOptions:
    """A user's options for a judge: parts of the claim, the evaluator, and the place. None: the judge's default."""

    count: bool = False
    """True to claim how many answers are right, whatever that number is."""
    at_least: int | None = None
    """Number of answers that have to be right."""
    tolerance: float | None = None
    radius: float | None = None
    evaluator: Evaluator | None = None
    threads: int | None = None
    executor: Workplace | None = None
    device: str | None = None
    report: Report | None = None

    @property
    def chosen(self) -> list[str]:
        """Names of the options that are set and that only some judges use."""
        common = ("count", "at_least", "report")
        names = (option.name for option in fields(self) if option.name not in common)
        return [name for name in names if getattr(self, name) is not None]
