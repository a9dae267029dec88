"""Madden, Fox & Thrampoulidis 2024: how many hidden units take the loss to the entropy of the data?

n stories, the first 10 word-punctuation tokens of each. Every beginning of a story, of 1 to 9 tokens, is a context, and
the token behind it what is to be predicted. Contexts that several stories share have a distribution of next tokens, so
no model gets below the conditional entropy Σ_t π_t H(p_t) of the data, and one that has memorized them reaches it.
:class:`~byheart.lab.models.madden.MaddenDecoder` with m hidden units, Adam at 10⁻⁴, the cross-entropy summed over all
places, one batch of everything, 50,000 steps; with everything trained, or embedding and attention frozen. Distinct
contexts are computed once, with the counts of their next tokens, which is the same loss.

Measured, in nats per token: ``loss``, ``entropy``, ``excess`` = loss − entropy, and ``relative_excess`` =
excess/entropy. The paper draws the least m for which the last is at most 1 %.

The authors' corpus is not here. Any texts will do, one story each; by default stories are documentation strings of
Python 3.11 that come with Byheart (:mod:`byheart.tasks.shipped`), the same on every machine.

Scales: "paper" is the paper's grid; "short" three n, four m and 10,000 steps; "smoke" takes seconds.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import product
from typing import ClassVar

import numpy as np
import torch

from byheart.errors import BadInput
from byheart.lab.ensemble import train
from byheart.lab.experiment import Experiment, Prepared, Row, checked_scale, grouped
from byheart.lab.member import ANSWERS, Member, Tensors, Training, TrainingOutcome
from byheart.lab.models.madden import ATTENDED, FROZEN, MaddenDecoder
from byheart.progress import Report
from byheart.tasks import NextTokenDistribution
from byheart.tasks.arrays import Ids, check_count
from byheart.tasks.corpus import entropy_bound, split_words
from byheart.tasks.distinct import distinct
from byheart.tasks.shipped import docstrings

STORY = 10
"""Number of tokens of a story."""
Texts = tuple[str, ...]


@dataclass(frozen=True)
class MaddenConfig:
    """One model to train."""

    KIND: ClassVar = "Config"
    stories: int
    """Number of stories, n."""
    hidden: int
    """Number of hidden units, m."""
    frozen: bool
    """True if embedding and attention stay as they were drawn."""
    seed: int = 0
    steps: int = 50_000
    learning_rate: float = 1e-4

    def __post_init__(self) -> None:
        for name in ("stories", "hidden", "steps"):
            check_count(name, getattr(self, name))


@dataclass(frozen=True, eq=False)
class StoryContexts:
    """The distinct beginnings of n stories, N of them."""

    stories: Ids
    """int64 [n, STORY − 1]: the tokens of each story but its last."""
    places: Ids
    """int64 [N]: the first place where each context ends, i (STORY − 1) + s for place s of story i; increasing."""
    counts: Ids
    """int64 [N, ω]: how often each token comes next."""

    @cached_property
    def lengths(self) -> Ids:
        """Number of tokens of each context, int64 [N]."""
        lengths: Ids = self.places % self.stories.shape[1] + 1
        return lengths

    @cached_property
    def tokens(self) -> Ids:
        """Tokens of each context, int64 [N, STORY − 1], with zeros behind them."""
        length = self.stories.shape[1]
        return np.where(np.arange(length) < self.lengths[:, None], self.stories[self.places // length], 0)

    @cached_property
    def examples(self) -> Tensors:
        """The contexts as tensors, made once: members that are given the same tensors share their memory."""
        return {"places": torch.from_numpy(self.places), ANSWERS: torch.from_numpy(self.counts.astype(np.float64))}

    @cached_property
    def constants(self) -> Tensors:
        """The stories as a tensor, made once."""
        return {"stories": torch.from_numpy(self.stories)}

    @property
    def entropy(self) -> float:
        """Conditional entropy of the next token in nats, which is the least loss of any model."""
        often = self.counts.sum(axis=1)
        return entropy_bound(self.counts / often[:, None], often / often.sum())


def contexts(stories: Sequence[Sequence[str]]) -> StoryContexts:
    """Return the contexts of ``stories`` of :data:`STORY` tokens each; ids by first occurrence."""
    ids: dict[str, int] = {}
    encoded = np.array([[ids.setdefault(token, len(ids)) for token in story] for story in stories])
    lengths = np.arange(1, STORY)
    beginnings = np.where(np.arange(STORY - 1) < lengths[:, None], encoded[:, None, :-1], -1).reshape(-1, STORY - 1)
    different = distinct(beginnings + 1)
    counts = np.zeros((len(different.first), len(ids)), np.int64)
    np.add.at(counts, (different.ids, encoded[:, 1:].reshape(-1)), 1)
    return StoryContexts(np.ascontiguousarray(encoded[:, :-1]), different.first, counts)


def stories(texts: Iterable[str], number: int) -> list[list[str]]:
    """Return the first :data:`STORY` tokens of the first ``number`` texts that are long enough, all different."""
    different: dict[tuple[str, ...], None] = {}
    for text in texts:
        tokens = split_words(text)[:STORY]
        if len(tokens) == STORY:
            different[tuple(tokens)] = None
        if len(different) == number:
            return [list(story) for story in different]
    raise BadInput(f"the texts have {len(different)} different stories of {STORY} tokens; expected at least {number}")


@cache
def data_of(number: int, texts: Texts | None = None) -> StoryContexts:
    """Return the contexts of ``number`` stories of ``texts``, or of the documentation that comes with Byheart."""
    return contexts(stories(docstrings() if texts is None else texts, number))


@cache
def _attended(data: StoryContexts, seed: int) -> Tensors:
    """Return the examples of members whose embedding and attention stay as this seed draws them, whatever m is."""
    model = model_of(MaddenConfig(stories=1, hidden=1, frozen=True), data)
    weights = {name: tensor[None] for name, tensor in model.init(torch.Generator().manual_seed(seed)).items()}
    batch = {name: tensor[None] for name, tensor in (data.examples | data.constants).items()}
    return {ATTENDED: model.attended(weights, batch)[0], ANSWERS: data.examples[ANSWERS]}


def model_of(config: MaddenConfig, data: StoryContexts) -> MaddenDecoder:
    """Return the model without its data."""
    return MaddenDecoder(vocab=data.counts.shape[1], hidden=config.hidden, length=STORY - 1)


def member_of(config: MaddenConfig, data: StoryContexts) -> Member:
    """Return the model with its data."""
    training = Training(
        batch=len(data.places), steps=config.steps, learning_rate=config.learning_rate, loss="summed-cross-entropy"
    )
    model = model_of(config, data)
    if config.frozen:
        return Member(model, training, config.seed, _attended(data, config.seed), frozen=FROZEN)
    return Member(model, training, config.seed, data.examples, data.constants)


def metrics(model: MaddenDecoder, data: StoryContexts, outcome: TrainingOutcome) -> Row:
    """Return the metrics of a trained model; the ensemble's loss is a mean over contexts, the metric over tokens."""
    loss, entropy = outcome.loss * len(data.counts) / int(data.counts.sum()), data.entropy
    return {
        "loss": loss,
        "entropy": entropy,
        "excess": loss - entropy,
        "relative_excess": (loss - entropy) / entropy if entropy > 0 else None,
        "accuracy": outcome.accuracy,
        "contexts": len(data.counts),
        "vocab": model.vocab,
        "parameters": model.parameters,
        "steps": outcome.steps,
    }


def task_of(data: StoryContexts) -> NextTokenDistribution:
    """Return the task: a distribution of next tokens for each context.

    Shorter contexts are filled up with a token ω that never comes next.
    """
    inside = np.arange(data.tokens.shape[1]) < data.lengths[:, None]
    often, vocab = data.counts.sum(axis=1), data.counts.shape[1]
    probabilities = np.pad(data.counts / often[:, None], ((0, 0), (0, 1)))
    return NextTokenDistribution(np.where(inside, data.tokens, vocab), probabilities, weights=often / often.sum())


def prepare(config: MaddenConfig, texts: Texts | None = None) -> Prepared:
    """Return the model, and its contexts with what comes next."""
    data = data_of(config.stories, texts)
    return Prepared(member_of(config, data), partial(metrics, model_of(config, data), data), task_of(data))


def work(
    configs: Sequence[MaddenConfig], device: str = "cpu", report: Report | None = None, texts: Texts | None = None
) -> list[Row]:
    """Train the configs' models and return their metrics."""
    data = [data_of(config.stories, texts) for config in configs]
    members = [member_of(config, its) for config, its in zip(configs, data, strict=True)]
    outcomes = train(members, device=device, report=report)
    triples = zip(configs, data, outcomes, strict=True)
    return [metrics(model_of(config, its), its, outcome) for config, its, outcome in triples]


def groups(configs: Sequence[MaddenConfig]) -> list[list[MaddenConfig]]:
    """Return the models of one number of stories in one setting as one job."""
    return grouped(configs, lambda config: (config.stories, config.frozen))


GRIDS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "smoke": ((12,), (4, 8), 40),
    "short": ((100, 200, 400), (8, 32, 128, 512), 10_000),
    "paper": (tuple(range(100, 1001, 100)), tuple(4 << k for k in range(8)), 50_000),
}
"""Values of n, values of m and number of steps, by scale."""


def experiment(scale: str, *, frozen: bool, texts: Texts | None = None) -> Experiment:
    """Return one setting, on ``texts`` or on :func:`~byheart.tasks.shipped.docstrings`."""
    numbers, hidden, steps = GRIDS[checked_scale(scale)]
    configs = tuple(MaddenConfig(n, m, frozen, steps=steps) for n, m in product(numbers, hidden))
    name = f"madden-2024-{'frozen' if frozen else 'trained'}"
    return Experiment(name, scale, configs, groups, partial(work, texts=texts), partial(prepare, texts=texts))


EXPERIMENTS: dict[str, Callable[[str], Experiment]] = {
    "madden-2024-trained": partial(experiment, frozen=False),
    "madden-2024-frozen": partial(experiment, frozen=True),
}
