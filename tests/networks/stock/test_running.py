"""A stock Llama on many contexts at once: the answers of its logits, however sequences are read."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from byheart import networks
from byheart.certificates import certify
from byheart.certificates.judges.stock import asked
from byheart.networks.stock import running
from byheart.networks.stock.running import answers
from byheart.tasks import NextToken, random_next_token

from .small import VOCAB, tiny
from .test_store import OLD, given

pytest.importorskip("transformers")


@pytest.mark.parametrize("first", [None, 10])
@pytest.mark.parametrize("lengths", [[5] * 9, [1, 7, 30, 2], [40]], ids=["equal", "different", "one"])
def test_answers(first, lengths):
    """The whole sequence, from its start, one by one: the same labels, and margins up to rounding."""
    network, rng = tiny(bos_token_id=first), np.random.default_rng(0)
    starts = np.cumsum([0, *lengths])
    tokens = rng.integers(0, VOCAB, starts[-1])
    places = np.sort(rng.choice(starts[-1], min(25, starts[-1]), replace=False))
    found = answers(network, tokens, starts, places)
    begin = [] if first is None else [first]
    with torch.no_grad():
        logits = [
            network.model(torch.tensor([[*begin, *tokens[a:b].tolist()]])).logits[0, len(begin) :].numpy()
            for a, b in pairwise(starts.tolist())
        ]
    wanted = np.concatenate(logits)[places]
    top = np.sort(wanted, axis=1)
    assert found.labels.tolist() == wanted.argmax(axis=1).tolist()
    assert found.margins == pytest.approx(top[:, -1] - top[:, -2], abs=1e-4)


@pytest.mark.parametrize(("name", "portion"), [("llama", 9), ("llama", 10), ("llama", 1), ("llama-facts", 1)])
def test_pieces_change_nothing(name, portion, monkeypatch):
    """Long texts are read piece by piece, with the model's own cache: of a compiled Llama, bit for bit."""
    network = networks.load(OLD / name)
    contexts = asked(network, given(name))
    whole = answers(network, contexts.tokens, contexts.starts, contexts.places)
    monkeypatch.setattr(running, "PORTION", portion)
    monkeypatch.setattr(running, "PIECE", 1)
    found = answers(network, contexts.tokens, contexts.starts, contexts.places)
    assert found.labels.tolist() == whole.labels.tolist() == contexts.labels.tolist()
    assert found.margins.tolist() == whole.margins.tolist()


def test_what_lies_far_back_counts():
    """A Llama sees all that came before: its window says which questions are the same, and each is asked everywhere."""
    network = tiny(about={"window": 1})
    tokens = np.random.default_rng(0).integers(0, VOCAB, (40, 6))
    with torch.no_grad():
        labels = network.model(torch.from_numpy(tokens)).logits[:, -1].argmax(-1).numpy()
    first = {}
    for last, label in zip(tokens[:, -1].tolist(), labels.tolist(), strict=True):
        first.setdefault(last, label)
    claimed = np.array([first[last] for last in tokens[:, -1].tolist()])
    wrong = {last for last, label, claim in zip(tokens[:, -1], labels, claimed, strict=True) if label != claim}
    assert wrong, "the model looks farther back than one token"
    certificate = certify(network, NextToken(tokens, claimed, vocab=VOCAB, label_count=VOCAB))
    assert (certificate.checked, certificate.stands_for, certificate.errors) == (len(first), 40, len(wrong))


def test_progress():
    task = random_next_token(examples=6, length=2, vocab=VOCAB, labels=2, rng=np.random.default_rng(0))
    contexts, heard = asked(tiny(), task), []
    places, starts = contexts.places, contexts.starts
    answers(tiny(), contexts.tokens, starts, places, report=lambda *step: heard.append(step))
    assert heard[-1] == (len(places), len(places))
