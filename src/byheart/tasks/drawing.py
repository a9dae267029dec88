"""A random task by its few numbers: what ``byheart task random`` is told, and what theorems are shown on."""

from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from byheart.errors import BadInput, check_seed
from byheart.tasks.base import Task
from byheart.tasks.random import random_distribution, random_next_token, random_queries, random_seq_to_seq


@dataclass(frozen=True)
class Drawing:
    """What is to be drawn; equal drawings give equal tasks, on every machine."""

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
    query: Literal["none", "own", "shared"] = "none"
    """A query beside each sequence of vectors (with --dim): contexts of their own, or one that all share."""
    real: bool = False
    """Real numbers instead of labels as answers (with --query)."""
    target_dim: int = 1
    """d_v: real numbers in an answer (with --real)."""
    shape: Literal["uniform", "skewed", "neighbours", "constant", "every"] = "uniform"
    """Tokens uniform, Zipf-distributed, sequences that differ in one or two tokens only, sequences of equal tokens, or
    all ω^n sequences."""
    seed: int = 0
    """Seed of the generator."""

    def draw(self) -> Task:
        """The task; BadInput where the numbers do not go together."""
        check_seed(self.seed)
        rng = np.random.default_rng(self.seed)
        if self.target_dim != 1 and not self.real:
            raise BadInput(f"target-dim is {self.target_dim}; it is for real answers: expected --real beside it")
        if self.query != "none":
            return self._queries(rng)
        if self.real:
            raise BadInput("--real is for queries; expected --query own or --query shared beside it")
        sizes = {"examples": self.examples, "length": self.length, "dim": self.dim, "shape": self.shape}
        if self.distribution:
            if self.vocab is None or self.seq_to_seq:
                raise BadInput("--distribution needs a --vocab and excludes --seq-to-seq")
            return random_distribution(vocab=self.vocab, rng=rng, **sizes)  # type: ignore[arg-type]
        make = random_seq_to_seq if self.seq_to_seq else random_next_token
        return make(vocab=self.vocab, labels=self.labels, rng=rng, **sizes)  # type: ignore[arg-type]

    def _queries(self, rng: np.random.Generator) -> Task:
        if self.dim is None or self.seq_to_seq or self.distribution or self.shape != "uniform":
            raise BadInput("--query needs a --dim and excludes --seq-to-seq, --distribution and --shape")
        labels, shared = None if self.real else self.labels, self.query == "shared"
        sizes = {"examples": self.examples, "length": self.length, "dim": self.dim, "target_dim": self.target_dim}
        return random_queries(labels=labels, shared=shared, rng=rng, **sizes)

    @property
    def flags(self) -> str:
        """What ``byheart task random`` is told to draw the same task.

        >>> Drawing(examples=200, vocab=50, seq_to_seq=True).flags
        '--examples 200 --vocab 50 --seq-to-seq'
        """
        words = []
        for one in fields(self):
            value, flag = getattr(self, one.name), f"--{one.name.replace('_', '-')}"
            if value != one.default:
                words.append(flag if value is True else f"{flag} {value}")
        return " ".join(words)
