"""A second opinion on a certificate: ``verify.py``, which shares no code with the judges, checks the same files.

It runs in a process of its own, isolated from installed packages and from the current folder. It affirms only what it
proves, and it decides less than the judges: it requires float networks to be exact in every order of summation.
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
"""Largest number of answers that the program lists as not right."""


@dataclass(frozen=True)
class SecondOpinion:
    """Whether ``verify.py`` agrees with the certificate (None: it cannot say), and its findings in words."""

    agrees: bool | None
    found: str

    def __str__(self) -> str:
        words = {True: "agrees", False: "does NOT agree", None: "cannot say"}
        return f"{words[self.agrees]} ({self.found})"

    def as_json(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
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
    """Run ``verify.py`` on the files that ``certificate`` was made from, and compare the results.

    ``questions`` are the judge's: the program does not know the answers that users change with ``edits``.
    """
    if sample is not None and sample < 1:
        raise BadInput(f"sample is {sample}; expected at least 1")
    options = {"--task": task, "--tolerance": tolerance, "--sample": sample, "--seed": seed}
    arguments = [f"{name}={value}" for name, value in options.items() if value is not None]
    arguments += [*(f"--facts={path}" for path in facts), "--", str(network), *map(str, list_files(files))]
    command = [sys.executable, "-I", str(PROGRAM), "--json", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1) or not ran.stdout:
        return SecondOpinion(None, ran.stderr.strip() or f"verify.py ended with {ran.returncode}")
    result = json.loads(ran.stdout)
    if result["not_right"] and isinstance(questions, Contexts):
        answered = [text for text, *_ in result["not_right"] if text >= len(questions.starts) - 1]
        if answered:
            return SecondOpinion(
                False, f"{len(answered):,} prompts that are no facts, and are not proved to be refused"
            )
    answers = f"{result['right']:,} answers right, {result['wrong']:,} wrong, {result['undecided']:,} undecided"
    tokens_only = ", at the tokens: it knows no radius" * (certificate.radius is not None)
    findings = f"{answers}, {result['scope']}{tokens_only}, {result['seconds']} s"
    return SecondOpinion(_agrees(result, certificate, questions), findings)


def _agrees(result: dict[str, Any], certificate: Certificate, questions: Questions) -> bool | None:
    """Return True if both or neither find all answers right, except for the answers that users changed.

    Return None if an edited network is not certified: the files alone do not say what it should answer.
    """
    if certificate.count is not None or certificate.at_least is not None:
        return _agrees_on_number(result, certificate, questions)
    is_sample, not_right = result["asked"] != result["questions"], result["not_right"]
    if not certificate.certified and isinstance(questions, Contexts) and questions.edited:
        return None
    if certificate.radius is not None and not certificate.certified and not certificate.errors:
        return None  # the program asks at the tokens, not near them
    if not certificate.certified:
        return None if not not_right and is_sample else bool(not_right)
    if not isinstance(questions, Contexts) or result["undecided"] or len(not_right) == LISTED:
        return not not_right
    differ = _answers_not_right(result, questions)
    return len(differ) == questions.edited or (is_sample and len(differ) <= questions.edited)


def _agrees_on_number(result: dict[str, Any], certificate: Certificate, questions: Questions) -> bool | None:
    """Return True if both find the claimed number of right answers; if they are counted, the same ones.

    Return None if that is open: if only some questions were asked, or users changed answers.
    """
    edited = isinstance(questions, Contexts) and questions.edited
    if result["asked"] != result["questions"] or len(result["not_right"]) == LISTED or edited:
        return None
    not_right = _answers_not_right(result, questions)
    least = certificate.checked - len(not_right)
    most = least + result["undecided"]
    if certificate.count is None:
        sure, possible = (number >= (certificate.at_least or 0) for number in (least, most))
        beyond = certificate.radius is not None and not certificate.certified  # the program asks at the tokens only
        return None if beyond or sure != possible else sure == certificate.certified
    if most < certificate.right or least > certificate.right + certificate.undecided:
        return False
    if result["undecided"] or certificate.undecided:
        return None
    codes = np.full(certificate.checked, RIGHT, np.uint8)
    codes[sorted(not_right)] = WRONG
    return Count.of(codes) == certificate.count


def _answers_not_right(result: dict[str, Any], questions: Questions) -> set[int]:
    """Return the numbers of the answers that the program lists as not right."""
    if isinstance(questions, Contexts):
        starts = questions.starts.tolist()
        return {question_at(questions, starts[text] + place) for text, place, _ in result["not_right"]}
    each = questions.answers[0].size
    return {example * each + (position or 0) for example, position, _ in result["not_right"]}
