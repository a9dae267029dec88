"""``byheart certify NETWORK --task FILE``, ``byheart certify NETWORK FILE…``: is it true?"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from byheart.cli.output import DONE, NOT_TRUE, Json, console, number, print_json, status, steps
from byheart.errors import BadInput
from byheart.networks.folders import kind_of
from byheart.progress import Report

if TYPE_CHECKING:
    from byheart.certificates import Certificate, Control


@dataclass(frozen=True)
class _Subject:
    """What is to be checked, by its fingerprints; how; and which lies can be told about it."""

    weights: str
    task: str
    certify: "Callable[[Report | None], Certificate]"
    controls: "Callable[[], list[Control]]"


@dataclass(frozen=True)
class CertifyCommand:
    """Check every answer of a saved network, exactly, and write the certificate."""

    network: Positional[Path]
    """Network folder."""
    files: Positional[tuple[Path, ...]] = ()
    """The texts that a reciting network was compiled from."""
    task: Path | None = None
    """Task file (.npz or .jsonl)."""
    recheck: bool = False
    """Check an existing certificate again: it must be about these weights and this task."""
    controls: bool = False
    """Also tell lies (shuffled labels, a flipped bit, a nudged weight, …), which must be found out."""
    out: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Where the certificate is (default: certificate.json in the network folder)."""
    evaluator: Literal["limbs", "flint"] = "limbs"
    """limbs: compiled, fast. flint: python-flint's rationals, slow, independent."""
    threads: int = 1
    """Threads for the fast evaluator."""
    tolerance: float | None = None
    """Softmax networks: how far targets may be off, or nats above the entropy of the data (default 1e-6)."""
    seed: int = 0
    """Seed of the controls."""
    json: Json = False

    def run(self) -> int:
        """Load, check, write, print."""
        from byheart.certificates import read, write

        if self.threads < 1:
            raise BadInput(f"--threads is {self.threads}; expected at least 1")
        kind = kind_of(self.network)
        if self.tolerance is not None and kind != "softmax":
            raise BadInput("--tolerance is for softmax networks, whose answers are real numbers")
        subject = self._transformer(kind) if kind in ("float", "llama") else self._network()
        path = self.out or self.network / "certificate.json"
        if self.recheck:
            _same(read(path), subject, path)
        with steps("checking", quiet=self.json) as report:
            certificate = subject.certify(report)
        kept = not self.recheck and _of_another_task(path, certificate)
        if not self.recheck and not kept:
            write(certificate, path)
        lies: list[Control] = []
        if self.controls:
            with status("telling lies", quiet=self.json):
                lies = subject.controls()
        return self._tell(certificate, lies, path, kept)

    def _tell(self, certificate: "Certificate", lies: "list[Control]", path: Path, kept: bool) -> int:
        if self.json:
            controls = [{"name": lie.name, "found": lie.found, "detail": lie.detail} for lie in lies]
            print_json({**certificate.as_json(), **({"controls": controls} if self.controls else {})})
        else:
            self._print(certificate, lies)
            console().print(self._last_line(path, kept), style="dim", markup=False)
        return DONE if certificate.certified and all(lie.found is not False for lie in lies) else NOT_TRUE

    def _network(self) -> "_Subject":
        """An exact or a softmax network, against its task."""
        import numpy as np

        from byheart.certificates import balls, certify, flipped_bit, read, shuffled_labels
        from byheart.networks import kinds
        from byheart.networks.exact import ExactNetwork
        from byheart.tasks import NextToken, SeqToSeq, load

        if self.task is None or self.files:
            what = "a softmax network" if kind_of(self.network) == "softmax" else "an exact network"
            raise BadInput(f"{self.network}: is {what}; expected --task FILE and no texts")
        network, task, rng = kinds.load(self.network), load(self.task), np.random.default_rng(self.seed)
        tolerance = self.tolerance
        if tolerance is None and self.recheck:
            tolerance = read(self.out or self.network / "certificate.json").tolerance
        tolerance = balls.TOLERANCE if tolerance is None else tolerance

        def lies() -> "list[Control]":
            if not isinstance(network, ExactNetwork):
                return balls.controls(network, task, rng, tolerance=tolerance)
            assert isinstance(task, NextToken | SeqToSeq)
            return [control(network, task, rng, self.evaluator) for control in (shuffled_labels, flipped_bit)]

        return _Subject(
            kinds.fingerprint(network),
            task.fingerprint,
            lambda report: certify(
                network, task, evaluator=self.evaluator, threads=self.threads, tolerance=tolerance, report=report
            ),
            lies,
        )

    def _transformer(self, kind: str | None) -> "_Subject":
        """A float Transformer or a stock Llama, against its texts or its task."""
        import numpy as np

        from byheart.certificates import floats
        from byheart.cli.questions import questions_of
        from byheart.networks.transformer import stock, store

        if kind == "llama":
            if self.controls:
                raise BadInput("--controls are for Byheart's own networks; this is a stock Llama")
            llama = stock.load(self.network)
            with status("reading", quiet=self.json):
                asked, _ = questions_of(self.network, llama.about, self.files, self.task)
            return _Subject(
                floats.fingerprint_of_stock(self.network),
                asked.fingerprint,
                lambda report: floats.certify_stock(self.network, asked, llama, report=report),
                list,
            )
        loaded = store.load(self.network)
        with status("reading", quiet=self.json):
            contexts, _ = questions_of(self.network, loaded.about, self.files, self.task, window=loaded.spec.window)
        if contexts.tokens.max() >= loaded.spec.vocab:
            known = f"the network knows 0 to {loaded.spec.vocab - 1}"
            raise BadInput(f"token {contexts.tokens.max()} is asked about; {known}")
        return _Subject(
            store.fingerprint(loaded.spec, loaded.module),
            contexts.fingerprint,
            lambda report: floats.certify_transformer(loaded.module, contexts, report=report),
            lambda: floats.controls(loaded.module, contexts, np.random.default_rng(self.seed)),
        )

    def _print(self, certificate: "Certificate", lies: "list[Control]") -> None:
        from rich.markup import escape

        out = console()
        verdict = "[bold green]certified[/]" if certificate.certified else "[bold red]not certified[/]"
        sure = certificate.checked - certificate.errors - certificate.undecided
        right = f"{number(sure)} of {number(certificate.checked)} answers right"
        found = f", {certificate.found}" if certificate.found else ""
        doubt = f", {number(certificate.undecided)} undecided" if certificate.undecided else ""
        out.print(f"{verdict}: {right}{doubt}{found}, {certificate.method}, {certificate.seconds:.1f} s")
        if certificate.counterexample is not None:
            which = "wrong" if certificate.errors else "undecided"
            out.print(f"first {which} answer: {certificate.counterexample}", markup=False)
        for lie in lies:
            found = {
                True: "found out",
                False: "[bold red]NOT FOUND[/]",
                None: "all labels alike, so nothing need show",
            }[lie.found]
            example = f"; {lie.verdict.counterexample}" if lie.verdict.counterexample is not None else ""
            out.print(f"control, {lie.name}: {found} ({escape(lie.detail + example)})")

    def _last_line(self, path: Path, kept: bool) -> str:
        if kept:
            return f"{path} is about another task and was left as it is; -o writes elsewhere"
        if self.recheck:
            return f"{path} was checked again: the same weights, the same task"
        what = f"--task {self.task}" if self.task is not None else " ".join(map(str, self.files))
        return f"wrote {path}; check it again with:  byheart certify {self.network} {what} --recheck"


def _same(claimed: "Certificate", subject: _Subject, path: Path) -> None:
    """BadInput unless a certificate is about these weights and this task."""
    if claimed.task != subject.task:
        raise BadInput(f"{path}: is about task {claimed.task[:12]}…; this task is {subject.task[:12]}…")
    if claimed.weights != subject.weights:
        raise BadInput(f"{path}: is about weights {claimed.weights[:12]}…; this network has {subject.weights[:12]}…")


def _of_another_task(path: Path, certificate: "Certificate") -> bool:
    """Whether a certificate for the same weights but another task lies there already: it is not overwritten."""
    from byheart.certificates import read

    try:
        existing = read(path)
    except BadInput:
        return False
    return existing.certified and existing.weights == certificate.weights and existing.task != certificate.task
