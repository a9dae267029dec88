"""The judge of collapsed networks: does a plain network answer constant sequences as its Transformer does?

The theorem of :mod:`byheart.networks.exact.collapse` says that they agree on *every* constant sequence. This module
checks it: it evaluates both networks, each in its own way, on sequences of n equal tokens, for every given token.
"""

import time
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from byheart.certificates.claim import Claim
from byheart.certificates.judges.enclosed import FEWEST_BITS, MOST_BITS
from byheart.certificates.verdict import Answer, Counterexample, Verdict, decide, summed_up
from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.networks.exact import Embedding, ExactNetwork, FeedForward, Residual
from byheart.networks.exact.exact_network import Inputs
from byheart.tasks import NextToken, SeqToSeq, Task

_TAKES = 32
"""Bytes per number of a sequence, including those for its evaluation."""
TOLERANCE = 2.0**-32
"""Largest permitted distance of a Transformer's real output from the plain network's rational number."""


def tokens_for(network: ExactNetwork, task: Task | None) -> Inputs:
    """Return the tokens to check: those of the task, or all that the network knows. [K], or [K, d] for vectors."""
    if isinstance(task, NextToken | SeqToSeq):
        if task.vectors is not None:
            return np.unique(task.vectors.reshape(-1, task.vectors.shape[2]), axis=0)
        return np.unique(task.inputs).astype(np.int64)
    if task is not None:
        raise BadInput(f"an exact network answers next-token and seq-to-seq tasks; the task is {task.kind}")
    tables = [len(layer.W_E) for layer in network.layers if isinstance(layer, Embedding)]
    if not tables:
        raise BadInput("the network has no embedding table whose tokens could be tried; expected --task with tokens")
    return np.arange(tables[0])


def judge_collapsed(network: ExactNetwork, plain: ExactNetwork, tokens: Inputs) -> Verdict:
    """Judge if ``plain`` answers as ``network`` does on n equal tokens; raise BadInput unless it is a ReLU network."""
    for layer in plain.layers:
        if not isinstance(layer, Embedding | FeedForward | Residual):
            raise BadInput(f"{layer.name}: {type(layer).__name__} is no layer of a plain ReLU network")
    if network.streams[-1] != 1 or plain.streams[-1] != 1:
        raise BadInput(f"the networks give {network.streams[-1]} and {plain.streams[-1]} numbers; expected one each")
    check_memory(_TAKES * tokens.size * network.length, f"{len(tokens):,} sequences of {network.length:,} equal tokens")
    sequences: Inputs = np.repeat(tokens[:, None], network.length, axis=1)  # type: ignore[assignment]
    return _exact(network, plain, sequences) if network.rational else _enclosed(network, plain, sequences)


def _claim(network: ExactNetwork, arithmetic: str, tolerance: float | None = None) -> Claim:
    """Return the claim that two networks answer constant sequences alike."""
    return Claim("same network", arithmetic, unit="token", length=network.length, tolerance=tolerance)


def _exact(network: ExactNetwork, plain: ExactNetwork, sequences: Inputs) -> Verdict:
    from byheart.networks.exact.evaluate import evaluate

    start = time.perf_counter()
    wanted, got = evaluate(network, sequences), evaluate(plain, sequences)
    places = np.argwhere(wanted != got)
    first = None
    if len(places):
        place = tuple(places[0])
        position = int(place[1]) if len(place) > 1 else None
        first = Counterexample(int(place[0]), position, _shortened(wanted[place]), _shortened(got[place]))
    return Verdict(
        claim=_claim(network, "as exact rational numbers"),
        method="exact, exhaustive (limbs)",
        checked=wanted.size,
        errors=len(places),
        seconds=time.perf_counter() - start,
        counterexample=first,
    )


def _enclosed(network: ExactNetwork, plain: ExactNetwork, sequences: Inputs) -> Verdict:
    """Compare the plain network's numbers with narrow balls around the outputs of softmax attention."""
    from byheart.networks.balls import precision
    from byheart.networks.exact.enclose import enclose
    from byheart.networks.exact.evaluate import evaluate

    start = time.perf_counter()
    numbers = evaluate(plain, sequences).reshape(len(sequences), -1)

    def ask(examples: Sequence[int], bits: int) -> list[list[Answer]]:
        balls = enclose(network, sequences[np.array(examples)], bits=bits).reshape(len(examples), -1)
        with precision(bits):
            return [_compared(row, numbers[i]) for i, row in zip(examples, balls, strict=True)]

    fewest = -(-(network.account.max_bits + 64) // FEWEST_BITS) * FEWEST_BITS
    answers, bits = decide(len(sequences), ask, fewest=fewest, most=MOST_BITS)
    return summed_up(
        answers,
        lambda example, position: _shortened(numbers[example, position]),
        claim=_claim(network, f"to within {TOLERANCE!r}, as real numbers", TOLERANCE),
        method=f"ball arithmetic, exhaustive, {bits} bits",
        seconds=time.perf_counter() - start,
        positions=network.outputs == "every",
    )


def _compared(balls: NDArray[np.object_], numbers: NDArray[np.object_]) -> list[Answer]:
    from flint import arb, fmpq

    answers = []
    for ball, number in zip(balls, map(Fraction, numbers), strict=True):
        distance = abs(ball - arb(fmpq(number.numerator, number.denominator)))
        outcome = "right" if distance < TOLERANCE else "wrong" if distance > TOLERANCE else "undecided"
        answers.append(Answer(outcome, -np.inf, ball.str(10)))  # type: ignore[arg-type]
    return answers


def _shortened(number: object) -> str:
    text = str(number)
    return text if len(text) < 40 else f"{text[:20]}… ({len(text)} characters)"
