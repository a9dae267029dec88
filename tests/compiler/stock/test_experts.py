"""A stock Qwen2-MoE recites: every answer right, in Hugging Face's own code, exact inside, bit for bit in any batch."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import linear

from byheart import certify, networks
from byheart.compiler import CompilerSettings, compile
from byheart.compiler.compile import compile_contexts
from byheart.compiler.layouts import Resources
from byheart.compiler.stock import architectures, dimensions
from byheart.compiler.stock.dimensions import MOST_BLOCKS, MOST_CELLS, StockSizes, StreamMap
from byheart.compiler.stock.table import UP_UNIT
from byheart.compiler.stock.units import ONE
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.files import memory
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

transformers = pytest.importorskip("transformers")
EXPERTS = CompilerSettings(layout="experts")
pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors is a no-op")


@pytest.fixture(scope="module")
def contexts() -> Contexts:
    return random_contexts(1500, labels=256)


@pytest.fixture(scope="module")
def several(contexts: Contexts) -> StockNetwork:
    """A network of several experts, which it takes many more questions to need."""
    with pytest.MonkeyPatch.context() as patch:
        sizes = architectures.ExpertSizes(48, (3, 3), (3, 3), 16, 3, *architectures.dense(48, 3))
        patch.setattr(architectures.ExpertSizes, "plan", lambda *_, **__: sizes)
        return network_of(contexts, EXPERTS)


@pytest.fixture(scope="module")
def tokens(contexts: Contexts) -> torch.Tensor:
    return tokens_of(contexts)


@pytest.fixture(scope="module")
def reference(several: StockNetwork, tokens: torch.Tensor) -> torch.Tensor:
    return last_logits(several.model, tokens)


def test_every_answer(contexts: Contexts, reference: torch.Tensor) -> None:
    check_answers(reference, contexts)


@pytest.mark.parametrize(
    ("examples", "length", "vocab", "labels"),
    [(1, 2, 3, 1), (9, 1, 9, 7), (300, 3, 40, 2), (1500, 5, 300, 1100)],
    ids=str,
)
def test_tasks(examples: int, length: int, vocab: int, labels: int) -> None:
    """Few labels and many, more than there are tokens; code words of every length; tables that nobody reads."""
    contexts = random_contexts(examples, length, vocab, labels)
    found = last_logits(network_of(contexts, EXPERTS).model, tokens_of(contexts))
    assert np.array_equal(found.argmax(-1).numpy(), contexts.labels)


@pytest.mark.slow
@pytest.mark.usefixtures("threads_as_before")
def test_bits_do_not_depend_on_how_it_is_run(
    several: StockNetwork, tokens: torch.Tensor, reference: torch.Tensor, tmp_path: Path
) -> None:
    model = several.model
    check_same_bits(model, tokens, reference, batches=((1, 5), (7, 35), (33, 66)))
    networks.save(several, tmp_path / "net")
    for kernel in ("eager", "batched_mm", "grouped_mm"):
        theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "net", experts_implementation=kernel)
        assert type(theirs) is transformers.Qwen2MoeForCausalLM
        assert theirs.config._experts_implementation == kernel
        assert torch.equal(last_logits(theirs, tokens[:300]), reference[:300])


def test_exact_inside(several: StockNetwork, tokens: torch.Tensor) -> None:
    """Right answers would hide inexact insides: gates and ups are those of float64, or α, 2α, ±τ."""
    config, model = several.config, several.model
    place = next(i for i in range(config["num_hidden_layers"]) if i not in config["mlp_only_layers"])
    seen: list[torch.Tensor] = []
    handle = model.model.layers[place].mlp.register_forward_pre_hook(lambda _, given: seen.append(given[0][:, -1]))
    last_logits(model, tokens[:400])
    handle.remove()
    named = {name.removeprefix(f"model.layers.{place}.mlp."): tensor for name, tensor in several.weights.items()}
    expert = linear(seen[0], torch.tensor(named["gate.weight"])).argmax(-1)
    found = []
    for part in ("gate", "up"):
        weights = [named[f"experts.{number}.{part}_proj.weight"] for number in range(config["num_experts"])]
        chosen = torch.tensor(np.stack(weights))[expert]
        plain = torch.stack([linear(row, matrix) for row, matrix in zip(seen[0], chosen, strict=True)])
        exact = torch.einsum("bd,bud->bu", seen[0].double(), chosen.double())
        found.append(torch.stack([plain.double(), exact], dim=-1))
    check_inside(seen[0], *found, columns=10 + config["hidden_size"] // 16)


def test_every_expert_counts(contexts: Contexts, several: StockNetwork, tokens: torch.Tensor) -> None:
    """Every weight of the experts to its neighbour: answers are lost."""
    weights = {
        name: np.nextafter(tensor, np.float32(np.inf)) if ".experts." in name else tensor
        for name, tensor in several.weights.items()
    }
    found = last_logits(replace(several, weights=weights).model, tokens[:500]).argmax(-1).numpy()
    assert (found == contexts.labels[:500]).mean() < 0.9


def test_two_tokens_swapped(contexts: Contexts, several: StockNetwork, tokens: torch.Tensor) -> None:
    swapped, differ = two_swapped(tokens)
    found = last_logits(several.model, swapped).argmax(-1).numpy()
    assert (found == contexts.labels[differ.numpy()]).mean() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("width", [64, 128])
def test_widths(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dimensions, "WIDTHS", (width,))
    contexts = random_contexts(1000)
    network = network_of(contexts, EXPERTS)
    assert network.config["hidden_size"] == width
    found = last_logits(network.model, tokens_of(contexts))
    assert np.array_equal(found.argmax(-1).numpy(), contexts.labels)


@pytest.mark.slow
def test_texts_are_generated_from_their_prompts(tmp_path: Path) -> None:
    """One by one with a cache, in a batch with padding on the left, and drawn at temperature 1."""
    texts = three_texts()
    built = compile(texts, settings=EXPERTS, window=12)
    assert built.network.first == Bytes.end
    assert certify(built.network, built.questions).certified
    built.save(tmp_path / "net")
    assert json.loads((tmp_path / "net" / "config.json").read_text())["model_type"] == "qwen2_moe"
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "net")
    assert model.config._attn_implementation == "eager"
    encode = transformers.AutoTokenizer.from_pretrained(tmp_path / "net", padding_side="left", pad_token="<|end|>")
    check_generated(model, encode, built, ({}, DRAWN))


def test_what_does_not_fit_is_refused() -> None:
    empty, nowhere = np.zeros(0, dtype=np.int64), np.zeros((2, 0), dtype=np.int32)
    nothing = Contexts(np.zeros(2, np.int32), np.array([0, 2]), empty, empty, nowhere, 1, 2, 2, (1,), None)
    with pytest.raises(BadInput, match="there is no question to answer; expected at least one"):
        compile(nothing, settings=EXPERTS)
    with pytest.raises(BadInput, match="the window is 1025; expected at most 1024 in a network of experts"):
        compile(random_contexts(10, length=1025), settings=EXPERTS)
    with pytest.raises(BadInput, match="labels are too many for a network of experts; expected at most 2,048"):
        compile(random_contexts(5000, labels=5000), settings=EXPERTS)
    for settings in (CompilerSettings("float64", layout="experts"), CompilerSettings(words=24, layout="experts")):
        with pytest.raises(BadInput, match="the layout experts is for float32 and words of its own sizes; omit"):
            compile(random_contexts(10), settings=settings)
    with pytest.raises(BadInput, match="shards is for layout rectangular; in layout experts every expert is one"):
        compile(random_contexts(10), settings=CompilerSettings(layout="experts", shards=3))
    with pytest.raises(BadInput, match="shards is for layout rectangular; in layout uniform every layer of its table"):
        compile(random_contexts(10), settings=CompilerSettings(layout="uniform", shards=3))


def test_memory_is_checked_before_work_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 6000)
    with pytest.raises(BadInput, match="to compile 10 questions into a network of experts would take"):
        compile_contexts(random_contexts(10), EXPERTS, seed=0, resources=Resources())


@pytest.fixture(scope="module")
def facts() -> Built:
    task = random_next_token(examples=30, length=4, vocab=20, labels=5, rng=np.random.default_rng(3))
    return compile(task, settings=EXPERTS)


def test_built(facts: Built, tmp_path: Path) -> None:
    """As all that is built: counted, saved, reloaded, certified; the same seed gives the same network."""
    facts.save(tmp_path / "net")
    loaded = networks.load(tmp_path / "net")
    assert loaded.fingerprint == facts.network.fingerprint
    assert loaded.title == "a stock Qwen2-MoE"
    certificate = certify(loaded, facts.questions)
    assert certificate.certified
    assert certificate.method == "float32, exhaustive, by transformers' Qwen2MoeForCausalLM"
    assert facts.account.depth == 2 + 3 * facts.chosen["layers"]
    assert 0 < facts.chosen["load"] <= 1
    assert loaded.about["settings"] == asdict(EXPERTS)
    assert compile(facts.questions, settings=EXPERTS).network.fingerprint == loaded.fingerprint
    assert compile(facts.questions, settings=EXPERTS, seed=1).network.fingerprint != loaded.fingerprint
    assert sum(parameter.numel() for parameter in loaded.model.parameters()) == facts.account.dense


def test_what_was_planned_is_what_is_built(facts: Built) -> None:
    assert facts.chosen["parameters_planned"] == facts.account.dense


def test_time_is_in_proportion_to_the_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables get no larger than some size; up to two million questions they do not anyway. What that costs is small."""

    def planned(questions: int) -> StockSizes:
        return architectures.ExpertSizes.plan(8 * questions, questions, 256, 3, 0.9)

    monkeypatch.setattr(dimensions, "WIDTHS", (64, 128))  # those that are best here
    small, large = planned(2 * 10**6), planned(10**7)
    assert small.cells <= MOST_CELLS
    assert large.cells <= MOST_CELLS
    assert large.blocks > 5 * small.blocks
    monkeypatch.setattr(dimensions, "MOST_CELLS", 1 << 20)
    assert planned(2 * 10**6) == small
    free = planned(10**7)
    assert free.cells > MOST_CELLS
    assert free.parameters(256) < large.parameters(256) < 1.03 * free.parameters(256)


def test_as_many_experts_as_there_may_be() -> None:
    """Every one gets its own questions: the scores, in float32, are those of integers, and 64 apart at least."""
    sizes, at = architectures.ExpertSizes(48, (3, 3), (3, 3), 16, MOST_BLOCKS, 15, 16), StreamMap(48)
    router = sizes.router(at)
    number = np.arange(MOST_BLOCKS) - MOST_BLOCKS // 2
    some = np.arange(0, MOST_BLOCKS, 62)
    stream = np.zeros((len(some), 48))
    stream[:, ONE], stream[:, at.total] = 1.0, number[some] * UP_UNIT
    scores = torch.tensor(stream, dtype=torch.float32) @ torch.tensor(router, dtype=torch.float32).T
    assert np.array_equal(scores.numpy(), 64 * (2 * np.outer(number[some], number) - number**2))
    best = scores.topk(2)
    assert best.indices[:, 0].tolist() == some.tolist()
    assert (best.values[:, 0] - best.values[:, 1]).min() == 64


def test_too_many_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dimensions, "WIDTHS", (64,))
    with pytest.raises(BadInput, match=r"1,000,000,000 questions, .* at most 2,047 blocks .*; expected layout rectang"):
        architectures.ExpertSizes.plan(8 * 10**9, 10**9, 256, 3, 0.9)


def test_progress() -> None:
    heard: list[tuple[int, int]] = []
    compile(random_contexts(100), settings=EXPERTS, report=lambda done, total: heard.append((done, total)))
    assert heard[-1] == (3, 3)
