"""``byheart certify NETWORK --task FILE``, ``… FILE…`` or ``… --facts FILE``: is it true?"""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

from byheart.cli.options import Arg, Columns, ExecutorName, FactFiles, Json, Positional, WorkersNumber
from byheart.cli.output import DONE, NOT_TRUE, facts_in, given_by, steps, typed
from byheart.cli.recite import unescaped
from byheart.cli.result import console, print_blocks, print_json, verdict_rows
from byheart.errors import BadInput, check_installed, check_seed
from byheart.executors import Workplace
from byheart.files.untrusted import read_json
from byheart.files.writing import check_apart, check_file
from byheart.networks.folders import CONFIG
from byheart.networks.weight_files import weight_files

if TYPE_CHECKING:
    from byheart.certificates import Certificate, Control
    from byheart.certificates.claim import JudgeOptions
    from byheart.certificates.refusal import RefusalStatus
    from byheart.certificates.second_opinion import SecondOpinion
    from byheart.networks import Network
    from byheart.progress import Report
    from byheart.tasks import Questions
    from byheart.tasks.edits import Piece
    from byheart.tasks.tokenizers import Tokenizer


PLANTED = "byheart-plant"
"""The ``model_type`` of a model with planted memories."""
_State = list[tuple[int, ...]]
"""Which files a network is in."""


@dataclass(frozen=True)
class _Findings:
    """A certificate, and what stands beside it."""

    certificate: "Certificate"
    others: "RefusalStatus | None"
    lies: "list[Control]"
    opinion: "SecondOpinion | None"

    @property
    def good(self) -> bool:
        """Whether nothing speaks against the network, nor against how it was checked."""
        agreed = self.opinion is None or self.opinion.agrees is True
        doubted = self.others is not None and self.others.doubt
        return (
            self.certificate.certified and all(lie.found is not False for lie in self.lies) and agreed and not doubted
        )


@dataclass(frozen=True)
class CertifyCommand:
    """Check every answer of a saved network, exactly, and write the certificate."""

    network: Positional[Path]
    """Network folder."""
    files: Positional[tuple[Path, ...]] = ()
    """The texts that a reciting network was compiled from."""
    task: Path | None = None
    """Task file (.npz or .jsonl)."""
    facts: FactFiles = ()
    columns: Columns = None
    set: Annotated[tuple[str, ...], Arg(repeated=True)] = ()
    """CONTEXT=TOKEN: an answer that is to be another than the text's or the task's, because the network was edited;
    may be given several times."""
    recheck: bool = False
    """Check an existing certificate again: it must be about these weights and this task."""
    controls: bool = False
    """Also tell two lies, shuffled answers and a perturbed weight, which must be found."""
    out: Annotated[Path | None, Arg(aliases=("-o",))] = None
    """Where the certificate is (default: certificate.json in the network folder)."""
    second_opinion: bool = False
    """Also ask verify.py, a short program that a person can read and that shares nothing with the judges."""
    sample: int | None = None
    """Questions that the second opinion asks, drawn at random (default: all; it is slow)."""
    evaluator: Literal["limbs", "flint"] | None = None
    """Exact networks: limbs (compiled, fast, the default) or flint (python-flint's rationals, slow, independent)."""
    threads: int | None = None
    """Exact networks: threads of the evaluator limbs (default: 1)."""
    tolerance: float | None = None
    """Softmax and trained networks: how far targets may be off, or nats above the entropy of the data (default:
    1e-6)."""
    count: bool = False
    """Prove how many labels are right, whatever that number is, and name the others."""
    named: Path | None = None
    """CSV file for all answers that a count finds not to be right: example, position, outcome, expected, got."""
    at_least: int | None = None
    """So many labels have to be right (default: all)."""
    radius: float | None = None
    """Exact networks: answers must stay right wherever every vector goes within this distance (default: the radius that
    the network's folder states, if it does)."""
    executor: ExecutorName = "local"
    workers: WorkersNumber = None
    device: Annotated[str | None, Arg(metavar="NAME")] = None
    """Float Transformers and stock models: cpu, cuda, cuda:1, … (default: cpu)."""
    seed: int = 0
    """Seed of the controls, and of the second opinion's sample."""
    json: Json = False

    def run(self) -> int:
        """Load, check, write, print."""
        if _is_planted(self.network):
            return self._certify_planted()
        where = Workplace(self.executor, self.workers)
        path = self.out or self.network / "certificate.json"
        self._check(path)
        with steps("reading", quiet=self.json):
            seen = _state(self.network)
            network, questions = self._asked()
        with steps("checking", quiet=self.json) as report:
            options = self._options(where, report)
            certificate = self._judged(network, questions, path, options)
        kept = not self.recheck and _of_another_task(path, network, questions)
        if not self.recheck and not kept:
            self._write(certificate, path, seen)
        found = _Findings(
            certificate,
            self._others(network, questions),
            self._lies(network, questions, options) if self.controls else [],
            self._second_opinion(certificate, questions) if self.second_opinion else None,
        )
        if self.json:
            self._print_json(found, path, kept, where)
        else:
            self._print(found, path, kept, where)
        return DONE if found.good else NOT_TRUE

    def _certify_planted(self) -> int:
        """Judge a model with planted memories; write and print the certificate."""
        check_installed("transformers", "planting", "hf")
        from byheart.certificates import write
        from byheart.certificates.judges.planted import certify_planted, check_claimed

        used = ("network", "facts", "columns", "recheck", "json", "out", "executor", "seed")
        default = CertifyCommand(self.network)
        strange = [name for name in vars(self) if name not in used and getattr(self, name) != getattr(default, name)]
        if strange or not self.facts:
            got = f"--{strange[0].replace('_', '-')} is given" if strange else "no facts are given"
            raise BadInput(f"{self.network}: has planted memories, and {got}; expected --facts with what was planted")
        path = self.out or self.network / "certificate.json"
        if self.recheck and not path.exists():
            raise BadInput(f"{path}: no such file; certify the network first")
        with steps("checking", quiet=self.json) as report:
            certificate = certify_planted(self.network, facts_in(self.facts, self.columns), report=report)
        if self.recheck:
            check_claimed(path, certificate)
        else:
            write(certificate, path)
        again = self._again()
        if self.json:
            written = None if self.recheck else str(path)
            print_json({**certificate.as_json(), "written": written, "recheck": again})
        else:
            print_blocks(verdict_rows(certificate))
            done = f"{path} was checked again" if self.recheck else f"wrote {path}; check it again with:  {again}"
            console().print(done, style="dim", markup=False)
        return DONE if certificate.certified else NOT_TRUE

    def _options(self, where: Workplace, report: "Report | None") -> "JudgeOptions":
        """Return what the judge is told."""
        from byheart.certificates.claim import JudgeOptions

        executor = None if where.name == "local" else where
        claim = (self.count, self.at_least, self.tolerance, self.radius)
        return JudgeOptions(*claim, self.evaluator, self.threads, executor, self.device, report)

    def _check(self, path: Path) -> None:
        """BadInput if options do not go together, or what is to be written cannot be."""
        from byheart.certificates.certificate import check_place

        check_seed(self.seed)
        if self.sample is not None and not self.second_opinion:
            raise BadInput("--sample is for a second opinion; expected --second-opinion too")
        if self.second_opinion and self.columns:
            raise BadInput("--second-opinion asks verify.py, which knows no --columns; expected prompt and completion")
        self._check_named(path)
        if not self.recheck and self.network.is_dir():
            if self.out is None and path.is_symlink():
                raise BadInput(f"{path}: is a link, which somebody else may have laid; remove it, or give -o")
            check_place(path)
            check_apart(path, self.task, *self.files, *self.facts)

    def _check_named(self, path: Path) -> None:
        """BadInput unless the file for names can be written, and is none that is read."""
        if self.named is None:
            return
        if not self.count:
            raise BadInput("--named is for the answers that a count names; expected --count too")
        if not self.named.parent.is_dir():
            raise BadInput(f"{self.named}: cannot be written: its folder does not exist")
        check_file(self.named)
        check_apart(self.named, self.network, path, self.task, *self.files, *self.facts)

    def _asked(self) -> "tuple[Network, Questions]":
        """The network, and what it is asked."""
        from byheart.certificates.judges import asked
        from byheart.networks import load
        from byheart.tasks.loaded_tokenizer import LoadedTokenizer
        from byheart.tasks.tokenizers import from_files

        network = load(self.network)
        tokenizer = from_files(network.files) if self.set or self.second_opinion else None
        if self.second_opinion and isinstance(tokenizer, LoadedTokenizer):
            raise BadInput("--second-opinion asks verify.py, which knows no tokenizer that was loaded")
        edits = dict(edit_in(text, tokenizer) for text in self.set)
        return network, asked(network, given_by(self.files, self.task, self.facts, self.columns), edits)

    def _judged(self, network: "Network", questions: "Questions", path: Path, options: "JudgeOptions") -> "Certificate":
        from byheart.certificates.certifying import certify_asked, recheck_asked

        if self.recheck:
            return recheck_asked(path, network, questions, options, self.named)
        return certify_asked(network, questions, options, self.named)

    def _write(self, certificate: "Certificate", path: Path, seen: "_State") -> None:
        """Write the certificate, unless the network is no longer what was ``seen`` before it was checked."""
        from byheart.certificates import write

        if _state(self.network) != seen:
            changed = "was changed while it was checked, and no certificate is written"
            raise BadInput(f"{self.network}: {changed}; certify it again")
        write(certificate, path)

    def _others(self, network: "Network", questions: "Questions") -> "RefusalStatus | None":
        """What the network promises of other prompts than those of its facts, where that is proved here."""
        from byheart.certificates.refusal import judge_refusal

        others = judge_refusal(network, questions) if self.facts else None
        return others if others is not None and others.refusal.proves else None

    def _lies(self, network: "Network", questions: "Questions", options: "JudgeOptions") -> "list[Control]":
        import numpy as np

        from byheart.certificates.controls import controls_asked

        with steps("telling lies", quiet=self.json):
            rng = np.random.default_rng(self.seed)
            return controls_asked(network, questions, rng, replace(options, report=None))

    def _second_opinion(self, certificate: "Certificate", questions: "Questions") -> "SecondOpinion":
        from byheart.certificates.second_opinion import second_opinion

        with steps("asking verify.py", quiet=self.json):
            return second_opinion(
                certificate,
                self.network,
                questions,
                files=self.files,
                task=self.task,
                facts=self.facts,
                tolerance=self.tolerance,
                sample=self.sample,
                seed=self.seed,
            )

    def _print_json(self, found: "_Findings", path: Path, kept: bool, where: Workplace) -> None:
        told = [{"name": lie.name, "found": lie.found, "detail": lie.detail} for lie in found.lies]
        written = None if self.recheck or kept else str(path)
        more: dict[str, object] = {"note": self._last_line(path, kept)} if kept else {}
        more |= {"others": found.others.as_json()} if found.others is not None else {}
        more |= {"controls": told} if self.controls else {}
        more |= {"second_opinion": found.opinion.as_json()} if found.opinion is not None else {}
        again = None if kept else self._again()
        print_json({**found.certificate.as_json(), "written": written, "recheck": again, **where.memory, **more})

    def _print(self, found: "_Findings", path: Path, kept: bool, where: Workplace) -> None:
        certificate = found.certificate
        print_verdict(certificate)
        if self.facts and not (self.set or self.count or self.at_least):
            print_facts(certificate)
        if found.others is not None:
            console().print(str(found.others), markup=False)
        if found.opinion is not None:
            console().print(f"second opinion: {found.opinion}", markup=False)
        for lie in found.lies:
            self._print_lie(lie)
        if self.named is not None:
            not_right = f"{certificate.checked - certificate.right:,} of {certificate.checked:,} answers"
            console().print(f"wrote {self.named}: {not_right}", style="dim", markup=False)
        if where.name != "local":
            console().print(f"memory at most: {where.memory_text}", style="dim", markup=False)
        console().print(self._last_line(path, kept), style="dim", markup=False)

    def _print_lie(self, lie: "Control") -> None:
        words = {True: "found", False: "[bold red]NOT FOUND[/]", None: "not found, but all answers are alike"}
        if self.count:
            words[None] = "not found, but no right answer could become another"
        example = f"; {lie.verdict.counterexample}" if lie.verdict.counterexample and not self.count else ""
        console().print(f"control, {lie.name}: {words[lie.found]} ({_escaped(lie.detail + example)})")

    def _last_line(self, path: Path, kept: bool) -> str:
        if kept:
            return f"{path} is about another task, was not checked, and was left as it is; -o writes elsewhere"
        if self.recheck:
            return f"{path} was checked again: the same weights, the same task"
        return f"wrote {path}; check it again with:  {self._again()}"

    def _again(self) -> str:
        """The command that checks the certificate again."""
        what = f"--task {typed(self.task)}" if self.task is not None else " ".join(map(typed, self.files))
        what = " ".join(f"--facts {typed(path)}" for path in self.facts) or what
        what += f" --columns {' '.join(map(quote, self.columns))}" if self.columns else ""
        options = f" -o {typed(self.out)}" * (self.out is not None)
        options += f" --tolerance {self.tolerance}" * bool(self.tolerance)
        options += " --count" * self.count
        options += f" --at-least {self.at_least}" * bool(self.at_least)
        options += f" --radius {self.radius!r}" * (self.radius is not None)
        options += "".join(f" --set {quote(text)}" for text in self.set)
        return f"byheart certify {typed(self.network)} {what}{options} --recheck"


def print_verdict(certificate: "Certificate", before: str = "") -> None:
    """Print what a certificate states, in a line or two."""
    print_blocks(verdict_rows(certificate, before))


FACTS_FOLLOW = "so every completion is said, greedily, after its own prompt, to its end"
"""What follows for facts if all of their questions are answered right: each token follows from those before."""


def print_facts(certificate: "Certificate") -> None:
    """Print what a certificate means for facts, if it is one."""
    if certificate.certified:
        console().print(FACTS_FOLLOW, style="dim")


def edit_in(text: str, tokenizer: "Tokenizer | None") -> "tuple[Piece, Piece]":
    """Context and token of a ``--set``: pieces of a text, or token ids where there is no tokenizer."""
    context, _, answer = text.rpartition("=")
    if not answer and context.endswith("="):
        context, answer = context[:-1], "="
    if not context or not answer:
        raise BadInput(f"--set is {text!r}; expected CONTEXT=TOKEN")
    return (_ids(context), _ids(answer)) if tokenizer is None else (unescaped(context), unescaped(answer))


def _ids(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.replace(" ", "").split(","))
    except ValueError:
        raise BadInput(f"{text!r} is no list of token ids; expected numbers, 3,1,4") from None


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _is_planted(folder: Path) -> bool:
    """Return True if a folder holds a model with planted memories, going by its config.json."""
    try:
        return read_json(folder / CONFIG).get("model_type") == PLANTED
    except (BadInput, OSError):
        return False


def _state(folder: Path) -> _State:
    """Which files the network is in: others if it was replaced or written to meanwhile."""
    found = [os.stat(path) for path in (folder / CONFIG, *weight_files(folder)) if path.exists()]
    return [(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in found]


def _of_another_task(path: Path, network: "Network", questions: "Questions") -> bool:
    """Whether a certificate for the same weights but another task lies there already: it is not overwritten."""
    from byheart.certificates import read

    try:
        existing = read(path)
    except BadInput:
        return False
    return existing.certified and network.is_named(existing.weights) and not questions.is_named(existing.task)
