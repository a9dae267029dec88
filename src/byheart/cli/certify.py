"""``byheart certify NETWORK --task FILE``, ``byheart certify NETWORK FILE…``: is it true?"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from byheart.cli.output import DONE, NOT_TRUE, Json, console, number, print_json, status, steps
from byheart.errors import BadInput
from byheart.networks.folders import kind_of

if TYPE_CHECKING:
    from byheart.certificates import Certificate, Control
    from byheart.networks import Network
    from byheart.tasks import Task


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
    """Also tell two lies (shuffled labels, a flipped bit), which must be found out."""
    out: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Where the certificate is (default: certificate.json in the network folder)."""
    evaluator: Literal["limbs", "flint"] = "limbs"
    """limbs: compiled, fast. flint: python-flint's rationals, slow, independent."""
    threads: int = 1
    """Threads for the fast evaluator."""
    seed: int = 0
    """Seed of the controls."""
    json: Json = False

    def run(self) -> int:
        """Load both, check, write, print."""
        from byheart.certificates import write
        from byheart.networks import store
        from byheart.tasks import load

        if self.threads < 1:
            raise BadInput(f"--threads is {self.threads}; expected at least 1")
        if (kind := kind_of(self.network)) in ("float", "llama"):
            return self._float() if kind == "float" else self._llama()
        if self.task is None or self.files:
            raise BadInput(f"{self.network}: is an exact network; expected --task FILE and no texts")
        network, task = store.load(self.network), load(self.task)
        path = self.out or self.network / "certificate.json"
        certificate = self._check(network, task, path)
        kept = not self.recheck and _of_another_task(path, certificate)
        if not self.recheck and not kept:
            write(certificate, path)
        lies = self._lies(network, task) if self.controls else []
        return self._tell(certificate, lies, path, kept)

    def _tell(self, certificate: "Certificate", lies: "list[Control]", path: Path, kept: bool) -> int:
        if self.json:
            controls = [{"name": lie.name, "found": lie.found, "detail": lie.detail} for lie in lies]
            print_json({**certificate.as_json(), **({"controls": controls} if self.controls else {})})
        else:
            self._print(certificate, lies)
            console().print(self._last_line(path, kept), style="dim", markup=False)
        return DONE if certificate.certified and all(lie.found is not False for lie in lies) else NOT_TRUE

    def _float(self) -> int:
        """The same for a float Transformer, against its texts or its task."""
        import numpy as np

        from byheart.certificates import read, write
        from byheart.certificates.floats import certify_transformer, controls
        from byheart.cli.questions import questions_of
        from byheart.networks.transformer import store

        loaded = store.load(self.network)
        with status("reading", quiet=self.json):
            contexts, _ = questions_of(self.network, loaded.about, self.files, self.task, window=loaded.spec.window)
        if contexts.tokens.max() >= loaded.spec.vocab:
            known = f"the network knows 0 to {loaded.spec.vocab - 1}"
            raise BadInput(f"token {contexts.tokens.max()} is asked about; {known}")
        path = self.out or self.network / "certificate.json"
        with steps("checking", quiet=self.json) as report:
            certificate = certify_transformer(loaded.module, contexts, report=report)
        kept = not self.recheck and _of_another_task(path, certificate)
        if self.recheck:
            claimed = read(path)
            for name in ("weights", "task"):
                if getattr(claimed, name) != getattr(certificate, name):
                    raise BadInput(f"{path}: is about other {name} ({getattr(claimed, name)[:12]}…)")
        elif not kept:
            write(certificate, path)
        lies: list[Control] = []
        if self.controls:
            with status("telling lies", quiet=self.json):
                lies = controls(loaded.module, contexts, np.random.default_rng(self.seed))
        return self._tell(certificate, lies, path, kept)

    def _llama(self) -> int:
        """The same for a stock Llama."""
        from byheart.certificates import write
        from byheart.certificates.floats import certify_stock
        from byheart.cli.questions import questions_of
        from byheart.networks.transformer import stock

        if self.controls or self.recheck:
            raise BadInput("--controls and --recheck are for Byheart's own networks; this is a stock Llama")
        about = stock.load(self.network).about
        with status("reading", quiet=self.json):
            contexts, _ = questions_of(self.network, about, self.files, self.task)
        path = self.out or self.network / "certificate.json"
        with steps("checking", quiet=self.json) as report:
            certificate = certify_stock(self.network, contexts, report=report)
        kept = _of_another_task(path, certificate)
        if not kept:
            write(certificate, path)
        return self._tell(certificate, [], path, kept)

    def _check(self, network: "Network", task: "Task", path: Path) -> "Certificate":
        from byheart.certificates import certify, recheck

        with steps("checking", quiet=self.json) as report:
            if self.recheck:
                return recheck(path, network, task, evaluator=self.evaluator, threads=self.threads, report=report)
            return certify(network, task, evaluator=self.evaluator, threads=self.threads, report=report)

    def _lies(self, network: "Network", task: "Task") -> "list[Control]":
        import numpy as np

        from byheart.certificates import flipped_bit, shuffled_labels
        from byheart.tasks import NextToken, SeqToSeq

        assert isinstance(task, NextToken | SeqToSeq)
        rng = np.random.default_rng(self.seed)
        with status("telling lies", quiet=self.json):
            return [control(network, task, rng, self.evaluator) for control in (shuffled_labels, flipped_bit)]

    def _print(self, certificate: "Certificate", lies: "list[Control]") -> None:
        from rich.markup import escape

        out = console()
        verdict = "[bold green]certified[/]" if certificate.certified else "[bold red]not certified[/]"
        right = f"{number(certificate.checked - certificate.errors)} of {number(certificate.checked)} answers right"
        out.print(f"{verdict}: {right}, {certificate.method}, {certificate.seconds:.1f} s")
        if certificate.counterexample is not None:
            out.print(f"first wrong answer: {certificate.counterexample}", markup=False)
        for lie in lies:
            found = {True: "found out", False: "[bold red]NOT FOUND[/]", None: "nothing to lie about"}[lie.found]
            out.print(f"control, {lie.name}: {found} ({escape(f'{lie.detail}; {lie.verdict.counterexample}')})")

    def _last_line(self, path: Path, kept: bool) -> str:
        if kept:
            return f"{path} is about another task and was left as it is; -o writes elsewhere"
        if self.recheck:
            return f"{path} was checked again: the same weights, the same task"
        what = f"--task {self.task}" if self.task is not None else " ".join(map(str, self.files))
        return f"wrote {path}; check it again with:  byheart certify {self.network} {what} --recheck"


def _of_another_task(path: Path, certificate: "Certificate") -> bool:
    """Whether a certificate for the same weights but another task lies there already: it is not overwritten."""
    from byheart.certificates import read

    try:
        existing = read(path)
    except BadInput:
        return False
    return existing.certified and existing.weights == certificate.weights and existing.task != certificate.task
