"""Certificates: the claim, the method, the fingerprints of the weights and the questions, and the result."""

import json
import platform
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from byheart.certificates.as_used import AsUsed
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
"""Largest size of a file. A usual certificate has about 2 kB; one that names answers, a few hundred kB."""


@dataclass(frozen=True, repr=False)
class Certificate:
    """A statement about a network, and the evidence for it."""

    certified: bool
    """True if the statement is proved. With a ``count``, the statement is the number of right answers."""
    statement: str
    method: str
    checked: int
    """Number of answers."""
    examples: int
    """Number of questions."""
    errors: int
    """Number of wrong answers."""
    smallest_margin: float | None
    counterexample: Counterexample | None
    weights: str
    """Fingerprint of the network."""
    task: str
    """Fingerprint of the questions."""
    versions: dict[str, str]
    seconds: float
    undecided: int = 0
    """Number of answers that the permitted number of bits did not decide."""
    found: str = ""
    """Further findings, in words."""
    tolerance: float | None = None
    """Largest permitted error of real answers."""
    stands_for: int | None = None
    """Number of examples of the task, or of tokens of the texts, that ask one of the questions."""
    at_least: int | None = None
    """Number of answers that have to be right; None: all."""
    radius: float | None = None
    """Distance by which every vector of a question may move."""
    count: Count | None = None
    """The right answers by number, if they were counted."""
    files: dict[str, str] | None = None
    """SHA-256 of every file of the folder, by name, if a folder was certified."""
    as_used: AsUsed | None = None
    """The comparison with what transformers says, if it was asked."""
    format: str = FORMAT

    @classmethod
    def of(
        cls, verdict: Verdict, *, weights: str, task: str, examples: int, stands_for: int, libraries: tuple[str, ...]
    ) -> "Certificate":
        """Make a certificate of a verdict on the network and the questions with these fingerprints."""
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
        """Number of answers that are proved to be right."""
        return self.checked - self.errors - self.undecided

    @property
    def what(self) -> str:
        """Subject of *certified*: "count " if the right answers were counted; the network, and thus "", otherwise."""
        return "" if self.count is None else "count "

    @property
    def summary(self) -> str:
        """The result, in one line."""
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
        """The verdict and the result, in one line."""
        return f"{self.what}{'certified' if self.certified else 'NOT certified'}: {self.summary}"

    @property
    def others(self) -> list[str]:
        """Lines on answers that are not proved right: the first one; if answers were counted, their numbers."""
        if self.count is not None:
            named = {"wrong": self.count.named_wrong, "undecided": self.count.named_undecided}
            return [f"{name}: {at_a_glance(names)}{self._numbering}" for name, names in named.items() if names]
        if self.counterexample is None:
            return []
        which = "wrong" if not self.undecided else "undecided" if not self.errors else "other"
        return [f"first {which} answer: {self.counterexample}"]

    @property
    def _numbering(self) -> str:
        """Explanation of the answers' numbers, unless answer i is the answer to example i."""
        each = self.checked // max(1, self.examples)
        if each > 1:
            return f" (answer i: position i mod {each} of example i // {each})"
        return " (questions, in the order in which they are first asked)" * ((self.stands_for or 0) > self.examples)

    def __repr__(self) -> str:
        return f"<Certificate: {self.sentence}>"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks."""
        verdict = "certified" if self.certified else "<strong>not certified</strong>"
        others = "".join(f"<br>{escape(line)}" for line in self.others)
        return f"<p>{self.what}{verdict}: {escape(self.summary)}{others}<br><small>{escape(self.statement)}</small></p>"

    def as_json(self) -> dict[str, object]:
        """Return the object that is stored and printed."""
        return asdict(self)


def check_place(path: Path) -> None:
    """Raise BadInput if ``path`` is in no folder, or holds something other than a certificate."""
    if not path.parent.is_dir():
        raise BadInput(f"{path}: cannot be written: its folder does not exist")
    check_file(path)
    if path.exists():
        read(path)


def write(certificate: Certificate, path: Path) -> None:
    """Write the certificate, whole or not at all. Only a certificate is replaced."""
    with new_file(path, check_place) as draft, draft.open("w", encoding="utf-8") as file:
        json.dump(certificate.as_json(), file, indent=1, ensure_ascii=False)
        file.write("\n")


def read(path: Path) -> Certificate:
    """Read a certificate; raise BadInput if the file holds none."""
    try:
        fields = read_json(path, max_bytes=MOST_BYTES)
        if fields.get("format") != FORMAT:
            raise BadInput(f"format is not {FORMAT!r}")
        return decode(Certificate, fields, "")
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; certify the network first") from None
    except (BadInput, OSError) as error:
        raise BadInput(f"{path}: not a certificate ({error})") from error


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of Python and of some packages."""
    installed = {package: installed_version(package) or "source tree" for package in packages}
    return {"python": platform.python_version(), **installed}
