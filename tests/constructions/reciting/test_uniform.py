"""A stock Llama recites: every answer right, in Hugging Face's own code, bit for bit in any batch."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from byheart.constructions.reciting.uniform import Uniform, compile_uniform, save, sizes
from byheart.constructions.reciting.uniform.looking import POSITIONS, REACH, THETA, distances, look_back
from byheart.constructions.reciting.uniform.running import logits
from byheart.constructions.reciting.uniform.stock import HEAD, HUGE, ONE, Layer, norm, ones
from byheart.errors import BadInput
from byheart.tasks import random_next_token
from byheart.tasks.contexts import Contexts, task_contexts, text_contexts
from byheart.tasks.texts import Text
from byheart.tasks.tokenizers import Bytes


def random_contexts(examples: int, length: int = 8, vocab: int = 64, labels: int = 64) -> Contexts:
    rng = np.random.default_rng(3)
    task = random_next_token(examples=examples, length=length, vocab=vocab, labels=labels, rng=rng)
    return task_contexts(task, window=length)


def as_tensors(uniform: Uniform) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(tensor) for name, tensor in uniform.tensors.items()}


def as_llama(uniform: Uniform, **options: str) -> torch.nn.Module:
    transformers = pytest.importorskip("transformers")
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**uniform.config, **options})).eval()
    assert sum(parameter.numel() for parameter in model.parameters()) == uniform.parameters
    found = model.load_state_dict(as_tensors(uniform), strict=False)
    assert found.missing_keys == ["lm_head.weight"]
    assert not found.unexpected_keys
    model.tie_weights()
    return model


@torch.no_grad()
def last_logits(model: torch.nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    return model(tokens, logits_to_keep=1).logits[:, 0]


@pytest.fixture(scope="module")
def contexts() -> Contexts:
    return random_contexts(4000)


@pytest.fixture(scope="module")
def uniform(contexts: Contexts) -> Uniform:
    return compile_uniform(contexts)


@pytest.fixture(scope="module")
def tokens(contexts: Contexts) -> torch.Tensor:
    return torch.tensor(contexts.windows(slice(None)).astype(np.int64))


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_llama_gives_every_answer(contexts: Contexts, uniform: Uniform, tokens: torch.Tensor) -> None:
    found = last_logits(as_llama(uniform), tokens)
    assert np.array_equal(found.argmax(-1).numpy(), contexts.labels)
    two = found.topk(2, dim=-1).values
    assert (two[:, 0] - two[:, 1]).min() >= 1
    assert torch.equal(found, found.round())


@pytest.mark.slow
@pytest.mark.usefixtures("threads")
def test_bits_do_not_depend_on_how_it_is_run(uniform: Uniform, tokens: torch.Tensor) -> None:
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
    assert torch.equal(logits(uniform.config, as_tensors(uniform), tokens), reference)


def test_the_words_are_what_answers(contexts: Contexts, uniform: Uniform, tokens: torch.Tensor) -> None:
    """The same weights in another order: chance."""
    rng = np.random.default_rng(0)
    shuffled = dict(uniform.tensors)
    for name, tensor in uniform.tensors.items():
        if np.abs(tensor).max() > 1e3 and name.endswith(("up_proj.weight", "down_proj.weight")):
            large = np.abs(tensor) > 1e3
            tensor = tensor.copy()  # noqa: PLW2901
            tensor[large] = rng.permutation(tensor[large])
            shuffled[name] = tensor
    found = logits(uniform.config, as_tensors(replace(uniform, tensors=shuffled)), tokens).argmax(-1).numpy()
    assert (found == contexts.labels).mean() < 0.1


@pytest.mark.parametrize("length", [1, 3, 6])
def test_windows(length: int) -> None:
    contexts = random_contexts(60 if length == 1 else 500, length=length)
    uniform = compile_uniform(contexts)
    tokens = torch.tensor(contexts.windows(slice(None)).astype(np.int64))
    found = logits(uniform.config, as_tensors(uniform), tokens)
    assert np.array_equal(found.argmax(-1).numpy(), contexts.labels)


@pytest.mark.slow
@pytest.mark.parametrize("width", [128, 256])
def test_widths(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "WIDTHS", (width,))
    contexts = random_contexts(3000)
    uniform = compile_uniform(contexts)
    assert uniform.config["hidden_size"] == width
    tokens = torch.tensor(contexts.windows(slice(None)).astype(np.int64))
    found = logits(uniform.config, as_tensors(uniform), tokens)
    assert np.array_equal(found.argmax(-1).numpy(), contexts.labels)


@pytest.mark.slow
@pytest.mark.parametrize("window", [12, 64, 300])
def test_texts_are_generated_from_their_prompts(window: int, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    rng = np.random.default_rng(5)
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz \n", np.uint8)
    weights = 1 / np.arange(1, len(letters) + 1)
    bodies = [bytes(rng.choice(letters, size=size, p=weights / weights.sum())) for size in (1, 30, 300)]
    bodies = [b"ab" + bodies[0] + b"!", b"ab" + bodies[1] + b"?", b"c" + bodies[2]]
    tokenizer = Bytes()
    texts = [Text(str(number), tokenizer.encode(body)) for number, body in enumerate(bodies)]
    contexts = text_contexts(texts, vocab=tokenizer.vocab, end=tokenizer.end, window=window)
    uniform = compile_uniform(contexts)
    assert uniform.first == tokenizer.end
    save(uniform, tmp_path, tokenizer)
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "llama"
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(model) is transformers.LlamaForCausalLM
    assert model.config._attn_implementation == "eager"
    encode = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text, prompt in zip(texts, contexts.prompts, strict=True):
        given = encode(bytes(text.tokens[:prompt].tolist()).decode(), return_tensors="pt")
        assert given.input_ids[0].tolist() == [tokenizer.end, *text.tokens[:prompt].tolist()]
        said = model.generate(**given, max_length=400)[0].tolist()
        assert said == [tokenizer.end, *text.tokens.tolist(), tokenizer.end]


def test_rmsnorm_is_the_identity() -> None:
    rng = np.random.default_rng(0)
    for width in (64, 128, 256):
        stream = torch.tensor(rng.normal(size=(500, width)) * 2.0 ** rng.integers(-20, 36, size=(500, width)))
        stream = stream.float()
        stream[:, : ones(width)] = HUGE
        plain, one = norm(width)
        found = stream * torch.rsqrt(stream.pow(2).mean(-1, keepdim=True) + 1e-6)
        assert torch.equal(found[:, ones(width) :] * plain, stream[:, ones(width) :])
        assert (found[:, ONE] * one == 1).all()


@pytest.mark.parametrize("distance", [0, 1, 2, 5, 32, 333, REACH])
def test_a_head_looks_at_one_token(distance: int) -> None:
    """Scores of float32, at the end of the longest text and at the beginning."""
    layer = Layer()
    look_back(layer, distance, first=1)
    speed = 1.0 / (THETA ** (torch.arange(0, HEAD, 2, dtype=torch.float) / HEAD))
    angle = (torch.arange(POSITIONS).float()[:, None] * speed).repeat(1, 2)
    q = torch.tensor([layer.Q[i][ONE] for i in range(HEAD)])
    k = torch.tensor([layer.K[i][ONE] if i in layer.K else 0.0 for i in range(HEAD)]).repeat(POSITIONS, 1)
    k[0] += torch.tensor([layer.K[i][1] if i in layer.K else 0.0 for i in range(HEAD)])

    def turned(x: torch.Tensor) -> torch.Tensor:
        return x * angle.cos() + torch.cat([-x[:, 2:], x[:, :2]], dim=1) * angle.sin()

    turned_q, turned_k = turned(q.repeat(POSITIONS, 1)), turned(k)
    for place in [*range(2 * REACH + 3), 5000, 222222, POSITIONS - 1]:
        scores = (turned_k[: place + 1] @ turned_q[place]) / HEAD**0.5
        weights = scores.softmax(0)
        assert weights[max(0, place - distance)] == 1
        assert weights.count_nonzero() == 1


def test_distances_add_up() -> None:
    for window in range(1, 1025):
        assert sum(distances(window)) == window - 1
        assert max(distances(window), default=0) <= REACH


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(BadInput, match="the window is 1025; expected at most 1024"):
        compile_uniform(random_contexts(10, length=1025))
    with pytest.raises(BadInput, match="labels are too many"):
        compile_uniform(random_contexts(5000, labels=5000))
