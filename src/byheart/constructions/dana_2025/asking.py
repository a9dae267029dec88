"""Choose the contexts to hold, and the targets of the stream at these contexts and the others."""

import numpy as np

from byheart.constructions.dana_2025.sizes import NAME, DanaSettings
from byheart.constructions.dana_2025.solving import Asked, OtherContexts, labels_as_targets
from byheart.constructions.gadgets.encoder import Encoder, best_encoder
from byheart.constructions.gadgets.encoder.distributions import ContextDistributions
from byheart.constructions.gadgets.encoder.judge import balanced
from byheart.constructions.gadgets.hypotheses import over_ids
from byheart.errors import BadInput
from byheart.tasks import NextToken, NextTokenDistribution, Task
from byheart.tasks.arrays import Ids
from byheart.tasks.distinct import distinct


def held(task: Task, settings: DanaSettings, rng: np.random.Generator) -> Ids:
    """Return the examples whose answers will be exact: one for each held context.

    For distributions these are the likeliest contexts up to a probability of 1 − ε, for labels ``hold`` contexts.
    """
    checked, tokens = over_ids(NAME, task)
    different = distinct(tokens)
    if isinstance(checked, NextToken):
        if settings.epsilon:
            raise BadInput(f"epsilon is {settings.epsilon}; expected 0: only distributions may omit contexts")
        if settings.smooth:
            raise BadInput(f"smooth is {settings.smooth}; expected 0: only distributions are smoothed")
        return different.first if settings.hold is None else _some(tokens, different.first, settings.hold, rng)
    if settings.hold is not None:
        raise BadInput(f"hold is {settings.hold}; expected none: it is for labels, distributions have epsilon")
    if not 0 <= settings.epsilon < 1:
        raise BadInput(f"epsilon is {settings.epsilon}; expected 0 ≤ ε < 1")
    if not 0 <= settings.smooth < 1:
        raise BadInput(f"smooth is {settings.smooth}; expected 0 ≤ δ < 1")
    likelihoods = np.bincount(different.ids, weights=checked.likelihoods)
    order = np.argsort(-likelihoods, kind="stable")
    enough = int(np.searchsorted(np.cumsum(likelihoods[order]), 1 - settings.epsilon - 1e-12)) + 1
    return np.sort(different.first[order[: min(enough, len(order))]])


def _some(tokens: Ids, different: Ids, hold: int, rng: np.random.Generator) -> Ids:
    """Draw ``hold`` of the different contexts, every last token once before any comes twice, and so on."""
    if not 1 <= hold <= len(different):
        raise BadInput(f"hold is {hold}; expected from 1 to all {len(different)} different contexts")
    order = rng.permutation(different)
    last = tokens[order, -1]
    by_token = np.argsort(last, kind="stable")
    starts = np.searchsorted(last[by_token], last[by_token])
    before = np.empty(len(order), np.int64)
    before[by_token] = np.arange(len(order)) - starts
    return np.sort(order[np.argsort(before, kind="stable")[:hold]])


def asked(task: Task, kept: Ids, d: int, settings: DanaSettings, rng: np.random.Generator) -> Asked:
    """Return the targets of the examples ``kept`` and of the other contexts."""
    assert task.tokens is not None
    different = distinct(task.tokens)
    tokens, left = task.tokens[kept], np.setdiff1d(different.first, kept)
    if isinstance(task, NextTokenDistribution):
        encoder = _encoder(task, d, settings, rng)
        likelihoods = np.bincount(different.ids, task.likelihoods).astype(np.float64)[different.ids[left]]
        others = OtherContexts(task.tokens[left], encoder.encodings[left], likelihoods, task.probabilities[left])
        return Asked(encoder.W_U, tokens, encoder.encodings[kept], others, encoder)
    assert isinstance(task, NextToken)
    W_U, targets = labels_as_targets(task.labels[np.concatenate([kept, left])], task.label_count, d, rng)
    return Asked(W_U, tokens, targets[: len(kept)], OtherContexts(task.tokens[left], targets[len(kept) :]))


def _encoder(task: NextTokenDistribution, d: int, settings: DanaSettings, rng: np.random.Generator) -> Encoder:
    """Return the best encoder of the distributions; with smoothing, the encoder of the smoothed distributions."""
    p, likelihoods, smooth = task.probabilities, task.likelihoods, settings.smooth
    if not smooth:
        return best_encoder(p, likelihoods, d, rng=rng, restarts=settings.restarts)
    mixed = (1 - smooth) * p + smooth / p.shape[1]
    encoder = best_encoder(mixed, likelihoods, d, rng=rng, restarts=settings.restarts)
    return balanced(ContextDistributions.checked(p, likelihoods), encoder.logits, d, encoder.reached)
