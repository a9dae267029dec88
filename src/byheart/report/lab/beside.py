"""Networks that are built for the labels that a ladder's networks are trained on, to stand beside them.

The task is that of the ladder's first seed, token for token, and every answer is checked; so a network holds N log₂C
bits, as a trained one would that is certain of every label. Parameters are those of the one counter
(:mod:`byheart.networks.account`), all counted.

What a parameter is differs, and is said with every network: ``weight_bits`` is the most that one of its weights takes.
Floats have 32; the weights of exact networks are integers that grow with N, and hold accordingly more each.
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
from byheart.papers.built import built
from byheart.papers.capacity.ladder import plateaus
from byheart.progress import Report
from byheart.report.page import Table
from byheart.tasks import NextToken, random_next_token

WORDS = 31
COMPILED = f"reciting, float32, {WORDS}-bit words"
EXACT = ("folding", "vardi-2022", "interpolate")
NETWORKS = (COMPILED, *EXACT)


@dataclass(frozen=True)
class Beside:
    """A network that was built for N random labels: its parameters, the bits that it holds in each, and those that its
    largest weight takes.
    """

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
        """As the first seed's networks are trained on."""
        return random_next_token(
            examples=self.examples,
            length=self.length,
            vocab=self.vocab,
            labels=self.labels,
            rng=np.random.default_rng(0),
        )


def labels_of(rows: Sequence[Mapping[str, Any]]) -> list[Labels]:
    """Those of which trained networks held most, one or more for each size of the ladder."""
    chosen = {point.examples for point in plateaus(rows)}
    found = {(row["examples"], row["length"], row["vocab"], row["labels"]) for row in rows}
    return [Labels(*sizes) for sizes in sorted(found) if sizes[0] in chosen]


def build_beside(labels: Sequence[Labels], report: Report | None = None) -> list[Beside]:
    """One of each of :data:`NETWORKS` for each of the tasks, every answer checked; BadInput if one is wrong."""
    found: list[Beside] = []
    for each in labels:
        task = each.task
        for name in NETWORKS:
            if report is not None:
                report(len(found), len(labels) * len(NETWORKS), f"{name}, N = {each.examples:,}")
            found.append(_checked(name, each, _built(name, task)))
    return found


def _built(name: str, task: NextToken) -> Built:
    if name == COMPILED:
        return compile(task, window=task.inputs.shape[1], settings=CompilerSettings("float32", WORDS))
    return build(name, task)


def _checked(name: str, labels: Labels, made: Built) -> Beside:
    verdict = judge(made.network, made.questions if name == COMPILED else labels.task)
    if not verdict.certified or verdict.checked != labels.examples:
        wrong = f"{verdict.errors} errors in {verdict.checked} answers"
        raise BadInput(f"{name}: the network for N = {labels.examples} has {wrong}; expected {labels.examples} right")
    bits = labels.examples * math.log2(labels.labels)
    account = made.account
    return Beside(name, labels.examples, account.dense, bits / account.dense, account.max_bits)


def beside_in_words(beside: Sequence[Beside]) -> list[str]:
    """What a page says of them, in one sentence; nothing if there are none.

    >>> beside_in_words([Beside("folding", N, P, 6 * N / P, 340) for N, P in ((4000, 1036), (8000, 1500))])
    ['Built for the same labels, every answer checked, bits a parameter: folding (of up to 340 bits) 23.17 to 32.00.']
    """
    said = []
    for name in dict.fromkeys(each.name for each in beside):
        some = [each for each in beside if each.name == name]
        bits = sorted(each.bits_per_parameter for each in some)
        ends = " to ".join(dict.fromkeys(f"{end:.2f}" for end in (bits[0], bits[-1])))
        most = max(each.weight_bits for each in some)
        said.append(f"{name} (of up to {most:,} bits) {ends}")
    told = f"Built for the same labels, every answer checked, bits a parameter: {'; '.join(said)}."
    return [told] if said else []


def beside_table(beside: Sequence[Beside]) -> list[Table]:
    """All of them; no table if there are none."""
    title = "Networks built for the same labels (first seed), every answer checked"
    return [Table(title, [asdict(each) for each in beside])] if beside else []


def shipped_beside(rows: Sequence[Mapping[str, Any]]) -> list[Beside]:
    """What :func:`build_beside` would build for such rows, as far as it comes with Byheart."""
    wanted, sizes = set(labels_of(rows)), [field.name for field in fields(Labels)]
    found = [row for row in built("capacity") if Labels(*(int(row[name]) for name in sizes)) in wanted]
    return [
        Beside(
            name=row["network"],
            examples=int(row["examples"]),
            parameters=int(row["parameters"]),
            bits_per_parameter=row["bits_per_parameter"],
            weight_bits=int(row["weight_bits"]),
        )
        for row in found
    ]
