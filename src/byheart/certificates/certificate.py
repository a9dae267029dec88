"""A certificate: what was checked, by which method, on which weights and which task, and what came out.

``certify`` writes it beside the network; ``recheck`` reads it, makes sure that it speaks of these weights and this
task, and does the whole check again.
"""

import json
import os
import platform
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from byheart.certificates.verdict import Counterexample, Evaluator, judge
from byheart.errors import BadInput
from byheart.networks.exact import store
from byheart.networks.folders import kind_of
from byheart.networks.kinds import AnyNetwork, fingerprint, load
from byheart.networks.softmax import SoftmaxNetwork
from byheart.progress import Report
from byheart.tasks import Task

FORMAT = "byheart-certificate-1"
FILE = "certificate.json"


@dataclass(frozen=True)
class Certificate:
    """The statement and what it rests on.

    ``checked`` counts answers, ``examples`` sequences, ``errors`` answers that are wrong and ``undecided`` those that
    could not be decided with the bits allowed; ``found`` says in words what else was found, ``tolerance`` how far real
    answers were allowed to be off.
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
    format: str = FORMAT

    def as_json(self) -> dict[str, object]:
        """The certificate as the object that is stored and printed."""
        return asdict(self)


def certify(
    network: AnyNetwork | Path | str,
    task: Task,
    *,
    evaluator: Evaluator = "limbs",
    threads: int = 1,
    tolerance: float | None = None,
    report: Report | None = None,
) -> Certificate:
    """Check every answer of ``network`` (a folder is loaded afresh) to ``task``, exactly.

    A softmax network's outputs are enclosed in balls; ``tolerance`` is how far targets may be off. A folder may also
    hold a float Transformer that was compiled from the task.

    >>> from byheart.networks.exact import Affine, FeedForward, ExactNetwork, integers
    >>> from byheart.tasks import NextToken
    >>> double = FeedForward((Affine(W=integers([[2]]), b=integers([0])),))
    >>> network = ExactNetwork((double,), inputs="tokens", outputs="last", length=1)
    >>> task = NextToken(tokens=[[0], [1], [2]], labels=[0, 2, 4])
    >>> certify(network, task).certified
    True
    >>> print(certify(network, task.with_labels([0, 3, 4])).counterexample)
    example 1: expected 3, got 2
    """
    if isinstance(network, Path | str):
        if kind_of(Path(network)) == "float":
            return _certify_float(Path(network), task, report)
        network = load(Path(network))
    if isinstance(network, SoftmaxNetwork):
        from byheart.certificates.balls import TOLERANCE, certify_softmax

        return certify_softmax(network, task, tolerance=TOLERANCE if tolerance is None else tolerance, report=report)
    verdict = judge(network, task, evaluator=evaluator, threads=threads, report=report)
    asked = "position" if network.outputs == "every" else "sequence"
    if verdict.bits is None:
        statement = f"The network's output equals the label for every {asked} of the task, as exact rational numbers."
        method = f"exact, exhaustive ({evaluator})"
    else:
        statement = f"The network's output lies within ½ of the label for every {asked} of the task, as real numbers."
        method = f"ball arithmetic, exhaustive, {verdict.bits} bits"
    return Certificate(
        certified=verdict.certified,
        statement=statement,
        method=method,
        checked=verdict.checked,
        examples=task.size.examples,
        errors=verdict.errors,
        smallest_margin=verdict.margin,
        counterexample=verdict.counterexample,
        weights=store.fingerprint(network),
        task=task.fingerprint,
        versions=versions("byheart", "numpy", "numba", "python-flint"),
        seconds=verdict.seconds,
        undecided=verdict.undecided,
    )


def _certify_float(folder: Path, task: Task, report: Report | None) -> Certificate:
    from byheart.certificates.floats import certify_transformer
    from byheart.networks.transformer.store import load as load_transformer
    from byheart.tasks import NextToken
    from byheart.tasks.contexts import task_contexts

    if not isinstance(task, NextToken):
        raise BadInput(f"a float Transformer answers next-token tasks; the task is {task.kind}")
    loaded = load_transformer(folder)
    return certify_transformer(loaded.module, task_contexts(task, loaded.spec.window), report=report)


def write(certificate: Certificate, path: Path) -> None:
    """Write the certificate, whole or not at all."""
    if path.is_dir() or not path.parent.is_dir():
        raise BadInput(f"{path}: cannot be written: it is a folder, or its folder does not exist")
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(certificate.as_json(), file, indent=1, ensure_ascii=False)
            file.write("\n")
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read(path: Path) -> Certificate:
    """A certificate from its file; BadInput if it is none."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise ValueError(f"format is not {FORMAT!r}")
        if fields.get("counterexample") is not None:
            fields["counterexample"] = Counterexample(**fields["counterexample"])
        if not all(isinstance(fields.get(name), str) for name in ("task", "weights")):
            raise ValueError("task and weights are not fingerprints")
        return Certificate(**fields)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; certify the network first") from None
    except (OSError, TypeError, ValueError) as error:
        raise BadInput(f"{path}: not a certificate ({error})") from error


def recheck(
    path: Path,
    network: AnyNetwork | Path | str,
    task: Task,
    *,
    evaluator: Evaluator = "limbs",
    threads: int = 1,
    tolerance: float | None = None,
    report: Report | None = None,
) -> Certificate:
    """Do the check that the certificate at ``path`` speaks of again; BadInput if that is about something else."""
    claimed = read(path)
    if claimed.task != task.fingerprint:
        raise BadInput(f"{path}: is about task {claimed.task[:12]}…; this task is {task.fingerprint[:12]}…")
    if isinstance(network, Path | str):
        network = load(Path(network))
    found = fingerprint(network)
    if claimed.weights != found:
        raise BadInput(f"{path}: is about weights {claimed.weights[:12]}…; this network has {found[:12]}…")
    tolerance = claimed.tolerance if tolerance is None else tolerance
    return certify(network, task, evaluator=evaluator, threads=threads, tolerance=tolerance, report=report)


def versions(*packages: str) -> dict[str, str]:
    """The versions of Python and of these packages."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "source tree"
    return found
