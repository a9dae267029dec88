"""A stock Llama recites: every answer right, in Hugging Face's own code, bit for bit in any batch."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from byheart import certify, networks
from byheart.constructions.built import Built
from byheart.constructions.reciting import Settings, compile
from byheart.constructions.reciting.uniform import sizes
from byheart.errors import BadInput
from byheart.networks.stock.network import StockNetwork
from byheart.tasks import random_next_token
from byheart.tasks.contexts import Contexts, task_contexts
from byheart.tasks.tokenizers import Bytes

from .running import logits

UNIFORM = Settings(layout="uniform")


def random_contexts(examples: int, length: int = 8, vocab: int = 64, labels: int = 64) -> Contexts:
    rng = np.random.default_rng(3)
    task = random_next_token(examples=examples, length=length, vocab=vocab, labels=labels, rng=rng)
    return task_contexts(task, window=length)


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


@torch.no_grad()
def last_logits(model: torch.nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    return model(tokens, logits_to_keep=1).logits[:, 0]


@pytest.fixture(scope="module")
def contexts() -> Contexts:
    return random_contexts(4000)


@pytest.fixture(scope="module")
def uniform(contexts: Contexts) -> StockNetwork:
    network = compile(contexts, settings=UNIFORM).network
    assert isinstance(network, StockNetwork)
    return network


@pytest.fixture(scope="module")
def tokens(contexts: Contexts) -> torch.Tensor:
    return torch.tensor(contexts.windows(slice(None)).astype(np.int64))


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_llama_gives_every_answer(contexts: Contexts, uniform: StockNetwork, tokens: torch.Tensor) -> None:
    found = last_logits(as_llama(uniform), tokens)
    assert np.array_equal(found.argmax(-1).numpy(), contexts.labels)
    two = found.topk(2, dim=-1).values
    assert (two[:, 0] - two[:, 1]).min() >= 1
    assert torch.equal(found, found.round())


@pytest.mark.slow
@pytest.mark.usefixtures("threads")
def test_bits_do_not_depend_on_how_it_is_run(uniform: StockNetwork, tokens: torch.Tensor) -> None:
    model = as_llama(uniform)
    reference = last_logits(model, tokens)
    order = torch.randperm(300, generator=torch.Generator().manual_seed(0))
    assert torch.equal(last_logits(model, tokens[order]), reference[order])
    for size, asked in ((1, 15), (7, 70)):
        parts = [last_logits(model, part) for part in tokens[:asked].split(size)]
        assert torch.equal(torch.cat(parts), reference[:asked])
    for count in (1, 2):
        torch.set_num_threads(count)
        assert torch.equal(last_logits(model, tokens[:500]), reference[:500])
    assert torch.equal(last_logits(as_llama(uniform, attn_implementation="sdpa"), tokens[:500]), reference[:500])
    assert torch.equal(logits(uniform, tokens), reference)


def test_the_words_are_what_answers(contexts: Contexts, uniform: StockNetwork, tokens: torch.Tensor) -> None:
    """The same weights in another order: chance."""
    rng = np.random.default_rng(0)
    shuffled = dict(uniform.weights)
    for name, tensor in uniform.tensors():
        if np.abs(tensor).max() > 1e3 and name.endswith(("up_proj.weight", "down_proj.weight")):
            large = np.abs(tensor) > 1e3
            tensor = tensor.copy()  # noqa: PLW2901
            tensor[large] = rng.permutation(tensor[large])
            shuffled[name] = tensor
    found = logits(replace(uniform, weights=shuffled), tokens).argmax(-1).numpy()
    assert (found == contexts.labels).mean() < 0.1


@pytest.mark.parametrize("length", [1, 3, 6])
def test_windows(length: int) -> None:
    contexts = random_contexts(60 if length == 1 else 500, length=length)
    uniform = compile(contexts, settings=UNIFORM).network
    tokens = torch.tensor(contexts.windows(slice(None)).astype(np.int64))
    found = logits(uniform, tokens)
    assert np.array_equal(found.argmax(-1).numpy(), contexts.labels)


@pytest.mark.slow
@pytest.mark.parametrize("width", [128, 256])
def test_widths(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "WIDTHS", (width,))
    contexts = random_contexts(3000)
    uniform = compile(contexts, settings=UNIFORM).network
    assert uniform.config["hidden_size"] == width
    tokens = torch.tensor(contexts.windows(slice(None)).astype(np.int64))
    found = logits(uniform, tokens)
    assert np.array_equal(found.argmax(-1).numpy(), contexts.labels)


@pytest.mark.slow
@pytest.mark.parametrize("window", [12, 64, 300])
def test_texts_are_generated_from_their_prompts(window: int, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    rng = np.random.default_rng(5)
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz \n", np.uint8)
    weights = 1 / np.arange(1, len(letters) + 1)
    bodies = [bytes(rng.choice(letters, size=size, p=weights / weights.sum())) for size in (1, 30, 300)]
    texts = {"0": b"ab" + bodies[0] + b"!", "1": b"ab" + bodies[1] + b"?", "2": b"c" + bodies[2]}
    built = compile(texts, settings=UNIFORM, window=window)
    end = Bytes.end
    assert built.network.first == end
    built.save(tmp_path / "net")
    assert json.loads((tmp_path / "net" / "config.json").read_text())["model_type"] == "llama"
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "net")
    assert type(model) is transformers.LlamaForCausalLM
    assert model.config._attn_implementation == "eager"
    encode = transformers.AutoTokenizer.from_pretrained(tmp_path / "net")
    for text, prompt in zip(texts.values(), built.questions.prompts, strict=True):
        given = encode(text[:prompt].decode(), return_tensors="pt")
        assert given.input_ids[0].tolist() == [end, *text[:prompt]]
        said = model.generate(**given, max_length=400)[0].tolist()
        assert said == [end, *text, end]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(BadInput, match="the window is 1025; expected at most 1024"):
        compile(random_contexts(10, length=1025), settings=UNIFORM)
    with pytest.raises(BadInput, match="labels are too many"):
        compile(random_contexts(5000, labels=5000), settings=UNIFORM)
    for settings in (Settings("float64", layout="uniform"), Settings(words=24, layout="uniform")):
        with pytest.raises(BadInput, match="the layout uniform is for float32 and 21-bit words; omit precision and wo"):
            compile(random_contexts(10), settings=settings)


@pytest.fixture
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
    assert loaded.about["settings"] == {
        "precision": "float32",
        "words": None,
        "layout": "uniform",
        "refuse": None,
        "shards": None,
    }
    assert compile(facts.questions, settings=UNIFORM).network.fingerprint == loaded.fingerprint
    assert compile(facts.questions, settings=UNIFORM, seed=1).network.fingerprint != loaded.fingerprint


def test_progress() -> None:
    heard: list[tuple[int, int]] = []
    compile(random_contexts(100), settings=UNIFORM, report=lambda done, total: heard.append((done, total)))
    assert heard[-1][0] == heard[-1][1] > 1
