"""Networks built for the labels that a ladder's networks are trained on, to stand beside them.

The task is that of the ladder's first seed, token for token, and every answer is checked. So a built network holds N
log₂C bits, as a trained one would that is certain of every label. All parameters count. ``weight_bits`` are those of
the largest weight: floats have 32; the weights of exact networks are integers that grow with N, and hold more each.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from byheart.certificates import judge
from byheart.compiler import CompilerSettings, compile
from byheart.constructions import Built, build
from byheart.errors import BadInput
from byheart.exhibits import DataTable
from byheart.papers.capacity import plateaus
from byheart.papers.results import built
from byheart.progress import Report
from byheart.tasks import NextToken, random_next_token

WORDS = 31
COMPILED = f"reciting, float32, {WORDS}-bit words"
EXACT = ("folding", "vardi-2022", "interpolate")
NETWORKS = (COMPILED, *EXACT)


@dataclass(frozen=True)
class Beside:
    """A network built for N random labels: its parameters, the bits each holds, and the bits of its largest weight."""

    name: str
    examples: int
    parameters: int
    bits_per_parameter: float
    weight_bits: int


@dataclass(frozen=True)
class Labels:
    """The sizes of a ladder's task: N contexts of n tokens out of ω, C labels."""

    examples: int
    length: int
    vocab: int
    labels: int

    @property
    def task(self) -> NextToken:
        """The task that the first seed's networks are trained on."""
        return random_next_token(
            examples=self.examples,
            length=self.length,
            vocab=self.vocab,
            labels=self.labels,
            rng=np.random.default_rng(0),
        )


def labels_of(rows: Sequence[Mapping[str, Any]]) -> list[Labels]:
    """Return the tasks of which trained networks held most, one or more for each size of the ladder."""
    chosen = {point.examples for point in plateaus(rows)}
    tasks = {(row["examples"], row["length"], row["vocab"], row["labels"]) for row in rows}
    return [Labels(*sizes) for sizes in sorted(tasks) if sizes[0] in chosen]


def build_beside(labels: Sequence[Labels], report: Report | None = None) -> list[Beside]:
    """Build each of :data:`NETWORKS` for each of the tasks and check every answer; raise BadInput if one is wrong."""
    networks: list[Beside] = []
    for each in labels:
        task = each.task
        for name in NETWORKS:
            if report is not None:
                report(len(networks), len(labels) * len(NETWORKS), f"{name}, N = {each.examples:,}")
            networks.append(_checked(name, each, _built(name, task)))
    return networks


def _built(name: str, task: NextToken) -> Built:
    if name == COMPILED:
        return compile(task, window=task.inputs.shape[1], settings=CompilerSettings("float32", WORDS))
    return build(name, task)


def _checked(name: str, labels: Labels, outcome: Built) -> Beside:
    verdict = judge(outcome.network, outcome.questions if name == COMPILED else labels.task)
    if not verdict.certified or verdict.checked != labels.examples:
        errors = f"{verdict.errors} errors in {verdict.checked} answers"
        raise BadInput(f"{name}: the network for N = {labels.examples} has {errors}; expected {labels.examples} right")
    bits = labels.examples * math.log2(labels.labels)
    account = outcome.account
    return Beside(name, labels.examples, account.dense, bits / account.dense, account.max_bits)


def beside_in_words(beside: Sequence[Beside]) -> list[str]:
    """Return one sentence about the networks; an empty list if there are none."""
    kinds = []
    for name in dict.fromkeys(each.name for each in beside):
        some = [each for each in beside if each.name == name]
        bits = sorted(each.bits_per_parameter for each in some)
        ends = " to ".join(dict.fromkeys(f"{end:.2f}" for end in (bits[0], bits[-1])))
        kinds.append(f"{name} (of up to {max(each.weight_bits for each in some):,} bits) {ends}")
    return (
        [f"Built for the same labels, every answer checked, bits per parameter: {'; '.join(kinds)}."] if kinds else []
    )


def beside_table(beside: Sequence[Beside]) -> list[DataTable]:
    """Return a table of the networks; an empty list if there are none."""
    title = "Networks built for the same labels (first seed), every answer checked"
    return [DataTable(title, [asdict(each) for each in beside])] if beside else []


def shipped_beside(rows: Sequence[Mapping[str, Any]]) -> list[Beside]:
    """Return those networks that :func:`build_beside` would build for such rows and that come with Byheart."""
    wanted, sizes = set(labels_of(rows)), [field.name for field in fields(Labels)]
    return [
        Beside(
            name=row["network"],
            examples=row["examples"],
            parameters=row["parameters"],
            bits_per_parameter=row["bits_per_parameter"],
            weight_bits=row["weight_bits"],
        )
        for row in built("capacity")
        if Labels(*(row[name] for name in sizes)) in wanted
    ]
