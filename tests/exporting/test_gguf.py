"""Stock models as GGUF: what is in the file, what is refused, and what llama.cpp says (``make gguf``)."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byheart
from byheart.compiler.stock import architectures
from byheart.compiler.stock.units import ones
from byheart.errors import BadInput
from byheart.exporting import gguf
from byheart.networks import load
from byheart.networks.stock.stock_network import StockNetwork
from byheart.tasks.loaded_tokenizer import CONFIG_FILE, TOKENIZER_FILE, LoadedTokenizer
from byheart.tasks.tokenizers import BytePairs, Bytes

FIXTURES = Path(__file__).parents[1] / "fixtures" / "0.1.0"
PAIRS = "\tan  apple,\r\n\n   an onion; é's \n\n\tan apple  and an onion,   an\tend\n"


def llama(name: str = "llama") -> StockNetwork:
    network = load(FIXTURES / name)
    assert isinstance(network, StockNetwork)
    return network


def test_export_goes_by_the_name_of_the_file(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    assert byheart.export(FIXTURES / "llama", tmp_path / "llama.gguf") > 0
    assert (tmp_path / "llama.gguf").read_bytes()[:4] == b"GGUF"
    with pytest.raises(BadInput, match=r"expected \.gguf or \.onnx"):
        byheart.export(llama(), tmp_path / "llama.bin")


@pytest.fixture(scope="module")
def moe() -> StockNetwork:
    """A Qwen2-MoE of three experts, which it takes many more questions to need."""
    task = byheart.tasks.random_next_token(examples=300, length=4, vocab=32, labels=16, rng=np.random.default_rng(0))
    with pytest.MonkeyPatch.context() as patch:
        sizes = architectures.ExpertSizes(48, (3, 3), (3, 3), 16, 3, *architectures.dense(48, 2))
        patch.setattr(architectures.ExpertSizes, "plan", lambda *_: sizes)
        network = byheart.compile(task, layout="experts").network
    assert isinstance(network, StockNetwork)
    return network


def turned(vector: np.ndarray, angles: Sequence[float], *, halves: bool) -> np.ndarray:
    """RoPE of one position: pairs (0, 2), (1, 3) as transformers has them, or (0, 1), (2, 3) as llama.cpp has them."""
    first, second = (vector[:2], vector[2:]) if halves else (vector[::2], vector[1::2])
    cos, sin = np.cos(angles), np.sin(angles)
    parts = (first * cos - second * sin, second * cos + first * sin)
    return np.concatenate(parts) if halves else np.stack(parts, axis=1).ravel()


def test_scores_are_the_same_in_the_other_order() -> None:
    """One head of dimension 4, by hand: q at position 3 and k at position 1."""
    W_Q, W_K = np.arange(8.0).reshape(4, 2), np.arange(8.0)[::-1].reshape(4, 2)
    x, y = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    speeds = np.array([1.0, 0.1])
    assert gguf.interleaved(W_Q, heads=1)[:, 0].tolist() == [0, 4, 2, 6]
    wanted = turned(W_Q @ x, 3 * speeds, halves=True) @ turned(W_K @ y, speeds, halves=True)
    Q, K = (gguf.interleaved(W, heads=1) for W in (W_Q, W_K))
    assert turned(Q @ x, 3 * speeds, halves=False) @ turned(K @ y, speeds, halves=False) == pytest.approx(wanted)
    assert turned(W_Q @ x, 3 * speeds, halves=False) @ turned(W_K @ y, speeds, halves=False) != pytest.approx(wanted)


def test_every_tensor_is_there() -> None:
    network = llama()
    kept = gguf.tensors(network)
    assert len(kept) == len(network.weights) == 2 + 9 * network.config["num_hidden_layers"]
    assert all(tensor.dtype == np.float32 for tensor in kept.values())
    W_Q = network.weights["model.layers.3.self_attn.q_proj.weight"]
    np.testing.assert_array_equal(kept["blk.3.attn_q.weight"], W_Q[[0, 2, 1, 3]])
    others = {"token_embd": "embed_tokens", "output_norm": "norm", "blk.2.ffn_down": "layers.2.mlp.down_proj"}
    for new, old in others.items():
        np.testing.assert_array_equal(kept[f"{new}.weight"], network.weights[f"model.{old}.weight"])
    assert "output.weight" not in kept, "tied: llama.cpp takes the embedding"


def by_hand(kept: dict[str, Any], layer: int, x: np.ndarray) -> np.ndarray:
    """The feed-forward block as llama.cpp computes it, for one token: the router's softmax is not divided by its sum.

    Units that are off, or hold nothing, may be of any size: float64 keeps the rest.
    """

    def silu(z: np.ndarray) -> np.ndarray:
        return z * (z > 0)  # of multiples of 64, or below −128

    def swiglu(kind: str, number: Any = ...) -> np.ndarray:
        gate, up, down = (own[f"ffn_{part}_{kind}"][number] for part in ("gate", "up", "down"))
        return down @ (silu(gate @ x) * (up @ x))

    own = {name.removeprefix(f"blk.{layer}.").removesuffix(".weight"): W.astype(np.float64) for name, W in kept.items()}
    raised = np.exp(own["ffn_gate_inp"] @ x - (own["ffn_gate_inp"] @ x).max())
    best = int(raised.argmax())
    shared = 1 / (1 + np.exp(-own["ffn_gate_inp_shexp"] @ x))
    return swiglu("exps", best) * (raised / raised.sum())[best] + swiglu("shexp") * shared


def test_blocks_of_a_qwen2_moe_are_what_they_were(moe: StockNetwork) -> None:
    """Every layer as llama.cpp has it, with experts and a shared one, against ours: a dense block, or experts."""
    kept, config = gguf.tensors(moe), moe.config
    rng = np.random.default_rng(0)
    for layer in (0, *set(range(config["num_hidden_layers"])) - set(config["mlp_only_layers"])):
        x = rng.integers(-2, 3, config["hidden_size"]).astype(np.float64)
        x[: ones(config["hidden_size"])] = 1.0
        own = f"model.layers.{layer}.mlp"
        if layer:
            own += f".experts.{int((moe.weights[f'{own}.gate.weight'].astype(np.float64) @ x).argmax())}"
        gate, up, down = (moe.weights[f"{own}.{part}_proj.weight"].astype(float) for part in ("gate", "up", "down"))
        wanted = down @ ((gate @ x) * (gate @ x > 0) * (up @ x))
        assert wanted.any()
        np.testing.assert_allclose(by_hand(kept, layer, x), wanted, rtol=1e-12)
        kept[f"blk.{layer}.ffn_gate_inp_shexp.weight"] = np.zeros(config["hidden_size"])
        assert layer or not np.allclose(by_hand(kept, layer, x), wanted), "the control: half of the shared expert"


def test_heads_that_are_added_say_nothing(moe: StockNetwork) -> None:
    kept = gguf.tensors(moe)
    for new, old in (("attn_q", "q_proj"), ("attn_output", "o_proj")):
        W = kept[f"blk.1.{new}.weight"]
        W = W if new == "attn_q" else W.T
        own = moe.weights[f"model.layers.1.self_attn.{old}.weight"]
        np.testing.assert_array_equal(W[:4], own if new == "attn_q" else own.T)
        assert W.shape == (48, 48)
        assert not W[4:].any()
    assert kept["blk.1.attn_k.weight"].shape == (4, 48)


def test_the_head_of_a_qwen2_moe(moe: StockNetwork) -> None:
    told = gguf.head(moe)
    assert told["general.architecture"] == "qwen2moe"
    assert not any(key.startswith("llama.") for key in told)
    counted = {"attention.head_count": 12, "attention.head_count_kv": 1, "attention.key_length": 4}
    counted |= {"expert_count": 3, "expert_used_count": 1, "expert_feed_forward_length": 16}
    counted["expert_shared_feed_forward_length"] = moe.config["intermediate_size"]
    assert counted.items() <= {key.removeprefix("qwen2moe."): value for key, value in told.items()}.items()


@pytest.mark.parametrize("change", [{"num_experts_per_tok": 2}, {"head_dim": 10}], ids=str)
def test_another_qwen2_moe_is_refused(change: dict[str, int], moe: StockNetwork) -> None:
    """llama.cpp would weigh several experts otherwise; and heads must fill the width."""
    weights = dict(moe.weights)
    if "head_dim" in change:
        for name in [name for name in weights if "self_attn" in name]:
            weights[name] = np.zeros((48, 10) if "o_proj" in name else (10, 48), np.float32)
    network = replace(moe, config={**moe.config, **change}, weights=weights)
    with pytest.raises(
        BadInput, match="no model for this Qwen2-MoE; expected one that `byheart compile --layout experts`"
    ):
        gguf.check_gguf(network)


def test_the_head_of_a_text() -> None:
    told = gguf.head(llama())
    assert told["general.file_type"] == 0
    assert (told["llama.attention.key_length"], told["llama.rope.freq_base"]) == (4, 1e10)
    spoken = {key.removeprefix("tokenizer.ggml."): value for key, value in told.items() if "tokenizer" in key}
    assert (spoken["tokens"][97], spoken["tokens"][32], spoken["tokens"][256]) == ("a", "Ġ", "<|end|>")
    assert (spoken["token_type"][97], spoken["token_type"][256], len(spoken["tokens"])) == (1, 3, 257)
    assert spoken["merges"] == ["<|end|> <|end|>"], "never empty, and never used"
    assert (spoken["bos_token_id"], spoken["eos_token_id"], spoken["padding_token_id"]) == (256, 256, 256)
    assert (spoken["add_bos_token"], spoken["add_eos_token"]) == (True, False)
    assert json.loads(told["byheart.texts"]) == [{"name": "c.txt", "tokens": 12, "prompt": [97]}]
    assert told["byheart.fingerprint"] == llama().fingerprint
    assert "-ctk f32 -ctv f32 -fa off" in told["general.description"]


def test_the_head_of_a_task_has_no_words() -> None:
    told = gguf.head(llama("llama-facts"))
    assert {key: value for key, value in told.items() if "tokenizer" in key} == {"tokenizer.ggml.model": "no_vocab"}
    assert told["llama.vocab_size"] == 6


def test_a_tokenizer_that_was_loaded_is_refused() -> None:
    """Its texts would be split as GPT-2's are, and its own tokens be missing: another prompt, without a word."""
    ours = Bytes().files(begins=True)
    network = replace(llama(), files=LoadedTokenizer(ours[TOKENIZER_FILE], ours[CONFIG_FILE]).files())
    with pytest.raises(BadInput, match=r"the tokenizer was loaded; .*; expected one of Byheart's, bytes or bpe"):
        gguf.head(network)


def test_another_tokenizer_is_refused() -> None:
    network = replace(llama(), files=BytePairs(((b"a", b"b"),)).files(begins=True))
    with pytest.raises(BadInput, match="the tokenizer has 258 tokens, and the embedding 257; expected as many"):
        gguf.head(network)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "texts",
            "no model for a float Transformer; compile the same with --layout uniform or experts, or export it",
        ),
        ("folding", "llama.cpp has no model for an exact network; its entries are integers of any size"),
        ("dana-2025", "no model for a softmax network; byheart.lens"),
        ("trained", "no model for a trained network; if it is a GPT-2"),
    ],
)
def test_what_llama_cpp_cannot_run_is_refused(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=message):
        gguf.to_gguf(load(FIXTURES / name), tmp_path / "x.gguf")
    assert not list(tmp_path.iterdir())


def test_without_the_package_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(BadInput, match="writing GGUF needs gguf, which is not installed"):
        gguf.to_gguf(llama(), tmp_path / "x.gguf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["llama", "qwen2moe"])
def test_a_file_is_what_was_told(name: str, moe: StockNetwork, tmp_path: Path) -> None:
    package = pytest.importorskip("gguf", reason="the extra gguf is not installed")
    network = llama() if name == "llama" else moe
    count = 92 if name == "llama" else 3 + 14 * moe.config["num_hidden_layers"]
    assert gguf.to_gguf(network, tmp_path / "x.gguf") == count
    found = package.GGUFReader(tmp_path / "x.gguf")
    assert found.fields["general.architecture"].contents() == name
    kept = gguf.tensors(network)
    assert {tensor.name for tensor in found.tensors} == kept.keys()
    for tensor in found.tensors:
        np.testing.assert_array_equal(tensor.data, kept[tensor.name])


@pytest.mark.parametrize("what", ["tensor", "head"])
def test_what_is_not_read_back_is_not_left(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One bit of one tensor, or one number of the head, written otherwise: there is no file."""
    pytest.importorskip("gguf", reason="the extra gguf is not installed")
    write = gguf._write

    def careless(path: Path, told: gguf.Head, kept: dict[str, Any]) -> None:
        changed = {name: tensor.copy() for name, tensor in kept.items()}
        changed["blk.1.ffn_up.weight"].view(np.uint32)[2, 3] ^= what == "tensor"
        write(path, {**told, "llama.block_count": 10 + (what == "head")}, changed)

    monkeypatch.setattr(gguf, "_write", careless)
    wrong = {"tensor": r"blk\.1\.ffn_up\.weight", "head": r"llama\.block_count"}[what]
    with pytest.raises(RuntimeError, match=f"{wrong}'] were not read back as they were written"):
        gguf.to_gguf(llama(), tmp_path / "x.gguf")
    assert not list(tmp_path.iterdir())


FLOAT32 = {"type_k": 0, "type_v": 0, "flash_attn": False}


def said_by(path: Path, given: list[int], count: int, **options: Any) -> list[int] | None:
    """What llama.cpp says after ``given``, greedily; None if a logit is no number."""
    llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed: make gguf")
    model = llama_cpp.Llama(str(path), n_ctx=512, n_threads=1, verbose=False, **options)
    model.eval(given)
    said: list[int] = []
    for _ in range(count):
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(model._ctx.ctx, -1), shape=(model.n_vocab(),))
        if not np.isfinite(logits).all():
            return None
        said.append(int(logits.argmax()))
        model.eval(said[-1:])
    model.close()
    return said


def test_llama_cpp_recites(tmp_path: Path) -> None:
    """With a cache of 32 bits; with one of 16, or with flash attention, nothing is a number, which is why."""
    pytest.importorskip("gguf", reason="the extra gguf is not installed")
    gguf.to_gguf(llama(), tmp_path / "x.gguf")
    assert said_by(tmp_path / "x.gguf", [256, 97], 12, **FLOAT32) == [*b"bracadabra\n", 256]
    assert said_by(tmp_path / "x.gguf", [256, 97], 12) is None
    assert said_by(tmp_path / "x.gguf", [256, 97], 12, **FLOAT32 | {"flash_attn": True}) is None


def test_llama_cpp_answers_a_task(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="the extra gguf is not installed")
    gguf.to_gguf(llama("llama-facts"), tmp_path / "x.gguf")
    task = byheart.tasks.load(FIXTURES / "next.jsonl")
    for tokens, label in zip(task.tokens.tolist(), task.labels.tolist(), strict=True):
        assert said_by(tmp_path / "x.gguf", tokens, 1, **FLOAT32) == [label]


def test_llama_cpp_answers_through_experts(moe: StockNetwork, tmp_path: Path) -> None:
    """All questions of a task, through three experts and three tables each."""
    pytest.importorskip("gguf", reason="the extra gguf is not installed")
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed: make gguf")
    gguf.to_gguf(moe, tmp_path / "x.gguf")
    task = byheart.tasks.random_next_token(examples=300, length=4, vocab=32, labels=16, rng=np.random.default_rng(0))
    for tokens, label in zip(task.tokens.tolist()[:100], task.labels.tolist(), strict=False):
        assert said_by(tmp_path / "x.gguf", tokens, 1, **FLOAT32) == [label]


def test_llama_cpp_has_our_byte_pairs(tmp_path: Path) -> None:
    """Blanks before and after lines' ends, tabs, letters that are no ASCII: the same tokens, and the text."""
    llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed: make gguf")
    pytest.importorskip("gguf", reason="the extra gguf is not installed")
    network = byheart.compile(PAIRS, layout="uniform", tokenizer="bpe", vocab=280).network
    gguf.to_gguf(network, tmp_path / "x.gguf")
    model = llama_cpp.Llama(str(tmp_path / "x.gguf"), vocab_only=True, verbose=False)
    tokens = BytePairs.train([PAIRS.encode()], 280).encode(PAIRS.encode()).tolist()
    assert len(tokens) < len(PAIRS)
    assert model.tokenize(PAIRS.encode(), add_bos=True, special=False) == [256, *tokens]
    assert model.detokenize(tokens) == PAIRS.encode()
    prompt = network.about["texts"][0]["prompt"]
    said = said_by(tmp_path / "x.gguf", [256, *prompt], len(tokens) - len(prompt) + 1, **FLOAT32)
    assert said == [*tokens[len(prompt) :], 256]
