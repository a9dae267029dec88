"""Certify a network, and check an existing certificate again."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, TypeAlias

from byheart.certificates.as_used import Extent, FolderToAsk
from byheart.certificates.certificate import Certificate, read
from byheart.certificates.claim import Evaluator, JudgeOptions
from byheart.certificates.counting import write_named
from byheart.certificates.judges import asked, judge_asked, judge_for
from byheart.errors import BadInput
from byheart.executors import Workplace
from byheart.networks import Network, load
from byheart.networks.about import refuse_of
from byheart.networks.closed_form import check_closed, hashes, unchanged
from byheart.networks.folders import CONFIG
from byheart.networks.network import HasNetwork
from byheart.progress import Report
from byheart.tasks import Questions
from byheart.tasks.contexts import Contexts
from byheart.tasks.edits import Edits
from byheart.tasks.loaded_tokenizer import LoadedTokenizer, load_tokenizer
from byheart.tasks.questions import QuestionsLike
from byheart.tasks.tokenizers import from_files

Subject: TypeAlias = Network | HasNetwork | Path | str
"""A network, a built result that holds one, or a folder, which is loaded afresh."""


def network_of(subject: Subject, tokenizer: Path | str | None = None) -> Network:
    """Return the network of a subject; a folder must be in its closed form, with the user's ``tokenizer`` if any."""
    if isinstance(subject, Path | str):
        return load_closed(Path(subject), None if tokenizer is None else load_tokenizer(Path(tokenizer)))
    if tokenizer is not None:
        raise BadInput("tokenizer is for the files of a folder; expected a folder, or no tokenizer")
    network = getattr(subject, "network", subject)
    if not isinstance(network, Network):
        raise BadInput(f"got {type(subject).__name__}; expected a network, a result of byheart.build, or a folder")
    return network


def load_closed(folder: Path, tokenizer: LoadedTokenizer | None = None) -> Network:
    """Return the network in ``folder``; raise BadInput unless Byheart wrote all of the folder for this network.

    A tokenizer that is not Byheart's own must be the one that the user names with ``tokenizer``.
    """
    network = load(folder)
    found, first = from_files(network.files), getattr(network, "first", None)
    if isinstance(found, LoadedTokenizer):
        if tokenizer is None:
            raise BadInput(f"{folder}: its tokenizer is not Byheart's; expected --tokenizer with a copy that you trust")
        found = tokenizer
    elif tokenizer is not None:
        raise BadInput(f"{folder}: has no tokenizer that was loaded; expected no --tokenizer")
    if first is not None and (found is None or first != found.end):
        expected = "expected null, or the token that ends a text"
        raise BadInput(f"{folder / CONFIG}: bos_token_id is {first}, and would precede every question; {expected}")
    if found is not None:
        check_ends(network, found.end, found.vocab)
    check_closed(folder, network, None if found is None else found.files(begins=first is not None))
    return network


def check_ends(network: Network, end: int | None, vocab: int) -> None:
    """Raise BadInput unless transformers, as the folder asks it to, stops generating where texts end, and only there.

    In a batch, it must say nothing after a text that ends before others: it fills such texts up with ``pad_token_id``.
    ``end`` is the token that ends the user's texts, and tokens below ``vocab`` may be part of them.
    """
    if network.kind not in ("transformer", "stock"):
        return
    config = network.as_config()
    stops, pad = config.get("eos_token_id"), config.get("pad_token_id")
    unknown = refuse_of(network) if network.kind == "transformer" else None
    wanted = end if unknown is None else [end, unknown.token]
    if stops != wanted or (unknown is not None and unknown.token < vocab):
        problem = f"config.json: transformers would stop at eos_token_id = {shortened(stops)}"
        raise BadInput(
            f"{problem}; expected {end}, which ends the texts, and a token for unknown prompts from {vocab} on"
        )
    if pad not in (None, end):
        raise BadInput(f"config.json: transformers would fill up texts with pad_token_id = {pad}; expected {end}")


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
    tokenizer: Path | str | None = None,
    as_used: Extent = "sample",
    report: Report | None = None,
) -> Certificate:
    """Check every answer of a network to ``questions``: a task, texts, or files with either.

    All answers have to be right, or ``at_least`` a number of them if the answers are labels. With ``count``, the
    certificate states the number of right answers instead. Every answer then has to be decided, and the certificate
    names the wrong ones; all of them are written to the CSV file ``named``.

    - ``edits``: answers to expect in place of the files', for an edited network: ``{"January 200": "5"}``.
    - ``evaluator`` ("limbs" or "flint") and ``threads``: for exact networks.
    - ``radius``, for exact networks: every answer must stay the same if each vector moves by at most that distance
      (default: the radius that the network's folder states, if any).
    - ``tolerance``: largest permitted error of targets, for softmax and trained networks.
    - ``executor``: where exact networks and float Transformers run: here, in processes, or on Ray. The verdict is the
      same.
    - ``device``, say "cuda": for float Transformers and stock models.
    - ``tokenizer``: your copy of the tokenizer.json of a network in a folder, if the tokenizer is not Byheart's own.
    - ``as_used``: how much of a folder transformers is asked too, in a process of its own: "no", "sample" or "all".
      A sample needs transformers to be installed; without it, the certificate says that transformers was not asked.

    A folder must hold what Byheart writes for the network, and nothing else (:mod:`byheart.networks.closed_form`).

    An option that the network's judge does not use is refused.

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
    options = JudgeOptions(count, at_least, tolerance, radius, evaluator, threads, executor, device, report)
    with _used(network, as_used) as used:
        subject = network_of(network, tokenizer)
        return certify_asked(subject, asked(subject, questions, edits), options, named, used)


@contextmanager
def _used(subject: Subject, extent: Extent) -> Iterator[FolderToAsk | None]:
    """Yield the folder to ask transformers about, if the subject is one; it must stay as it is meanwhile."""
    if not isinstance(subject, Path | str):
        yield None
        return
    with unchanged(Path(subject)), FolderToAsk(Path(subject), extent) as used:
        yield used


def certify_asked(
    network: Network,
    questions: Questions,
    options: JudgeOptions,
    named: Path | str | None = None,
    used: FolderToAsk | None = None,
) -> Certificate:
    """Certify a network on ``questions`` that :func:`asked` returned.

    With ``used``, transformers is asked too, in a process that loads the folder while the judge works.
    """
    if named is not None and not options.count:
        raise BadInput("named is a file for the answers that a count names; expected count too")
    if used is not None and isinstance(questions, Contexts) and from_files(network.files) is None:
        check_ends(network, questions.end, 1 + int(questions.labels.max()))
    asking = None if used is None else used.asking(network, questions)
    verdict = judge_asked(network, questions, options)
    as_used = None if asking is None else asking.compare(verdict)
    if named is not None and verdict.outcomes is not None:
        write_named(verdict.outcomes, Path(named))
    certificate = Certificate.of(
        verdict,
        weights=network.fingerprint,
        task=questions.fingerprint,
        examples=questions.size.examples,
        stands_for=questions.stands_for,
        libraries=judge_for(network).LIBRARIES,
    )
    if used is None:
        return certificate
    files = hashes(used.folder)
    agrees = as_used is None or as_used.differs is None
    return replace(certificate, certified=certificate.certified and agrees, files=files, as_used=as_used)


def recheck(
    path: Path | str, network: Subject, questions: QuestionsLike, *, edits: Edits | None = None, **options: Any
) -> Certificate:
    """Repeat the check that the certificate at ``path`` states; raise BadInput if it claims anything else.

    The options are those of :func:`certify`; nothing is taken from the certificate. It is refused if it is about other
    weights or questions, or claims more than the check shows: more answers, more right ones, a smaller tolerance, a
    larger radius, or another count. Its words and its margin are not compared.
    """
    named, extent = options.pop("named", None), options.pop("as_used", "sample")
    with _used(network, extent) as used:
        subject = network_of(network, options.pop("tokenizer", None))
        return recheck_asked(path, subject, asked(subject, questions, edits), JudgeOptions(**options), named, used)


def recheck_asked(
    path: Path | str,
    network: Network,
    questions: Questions,
    options: JudgeOptions,
    named: Path | str | None = None,
    used: FolderToAsk | None = None,
) -> Certificate:
    """Do :func:`recheck` for questions that :func:`asked` returned."""
    claimed = read(Path(path))
    if not questions.is_named(claimed.task):
        raise BadInput(f"{path}: is about task {claimed.task[:12]}…; this task is {questions.fingerprint[:12]}…")
    if not network.is_named(claimed.weights):
        own = network.fingerprint
        raise BadInput(f"{path}: is about weights {claimed.weights[:12]}…; this network has {own[:12]}…")
    if claimed.count is not None and not options.count:
        raise BadInput(f"{path}: says how many answers are right, and not that all are: give --count")
    again = certify_asked(network, questions, options, named, used)
    if again.certified:
        _check_claim(path, claimed, again)
    return again


def _check_claim(path: Path | str, claimed: Certificate, again: Certificate) -> None:
    """Raise BadInput if a certificate claims more than the repeated check shows."""
    if claimed.checked != again.checked:
        raise BadInput(f"{path}: claims {claimed.checked:,} answers; there are {again.checked:,}")
    if claimed.examples != again.examples or claimed.stands_for not in (None, again.stands_for):  # None: an older file
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
    """Raise BadInput unless a certificate claims the right answers that were counted, by number and by name."""
    default = claimed.checked if claimed.count is None else 0
    least = default if claimed.at_least is None else claimed.at_least
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
