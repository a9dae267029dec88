"""``byheart task random | text | facts | embed | confused | show | check``."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from byheart.cli.menu import Entry, Menu, about
from byheart.cli.options import Arg, Columns, Json, OwnConstructions, Positional
from byheart.cli.output import DONE, NOT_TRUE, facts_in, steps
from byheart.cli.result import console, number, print_json, table
from byheart.errors import BadInput, check_seed
from byheart.files.untrusted import read_text
from byheart.files.writing import check_apart
from byheart.tasks.random_tasks import RandomTask

if TYPE_CHECKING:
    from byheart.tasks import Task


@dataclass(frozen=True)
class Random:
    """Draw a random task and save it."""

    out: Annotated[Path, Arg(aliases=("-o",))]
    """File to write: .npz or .jsonl."""
    drawing: RandomTask = field(default_factory=RandomTask)
    json: Json = False

    def run(self) -> int:
        """Draw and save."""
        return _keep(self.drawing.draw(), self.out, self.json)


@dataclass(frozen=True)
class TextTask:
    """Next-token distributions out of texts: every context of n words, and how often which word follows it.

    With --every, language modelling instead: windows of n words, and the next word at every position.
    """

    files: Positional[tuple[Path, ...]]
    """Text files; a form feed separates texts, and no context reaches from one into the next."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """File to write: .npz or .jsonl."""
    length: int = 8
    """n: words in a context."""
    vocab: int = 500
    """ω: the most frequent words, and one token for all others."""
    examples: int | None = None
    """N: the most frequent contexts, or the first windows; None: all."""
    every: bool = False
    """One label a token, the next word; every window begins with a token of its own (for kim-2023 --causal)."""
    json: Json = False

    def run(self) -> int:
        """Count and save."""
        from byheart.tasks.corpus import corpus_distribution, language_modelling

        check_apart(self.out, *self.files)
        if self.every:
            sizes = {"length": self.length, "vocab": self.vocab, "examples": self.examples}
            return _keep(language_modelling(_texts(self.files), **sizes), self.out, self.json)  # type: ignore[arg-type]
        corpus = corpus_distribution(_texts(self.files), length=self.length, vocab=self.vocab, examples=self.examples)
        return _keep(corpus.task(), self.out, self.json)


@dataclass(frozen=True)
class FromFacts:
    """Facts as a next-token task: prompts filled up to one length, and every completion one label."""

    files: Positional[tuple[Path, ...]]
    """Facts: .jsonl, .csv, .tsv or .parquet."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """File to write: .npz or .jsonl."""
    columns: Columns = None
    json: Json = False

    def run(self) -> int:
        """Read, number completions and save."""
        from byheart.tasks import save
        from byheart.tasks.questions import fact_task

        check_apart(self.out, *self.files)
        found = fact_task(facts_in(self.files, self.columns))
        save(found.task, self.out)
        shown = [piece.decode(errors="replace") if isinstance(piece, bytes) else piece for piece in found.completions]
        _describe(found.task, self.out, self.json, {"completions": shown})
        if not self.json:
            more = "; --json lists them all" if len(shown) > 1 else ""
            console().print(f"label 0 stands for {shown[0]!r}{more}", markup=False)
        return DONE


@dataclass(frozen=True)
class Embed:
    """Real token vectors: contexts of texts and the token after each as its query, as a sentence model sees them."""

    files: Positional[tuple[Path, ...]]
    """Text files; a form feed separates texts."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """File to write: .npz or .jsonl."""
    length: int = 16
    """n: tokens in a context."""
    examples: int = 200
    """N: contexts, spread evenly over the texts."""
    layer: Literal["static", "positioned", "1", "2", "3", "4", "5", "contextual"] = "contextual"
    """Vectors of the embedding table, with positions, or as a layer writes them; contextual: the last of six."""
    labels: int = 10
    """C: the answers are random labels out of so many."""
    real: bool = False
    """Random real numbers instead of labels as answers."""
    seed: int = 0
    """Seed of the answers."""
    json: Json = False

    def run(self) -> int:
        """Read, embed and save."""
        import numpy as np

        from byheart.tasks import QueryLabels, QueryTargets
        from byheart.tasks.arrays import check_count
        from byheart.tasks.embeddings import token_vectors

        check_seed(self.seed)
        rng = np.random.default_rng(self.seed)
        check_apart(self.out, *self.files)
        with steps("reading with the sentence model", quiet=self.json):
            found = token_vectors(_texts(self.files), length=self.length, layer=self.layer, examples=self.examples)
        if self.real:
            targets = rng.random(len(found))
            return _keep(
                QueryTargets(contexts=found.vectors, queries=found.queries, targets=targets), self.out, self.json
            )
        labels = rng.integers(check_count("labels", self.labels), size=len(found))
        task = QueryLabels(contexts=found.vectors, queries=found.queries, labels=labels, label_count=self.labels)
        return _keep(task, self.out, self.json)


@dataclass(frozen=True)
class Confused:
    """Two sequences of different tokens that no layer of hardmax heads tells apart, with a label each."""

    out: Annotated[Path, Arg(aliases=("-o",))]
    """File to write: .npz or .jsonl."""
    length: int = 4
    """n: tokens in a sequence, from 4 on."""
    dim: int = 1
    """d: dimension of the tokens, which lie on a line."""
    heads: int = 8
    """H: hardmax heads with random integer weights to ask, in exact arithmetic."""
    seed: int = 0
    """Seed of the line and of the heads."""
    json: Json = False

    def run(self) -> int:
        """Draw a line and heads, ask every head and save."""
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
        found = confused_by(random_heads(self.heads, d, rng), self.length, base, step)
        vectors = np.array([[*sequence[1:], sequence[0]] for sequence in found], np.float64)  # the last token asks
        code = _keep(NextToken(vectors=vectors, labels=[0, 1]), self.out, self.json)
        if not self.json:
            console().print(f"all of {self.heads} random hardmax heads give the last token the same in both sequences")
        return code


@dataclass(frozen=True)
class ShowTask:
    """Say what a task file holds."""

    file: Positional[Path]
    """Task file (.npz or .jsonl)."""
    json: Json = False

    def run(self) -> int:
        """Load and describe."""
        from byheart.tasks import load

        _describe(load(self.file), self.file, self.json)
        return DONE


@dataclass(frozen=True)
class Check:
    """Hold a task against the theorems' conditions: separation, permuted twins, consistency; or a theorem's own."""

    file: Positional[Path]
    """Task file (.npz or .jsonl)."""
    theorem: Annotated[str | None, Arg(metavar="NAME")] = None
    """Check each hypothesis of one theorem, named by its construction (byheart theorems --brief lists them)."""
    positions: bool = False
    """Judge for networks with positional codes, where order matters."""
    causal: bool = False
    """With --theorem kim-2023: judge for its causal form, where a position sees no later tokens."""
    construction: OwnConstructions = ()
    json: Json = False

    def run(self) -> int:
        """Load and check; exit code 1 if the task asks for two answers to one question, or a hypothesis fails."""
        from byheart.tasks import conflict, load, permuted_twins, separation

        task = load(self.file)
        if self.theorem is not None:
            return self._theorem(self.theorem, task)
        if self.causal:
            raise BadInput("--causal is a form of a theorem; expected --theorem kim-2023 beside it")
        apart, twins, clash = separation(task), permuted_twins(task), conflict(task, positions=self.positions)
        if self.json:
            delta = apart.delta if apart.closest is not None else None
            print_json(
                {
                    "memorizable": clash is None,
                    "separation": {"r": apart.r, "delta": delta, "closest": apart.closest},
                    "permuted_twins": None if twins is None else [twins.first, twins.second],
                    "conflict": None if clash is None else str(clash),
                }
            )
            return DONE if clash is None else NOT_TRUE
        twins_found = str(twins or "no two sequences are permutations of each other")
        how = "in order" if self.positions else "up to permutation"
        verdicts = table(f"{self.file}: the theorems' conditions", "condition", "verdict", "found")
        verdicts.add_row("token-wise (r, δ)-separated", "holds", str(apart))
        verdicts.add_row("distinct up to permutation", "holds" if twins is None else "fails", twins_found)
        verdict = "holds" if clash is None else "fails"
        verdicts.add_row(f"consistent, {how}", verdict, str(clash or "one answer to every question"))
        console().print(verdicts)
        return DONE if clash is None else NOT_TRUE

    def _theorem(self, theorem: str, task: "Task") -> int:
        from byheart.constructions import find

        form = {name: True for name in ("positions", "causal") if getattr(self, name)}
        with steps(f"checking the hypotheses of {theorem}", quiet=self.json):
            found = find(theorem).check(task, **form)
        failed = any(hypothesis.verdict == "fails" and hypothesis.needed for hypothesis in found)
        if self.json:
            print_json({"theorem": theorem, "fails": failed, "hypotheses": [asdict(row) for row in found]})
            return NOT_TRUE if failed else DONE
        colours = {"holds": "green", "fails": "red", "undecided": "yellow"}
        verdicts = table(f"{self.file}: the hypotheses of {theorem}", "hypothesis", "verdict", "found")
        for row in found:
            name = row.name if row.needed else f"(not needed) {row.name}"
            verdicts.add_row(name, f"[{colours[row.verdict]}]{row.verdict}[/]", row.found)
        console().print(verdicts)
        return NOT_TRUE if failed else DONE


def _texts(files: tuple[Path, ...]) -> list[str]:
    if not files:
        raise BadInput("no files; expected one or more texts")
    texts = []
    for file in files:
        texts += read_text(file).split("\f")
    return texts


def _keep(task: "Task", path: Path, as_json: bool) -> int:
    from byheart.tasks import save

    save(task, path)
    _describe(task, path, as_json)
    return DONE


def _describe(task: "Task", path: Path, as_json: bool, more: dict[str, object] | None = None) -> None:
    if as_json:
        said = {"file": str(path), "task": task.kind, "size": asdict(task.size), "fingerprint": task.fingerprint}
        print_json({**said, **(more or {})})
        return
    size = task.size
    rows = table(f"{path}: a {task.kind} task", "size", "letter", ">value")
    for name, letter in (("examples", "N"), ("length", "n"), ("vocab", "ω"), ("labels", "C"), ("dim", "d")):
        value = getattr(size, name)
        rows.add_row(name, letter, number(value) if value is not None else "token ids")
    console().print(rows)
    console().print(f"fingerprint {task.fingerprint[:16]}…", style="dim")


def menu() -> Menu:
    """The commands about tasks."""
    return {
        "random": Entry(
            about(
                "Draw a random task and save it.",
                "byheart task random --examples 1000 --length 32 --vocab 200 --labels 10 -o t.npz",
            ),
            lambda: Random,
        ),
        "text": Entry(
            about(
                "Next-token distributions out of texts, or (--every) the next word at every position of a window.",
                "byheart task text book.txt --length 8 --vocab 500 --examples 1000 -o words.npz",
            ),
            lambda: TextTask,
        ),
        "facts": Entry(
            about(
                "Facts as a next-token task: prompts filled up to one length, and every completion one label.",
                "byheart task facts facts.csv -o t.npz",
            ),
            lambda: FromFacts,
        ),
        "embed": Entry(
            about(
                "Real token vectors: contexts of texts with the token after each as the query (extra: embeddings).",
                "byheart task embed book.txt --length 16 --examples 200 -o q.npz",
            ),
            lambda: Embed,
        ),
        "confused": Entry(
            about(
                "Two sequences of different tokens that no layer of hardmax heads tells apart, with a label each.",
                "byheart task confused --length 6 --dim 2 --heads 8 -o c.npz",
            ),
            lambda: Confused,
        ),
        "show": Entry(about("Say what a task file holds.", "byheart task show t.npz"), lambda: ShowTask),
        "check": Entry(
            about(
                "Hold a task against the theorems' conditions, or against one theorem's hypotheses.",
                "byheart task check t.npz",
                "byheart task check q.npz --theorem mahdavi-2024",
            ),
            lambda: Check,
        ),
    }
