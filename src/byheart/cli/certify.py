"""``byheart certify NETWORK --task FILE``: is it true?"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from byheart.cli.output import DONE, NOT_TRUE, Json, console, number, print_json, progress, status
from byheart.errors import BadInput


@dataclass(frozen=True)
class CertifyCommand:
    """Check every answer of a saved network, exactly, and write the certificate."""

    network: Positional[Path]
    """Network folder."""
    task: Path
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
        from byheart import certificates
        from byheart.networks import store
        from byheart.tasks import load

        network, task = store.load(self.network), load(self.task)
        path = self.out or self.network / "certificate.json"
        with progress("checking", task.size.examples, quiet=self.json) as report:
            options = {
                "evaluator": self.evaluator,
                "threads": max(1, min(self.threads, os.cpu_count() or 1)),
                "report": report,
            }
            if self.recheck:
                certificate = certificates.recheck(path, network, task, **options)  # type: ignore[arg-type]
            else:
                certificate = certificates.certify(network, task, **options)  # type: ignore[arg-type]
        kept = not self.recheck and _of_another_task(path, certificate)
        if not self.recheck and not kept:
            certificates.write(certificate, path)
        lies = self._controls(network, task) if self.controls else []
        if self.json:
            controls = [{"name": lie.name, "found": lie.found, "detail": lie.detail} for lie in lies]
            print_json({**certificate.as_json(), **({"controls": controls} if self.controls else {})})
        else:
            self._print(certificate, path, lies, kept)
        return DONE if certificate.certified and all(lie.found for lie in lies) else NOT_TRUE

    def _controls(self, network, task):  # type: ignore[no-untyped-def]
        import numpy as np

        from byheart.certificates import flipped_bit, shuffled_labels

        rng = np.random.default_rng(self.seed)
        with status("telling lies", quiet=self.json):
            return [
                shuffled_labels(network, task, rng, self.evaluator),
                flipped_bit(network, task, rng, self.evaluator),
            ]

    def _print(self, certificate, path, lies, kept) -> None:  # type: ignore[no-untyped-def]
        out = console()
        right = certificate.checked - certificate.errors
        verdict = "[bold green]certified[/]" if certificate.certified else "[bold red]not certified[/]"
        out.print(
            f"{verdict}: {number(right)} of {number(certificate.checked)} answers right, {certificate.method}, {certificate.seconds:.1f} s"
        )
        if certificate.counterexample is not None:
            out.print(f"first wrong answer: {certificate.counterexample}")
        for lie in lies:
            out.print(
                f"control, {lie.name}: {'found out' if lie.found else '[bold red]NOT FOUND[/]'} ({lie.detail}; {lie.verdict.counterexample})"
            )
        if kept:
            out.print(f"{path} is about another task and was left as it is; -o writes elsewhere", style="dim")
        elif self.recheck:
            out.print(f"{path} was checked again: the same weights, the same task", style="dim")
        else:
            out.print(
                f"wrote {path}; check it again with:  byheart certify {self.network} --task {self.task} --recheck",
                style="dim",
            )


def _of_another_task(path: Path, certificate) -> bool:  # type: ignore[no-untyped-def]
    """Whether a certificate for the same weights but another task lies there already: it is not overwritten."""
    from byheart.certificates import read

    try:
        existing = read(path)
    except BadInput:
        return False
    return existing.certified and existing.weights == certificate.weights and existing.task != certificate.task
