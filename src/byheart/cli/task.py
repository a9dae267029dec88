"""``byheart task random | text | facts | embed | confused | show | check``."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from byheart.cli.menu import Menu, menu_of
from byheart.cli.options import Arg, Columns, Json, OwnConstructions, Positional
from byheart.cli.output import facts_in, steps
from byheart.cli.result import Block, Result, Styled, Table, dim
from byheart.errors import BadInput, check_seed
from byheart.files.untrusted import read_text
from byheart.files.writing import check_apart
from byheart.tasks.random_tasks import RandomTask

if TYPE_CHECKING:
    from byheart.tasks import Task
    from byheart.tasks.conditions import Conflict, Twins
    from byheart.tasks.separated import Separation
    from byheart.tasks.theorems import Hypothesis


@dataclass(frozen=True)
class TaskResult(Result):
    """A task file, written or read."""

    file: Path
    task: "Task"
    note: str = ""
    """Remark below the table."""
    extra: Mapping[str, object] = field(default_factory=dict)
    """Further values for ``--json``."""

    def as_json(self) -> dict[str, Any]:
        """Return the file, and the kind, size and fingerprint of the task."""
        task = self.task
        about = {"file": self.file, "task": task.kind, "size": task.size, "fingerprint": task.fingerprint}
        return {**about, **self.extra}

    def rows(self) -> Iterator[Block]:
        """Yield the table of sizes, the fingerprint and the note."""
        letters = (("examples", "N"), ("length", "n"), ("vocab", "ω"), ("labels", "C"), ("dim", "d"))
        sizes = [(name, letter, getattr(self.task.size, name)) for name, letter in letters]
        yield Table(
            f"{self.file}: a {self.task.kind} task",
            ("size", "letter", ">value"),
            [(name, letter, "token ids" if value is None else value) for name, letter, value in sizes],
        )
        yield dim(f"fingerprint {self.task.fingerprint[:16]}…")
        if self.note:
            yield self.note


def _saved(task: "Task", path: Path, note: str = "") -> TaskResult:
    """Save a task and return the result of the command."""
    from byheart.tasks import save

    save(task, path)
    return TaskResult(path, task, note)


@dataclass(frozen=True)
class RandomCommand:
    """Draw a random task and save it."""

    out: Annotated[Path, Arg(aliases=("-o",))]
    """File to write: .npz or .jsonl."""
    drawing: RandomTask = field(default_factory=RandomTask)
    """Settings of the draw."""
    json: Json = False

    def run(self) -> TaskResult:
        """Draw and save."""
        return _saved(self.drawing.draw(), self.out)


@dataclass(frozen=True)
class TextCommand:
    """Make next-token distributions from texts, or, with --every, label every position with the next word."""

    files: Positional[tuple[Path, ...]]
    """Text files. A form feed separates texts; no context crosses it."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """File to write: .npz or .jsonl."""
    length: int = 8
    """n: words per context."""
    vocab: int = 500
    """ω: the number of tokens: the most frequent words, and one token for all others."""
    examples: int | None = None
    """N: number of contexts, the most frequent first, or of windows from the start (default: all)."""
    every: bool = False
    """Label every token with the next word. Every window begins with a token of its own, as kim-2023 --causal needs."""
    json: Json = False

    def run(self) -> TaskResult:
        """Count and save."""
        from byheart.tasks.corpus import corpus_distribution, language_modelling

        check_apart(self.out, *self.files)
        texts = _texts(self.files)
        sizes: dict[str, Any] = {"length": self.length, "vocab": self.vocab, "examples": self.examples}
        return _saved(
            language_modelling(texts, **sizes) if self.every else corpus_distribution(texts, **sizes).task(), self.out
        )


@dataclass(frozen=True)
class FactsCommand:
    """Turn facts into a next-token task: prompts padded to one length, and one label per completion."""

    files: Positional[tuple[Path, ...]]
    """Facts: .jsonl, .csv, .tsv or .parquet."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """File to write: .npz or .jsonl."""
    columns: Columns = None
    json: Json = False

    def run(self) -> TaskResult:
        """Read the facts, number their completions, and save the task."""
        from byheart.tasks import save
        from byheart.tasks.questions import fact_task

        check_apart(self.out, *self.files)
        source = fact_task(facts_in(self.files, self.columns))
        save(source.task, self.out)
        completions = [
            text.decode(errors="replace") if isinstance(text, bytes) else text for text in source.completions
        ]
        more = "; --json lists them all" if len(completions) > 1 else ""
        note = f"label 0 stands for {completions[0]!r}{more}"
        return TaskResult(self.out, source.task, note, {"completions": completions})


@dataclass(frozen=True)
class EmbedCommand:
    """Take contexts of real token vectors from a sentence model (extra: embeddings); the next token is the query."""

    files: Positional[tuple[Path, ...]]
    """Text files. A form feed separates texts."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """File to write: .npz or .jsonl."""
    length: int = 16
    """n: tokens per context."""
    examples: int = 200
    """N: number of contexts, spread evenly over the texts."""
    layer: Literal["static", "positioned", "1", "2", "3", "4", "5", "contextual"] = "contextual"
    """Source of the vectors: the embedding table (static), the table with positions (positioned), the output of layer 1
    to 5, or that of the last layer, the sixth (contextual)."""
    labels: int = 10
    """C: number of labels, from which the answers are drawn at random."""
    real: bool = False
    """Draw random real numbers as answers instead of labels."""
    seed: int = 0
    """Seed of the answers."""
    json: Json = False

    def run(self) -> TaskResult:
        """Read, embed and save."""
        import numpy as np

        from byheart.tasks import QueryLabels, QueryTargets
        from byheart.tasks.arrays import check_count
        from byheart.tasks.embeddings import token_vectors

        check_seed(self.seed)
        rng = np.random.default_rng(self.seed)
        check_apart(self.out, *self.files)
        with steps("reading with the sentence model", quiet=self.json):
            source = token_vectors(_texts(self.files), length=self.length, layer=self.layer, examples=self.examples)
        contexts, queries = source.vectors, source.queries
        if self.real:
            return _saved(QueryTargets(contexts=contexts, queries=queries, targets=rng.random(len(source))), self.out)
        labels = rng.integers(check_count("labels", self.labels), size=len(source))
        task = QueryLabels(contexts=contexts, queries=queries, labels=labels, label_count=self.labels)
        return _saved(task, self.out)


@dataclass(frozen=True)
class ConfusedCommand:
    """Make two sequences of different tokens that no layer of hardmax heads tells apart, with a label each."""

    out: Annotated[Path, Arg(aliases=("-o",))]
    """File to write: .npz or .jsonl."""
    length: int = 4
    """n: tokens per sequence, at least 4."""
    dim: int = 1
    """d: dimension of the tokens, which lie on a line."""
    heads: int = 8
    """H: number of hardmax heads with random integer weights to evaluate, in exact arithmetic."""
    seed: int = 0
    """Seed of the line and of the heads."""
    json: Json = False

    def run(self) -> TaskResult:
        """Draw a line and heads, evaluate every head, and save the task."""
        import numpy as np

        from byheart.constructions.gadgets.confused import confused_by, random_heads
        from byheart.files.memory import check_memory
        from byheart.networks.exact import integers
        from byheart.tasks import NextToken
        from byheart.tasks.arrays import check_count

        check_seed(self.seed)
        rng, d = np.random.default_rng(self.seed), check_count("dim", self.dim)
        entries = 4 * check_count("heads", self.heads) * d**2 + 8 * check_count("length", self.length) * d
        check_memory(64 * entries, f"{self.heads:,} heads of dimension {d:,}, {self.length:,} tokens")
        base, step = (integers(rng.integers(1, 10, d).tolist()) for _ in range(2))
        pair = confused_by(random_heads(self.heads, d, rng), self.length, base, step)
        vectors = np.array([[*sequence[1:], sequence[0]] for sequence in pair], np.float64)  # the last token asks
        note = f"all of {self.heads} random hardmax heads give the last token the same in both sequences"
        return _saved(NextToken(vectors=vectors, labels=[0, 1]), self.out, note)


@dataclass(frozen=True)
class ShowTaskCommand:
    """Describe a task file."""

    file: Positional[Path]
    """Task file (.npz or .jsonl)."""
    json: Json = False

    def run(self) -> TaskResult:
        """Load and describe."""
        from byheart.tasks import load

        return TaskResult(self.file, load(self.file))


@dataclass(frozen=True)
class CheckCommand:
    """Check the theorems' conditions on a task, or the hypotheses of one theorem."""

    file: Positional[Path]
    """Task file (.npz or .jsonl)."""
    theorem: Annotated[str | None, Arg(metavar="NAME")] = None
    """Check each hypothesis of one theorem, named by its construction (byheart theorems --brief lists them)."""
    positions: bool = False
    """Check for networks with positional codes, for which order matters."""
    causal: bool = False
    """Check for the causal form of --theorem kim-2023, in which a position does not see later tokens."""
    construction: OwnConstructions = ()
    json: Json = False

    def run(self) -> "ConditionsResult | HypothesesResult":
        """Load and check."""
        from byheart.constructions import find
        from byheart.tasks import conflict, load, permuted_twins, separation

        task = load(self.file)
        if self.theorem is not None:
            form = {name: True for name in ("positions", "causal") if getattr(self, name)}
            with steps(f"checking the hypotheses of {self.theorem}", quiet=self.json):
                return HypothesesResult(self.file, self.theorem, find(self.theorem).check(task, **form))
        if self.causal:
            raise BadInput("--causal is a form of a theorem; expected --theorem kim-2023 beside it")
        clash = conflict(task, positions=self.positions)
        return ConditionsResult(self, separation(task), permuted_twins(task), clash)


@dataclass(frozen=True)
class ConditionsResult(Result):
    """The conditions that most theorems share."""

    command: CheckCommand
    separation: "Separation"
    twins: "Twins | None"
    conflict: "Conflict | None"

    def as_json(self) -> dict[str, Any]:
        """Return the separation, the permuted twins, and the conflict."""
        twins, delta = self.twins, self.separation.delta if self.separation.closest is not None else None
        return {
            "memorizable": self.conflict is None,
            "separation": {"r": self.separation.r, "delta": delta, "closest": self.separation.closest},
            "permuted_twins": None if twins is None else [twins.first, twins.second],
            "conflict": None if self.conflict is None else str(self.conflict),
        }

    def rows(self) -> Iterator[Block]:
        """Yield the table of conditions."""
        twins = str(self.twins or "no two sequences are permutations of each other")
        clash = str(self.conflict or "one answer to every question")
        order = "in order" if self.command.positions else "up to permutation"
        yield Table(
            f"{self.command.file}: the theorems' conditions",
            ("condition", "verdict", "found"),
            [
                ("token-wise (r, δ)-separated", "holds", str(self.separation)),
                ("distinct up to permutation", "holds" if self.twins is None else "fails", twins),
                (f"consistent, {order}", "holds" if self.conflict is None else "fails", clash),
            ],
        )

    @property
    def is_true(self) -> bool:
        """False if the task asks for two answers to one question."""
        return self.conflict is None


@dataclass(frozen=True)
class HypothesesResult(Result):
    """The hypotheses of one theorem on a task."""

    file: Path
    theorem: str
    hypotheses: "list[Hypothesis]"

    def as_json(self) -> dict[str, Any]:
        """Return the theorem, whether it fails, and its hypotheses."""
        return {"theorem": self.theorem, "fails": not self.is_true, "hypotheses": self.hypotheses}

    def rows(self) -> Iterator[Block]:
        """Yield the table of hypotheses."""
        colours = {"holds": "green", "fails": "red", "undecided": "yellow"}
        yield Table(
            f"{self.file}: the hypotheses of {self.theorem}",
            ("hypothesis", "verdict", "found"),
            [
                (
                    row.name if row.needed else f"(not needed) {row.name}",
                    Styled(row.verdict, colours[row.verdict]),
                    row.found,
                )
                for row in self.hypotheses
            ],
        )

    @property
    def is_true(self) -> bool:
        """False if a hypothesis that the theorem needs fails."""
        return not any(row.verdict == "fails" and row.needed for row in self.hypotheses)


def _texts(files: tuple[Path, ...]) -> list[str]:
    """Return the texts in the files; a form feed separates two texts."""
    if not files:
        raise BadInput("no files; expected one or more texts")
    return [text for file in files for text in read_text(file).split("\f")]


def menu() -> Menu:
    """Return the menu of commands about tasks."""
    random = "byheart task random --examples 1000 --length 32 --vocab 200 --labels 10 -o t.npz"
    return menu_of(
        {
            "random": (RandomCommand, random),
            "text": (TextCommand, "byheart task text book.txt --length 8 --vocab 500 --examples 1000 -o words.npz"),
            "facts": (FactsCommand, "byheart task facts facts.csv -o t.npz"),
            "embed": (EmbedCommand, "byheart task embed book.txt --length 16 --examples 200 -o q.npz"),
            "confused": (ConfusedCommand, "byheart task confused --length 6 --dim 2 --heads 8 -o c.npz"),
            "show": (ShowTaskCommand, "byheart task show t.npz"),
            "check": (CheckCommand, "byheart task check t.npz", "byheart task check q.npz --theorem mahdavi-2024"),
        }
    )
