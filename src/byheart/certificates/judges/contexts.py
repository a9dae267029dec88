"""What networks that say texts are asked, and how their answers are compared."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.certificates.verdict import RIGHT, UNDECIDED, WRONG, Counterexample, Outcomes, Verdict, tallied
from byheart.errors import BadInput
from byheart.networks import Network
from byheart.networks.transformer.evaluate import Answers
from byheart.tasks.checks import portions, taken
from byheart.tasks.contexts import Contexts
from byheart.tasks.questions import Given, contexts_of
from byheart.tasks.tokenizers import from_files


def asked(network: Any, given: Given, vocab: int, window: int) -> Contexts:
    """What users give, as contexts of ``window`` tokens, with the network's tokenizer; at least its own window.

    (Where no sequence is longer than its own, both give whole beginnings, and that number stays.)
    """
    if isinstance(given, Contexts):
        contexts = given
    else:
        contexts = contexts_of(given, tokenizer=from_files(network.files), window=window)
        if network.window >= np.diff(contexts.starts).max():
            contexts = replace(contexts, window=network.window)
    if contexts.tokens.max() >= vocab:
        raise BadInput(f"token {contexts.tokens.max()} is asked about; the network knows 0 to {vocab - 1}")
    return contexts


def places(contexts: Contexts, sees: int | None) -> NDArray[np.int64]:
    """Where to ask: the first place of every question, if the network sees no farther than a context goes.

    If it does (``sees`` None: all that came before), equal contexts may get different answers, and every place counts.
    """
    whole = sees is not None and contexts.window >= sees
    return contexts.places if whole else contexts.all_places


def compared(
    network: Network,
    answers: Answers,
    places: NDArray[np.int64],
    contexts: Contexts,
    within: str,
    method: str,
    began: float,
    doubtful: NDArray[np.bool_] | None = None,
) -> Verdict:
    """The verdict: right is a label whose logit is the largest, strictly, wherever its question is asked.

    What is ``doubtful`` somewhere, and wrong nowhere, is undecided.
    """
    question = contexts.questions_at(places)
    right = (answers.labels == taken(contexts.labels, question)) & (answers.margins > 0)  # of nan, nothing is true
    assert _all_asked(question, len(contexts)), "every question is asked somewhere"
    codes = np.full(len(contexts), RIGHT, np.uint8)
    if doubtful is not None:
        codes[question[doubtful]] = UNDECIDED
    codes[question[~right]] = WRONG
    # Where it is told what was got: a place that is wrong, or if there is none, one in doubt; the first of them.
    wrong_there = taken(codes, question) == WRONG
    bad = np.flatnonzero(~right if doubtful is None else (right & doubtful & ~wrong_there) | ~right)
    different, first = np.unique(question[bad], return_index=True)

    def told(answer: int) -> Counterexample:
        at = bad[first[np.searchsorted(different, answer)]]
        label, got = int(contexts.labels[answer]), f"{answers.labels[at]}"
        if right[at]:
            got += ", not proved to be exact"
        elif answers.labels[at] == label:
            got = "a tie, or no number"
        return Counterexample(answer, None, label, got, contexts.where(int(places[at])))

    wrong = int((codes == WRONG).sum())
    return Verdict(
        statement=f"The label's logit is the largest, for every question, {within}{_but_edited(contexts)}.",
        method=method,
        seconds=time.perf_counter() - began,
        margin=None if len(bad) or not np.isfinite(answers.margins.min()) else float(answers.margins.min()),
        note=_note(contexts, wrong if network.about.get("edits") else 0),
        unit="question",
        **tallied(Outcomes(codes, told)),
    )


def _all_asked(questions: NDArray[np.integer], count: int) -> bool:
    seen = np.zeros(count, np.bool_)
    for part in portions(questions):
        seen[part] = True
    return bool(seen.all())


def _but_edited(contexts: Contexts) -> str:
    return f"; the labels of {contexts.edited:,} are not those of the file" if contexts.edited else ""


def _note(contexts: Contexts, wrong: int) -> str:
    """What is to be said of answers other than those of the user's file, asked for or edited into the network."""
    notes, places = [], contexts.edited_places
    if contexts.edited:
        where = f" (asked in {places:,} places)" if places > contexts.edited else ""
        notes.append(f"{_differ(contexts.edited)} from the file{where}")
    if wrong:
        others = "what was asked for" if contexts.edited else "the file"
        notes.append(f"{_differ(wrong)} from {others}: its folder says that it was edited")
    return ", ".join(notes)


def _differ(answers: int) -> str:
    return "1 answer differs" if answers == 1 else f"{answers:,} answers differ"


def flipped(network: Network, rng: np.random.Generator, weights: int) -> tuple[dict[str, NDArray[Any]], str]:
    """A float network's tensors with one bit of each of some non-zero weights flipped, and where that is.

    Only bits of the mantissa are flipped: others may leave a number that is not finite, which is no network's.
    """
    tensors = {name: np.array(tensor) for name, tensor in network.tensors()}
    sizes = np.array([np.count_nonzero(tensor) for tensor in tensors.values()])
    if not sizes.any():
        raise BadInput("all weights of the network are 0; expected one that can be perturbed")
    for name in rng.choice(list(tensors), size=min(weights, int(sizes.sum())), p=sizes / sizes.sum()):
        changed = tensors[name]
        entry = int(rng.choice(np.flatnonzero(changed)))
        spare = 8 * changed.dtype.itemsize - (network.entry_bits(name) or 0)  # bits that the format does not keep
        bit = int(rng.integers(spare, np.finfo(changed.dtype).nmant))
        word = changed.reshape(-1).view(f"u{changed.dtype.itemsize}")
        word[entry] ^= np.array(1 << bit, dtype=word.dtype)
    where = f"bit {bit - spare} of {name}[{entry}]" if weights == 1 else f"a bit of each of {weights:,} weights"
    return tensors, f"flipped {where}"
