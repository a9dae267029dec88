"""A second opinion on a certificate: ``verify.py``, which shares nothing with the judges, asked about the same files.

It runs in a process of its own, isolated from what is installed and from what lies around. It affirms only what it
proves, and there is more that it cannot decide than judges can: of float networks it asks for exactness in every order
of summation.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byheart.certificates.certificate import Certificate
from byheart.certificates.counting import Count
from byheart.certificates.verdict import RIGHT, WRONG
from byheart.errors import BadInput
from byheart.tasks import Questions
from byheart.tasks.contexts import Contexts
from byheart.tasks.edits import question_at
from byheart.tasks.texts import list_files

PROGRAM = Path(__file__).parents[1] / "verify.py"
LISTED = 100_000
"""Answers that are not right which the program lists, at most."""


@dataclass(frozen=True)
class SecondOpinion:
    """Whether it agrees with the certificate (None: it cannot say), and what it found, in words."""

    agrees: bool | None
    found: str

    def __str__(self) -> str:
        words = {True: "agrees", False: "does NOT agree", None: "cannot say"}
        return f"{words[self.agrees]} ({self.found})"

    def as_json(self) -> dict[str, object]:
        """As ``--json`` prints it."""
        return asdict(self)


def second_opinion(
    certificate: Certificate,
    network: Path,
    questions: Questions,
    *,
    files: Sequence[Path] = (),
    task: Path | None = None,
    facts: Sequence[Path] = (),
    tolerance: float | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> SecondOpinion:
    """What ``verify.py`` says of the files that ``certificate`` was made from.

    ``questions`` are those of the judge: the program knows nothing of answers that users give beside the files.
    """
    if sample is not None and sample < 1:
        raise BadInput(f"sample is {sample}; expected at least 1")
    options = {"--task": task, "--tolerance": tolerance, "--sample": sample, "--seed": seed}
    given = [f"{name}={value}" for name, value in options.items() if value is not None]
    given += [f"--facts={path}" for path in facts]
    command = [sys.executable, "-I", str(PROGRAM), "--json", *given, "--", str(network), *map(str, list_files(files))]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1) or not ran.stdout:
        return SecondOpinion(None, ran.stderr.strip() or f"verify.py ended with {ran.returncode}")
    said = json.loads(ran.stdout)
    if said["not_right"] and isinstance(questions, Contexts):
        answered = [text for text, *_ in said["not_right"] if text >= len(questions.starts) - 1]
        if answered:
            return SecondOpinion(
                False, f"{len(answered):,} prompts that are no facts, and are not proved to be refused"
            )
    found = (
        f"{said['right']:,} answers right, {said['wrong']:,} wrong, {said['undecided']:,} undecided, {said['scope']}"
    )
    found += ", at the tokens: it knows no radius" * (certificate.radius is not None)
    return SecondOpinion(_agrees(said, certificate, questions), f"{found}, {said['seconds']} s")


def _agrees(said: dict[str, Any], certificate: Certificate, questions: Questions) -> bool | None:
    """Whether both found all right, or both not; as many answers may differ from the files as users want changed.

    Of a network that does not give the answers that users want changed, the files alone say nothing.
    """
    if certificate.count is not None or certificate.at_least is not None:
        return _as_many(said, certificate, questions)
    if not certificate.certified and isinstance(questions, Contexts) and questions.edited:
        return None
    if certificate.radius is not None and not certificate.certified and not certificate.errors:
        return None  # the program asks at the tokens, not near them
    if not certificate.certified:
        return None if not said["not_right"] and said["asked"] != said["questions"] else bool(said["not_right"])
    if not isinstance(questions, Contexts) or said["undecided"] or len(said["not_right"]) == LISTED:
        return not said["not_right"]
    differ = _answers_not_right(said, questions)
    return len(differ) == questions.edited or (said["asked"] != said["questions"] and len(differ) <= questions.edited)


def _as_many(said: dict[str, Any], certificate: Certificate, questions: Questions) -> bool | None:
    """Whether both found as many right as are claimed, and the same ones where these are counted; None if that is open.

    Of some of the questions, and of answers that users want changed, nothing can be said.
    """
    edited = isinstance(questions, Contexts) and questions.edited
    if said["asked"] != said["questions"] or len(said["not_right"]) == LISTED or edited:
        return None
    others = _answers_not_right(said, questions)
    least = certificate.checked - len(others)
    most = least + said["undecided"]
    if certificate.count is None:
        sure, possible = (number >= (certificate.at_least or 0) for number in (least, most))
        beyond = certificate.radius is not None and not certificate.certified  # it asks at the tokens, not near them
        return None if beyond or sure != possible else sure == certificate.certified
    if most < certificate.right or least > certificate.right + certificate.undecided:
        return False
    if said["undecided"] or certificate.undecided:
        return None
    codes = np.full(certificate.checked, RIGHT, np.uint8)
    codes[sorted(others)] = WRONG
    return Count.of(codes) == certificate.count


def _answers_not_right(said: dict[str, Any], questions: Questions) -> set[int]:
    """The answers, by their numbers, that the program lists as not right."""
    if isinstance(questions, Contexts):
        starts = questions.starts.tolist()
        return {question_at(questions, starts[text] + place) for text, place, _ in said["not_right"]}
    each = questions.answers[0].size
    return {example * each + (position or 0) for example, position, _ in said["not_right"]}
