"""A certificate: what was checked, by which method, on which weights and which questions, and what came out."""

import json
import platform
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from byheart.certificates.counting import Count, at_a_glance
from byheart.certificates.verdict import Counterexample, Verdict
from byheart.errors import BadInput
from byheart.files.decoding import decode
from byheart.files.untrusted import read_json
from byheart.files.writing import check_file, new_file
from byheart.versions import installed_version

FORMAT = "byheart-certificate-1"
FILE = "certificate.json"
MOST_BYTES = 1 << 20
"""A certificate has one or two thousand; one that names answers, some hundred thousand at most."""


@dataclass(frozen=True, repr=False)
class Certificate:
    """The statement and what it rests on.

    ``checked`` counts answers, ``examples`` questions, ``errors`` answers that are wrong and ``undecided`` those that
    could not be decided with the bits allowed; ``found`` says in words what else was found, ``tolerance`` how far real
    answers were allowed to be off, ``at_least`` how many answers had to be right, if not all, ``radius`` how far every
    vector of a question was allowed to move. With a ``count``, *certified* is how many answers are right, whatever that
    number is, and which. A question may be asked in several places: ``stands_for`` counts the examples of the task, or
    the tokens of the texts, that ask one of the questions.
    """

    certified: bool
    statement: str
    method: str
    checked: int
    examples: int
    errors: int
    smallest_margin: float | None
    counterexample: Counterexample | None
    weights: str
    task: str
    versions: dict[str, str]
    seconds: float
    undecided: int = 0
    found: str = ""
    tolerance: float | None = None
    stands_for: int | None = None
    at_least: int | None = None
    radius: float | None = None
    count: Count | None = None
    format: str = FORMAT

    @classmethod
    def of(
        cls, verdict: Verdict, *, weights: str, task: str, examples: int, stands_for: int, libraries: tuple[str, ...]
    ) -> "Certificate":
        """What a judge said about the network and the questions with these fingerprints."""
        return cls(
            certified=verdict.certified,
            statement=verdict.statement,
            method=verdict.method,
            checked=verdict.checked,
            examples=examples,
            errors=verdict.errors,
            smallest_margin=verdict.margin,
            counterexample=verdict.counterexample,
            weights=weights,
            task=task,
            versions=versions("byheart", *libraries),
            seconds=verdict.seconds,
            undecided=verdict.undecided,
            found=verdict.note,
            tolerance=verdict.claim.tolerance,
            stands_for=stands_for,
            at_least=verdict.claim.at_least,
            radius=verdict.claim.radius,
            count=Count.of(verdict.outcomes.codes) if verdict.claim.exactly and verdict.outcomes is not None else None,
        )

    @property
    def right(self) -> int:
        """Answers that are proved to be right."""
        return self.checked - self.errors - self.undecided

    @property
    def what(self) -> str:
        """What is certified, or not, where that is not simply the network."""
        return "" if self.count is None else "count "

    @property
    def summary(self) -> str:
        """What came out, in one line."""
        sure, doubt = f"{self.right:,}", f", {self.undecided:,} undecided" if self.undecided else ""
        if self.count is not None:
            sure = f"from {sure} to {self.right + self.undecided:,}" if self.undecided else sure
            doubt = f", {self.errors:,} wrong, {self.undecided:,} undecided"
        more = f", {self.found}" if self.found else ""
        times = self.stands_for or 0
        places = f" (asked in {times:,} places)" if times > self.examples else ""
        return f"{sure} of {self.checked:,} answers right{places}{doubt}{more}, {self.method}, {self.seconds:.1f} s"

    @property
    def sentence(self) -> str:
        """Whether it is certified, and what came out."""
        return f"{self.what}{'certified' if self.certified else 'NOT certified'}: {self.summary}"

    @property
    def others(self) -> list[str]:
        """The answers that are not known to be right, in a line or two, as far as lines go: of a count, their names."""
        if self.count is not None:
            named = {"wrong": self.count.named_wrong, "undecided": self.count.named_undecided}
            return [f"{name}: {at_a_glance(names)}{self._numbering}" for name, names in named.items() if names]
        if self.counterexample is None:
            return []
        which = "wrong" if not self.undecided else "undecided" if not self.errors else "other"
        return [f"first {which} answer: {self.counterexample}"]

    @property
    def _numbering(self) -> str:
        """How answers are numbered, where answer i is not the one to example i."""
        each = self.checked // max(1, self.examples)
        if each > 1:
            return f" (answer i: position i mod {each} of example i // {each})"
        return " (questions, in the order in which they are first asked)" * ((self.stands_for or 0) > self.examples)

    def __repr__(self) -> str:
        return f"<Certificate: {self.sentence}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        verdict = "certified" if self.certified else "<strong>not certified</strong>"
        others = "".join(f"<br>{escape(line)}" for line in self.others)
        return f"<p>{self.what}{verdict}: {escape(self.summary)}{others}<br><small>{escape(self.statement)}</small></p>"

    def as_json(self) -> dict[str, object]:
        """The certificate as the object that is stored and printed."""
        return asdict(self)


def check_place(path: Path) -> None:
    """BadInput if no certificate can be written to ``path``: something else is there, or its folder is not."""
    if not path.parent.is_dir():
        raise BadInput(f"{path}: cannot be written: its folder does not exist")
    check_file(path)
    if path.exists():
        read(path)


def write(certificate: Certificate, path: Path) -> None:
    """Write the certificate, whole or not at all; nothing but a certificate is replaced."""
    with new_file(path, check_place) as draft, draft.open("w", encoding="utf-8") as file:
        json.dump(certificate.as_json(), file, indent=1, ensure_ascii=False)
        file.write("\n")


def read(path: Path) -> Certificate:
    """A certificate from its file; BadInput if it is none."""
    try:
        given = read_json(path, max_bytes=MOST_BYTES)
        if given.get("format") != FORMAT:
            raise BadInput(f"format is not {FORMAT!r}")
        return decode(Certificate, given, "")
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; certify the network first") from None
    except (BadInput, OSError) as error:
        raise BadInput(f"{path}: not a certificate ({error})") from error


def versions(*packages: str) -> dict[str, str]:
    """The versions of Python and of these packages."""
    found = {package: installed_version(package) or "source tree" for package in packages}
    return {"python": platform.python_version(), **found}
