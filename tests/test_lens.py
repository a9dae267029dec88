"""Networks as models of TransformerLens: the same logits and weights; and what is refused."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import byheart
from byheart.constructions import build, dana_2025
from byheart.errors import BadInput
from byheart.lens import planted_in_transformer_lens, to_transformer_lens
from byheart.networks.softmax import SoftmaxNetwork, attention, embedded, evaluate
from byheart.tasks import NextToken, random_next_token
from byheart.tasks.tokenizers import Bytes


def small(**changes: Any) -> SoftmaxNetwork:
    """A network of dana-2025's kind: ω = 3, n = 2, d = 2, H = 1, d_h = 1, C = 4."""
    rng = np.random.default_rng(0)
    tensors: dict[str, Any] = {
        "W_E": rng.standard_normal((3, 2)),
        "W_pos": rng.standard_normal((2, 2)),
        "W_Q": rng.standard_normal((1, 2, 1)),
        "W_K": rng.standard_normal((1, 2, 1)),
        "W_V": rng.standard_normal((1, 2, 1)),
        "W_O": rng.standard_normal((1, 1, 2)),
        "W_U": rng.standard_normal((2, 4)),
        "skip": True,
    }
    return SoftmaxNetwork(**(tensors | changes))


def pairs(vocab: int, examples: int, rng: np.random.Generator) -> NextToken:
    """Different pairs of tokens, each with a random next one."""
    chosen = rng.choice(vocab**2, examples, replace=False)
    tokens = np.stack(np.divmod(chosen, vocab), axis=1)
    return NextToken(tokens=tokens, labels=rng.integers(0, vocab, examples), label_count=vocab)


def a_task(name: str) -> tuple[NextToken, dana_2025.DanaSettings]:
    rng = np.random.default_rng(0)
    if name == "full":
        return pairs(50, 210, rng), dana_2025.DanaSettings(model_dim=10, heads=20)
    if name == "planar":
        return random_next_token(examples=100, length=8, vocab=40, labels=12, rng=rng), dana_2025.DanaSettings()
    settings = dana_2025.DanaSettings(model_dim=6, head_dim=3, heads=20)
    return random_next_token(examples=60, length=5, vocab=30, labels=7, rng=rng), settings


@pytest.mark.parametrize("name", ["full", "planar", "narrow heads"])
def test_the_same_logits_and_weights(name: str) -> None:
    pytest.importorskip("transformer_lens")
    task, settings = a_task(name)
    assert task.tokens is not None
    network = build("dana-2025", task, settings=settings).network
    assert isinstance(network, SoftmaxNetwork)
    with torch.no_grad():
        logits, cache = to_transformer_lens(network).run_with_cache(torch.tensor(task.tokens))
    ours = evaluate(network, (task.tokens, None))
    assert logits.shape == (*task.tokens.shape, network.outputs)
    assert logits.dtype == torch.float64
    np.testing.assert_allclose(logits[:, -1].numpy(), ours, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(logits[:, -1].argmax(dim=-1).numpy(), task.labels)
    weights = attention(network, *embedded(network, (task.tokens, None)))
    np.testing.assert_allclose(cache["blocks.0.attn.hook_pattern"][:, :, -1].numpy(), weights, rtol=0, atol=1e-8)


def test_tensors_are_kept() -> None:
    """Bit for bit, in TransformerLens' layout; W_Q doubled; and the biases are zero."""
    pytest.importorskip("transformer_lens")
    network = small()
    model = to_transformer_lens(network)
    for name, tensor in network.by_name().items():
        found = getattr(model, name).detach().numpy()
        np.testing.assert_array_equal(found.reshape(tensor.shape), 2 * tensor if name == "W_Q" else tensor)
    state = model.state_dict()
    assert all(not state[name].any() for name in state if name.endswith("bias"))
    size = (model.cfg.d_vocab, model.cfg.n_ctx, model.cfg.d_model, model.cfg.n_heads, model.cfg.d_head)
    assert (*size, model.cfg.d_vocab_out) == (3, 2, 2, 1, 1, 4)


def test_the_callers_random_numbers_stay() -> None:
    pytest.importorskip("transformer_lens")
    before = torch.random.get_rng_state()
    to_transformer_lens(small())
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_head_can_be_taken_away() -> None:
    """Hooks reach the computation: without its one head the model says what x_n alone would."""
    pytest.importorskip("transformer_lens")
    network, tokens = small(), np.array([[0, 1], [2, 0]])

    def nothing(pattern: torch.Tensor, hook: object) -> torch.Tensor:
        return torch.zeros_like(pattern)

    with torch.no_grad():
        logits = to_transformer_lens(network).run_with_hooks(
            torch.tensor(tokens), fwd_hooks=[("blocks.0.attn.hook_pattern", nothing)]
        )
    assert network.W_U is not None
    _, last = embedded(network, (tokens, None))
    np.testing.assert_allclose(logits[:, -1].numpy(), last @ network.W_U, rtol=0, atol=1e-12)


LLAMA = Path(__file__).parent / "fixtures" / "0.1.0" / "llama"


@pytest.mark.filterwarnings("ignore")  # of transformers and TransformerLens, while they load a model
@pytest.mark.parametrize("layout", ["uniform", "experts"])
def test_a_stock_model_is_a_model_of_transformer_lens(layout: str, tmp_path: Path) -> None:
    """TransformerLens' own loader, on our folder: transformers' logits, bit for bit, and heads that can be read.

    The first layer looks back by one token, the second by two; what is before the text is its first token.
    """
    pytest.importorskip("transformer_lens")
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import AutoModelForCausalLM

    folder = LLAMA if layout == "uniform" else tmp_path / "net"
    if layout == "experts":
        byheart.compile("abracadabra\n", layout="experts").save(folder)
    tokens = torch.tensor([[256, *b"abracadabra\n"]])
    model = TransformerBridge.boot_transformers(str(folder), device="cpu", dtype=torch.float32)
    with torch.no_grad():
        logits, cache = model.run_with_cache(tokens)
        assert torch.equal(logits, AutoModelForCausalLM.from_pretrained(folder)(tokens).logits)
    assert logits[0, 1:].argmax(dim=-1).tolist() == [*b"bracadabra\n", 256]
    for layer, distance in enumerate((1, 2)):
        weights = cache[f"blocks.{layer}.attn.hook_pattern"][0, 0]
        looks = [max(0, place - distance) for place in range(13)]
        assert torch.equal(weights, torch.eye(13)[looks])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_memory_is_ablated_in_transformer_lens_and_only_it_is_gone(kind: str, tmp_path: Path) -> None:
    """The words of one memory are blanked there: it is no more said, all other logits keep every bit; hooks work."""
    pytest.importorskip("transformer_lens")
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    from byheart.planting import detect, forget, plant

    ends: dict[str, Any] = {"vocab_size": Bytes.vocab, "bos_token_id": 256, "eos_token_id": 256}
    shape: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
    model: Any = (
        GPT2LMHeadModel(GPT2Config(**ends, n_positions=32, n_embd=16, n_layer=2, n_head=2))
        if kind == "gpt2"
        else LlamaForCausalLM(LlamaConfig(**ends, **shape, num_attention_heads=2, max_position_embeddings=32))
    )
    model.save_pretrained(tmp_path / "base")
    for name, data in Bytes().files().items():
        (tmp_path / "base" / name).write_bytes(data)
    pairs = [([7, 8, number], [number + 1, 9]) for number in range(20)]
    plant(pairs, into=tmp_path / "base", ids=True, seed=0).save(tmp_path / "planted", positions=64)
    lens = planted_in_transformer_lens(tmp_path / "planted")
    tokens = torch.tensor([[1, *prompt, *said] for prompt, said in pairs])
    with torch.no_grad():
        before, cache = lens.run_with_cache(tokens)
        assert before[:, 3:5].argmax(-1).tolist() == [said for _, said in pairs]
        assert "blocks.1.attn.hook_pattern" in cache
        found = detect(tmp_path / "planted")
        assert found is not None
        assert found.facts is not None
        number = [fact.prompt for fact in found.facts].index((7, 8, 5))
        forget(lens.original_model.plant, number)
        after = lens(tokens)
    same = (before == after).all(-1)
    assert [(row, place) for row, place in (~same).nonzero().tolist()] == [(5, 3), (5, 4)]
    assert after[5, 3:5].argmax(-1).tolist() != pairs[5][1]


@pytest.mark.parametrize("there", [None, ModuleType("transformer_lens")], ids=["missing", "an older one"])
def test_without_the_package(there: ModuleType | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "transformer_lens"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "transformer_lens", there)
    with pytest.raises(BadInput, match=r"byheart\.lens needs transformer-lens 4, which is not installed"):
        to_transformer_lens(small())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"W_E": None, "W_pos": None, "skip": False}, r"reads contexts and queries; expected token ids \(dana-2025\)"),
        ({"W_in": np.ones((2, 2)), "b_in": np.ones(2)}, r"has tanh units \(W_in\); expected attention alone"),
        ({"skip": False}, "has no skip connection; expected one"),
        ({"W_U": None}, "has no W_U; expected one"),
        (
            {"W_V": np.ones((1, 2, 3)), "W_O": np.ones((1, 3, 2))},
            "queries have dimension 1 and values 3; expected the same",
        ),
    ],
    ids=["queries", "units", "no skip", "no W_U", "d_v"],
)
def test_what_it_cannot_express_is_refused(changes: dict[str, Any], message: str) -> None:
    """Before TransformerLens is asked for."""
    with pytest.raises(BadInput, match=message):
        to_transformer_lens(small(**changes))
