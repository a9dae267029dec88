"""The common part of the judges of networks that recite texts: contexts, notes, and flipped bits."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.certificates.claim import Claim
from byheart.certificates.judges.tally import Tally
from byheart.certificates.verdict import Verdict, tallied
from byheart.errors import BadInput
from byheart.networks import Network
from byheart.tasks.contexts import Contexts
from byheart.tasks.questions import QuestionsLike, as_contexts
from byheart.tasks.tokenizers import from_files


def asked(network: Any, source: QuestionsLike, vocab: int, window: int) -> Contexts:
    """Return a user's task or texts as contexts of ``window`` tokens, read with the network's tokenizer.

    If no sequence is longer than the network's own window, contexts are whole beginnings either way. They keep the
    network's window then.
    """
    if isinstance(source, Contexts):
        contexts = source
    else:
        contexts = as_contexts(source, tokenizer=from_files(network.files), window=window)
        if network.window >= contexts.longest:
            contexts = replace(contexts, window=network.window)
    if contexts.tokens.max() >= vocab:
        raise BadInput(f"token {contexts.tokens.max()} is asked about; the network knows 0 to {vocab - 1}")
    return contexts


def places(contexts: Contexts, sees: int | None) -> NDArray[np.int64]:
    """Return the places to ask at: the first place of every question, if the network sees no farther than a context.

    If it does (``sees`` None: all that came before), equal contexts may get different answers. Every place counts then.
    """
    whole = sees is not None and contexts.window >= sees
    return contexts.places if whole else contexts.all_places


def verdict(network: Network, tally: Tally, contexts: Contexts, within: str, method: str, began: float) -> Verdict:
    """Return the verdict on a complete tally."""
    counted = tallied(tally.outcomes)
    return Verdict(
        claim=Claim("largest logit", within, unit="question", edited=contexts.edited),
        method=method,
        seconds=time.perf_counter() - began,
        margin=tally.margin,
        note=_note(contexts, counted["errors"] if network.about.get("edits") else 0),
        **counted,
    )


def _note(contexts: Contexts, wrong: int) -> str:
    """Describe answers that differ from the user's file, because the user changed them or the network was edited."""
    notes, places = [], contexts.edited_places
    if contexts.edited:
        where = f" (asked in {places:,} places)" if places > contexts.edited else ""
        notes.append(f"{_differ(contexts.edited)} from the file{where}")
    if wrong:
        expected = "what was asked for" if contexts.edited else "the file"
        notes.append(f"{_differ(wrong)} from {expected}: its folder says that it was edited")
    return ", ".join(notes)


def _differ(answers: int) -> str:
    return "1 answer differs" if answers == 1 else f"{answers:,} answers differ"


def flipped(network: Network, rng: np.random.Generator, weights: int) -> tuple[dict[str, NDArray[Any]], str]:
    """Return a float network's tensors with one bit flipped in each of ``weights`` non-zero weights, and their place.

    Only bits of the mantissa are flipped: other bits may give a number that is not finite, which no network holds.
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
