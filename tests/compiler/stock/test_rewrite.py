"""One memory changed in a stock model: one matrix of one block, that answer, and no other."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byheart import certify, networks
from byheart.compiler import CompilerSettings, compile, edit
from byheart.compiler.stock.architectures import ARCHITECTURES, ExpertSizes, LayerSizes, dense
from byheart.compiler.stock.dimensions import StreamMap
from byheart.compiler.stock.rewrite import HALF, recover
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.networks.stock.running import answers
from byheart.networks.stock.stock_network import StockNetwork
from byheart.tasks import random_next_token

pytest.importorskip("transformers")
TEXT = "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind to suffer\n"
LAYOUTS = ("experts", "uniform")


@pytest.fixture(scope="module", params=LAYOUTS)
def facts(request: pytest.FixtureRequest) -> Built:
    """Three blocks, which it takes many more questions to need."""
    task = random_next_token(examples=200, length=4, vocab=30, labels=20, rng=np.random.default_rng(0))
    grids = ((3, 3), (3, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExpertSizes, "plan", lambda *_: ExpertSizes(48, *grids, 16, 3, *dense(48, 2)))
        patch.setattr(LayerSizes, "plan", lambda *_: LayerSizes.shaped(48, grids, 17, 3, 2))
        return compile(task, window=4, settings=CompilerSettings(layout=request.param))


def answered(built: Built) -> np.ndarray:
    asked, network = built.questions, built.network
    assert isinstance(network, StockNetwork)
    return answers(network, asked.tokens, asked.starts, asked.places).labels


@pytest.mark.parametrize("question", [0, 1, 2])
def test_one_answer_changes(facts: Built, question: int) -> None:
    contexts = facts.questions
    label = (int(contexts.labels[question]) + 1) % 20
    edited = edit(facts.network, contexts, int(contexts.places[question]), label)
    before, after = answered(facts), answered(edited.built)
    assert np.flatnonzero(before != after).tolist() == [question] == [edited.question]
    assert (edited.was, int(after[question])) == (int(contexts.labels[question]), label)
    tensors = dict(edited.built.network.tensors())
    changed = {name: int((tensor != tensors[name]).sum()) for name, tensor in facts.network.tensors()}
    places = [name for name, count in changed.items() if count]
    assert len(places) == 1
    assert (".experts." in places[0]) == (facts.settings.layout == "experts")
    assert changed[places[0]] == edited.words_changed
    assert 0 < edited.words_changed < facts.chosen["words"]
    assert edited.built.network.about["edits"] == [
        {"text": question, "token": 3, "label": label, "was": int(contexts.labels[question])}
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_texts_and_new_tokens(layout: str) -> None:
    """A label without a code word takes another network; then it may be changed back and forth."""
    built = compile(TEXT, layout=layout)
    edited = edit(built.network, built.questions, 10, ord("Z"))
    assert edited.words_changed is None
    assert certify(edited.built, edited.built.questions).certified
    again = edit(edited.built.network, built.questions, 10, ord("b"))
    assert again.words_changed
    assert certify(again.built, TEXT, edits={TEXT[:11]: "b"}).certified


def test_a_llama_of_byheart_0_1_0_is_refused() -> None:
    """Its words are in two matrices, where nobody looks for them now; it is loaded and recited as ever."""
    old = networks.load(Path(__file__).parents[2] / "fixtures" / "0.1.0" / "llama")
    assert isinstance(old, StockNetwork)
    contexts = compile(TEXT).questions
    with pytest.raises(BadInput, match=r"about\.code_lengths is no code; .* compile the texts anew"):
        edit(old, contexts, 10, 3)
    told = replace(old, about={**old.about, "code_lengths": [9] * 257})
    with pytest.raises(BadInput, match="the network is not as `byheart compile --layout uniform` makes it"):
        recover(told, LayerSizes, contexts)


def test_networks_that_are_not_as_they_were_made(facts: Built) -> None:
    network, contexts = facts.network, facts.questions
    place = int(contexts.places[0])
    for lengths in (None, 3, "1", [], [1, 1, 1], [99], [None]):
        with pytest.raises(BadInput, match=r"config\.json: about\.code_lengths is no code; expected a network that"):
            edit(replace(network, about={**network.about, "code_lengths": lengths}), contexts, place, 3)
    name = "model.layers.3.mlp.up_proj.weight"
    other = network.weights[name].copy()
    other[-1, -1] = 2.0**-90
    strange = replace(network, weights={**network.weights, name: other}, digest=None)
    with pytest.raises(
        BadInput, match=f"the network is not as `byheart compile --layout {facts.settings.layout}` makes it"
    ):
        edit(strange, contexts, place, (int(contexts.labels[0]) + 1) % 20)


def test_codes_beyond_all_tables_are_refused(facts: Built) -> None:
    """No code is further from 0 than ½: the same network with one at 3, every other weight made of it, is none."""
    network, name = facts.network, "model.embed_tokens.weight"
    layout = ARCHITECTURES[facts.settings.layout]
    assert recover(network, layout, facts.questions).hashing.codes.max() < HALF
    for value in (3.0, -3.0):
        other = network.weights[name].copy()
        other[0, StreamMap(network.config["hidden_size"]).codes] = value
        with pytest.raises(BadInput, match="the network is not as `byheart compile --layout"):
            recover(replace(network, weights={**network.weights, name: other}, digest=None), layout, facts.questions)
