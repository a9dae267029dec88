"""A network is checked, and what came out is stated; a certificate is held against the files, and checked again."""

from pathlib import Path
from typing import Any, Protocol, TypeAlias

from byheart.certificates.certificate import Certificate, read
from byheart.certificates.claim import Evaluator, JudgeOptions
from byheart.certificates.counting import write_named
from byheart.certificates.judges import asked, judge_asked, judge_for
from byheart.errors import BadInput
from byheart.executors import Workplace
from byheart.networks import Network, load
from byheart.progress import Report
from byheart.tasks import Questions
from byheart.tasks.edits import Edits
from byheart.tasks.questions import QuestionsLike


class HasNetwork(Protocol):
    """What constructions give."""

    @property
    def network(self) -> Network:
        """What was built."""


Subject: TypeAlias = Network | HasNetwork | Path | str
"""A network, something that has one, or a folder, which is loaded afresh."""


def network_of(subject: Subject) -> Network:
    """The network to be checked."""
    if isinstance(subject, Path | str):
        return load(subject)
    network = getattr(subject, "network", subject)
    if not isinstance(network, Network):
        raise BadInput(f"got {type(subject).__name__}; expected a network, what byheart.build gives, or a folder")
    return network


def certify(
    network: Subject,
    questions: QuestionsLike,
    *,
    edits: Edits | None = None,
    evaluator: Evaluator | None = None,
    threads: int | None = None,
    tolerance: float | None = None,
    count: bool = False,
    named: Path | str | None = None,
    at_least: int | None = None,
    radius: float | None = None,
    executor: Workplace | None = None,
    device: str | None = None,
    report: Report | None = None,
) -> Certificate:
    """Check every answer of ``network`` to ``questions``: a task, texts, or files with either.

    ``edits`` says which answers are to be others because the network was edited: ``{"January 200": "5"}``.
    ``evaluator`` and ``threads`` are for exact networks, and so is ``radius``: answers must stay right wherever every
    vector goes within that distance (default: the radius that the network's folder states, if it does).
    ``tolerance``, how far targets may be off, is for softmax and trained networks. ``executor`` says where exact
    networks and float Transformers are asked: here, in processes, or on Ray; the verdict is the same. ``device``, say
    "cuda", is for float Transformers and stock models. What a judge has no use for is refused.

    All answers have to be right, or of labels ``at_least`` this many. With ``count``, what is certified is how many are
    right, whatever that number is: each has to be decided, and the certificate names those that are not right;
    ``named`` is a CSV file for all of them.

    >>> from byheart.networks.exact import Affine, ExactNetwork, FeedForward, integers
    >>> from byheart.tasks import NextToken
    >>> double = FeedForward((Affine(W=integers([[2]]), b=integers([0])),))
    >>> network = ExactNetwork((double,), inputs="tokens", outputs="last", length=1)
    >>> task = NextToken([[0], [1], [2]], [0, 2, 4])
    >>> certify(network, task).certified
    True
    >>> print(certify(network, task.with_labels([0, 3, 4])).counterexample)
    example 1: expected 3, got 2
    >>> counted = certify(network, task.with_labels([0, 3, 4]), count=True)
    >>> counted.certified, counted.right, counted.count.named_wrong
    (True, 2, '1')
    """
    subject = network_of(network)
    options = JudgeOptions(count, at_least, tolerance, radius, evaluator, threads, executor, device, report)
    return certify_asked(subject, asked(subject, questions, edits), options, named)


def certify_asked(
    network: Network, questions: Questions, options: JudgeOptions, named: Path | str | None = None
) -> Certificate:
    """Judge the answers to ``questions``, which :func:`asked` gave, and state what came out."""
    if named is not None and not options.count:
        raise BadInput("named is a file for the answers that a count names; expected count too")
    verdict = judge_asked(network, questions, options)
    if named is not None and verdict.outcomes is not None:
        write_named(verdict.outcomes, Path(named))
    return Certificate.of(
        verdict,
        weights=network.fingerprint,
        task=questions.fingerprint,
        examples=questions.size.examples,
        stands_for=questions.stands_for,
        libraries=judge_for(network).LIBRARIES,
    )


def recheck(
    path: Path | str, network: Subject, questions: QuestionsLike, *, edits: Edits | None = None, **options: Any
) -> Certificate:
    """Do the check that the certificate at ``path`` speaks of again; BadInput if that is about something else.

    The options are those of :func:`certify`: nothing is taken from the certificate. One that claims more answers, more
    right ones, a smaller tolerance, or a larger radius, than were checked is refused, and so is one whose count, or the
    answers that it names, are not those that came out; its words and its margin are not compared.
    """
    subject = network_of(network)
    named = options.pop("named", None)
    return recheck_asked(path, subject, asked(subject, questions, edits), JudgeOptions(**options), named)


def recheck_asked(
    path: Path | str, network: Network, questions: Questions, options: JudgeOptions, named: Path | str | None = None
) -> Certificate:
    """Do :func:`recheck` for questions that :func:`asked` gave."""
    claimed = read(Path(path))
    if not questions.is_named(claimed.task):
        raise BadInput(f"{path}: is about task {claimed.task[:12]}…; this task is {questions.fingerprint[:12]}…")
    if not network.is_named(claimed.weights):
        own = network.fingerprint
        raise BadInput(f"{path}: is about weights {claimed.weights[:12]}…; this network has {own[:12]}…")
    if claimed.count is not None and not options.count:
        raise BadInput(f"{path}: says how many answers are right, and not that all are: give --count")
    again = certify_asked(network, questions, options, named)
    if again.certified:
        _check_claim(path, claimed, again)
    return again


def _check_claim(path: Path | str, claimed: Certificate, again: Certificate) -> None:
    """BadInput if a certificate claims more than came out."""
    if claimed.checked != again.checked:
        raise BadInput(f"{path}: claims {claimed.checked:,} answers; there are {again.checked:,}")
    if claimed.examples != again.examples or claimed.stands_for not in (None, again.stands_for):  # None: of before
        claims, found = (f"{one.examples} examples, {one.stands_for} places" for one in (claimed, again))
        raise BadInput(f"{path}: claims {claims}; there are {found}")
    if claimed.at_least is not None and claimed.at_least > again.checked:
        raise BadInput(f"{path}: claims at least {claimed.at_least:,} answers right; there are {again.checked:,}")
    if again.at_least is not None and (claimed.at_least is None or claimed.at_least > again.at_least):
        most = "all" if claimed.at_least is None else f"at least {claimed.at_least:,}"
        how = "leave out --at-least" if claimed.at_least is None else f"give --at-least {claimed.at_least}"
        raise BadInput(f"{path}: claims {most} answers right; at least {again.at_least:,} were asked for: {how}")
    if again.count is not None:
        _check_count(path, claimed, again)
    if again.tolerance is not None and (claimed.tolerance is None or claimed.tolerance < again.tolerance):
        what = f"claims a tolerance of {claimed.tolerance!r}; {again.tolerance!r} was asked for"
        raise BadInput(f"{path}: {what}: give --tolerance, or certify anew")
    if claimed.radius == again.radius and claimed.right > again.right:
        raise BadInput(f"{path}: claims {claimed.right:,} answers right; there are {again.right:,}")
    if claimed.radius is not None and (again.radius is None or claimed.radius > again.radius):
        checked = "none was" if again.radius is None else f"{again.radius!r} was"
        raise BadInput(
            f"{path}: claims a radius of {claimed.radius!r}; {checked} asked for: give --radius {claimed.radius!r}"
        )


def _check_count(path: Path | str, claimed: Certificate, again: Certificate) -> None:
    """BadInput unless what a certificate claims of the number of right answers is what was counted, name by name."""
    others = claimed.checked if claimed.count is None else 0
    least = others if claimed.at_least is None else claimed.at_least
    if least > again.right:
        raise BadInput(f"{path}: claims {least:,} answers right; there are {again.right:,}")
    if claimed.count is None:
        return
    counts = [(one.count.right, one.errors, one.undecided) for one in (claimed, again) if one.count is not None]
    if counts[0] != counts[1]:
        claims, found = (
            f"{right:,} answers right, {wrong:,} wrong, {doubt:,} undecided" for right, wrong, doubt in counts
        )
        raise BadInput(f"{path}: claims {claims}; there are {found}")
    if claimed.count != again.count:
        why = "names other answers than those that are not right, or questions are in another order than they were"
        raise BadInput(f"{path}: {why}; certify anew")
