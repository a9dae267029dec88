"""``byheart task random | show | check``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg, subcommand

from byheart.cli.output import DONE, NOT_TRUE, Json, console, number, print_json, table, with_example


@dataclass(frozen=True)
class Random:
    """Draw a random task and save it."""

    out: Annotated[Path, arg(aliases=["-o"])]
    """File to write: .npz or .jsonl."""
    examples: int = 1000
    """N: sequences."""
    length: int = 32
    """n: tokens in a sequence."""
    vocab: int | None = 200
    """ω: different tokens. None (with --dim): every token is a vector of its own."""
    labels: int = 10
    """C: different labels."""
    dim: int | None = None
    """d: make tokens standard-normal vectors of this dimension instead of ids."""
    seq_to_seq: bool = False
    """One label for every token instead of one for the sequence."""
    distribution: bool = False
    """A distribution over the next token instead of a label."""
    shape: Literal["uniform", "skewed", "neighbours"] = "uniform"
    """Tokens uniform, Zipf-distributed, or sequences that differ in one or two tokens only."""
    seed: int = 0
    """Seed of the generator."""
    json: Json = False

    def run(self) -> int:
        """Draw and save."""
        import numpy as np

        from byheart.errors import BadInput
        from byheart.tasks import Task, random_distribution, random_next_token, random_seq_to_seq, save

        if self.seed < 0:
            raise BadInput(f"seed is {self.seed}; expected 0 or more")
        rng = np.random.default_rng(self.seed)
        sizes = {"examples": self.examples, "length": self.length, "dim": self.dim, "shape": self.shape}
        task: Task
        if self.distribution:
            if self.vocab is None or self.seq_to_seq:
                raise BadInput("--distribution needs a --vocab and excludes --seq-to-seq")
            task = random_distribution(vocab=self.vocab, rng=rng, **sizes)  # type: ignore[arg-type]
        else:
            make = random_seq_to_seq if self.seq_to_seq else random_next_token
            task = make(vocab=self.vocab, labels=self.labels, rng=rng, **sizes)  # type: ignore[arg-type]
        save(task, self.out)
        _describe(task, self.out, self.json)
        return DONE


@dataclass(frozen=True)
class Show:
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
    """Hold a task against the theorems' conditions: separation, permuted twins, consistency."""

    file: Positional[Path]
    """Task file (.npz or .jsonl)."""
    positions: bool = False
    """Judge for networks with positional codes, where order matters."""
    json: Json = False

    def run(self) -> int:
        """Load and check; exit code 1 if the task asks for two answers to one question."""
        from byheart.tasks import conflict, load, permuted_twins, separation

        task = load(self.file)
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


def _describe(task: object, path: Path, as_json: bool) -> None:
    from dataclasses import asdict

    from byheart.tasks import Task

    assert isinstance(task, Task)
    if as_json:
        print_json({"file": str(path), "task": task.kind, "size": asdict(task.size), "fingerprint": task.fingerprint})
        return
    size = task.size
    rows = table(f"{path}: a {task.kind} task", "size", "letter", ">value")
    for name, letter in (("examples", "N"), ("length", "n"), ("vocab", "ω"), ("labels", "C"), ("dim", "d")):
        value = getattr(size, name)
        rows.add_row(name, letter, number(value) if value is not None else "token ids")
    console().print(rows)
    console().print(f"fingerprint {task.fingerprint[:16]}…", style="dim")


_RANDOM = with_example(
    "Draw a random task and save it.",
    "byheart task random --examples 1000 --length 32 --vocab 200 --labels 10 -o t.npz",
)
_SHOW = with_example("Say what a task file holds.", "byheart task show t.npz")
_CHECK = with_example("Hold a task against the theorems' conditions.", "byheart task check t.npz")


@dataclass(frozen=True)
class TaskCommand:
    """Make, show and check tasks."""

    command: Annotated[
        Annotated[Random, subcommand("random", description=_RANDOM)]
        | Annotated[Show, subcommand("show", description=_SHOW)]
        | Annotated[Check, subcommand("check", description=_CHECK)],
        arg(name=""),
    ]

    def run(self) -> int:
        """Run the chosen command."""
        return self.command.run()
