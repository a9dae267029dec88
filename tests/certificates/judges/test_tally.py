"""Answers that are added up in any order and in any parts: the outcomes are those of plain Python."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from byheart.certificates.judges.tally import Tally
from byheart.certificates.verdict import OUTCOMES, Counterexample, tallied
from byheart.networks.transformer.answers import Answers
from byheart.tasks.contexts import Contexts
from byheart.tasks.texts import Text
from byheart.tasks.windows import text_contexts


def repetitive(rng: np.random.Generator) -> Contexts:
    """Texts that have many questions in common, so that these are asked in several places."""
    part = rng.integers(0, 4, 30).astype(np.uint8)
    texts = [Text(str(first), np.array([first, *part], np.uint8)) for first in range(4, 10)]
    return text_contexts(texts, vocab=12, end=11)


Found = dict[int, tuple[str, Counterexample | None]]


def expected(contexts: Contexts, answers: Answers, doubtful: npt.NDArray[np.bool_]) -> Found:
    """Outcome and what is told of every question, place by place."""
    found: Found = {}
    for place, label, margin, doubt in zip(
        contexts.all_places, answers.labels.tolist(), answers.margins.tolist(), doubtful, strict=True
    ):
        number = int(contexts.questions_at([place])[0])
        wanted = int(contexts.labels[number])
        right = label == wanted and margin > 0
        outcome = "wrong" if not right else "undecided" if doubt else "right"
        before = found.get(number, ("right", None))[0]
        got = f"{label}, not proved to be exact" if right else "a tie, or no number" if label == wanted else f"{label}"
        told = None if outcome == "right" else Counterexample(number, None, wanted, got)
        ranks = ("right", "undecided", "wrong")
        if number not in found or ranks.index(outcome) > ranks.index(before):
            found[number] = outcome, told
    return found


@pytest.mark.parametrize("seed", range(6))
def test_parts_add_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    contexts = repetitive(rng)
    places = contexts.all_places
    assert len(places) > 2 * len(contexts)
    labels = contexts.labels[contexts.questions_at(places)].astype(np.int64)
    wrong = rng.random(len(labels)) < (0, 0.05, 0.9)[seed % 3]
    labels[wrong] = rng.integers(0, 12, wrong.sum())
    margins = rng.choice([0.0, 1.0, 2.0, np.nan], len(labels), p=(0.02, 0.5, 0.46, 0.02)) if seed > 2 else labels + 1.0
    answers, doubtful = Answers(labels, margins), rng.random(len(labels)) < 0.05 * (seed % 2)
    cuts = [0, *sorted(rng.choice(np.arange(1, len(places)), 5, replace=False).tolist()), len(places)]
    parts = [slice(a, b) for a, b in pairwise(cuts)]
    rng.shuffle(parts)
    tally = Tally(contexts, places)
    for part in parts:
        tally.add(part.start, Answers(labels[part], margins[part]), doubtful[part])
    found, wanted = tallied(tally.outcomes), expected(contexts, answers, doubtful)
    assert [OUTCOMES[code] for code in tally.outcomes.codes] == [wanted[number][0] for number in range(len(contexts))]
    assert [told for _, told in tally.outcomes.others] == [told for _, (_, told) in sorted(wanted.items()) if told]
    others = [told for _, (_, told) in sorted(wanted.items()) if told]
    assert found["counterexample"] == (others[0] if others else None)
    counts = {name: sum(outcome == name for outcome, _ in wanted.values()) for name in OUTCOMES}
    assert (found["errors"], found["undecided"]) == (counts["wrong"], counts["undecided"])
    assert tally.margin == (None if others else margins.min())
    assert tally.doubtful == doubtful.sum()


def test_a_question_that_was_not_asked_is_noticed() -> None:
    contexts = repetitive(np.random.default_rng(0))
    tally = Tally(contexts, contexts.places)
    tally.add(0, Answers(contexts.labels[:-1].astype(np.int64), np.ones(len(contexts) - 1)))
    with pytest.raises(AssertionError, match="every question is asked somewhere"):
        _ = tally.outcomes
