"""What networks that say texts are asked, and how their answers are compared."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.certificates.verdict import Counterexample, Verdict
from byheart.errors import BadInput
from byheart.networks import Network
from byheart.networks.transformer.evaluate import Answers
from byheart.tasks.contexts import Contexts
from byheart.tasks.edits import with_edits
from byheart.tasks.questions import Given, contexts_of
from byheart.tasks.tokenizers import from_files


def asked(network: Any, given: Given, vocab: int, sees: int) -> Contexts:
    """What users give, as contexts, with the network's tokenizer, and the answers that it was edited to.

    Equal contexts are asked once, so they are made as long as the network ``sees``, whatever it says of itself. (Where
    no sequence is longer than its own ``window``, both give whole beginnings, and that number stays.)
    """
    if isinstance(given, Contexts):
        contexts = given
    else:
        window = max(network.window, sees)
        contexts = contexts_of(given, tokenizer=from_files(network.files), window=window)
        if network.window >= np.diff(contexts.starts).max():
            contexts = replace(contexts, window=network.window)
        contexts = with_edits(contexts, network.about.get("edits", ()))
    if contexts.tokens.max() >= vocab:
        raise BadInput(f"token {contexts.tokens.max()} is asked about; the network knows 0 to {vocab - 1}")
    return contexts


def compared(
    answers: Answers,
    contexts: Contexts,
    within: str,
    method: str,
    began: float,
    doubtful: NDArray[np.bool_] | None = None,
) -> Verdict:
    """The verdict: right is a label whose logit is the largest, strictly; what is ``doubtful`` is undecided."""
    right = (answers.labels == contexts.labels) & (answers.margins > 0)  # of nan, nothing is true
    undecided = right & (np.zeros_like(right) if doubtful is None else doubtful)
    bad = np.flatnonzero(~right | undecided)
    example = None
    if len(bad):
        first = int(bad[0])
        tie = answers.labels[first] == contexts.labels[first] and not right[first]
        got = "a tie, or no number" if tie else str(answers.labels[first])
        example = Counterexample(first, None, int(contexts.labels[first]), got)
    return Verdict(
        statement=f"The label's logit is the largest, for every question, {within}{_but_edited(contexts.edited)}.",
        method=method,
        checked=len(right),
        errors=int((~right).sum()),
        seconds=time.perf_counter() - began,
        margin=None if len(bad) or not np.isfinite(answers.margins.min()) else float(answers.margins.min()),
        counterexample=example,
        undecided=int(undecided.sum()),
        note=_edited(contexts.edited),
    )


def _but_edited(answers: int) -> str:
    return f"; labels that it was edited to count as given, {answers:,} of them" if answers else ""


def _edited(answers: int) -> str:
    """What is to be said of answers that are not those of the user's own files."""
    differ = "1 answer differs" if answers == 1 else f"{answers:,} answers differ"
    return f"{differ} from what was given: the network was edited" if answers else ""


def flipped(network: Network, rng: np.random.Generator, weights: int) -> tuple[dict[str, NDArray[Any]], str]:
    """A float network's tensors with one bit of each of some non-zero weights flipped, and where that is.

    Only bits of the mantissa are flipped: others may leave a number that is not finite, which is no network's.
    """
    tensors = {name: np.array(tensor) for name, tensor in network.tensors()}
    sizes = np.array([np.count_nonzero(tensor) for tensor in tensors.values()])
    for name in rng.choice(list(tensors), size=min(weights, int(sizes.sum())), p=sizes / sizes.sum()):
        changed = tensors[name]
        entry = int(rng.choice(np.flatnonzero(changed)))
        spare = 8 * changed.dtype.itemsize - (network.entry_bits(name) or 0)  # bits that the format does not keep
        bit = int(rng.integers(spare, np.finfo(changed.dtype).nmant))
        word = changed.reshape(-1).view(f"u{changed.dtype.itemsize}")
        word[entry] ^= np.array(1 << bit, dtype=word.dtype)
    where = f"bit {bit - spare} of {name}[{entry}]" if weights == 1 else f"a bit of each of {weights:,} weights"
    return tensors, f"flipped {where}"
