"""``byheart certify NETWORK --task FILE``, ``… FILE…`` or ``… --facts FILE``: is it true?"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from byheart.certificates import Certificate, read, write
from byheart.certificates.as_used import Extent, FolderToAsk
from byheart.certificates.certificate import FILE, check_place
from byheart.certificates.certifying import certify_asked, load_closed, recheck_asked
from byheart.certificates.claim import JudgeOptions
from byheart.certificates.controls import Control, controls_asked
from byheart.certificates.judges import asked
from byheart.certificates.second_opinion import SecondOpinion, second_opinion
from byheart.cli.arguments import words_of
from byheart.cli.options import Arg, Columns, ExecutorName, FactFiles, Json, Positional, WorkersNumber
from byheart.cli.output import facts_in, given_by, steps, unescaped
from byheart.cli.result import Block, Part, Result, Styled, dim, verdict_rows
from byheart.errors import BadInput, check_installed, check_seed
from byheart.executors import Workplace
from byheart.files.writing import check_apart, check_file
from byheart.networks import Network
from byheart.networks.closed_form import unchanged
from byheart.networks.folders import PLANTED, model_type
from byheart.tasks import Questions
from byheart.tasks.edits import Piece
from byheart.tasks.loaded_tokenizer import LoadedTokenizer, load_tokenizer
from byheart.tasks.tokenizers import Tokenizer, from_files

if TYPE_CHECKING:  # torch is slow to import
    from byheart.certificates.refusal import RefusalStatus

PLANTED_OPTIONS = {"network", "facts", "columns", "recheck", "out", "executor", "seed", "json"}
"""Options that certify a model with planted memories."""
AGAIN = (
    *("network", "files", "task", "facts", "columns", "tokenizer"),
    *("set", "out", "tolerance", "count", "at_least", "radius"),
)
"""Options that a command needs to check the same claim again."""


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
    tokenizer: Path | None = None
    """Your copy of the network's tokenizer.json, if the tokenizer is not Byheart's own."""
    set: Annotated[tuple[str, ...], Arg(repeated=True)] = ()
    """CONTEXT=TOKEN: an answer that differs from the text's or the task's because the network was edited. May be given
    several times."""
    recheck: bool = False
    """Check an existing certificate again: it must be about these weights and this task."""
    controls: bool = False
    """Also tell two lies, shuffled answers and a perturbed weight, which must be found."""
    out: Annotated[Path | None, Arg(aliases=("-o",))] = None
    """File of the certificate (default: certificate.json in the network folder)."""
    as_used: Extent = "sample"
    """How much transformers, if installed, is asked too, in a process of its own, from text to text: no, a sample, or
    all."""
    second_opinion: bool = False
    """Also ask verify.py, a short program that a person can read and that shares nothing with the judges."""
    sample: int | None = None
    """Number of questions for the second opinion, drawn at random (default: all; it is slow)."""
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
    """Number of labels that have to be right (default: all)."""
    radius: float | None = None
    """Exact networks: answers must stay right wherever every vector goes within this distance (default: the radius that
    the network's folder states, if it does)."""
    executor: ExecutorName = "local"
    workers: WorkersNumber = None
    device: Annotated[str | None, Arg(metavar="NAME")] = None
    """Float Transformers and stock models: cpu, cuda, cuda:1, … (default: cpu)."""
    seed: int = 0
    """Seed of the controls, and of the samples of --as-used and the second opinion."""
    json: Json = False

    @property
    def path(self) -> Path:
        """The file of the certificate."""
        return self.out or self.network / FILE

    def run(self) -> "CertifyResult":
        """Check every answer, and write the certificate unless there is one to check again."""
        if model_type(self.network) == PLANTED:
            return self._certify_planted()
        where = Workplace(self.executor, self.workers)
        self._check()
        executor = None if where.name == "local" else where
        claim = (self.count, self.at_least, self.tolerance, self.radius)
        options = JudgeOptions(*claim, self.evaluator, self.threads, executor, self.device)
        with unchanged(self.network), FolderToAsk(self.network, self.as_used, self.seed) as used:
            with steps("reading", quiet=self.json):
                network, questions = self._questions()
            with steps("checking", quiet=self.json) as report:
                reported = replace(options, report=report)
                if self.recheck:
                    certificate = recheck_asked(self.path, network, questions, reported, self.named, used)
                else:
                    certificate = certify_asked(network, questions, reported, self.named, used)
        is_kept = not self.recheck and _is_of_another_task(self.path, network, questions)
        if not self.recheck and not is_kept:
            write(certificate, self.path)
        controls = self._controls(network, questions, options)
        opinion = self._second_opinion(certificate, questions)
        return CertifyResult(self, certificate, is_kept, self._refusal(network, questions), controls, opinion, where)

    def _certify_planted(self) -> "CertifyResult":
        """Judge a model with planted memories, and write its certificate."""
        check_installed("transformers", "planting", "hf")
        from byheart.certificates.judges.planted import certify_planted, check_claimed

        set_options = (field.name for field in fields(self) if getattr(self, field.name) != field.default)
        unused = [name for name in set_options if name not in PLANTED_OPTIONS]
        if unused or not self.facts:
            problem = f"--{unused[0].replace('_', '-')} is given" if unused else "no facts are given"
            expected = "expected --facts with what was planted"
            raise BadInput(f"{self.network}: has planted memories, and {problem}; {expected}")
        if self.recheck and not self.path.exists():
            raise BadInput(f"{self.path}: no such file; certify the network first")
        self._check_place()
        with unchanged(self.network), steps("checking", quiet=self.json) as report:
            certificate = certify_planted(self.network, facts_in(self.facts, self.columns), report=report)
        if self.recheck:
            check_claimed(self.path, certificate)
        else:
            write(certificate, self.path)
        return CertifyResult(self, certificate)

    def _check(self) -> None:
        """Raise BadInput if options do not go together, or a file cannot be written."""
        check_seed(self.seed)
        if self.sample is not None and not self.second_opinion:
            raise BadInput("--sample is for a second opinion; expected --second-opinion too")
        if self.second_opinion and self.columns:
            raise BadInput("--second-opinion asks verify.py, which knows no --columns; expected prompt and completion")
        if self.named is not None:
            if not self.count:
                raise BadInput("--named is for the answers that a count names; expected --count too")
            if not self.named.parent.is_dir():
                raise BadInput(f"{self.named}: cannot be written: its folder does not exist")
            check_file(self.named)
            check_apart(self.named, self.network, self.path, *self._inputs)
        self._check_place()

    @property
    def _inputs(self) -> tuple[Path | None, ...]:
        """Files that the user names, which nothing may be written over."""
        return self.task, *self.files, *self.facts

    def _check_place(self) -> None:
        """Raise BadInput if the certificate cannot be written, or only over a user's file or through a link."""
        if not self.recheck and self.network.is_dir():
            if self.out is None and self.path.is_symlink():
                raise BadInput(f"{self.path}: is a link, which somebody else may have laid; remove it, or give -o")
            check_place(self.path)
            check_apart(self.path, *self._inputs)

    def _questions(self) -> tuple[Network, Questions]:
        """Return the network, and the questions with the answers it should give."""
        named = None if self.tokenizer is None else load_tokenizer(self.tokenizer)
        network = load_closed(self.network, named)
        tokenizer = from_files(network.files) if self.set or self.second_opinion else None
        if self.second_opinion and isinstance(tokenizer, LoadedTokenizer):
            raise BadInput("--second-opinion asks verify.py, which knows no tokenizer that was loaded")
        edits = dict(edit_in(text, tokenizer) for text in self.set)
        return network, asked(network, given_by(self.files, self.task, self.facts, self.columns), edits)

    def _refusal(self, network: Network, questions: Questions) -> "RefusalStatus | None":
        """Return what the network promises about prompts outside its facts, if that can be proved."""
        if not self.facts:
            return None
        from byheart.certificates.refusal import judge_refusal

        status = judge_refusal(network, questions)
        return status if status is not None and status.refusal.proves else None

    def _controls(self, network: Network, questions: Questions, options: JudgeOptions) -> list[Control]:
        if not self.controls:
            return []
        with steps("telling lies", quiet=self.json):
            return controls_asked(network, questions, np.random.default_rng(self.seed), options)

    def _second_opinion(self, certificate: Certificate, questions: Questions) -> SecondOpinion | None:
        if not self.second_opinion:
            return None
        names = ("files", "task", "facts", "tolerance", "sample", "seed")
        options: dict[str, Any] = {name: getattr(self, name) for name in names}
        with steps("asking verify.py", quiet=self.json):
            return second_opinion(certificate, self.network, questions, **options)


@dataclass(frozen=True)
class CertifyResult(Result):
    """A certificate, and the other findings about the network."""

    command: CertifyCommand
    certificate: Certificate
    is_kept: bool = False
    """True if the file holds the certificate of another task, and was left as it is."""
    refusal: "RefusalStatus | None" = None
    controls: list[Control] = field(default_factory=list)
    opinion: SecondOpinion | None = None
    where: Workplace = field(default_factory=Workplace)

    @property
    def is_true(self) -> bool:
        """True if nothing speaks against the network, nor against the way in which it was checked."""
        agrees = self.opinion is None or self.opinion.agrees is True
        is_doubted = self.refusal is not None and bool(self.refusal.doubt)
        lies_found = all(control.found is not False for control in self.controls)
        return self.certificate.certified and lies_found and agrees and not is_doubted

    def as_json(self) -> dict[str, Any]:
        """Return the certificate, its file, the command that checks it again, and the other findings."""
        command = self.command
        written = None if command.recheck or self.is_kept else command.path
        again = None if self.is_kept else self._again()
        more: dict[str, Any] = {"note": self._about_the_file()} if self.is_kept else {}
        more |= {"others": self.refusal} if self.refusal is not None else {}
        if command.controls:
            names = ("name", "found", "detail")
            more["controls"] = [{name: getattr(control, name) for name in names} for control in self.controls]
        more |= {"second_opinion": self.opinion} if self.opinion is not None else {}
        return {**self.certificate.as_json(), "written": written, "recheck": again, **self.where.memory, **more}

    def rows(self) -> Iterator[Block]:
        """Yield the verdict, the other findings, and how to check the certificate again."""
        command, certificate = self.command, self.certificate
        yield from verdict_rows(certificate)
        if command.facts and certificate.certified and not (command.set or command.count or command.at_least):
            yield dim(FACTS_FOLLOW)
        if self.refusal is not None:
            yield str(self.refusal)
        if certificate.as_used is not None:
            yield f"as used: {certificate.as_used}"
        if self.opinion is not None:
            yield f"second opinion: {self.opinion}"
        yield from map(self._control_row, self.controls)
        if command.named is not None:
            not_right = f"{certificate.checked - certificate.right:,} of {certificate.checked:,} answers"
            yield dim(f"wrote {command.named}: {not_right}")
        if self.where.name != "local":
            yield dim(f"memory at most: {self.where.memory_text}")
        yield dim(self._about_the_file())

    def _control_row(self, control: Control) -> Block:
        is_count = self.command.count
        needless = "no right answer could become another" if is_count else "all answers are alike"
        outcomes: dict[bool | None, Part] = {
            True: "found",
            False: Styled("NOT FOUND", "bold red"),
            None: f"not found, but {needless}",
        }
        counterexample = control.verdict.counterexample
        example = f"; {counterexample}" if counterexample and not is_count else ""
        return f"control, {control.name}: ", outcomes[control.found], f" ({control.detail}{example})"

    def _about_the_file(self) -> str:
        path = self.command.path
        if self.is_kept:
            return f"{path} is about another task, was not checked, and was left as it is; -o writes elsewhere"
        if self.command.recheck:
            return f"{path} was checked again: the same weights, the same task"
        return f"wrote {path}; check it again with:  {self._again()}"

    def _again(self) -> str:
        """Return the command that checks the certificate again."""
        return f"byheart certify {words_of(self.command, *AGAIN)} --recheck"


FACTS_FOLLOW = "so every completion is said, greedily, after its own prompt, to its end"
"""The consequence for facts if all of their questions are answered right: each token follows from those before."""


def edit_in(text: str, tokenizer: Tokenizer | None) -> tuple[Piece, Piece]:
    """Return context and token of a ``--set``: pieces of a text, or token ids if there is no tokenizer."""
    context, answer = _parts(text)
    return (_ids(context), _ids(answer)) if tokenizer is None else (unescaped(context), unescaped(answer))


def text_edit_in(text: str) -> tuple[bytes, bytes]:
    """Return both pieces of a ``--set`` for a text."""
    context, new = _parts(text, "CONTEXT=NEW")
    return unescaped(context), unescaped(new)


def _parts(text: str, form: str = "CONTEXT=TOKEN") -> tuple[str, str]:
    context, _, answer = text.rpartition("=")
    if not answer and context.endswith("="):
        context, answer = context[:-1], "="
    if not context or not answer:
        raise BadInput(f"--set is {text!r}; expected {form}")
    return context, answer


def _ids(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.replace(" ", "").split(","))
    except ValueError:
        raise BadInput(f"{text!r} is no list of token ids; expected numbers, 3,1,4") from None


def _is_of_another_task(path: Path, network: Network, questions: Questions) -> bool:
    """Return True if a certificate for the same weights but another task lies there: it is not overwritten."""
    try:
        existing = read(path)
    except BadInput:
        return False
    return existing.certified and network.is_named(existing.weights) and not questions.is_named(existing.task)
