"""Dana, Pydi & Chevaleyre 2025 (attention-only Transformers): 1,285 models, 8.8 million steps.

The task: ω tokens, and for every context of two tokens one random next token, T₀ = ω² associations. A sample of batch ×
batches uniform contexts is drawn once and reshuffled every epoch; Adam. The paper draws the mean training accuracy of
100 of the last batches: ``last_accuracy`` here. ``accuracy`` is that over all ω² contexts, of which the theorem speaks;
it is lower where the sample is small, because contexts that it shows more often are learned first.

Two lower bounds stand beside them. H heads store H d_h + d associations, and the others are guessed,

    1/ω + (1 − 1/ω) · min(1, (H d_h + d)/ω²);

before, H(d_h − 1) + 1 were known to fit (``previous_bound``). They are about one layer without MLP. Both are theorems
for d_h ≤ d; wider heads (experiment 3 has some) give no more features, so d stands for d_h there.

Protocol: what the authors' code did, since their numbers come from it. ``text`` follows the paper's text instead:

- learning rate 0.1 → 0.05 (code, in effect: 0.01 → 0.0005 with attention alone, 0.01 → 0.0001 with an MLP, 0.0025 in
  deeper networks), linear by epoch;
- per-head matrices and positions: :mod:`byheart.lab.models.dana`;
- experiment 6 with d_h = 5 (code: 2), and 5 layers in deeper networks (code: 3).

As in the text, little is learned: the accuracy of experiment 2 stays at .06 to .07 for every d_h (``results/``).
Experiment 4 fits slopes to experiment 1. Not known, and chosen here: the heads of the deeper experiment 2 (21, the most
of its grid); that the linear schedule would reach its end one epoch after the last.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import torch

from byheart.bounds.dana_2025 import capacity
from byheart.errors import BadInput
from byheart.lab.ensemble import Member, Training, TrainingOutcome, train
from byheart.lab.experiment import Experiment, Prepared, Row, Scale, checked_scale, grouped, key
from byheart.lab.member import ANSWERS, Tensors
from byheart.lab.models.dana import TOKENS, AttentionOnly
from byheart.progress import Report
from byheart.tasks import NextToken
from byheart.tasks.arrays import check_count

LAST_BATCHES = 100
REPETITIONS = 5
SMOKE_STEPS, SMOKE_BATCH = 16, 64
SHORT_EPOCHS = 16

ATTENTION_RATES, MLP_RATES, DEPTH_RATES, TEXT_RATES = (0.01, 0.0005), (0.01, 0.0001), (0.0025, 0.0025), (0.1, 0.05)
CODE_LAYERS, TEXT_LAYERS = 3, 5


@dataclass(frozen=True)
class DanaConfig:
    """One model: sizes (``hidden`` None has no MLP), sample, training; ``seed`` counts the repetitions.

    >>> DanaConfig("1", vocab=50, model_dim=10, head_dim=10, heads=20, batch=256, batches=64, epochs=64).steps
    4096
    """

    KIND: ClassVar = "Config"
    experiment: str
    vocab: int
    model_dim: int
    head_dim: int
    heads: int
    batch: int
    batches: int
    epochs: int
    hidden: int | None = None
    layers: int = 1
    learning_rate: float = ATTENTION_RATES[0]
    last_learning_rate: float = ATTENTION_RATES[1]
    text: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("batch", "batches", "epochs"):
            check_count(name, getattr(self, name))

    @property
    def steps(self) -> int:
        """Optimizer steps."""
        return self.batches * self.epochs

    @property
    def architecture(self) -> AttentionOnly:
        """The network."""
        return AttentionOnly(
            self.vocab, self.model_dim, self.head_dim, self.heads, self.hidden, layers=self.layers, text=self.text
        )


def lower_bound(vocab: int, stored: int) -> float:
    """Return the accuracy over all ω² contexts if ``stored`` of them are stored and the others guessed."""
    return 1 / vocab + (1 - 1 / vocab) * min(1.0, stored / vocab**2)


def member_of(config: DanaConfig) -> Member:
    """Return the model with its data; every random number follows from the config."""
    examples, everything = _data(config)
    training = Training(
        batch=config.batch,
        steps=config.steps,
        learning_rate=config.learning_rate,
        last_learning_rate=config.last_learning_rate,
        schedule="linear-by-epoch",
        last_batches=min(LAST_BATCHES, config.steps),
    )
    return Member(config.architecture, training, _seed(config, "model"), examples, measured_on=everything)


def _data(config: DanaConfig) -> tuple[Tensors, Tensors]:
    """Return the sample, and all ω² contexts: tokens [·, 2] and answers [·]."""
    vocab = config.vocab
    generator = torch.Generator().manual_seed(_seed(config, "data"))
    contexts = torch.cartesian_prod(torch.arange(vocab), torch.arange(vocab))
    answers = torch.randint(vocab, (vocab**2,), generator=generator)
    drawn = torch.randint(vocab**2, (config.batch * config.batches,), generator=generator)
    return {TOKENS: contexts[drawn], ANSWERS: answers[drawn]}, {TOKENS: contexts, ANSWERS: answers}


def _seed(config: DanaConfig, of: str) -> int:
    """Return a seed for one purpose; no two configs share their random numbers, however alike they are."""
    return int.from_bytes(hashlib.sha256(f"{key(config)} {of}".encode()).digest()[:7], "big")


def metrics(config: DanaConfig, outcome: TrainingOutcome) -> Row:
    """Return the metrics of a trained model, with the bounds that hold for it."""
    proved, head_dim = config.layers == 1 and config.hidden is None, min(config.head_dim, config.model_dim)
    stored = capacity(config.heads, head_dim, config.model_dim)
    before = config.heads * (head_dim - 1) + 1
    return {
        "last_accuracy": outcome.last_accuracy,
        "accuracy": outcome.accuracy,
        "loss": outcome.loss,
        "steps": outcome.steps,
        "parameters": config.architecture.parameters,
        "lower_bound": lower_bound(config.vocab, stored) if proved else None,
        "previous_bound": lower_bound(config.vocab, before) if proved else None,
    }


def prepare(config: DanaConfig) -> Prepared:
    """Return the model, and all ω² contexts with their answers."""
    member = member_of(config)
    tokens, answers = (member.measured[name].numpy() for name in (TOKENS, ANSWERS))
    task = NextToken(tokens, answers, label_count=config.vocab, vocab=config.vocab)
    return Prepared(member, partial(metrics, config), task)


def work(configs: Sequence[DanaConfig], device: str = "cpu", report: Report | None = None) -> list[Row]:
    """Train the configs' models together and return their metrics."""
    outcomes = train([member_of(config) for config in configs], device=device, report=report)
    return [metrics(config, outcome) for config, outcome in zip(configs, outcomes, strict=True)]


def groups(configs: Sequence[DanaConfig]) -> list[list[DanaConfig]]:
    """Return models that differ in heads, MLP width and seed only as one job: a GPU trains them as one."""
    return grouped(configs, lambda config: (config.architecture.family, config.batch, config.steps))


def _paper(name: str, text: bool) -> Iterator[DanaConfig]:
    """Yield every grid point of an experiment, first repetition."""
    kind, _, variant = name.partition("-")
    if variant == "larger":
        yield from _wide(kind, name)
    elif variant == "deeper":
        yield from _deep(kind, name, TEXT_LAYERS if text else CODE_LAYERS)
    elif kind == "5":
        yield from _against_mlp(name, mlp=variant == "mlp")
    else:
        yield from _basic(name, text)


def _basic(name: str, text: bool) -> Iterator[DanaConfig]:
    make = partial(DanaConfig, name, vocab=50, batch=2**8, batches=2**6, epochs=64)
    if name == "1":
        yield from (make(model_dim=d, head_dim=d, heads=H) for d in range(3, 14) for H in range(1, 32, 5))
    elif name == "2":
        yield from (make(model_dim=10, head_dim=d_h, heads=20) for d_h in range(1, 11))
    elif name == "3":
        yield from (make(model_dim=d, head_dim=10, heads=20) for d in range(5, 16))
    else:
        head_dim = 5 if text else 2
        yield from (replace(make(model_dim=2, head_dim=head_dim, heads=H), vocab=10) for H in range(1, 22, 4))


def _against_mlp(name: str, *, mlp: bool) -> Iterator[DanaConfig]:
    make = partial(DanaConfig, name, vocab=70, batch=2**10, batches=2**8, epochs=64)
    for d in (7, 10, 13):
        for k in range(1, 32, 5):
            single = make(model_dim=d, head_dim=d, heads=1)
            yield replace(single, hidden=2 * d * (k - 1)) if mlp else replace(single, heads=k)


def _wide(kind: str, name: str) -> Iterator[DanaConfig]:
    make = partial(DanaConfig, name, vocab=200, batch=2**10, batches=2**6, epochs=64)
    if kind == "2":
        yield from (make(model_dim=50, head_dim=d_h, heads=11) for d_h in (1, *range(5, 51, 5)))
        return
    for d in (40, 50, 60):
        for k in range(6):
            single = make(model_dim=d, head_dim=d, heads=1)
            yield replace(single, hidden=4 * d * k) if kind == "5" else replace(single, heads=2 * k + 1)


def _deep(kind: str, name: str, layers: int) -> Iterator[DanaConfig]:
    make = partial(DanaConfig, name, vocab=70, batch=2**9, batches=2**7, epochs=64, layers=layers)
    if kind == "2":
        yield from (make(model_dim=10, head_dim=d_h, heads=21) for d_h in range(1, 11))
        return
    for d in (7, 10, 13):
        for k in range(6):
            single = make(model_dim=d, head_dim=d, heads=1)
            yield replace(single, hidden=8 * d * k) if kind == "5" else replace(single, heads=4 * k + 1)


def configs_of(name: str, scale: Scale = "paper", *, text: bool = False) -> tuple[DanaConfig, ...]:
    """Return all configs of an experiment.

    "short" takes every other grid point, once, for a quarter of the epochs; "smoke" the first and the last for a few
    steps, which shows that everything runs and nothing else.
    """
    points = [_with_rates(config, text) for config in _paper(name, text)]
    if scale == "smoke":
        ends = dict.fromkeys((points[0], points[-1]))
        return tuple(replace(p, batch=SMOKE_BATCH, batches=SMOKE_STEPS, epochs=1) for p in ends)
    if scale == "short":
        return tuple(replace(p, epochs=SHORT_EPOCHS) for p in points[::2])
    repetitions = 20 if name == "6" else REPETITIONS
    return tuple(replace(p, seed=seed) for p in points for seed in range(repetitions))


def _with_rates(config: DanaConfig, text: bool) -> DanaConfig:
    rates = ATTENTION_RATES if config.hidden is None else MLP_RATES
    rates = TEXT_RATES if text else rates if config.layers == 1 else DEPTH_RATES
    return replace(config, learning_rate=rates[0], last_learning_rate=rates[1], text=text)


NAMES: tuple[str, ...] = ("1", "2", "3", "5-attention", "5-mlp", "6")
NAMES += tuple(f"{kind}-{variant}" for variant in ("larger", "deeper") for kind in ("1", "2", "5"))


def experiment(scale: str, *, name: str, text: bool = False) -> Experiment:
    """Return one of the paper's experiments, by its name in :data:`NAMES`."""
    if name not in NAMES:
        raise BadInput(f"experiment is {name!r}; expected one of {', '.join(NAMES)}")
    full = f"dana-2025-{name}" + ("-text" if text else "")
    return Experiment(full, scale, configs_of(name, checked_scale(scale), text=text), groups, work, prepare)


EXPERIMENTS: dict[str, Callable[[str], Experiment]] = {
    f"dana-2025-{name}{suffix}": partial(experiment, name=name, text=bool(suffix))
    for suffix in ("", "-text")
    for name in NAMES
}
