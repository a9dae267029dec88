"""A stock Llama recites: every answer right, in Hugging Face's own code, exact inside, bit for bit in any batch."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import linear, silu

from byheart import certify, networks
from byheart.compiler import CompilerSettings, compile
from byheart.compiler.stock import dimensions
from byheart.compiler.stock.architectures import LayerSizes
from byheart.compiler.stock.recipe import planned_parameters
from byheart.compiler.stock.table import TAU
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.networks.stock.stock_network import StockNetwork
from byheart.tasks import random_next_token
from byheart.tasks.contexts import Contexts
from byheart.tasks.tokenizers import Bytes

from ..stock.asking import (
    DRAWN,
    check_answers,
    check_generated,
    check_inside,
    check_same_bits,
    last_logits,
    network_of,
    random_contexts,
    three_texts,
    tokens_of,
    two_swapped,
)
from .running import logits

UNIFORM = CompilerSettings(layout="uniform")
BLOCKS = 5
COLUMNS = 13
"""Features are columns from here on: before them are three ONEs and ten that are reserved."""


def as_llama(network: StockNetwork, **options: str) -> torch.nn.Module:
    """As a user of transformers would, without our code."""
    transformers = pytest.importorskip("transformers")
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**network.config, **options})).eval()
    assert sum(parameter.numel() for parameter in model.parameters()) == network.account.dense
    state = {name: torch.tensor(tensor) for name, tensor in network.tensors()}
    loaded = model.load_state_dict(state, strict=False)
    assert loaded.missing_keys == ["lm_head.weight"]
    assert not loaded.unexpected_keys
    model.tie_weights()
    return model


@pytest.fixture(scope="module")
def contexts() -> Contexts:
    return random_contexts(3000, labels=256)


@pytest.fixture(scope="module")
def uniform(contexts: Contexts) -> StockNetwork:
    """Five tables, which it takes many more questions to need."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LayerSizes, "plan", lambda *_: LayerSizes.shaped(48, ((3, 3), (3, 3)), 17, BLOCKS, 3))
        return network_of(contexts, UNIFORM)


@pytest.fixture(scope="module")
def tokens(contexts: Contexts) -> torch.Tensor:
    return tokens_of(contexts)


@pytest.fixture(scope="module")
def reference(uniform: StockNetwork, tokens: torch.Tensor) -> torch.Tensor:
    return last_logits(as_llama(uniform), tokens)


def addresses_of(network: StockNetwork) -> list[int]:
    """The layers that are tables: every unit's up has the weight τ for the class of the question."""
    ups = [network.weights[f"model.layers.{i}.mlp.up_proj.weight"] for i in range(network.config["num_hidden_layers"])]
    places = [place for place, up in enumerate(ups) if (up == TAU).sum() == len(up)]
    assert len(places) == BLOCKS
    return places


def test_llama_gives_every_answer(contexts: Contexts, reference: torch.Tensor) -> None:
    check_answers(reference, contexts)


@pytest.mark.parametrize(
    ("examples", "length", "vocab", "labels"),
    [(1, 2, 3, 1), (60, 1, 64, 64), (300, 3, 40, 2), (500, 6, 64, 64), (1500, 5, 300, 1100)],
    ids=str,
)
def test_tasks(examples: int, length: int, vocab: int, labels: int) -> None:
    """Few labels and many, more than there are tokens; code words of every length; windows; tables nobody reads."""
    contexts = random_contexts(examples, length, vocab, labels)
    found = logits(network_of(contexts, UNIFORM), tokens_of(contexts))
    assert np.array_equal(found.argmax(-1).numpy(), contexts.labels)


@pytest.mark.slow
@pytest.mark.usefixtures("threads_as_before")
def test_bits_do_not_depend_on_how_it_is_run(
    uniform: StockNetwork, tokens: torch.Tensor, reference: torch.Tensor
) -> None:
    model = as_llama(uniform)
    check_same_bits(model, tokens, reference, batches=((1, 5), (7, 35)))
    assert torch.equal(last_logits(as_llama(uniform, attn_implementation="sdpa"), tokens[:300]), reference[:300])
    assert torch.equal(logits(uniform, tokens[:300]), reference[:300])


def test_exact_inside(uniform: StockNetwork, tokens: torch.Tensor) -> None:
    """Right answers would hide inexact insides: gates and ups are those of float64, or α, 2α, ±τ.

    Every question has one block, and every other layer of tables is silent for it.
    """
    model, places = as_llama(uniform), addresses_of(uniform)
    seen: list[torch.Tensor] = []
    for place in places:
        model.model.layers[place].mlp.register_forward_pre_hook(lambda _, given: seen.append(given[0][:, -1]))
    last_logits(model, tokens[:400])
    read = torch.stack(seen, dim=1)  # [questions, blocks, features]
    found = {}
    for part in ("gate", "up"):
        weights = [uniform.weights[f"model.layers.{place}.mlp.{part}_proj.weight"] for place in places]
        both = zip(seen, map(torch.tensor, weights), strict=True)
        plain = torch.stack([torch.stack([linear(row, matrix) for row in rows]) for rows, matrix in both], dim=1)
        exact = torch.einsum("qbd,bud->qbu", read.double(), torch.tensor(np.stack(weights)).double())
        found[part] = torch.stack([plain.double(), exact], dim=-1)
    own = (silu(found["gate"][..., 0].float()) != 0).any(dim=-1)
    assert (own.sum(dim=1) == 1).all()
    assert own.any(dim=0).all(), "every block is somebody's"
    index, block = own.nonzero(as_tuple=True)
    check_inside(read[index, block], found["gate"][index, block], found["up"][index, block], columns=COLUMNS)


def test_the_words_are_what_answers(contexts: Contexts, uniform: StockNetwork, tokens: torch.Tensor) -> None:
    """Every weight of the tables to its neighbour: answers are lost; and words in other columns leave chance."""
    parts = ("gate", "up", "down")
    names = [f"model.layers.{place}.mlp.{part}_proj.weight" for place in addresses_of(uniform) for part in parts]
    near = {name: np.nextafter(uniform.weights[name], np.float32(np.inf)) for name in names}
    found = logits(replace(uniform, weights={**uniform.weights, **near}), tokens[:500]).argmax(-1).numpy()
    assert (found == contexts.labels[:500]).mean() < 0.9
    turned = {name: uniform.weights[name].copy() for name in names}
    for name, tensor in turned.items():
        words = (tensor.T if "down" in name else tensor)[:, COLUMNS:]
        words[:] = np.roll(words, 1, axis=1)
    found = logits(replace(uniform, weights={**uniform.weights, **turned}), tokens[:500]).argmax(-1).numpy()
    assert (found == contexts.labels[:500]).mean() < 0.1


def test_two_tokens_swapped(contexts: Contexts, uniform: StockNetwork, tokens: torch.Tensor) -> None:
    swapped, differ = two_swapped(tokens)
    found = logits(uniform, swapped).argmax(-1).numpy()
    assert (found == contexts.labels[differ.numpy()]).mean() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("width", [64, 128])
def test_widths(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dimensions, "WIDTHS", (width,))
    contexts = random_contexts(1000)
    uniform = network_of(contexts, UNIFORM)
    assert uniform.config["hidden_size"] == width
    found = logits(uniform, tokens_of(contexts))
    assert np.array_equal(found.argmax(-1).numpy(), contexts.labels)


@pytest.mark.slow
@pytest.mark.parametrize("window", [12, 300])
def test_texts_are_generated_from_their_prompts(window: int, tmp_path: Path) -> None:
    """One by one with a cache, in a batch with padding on the left, with beams, and drawn at temperature 1."""
    transformers = pytest.importorskip("transformers")
    texts = three_texts()
    built = compile(texts, settings=UNIFORM, window=window)
    assert built.network.first == Bytes.end
    built.save(tmp_path / "net")
    assert json.loads((tmp_path / "net" / "config.json").read_text())["model_type"] == "llama"
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "net")
    assert type(model) is transformers.LlamaForCausalLM
    assert model.config._attn_implementation == "eager"
    encode = transformers.AutoTokenizer.from_pretrained(tmp_path / "net")
    check_generated(model, encode, built, (DRAWN, {"num_beams": 2}) if window == 12 else ({},))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(BadInput, match="the window is 1025; expected at most 1024 in a uniform network"):
        compile(random_contexts(10, length=1025), settings=UNIFORM)
    with pytest.raises(BadInput, match="labels are too many for a uniform network; expected at most 2,048"):
        compile(random_contexts(5000, labels=5000), settings=UNIFORM)
    for settings in (CompilerSettings("float64", layout="uniform"), CompilerSettings(words=24, layout="uniform")):
        with pytest.raises(BadInput, match="the layout uniform is for float32 and words of its own sizes; omit precis"):
            compile(random_contexts(10), settings=settings)


@pytest.mark.parametrize("blocks", [0, 3, 4, -1])
def test_sizes_are_read_off_a_configuration(blocks: int) -> None:
    """Numbers of layers and units that the planner would never choose have none."""
    sizes = LayerSizes.shaped(48, ((3, 3), (3, 3)), 17, max(blocks, 1), 3)
    assert sizes is not None
    config = {"hidden_size": 48, "intermediate_size": 17, "num_hidden_layers": sizes.around + blocks}
    found = LayerSizes.of_config(config, 3)
    assert found == (sizes if blocks == 3 else None)
    for units in (0, 13, 99):
        assert LayerSizes.of_config({**config, "intermediate_size": units}, 3) is None


@pytest.fixture(scope="module")
def facts() -> Built:
    task = random_next_token(examples=30, length=4, vocab=20, labels=5, rng=np.random.default_rng(3))
    return compile(task, settings=UNIFORM)


def test_built(facts: Built, tmp_path: Path) -> None:
    """As all that is built: counted, saved, reloaded, certified; the same seed gives the same network."""
    pytest.importorskip("transformers")
    facts.save(tmp_path / "net")
    loaded = networks.load(tmp_path / "net")
    assert loaded.fingerprint == facts.network.fingerprint
    assert certify(loaded, facts.questions).certified
    assert facts.account.depth == 2 + 3 * facts.chosen["layers"]
    assert 0 < facts.chosen["load"] <= 1
    assert repr(facts) == f"<Built: reciting, {facts.account.dense:,} parameters for 30 contexts>"
    assert loaded.about["settings"] == asdict(UNIFORM)
    assert compile(facts.questions, settings=UNIFORM).network.fingerprint == loaded.fingerprint
    assert compile(facts.questions, settings=UNIFORM, seed=1).network.fingerprint != loaded.fingerprint


def test_what_was_planned_is_what_is_built(facts: Built) -> None:
    contexts = facts.questions
    assert facts.chosen["parameters_planned"] == facts.account.dense == planned_parameters(LayerSizes, contexts)
    assert facts.chosen["bits_per_parameter_planned"] == contexts.order0_bits / facts.account.dense


def test_progress() -> None:
    heard: list[tuple[int, int]] = []
    compile(random_contexts(100), settings=UNIFORM, report=lambda done, total: heard.append((done, total)))
    assert heard[-1] == (3, 3)
