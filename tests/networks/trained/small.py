"""Small random trained networks that have every step among them, and inputs that they read."""

from typing import Any

import numpy as np

from byheart.networks.trained import (
    Activation,
    AffineMap,
    Inputs,
    Norm,
    PositionTable,
    StepSequence,
    TokenTable,
    TrainedAttention,
    TrainedNetwork,
)

KINDS = ["gpt", "between", "padded", "shared", "own"]
"""A GPT of two layers, tied; attention that reads another space, as Dana's; Madden's; Mahdavi's, with each context."""
VOCAB, d = 5, 4


def attention(name: str, heads: int, over: int, biases: str = "") -> TrainedAttention:
    tensors = {f"W_{part}": f"{name}.W_{part}" for part in "QKVO"} | {
        f"b_{part}": f"{name}.b_{part}" for part in biases
    }
    return TrainedAttention(heads, over, **tensors)


class Drawn(dict[str, Any]):
    """Tensors by name, drawn when they are asked for with a shape."""

    def __init__(self, seed: int, dtype: type, scale: float) -> None:
        self.rng, self.dtype, self.scale = np.random.default_rng(seed), dtype, scale

    def heads(self, name: str, read: int, inner: int, values: int, out: int, biases: str = "") -> None:
        """H·d_h = inner and H·d_v = values."""
        sizes = {"Q": inner, "K": inner, "V": values, "O": out}
        for part, size in sizes.items():
            self.draw(f"{name}.W_{part}", size, values if part == "O" else read)
            if part in biases:
                self.draw(f"{name}.b_{part}", size)

    def draw(self, name: str, *shape: int) -> None:
        self[name] = (self.scale * self.rng.standard_normal(shape)).astype(self.dtype)


def drawn(
    kind: str, *, seed: int = 0, examples: int = 5, dtype: type = np.float64, scale: float = 1.0
) -> tuple[TrainedNetwork, Inputs]:
    """No two sizes of one tensor are equal where they may differ."""
    W = Drawn(seed, dtype, scale)
    blocks = {"gpt": _gpt, "between": _between, "padded": _padded, "shared": _queries, "own": _queries}[kind](W)
    network = TrainedNetwork(blocks, W)
    if kind in ("shared", "own"):
        queries = W.rng.standard_normal((examples, 2))
        contexts = W.rng.standard_normal((3, 2) if kind == "shared" else (examples, 3, 2))
        return network, (np.broadcast_to(contexts, (examples, 3, 2)), queries)
    tokens = W.rng.integers(VOCAB, size=(examples, 3))
    if kind == "padded":
        lengths = W.rng.integers(1, 4, size=(examples, 1))
        tokens = np.where(np.arange(3) < lengths, tokens, VOCAB)
    return network, (tokens, None)


def _gpt(W: Drawn) -> tuple[StepSequence, ...]:
    W.draw("embedding.W_E", VOCAB, d)
    W.draw("positions.W_pos", 6, d)
    blocks = [StepSequence((TokenTable("embedding.W_E"), PositionTable("positions.W_pos")))]
    for i, function in enumerate(("gelu", "gelu_tanh")):
        W.heads(f"attention.{i}", d, 6, 2, d, biases="QKVO" if i else "")
        for norm in (f"norm.{i}.1", f"norm.{i}.2"):
            W.draw(f"{norm}.gain", d)
            W.draw(f"{norm}.bias", d)
        W.draw(f"mlp.{i}.W_in", 3, d)
        W.draw(f"mlp.{i}.b_in", 3)
        W.draw(f"mlp.{i}.W_out", d, 3)
        norms = [Norm(1e-5, f"norm.{i}.{k}.gain", f"norm.{i}.{k}.bias") for k in (1, 2)]
        blocks.append(StepSequence((norms[0], attention(f"attention.{i}", 2, 3, "QKVO" if i else "")), skip=True))
        units = AffineMap(f"mlp.{i}.W_in", f"mlp.{i}.b_in"), Activation(function), AffineMap(f"mlp.{i}.W_out")
        blocks.append(StepSequence((norms[1], *units), skip=True))
    return (*blocks, StepSequence((Norm(0.5), AffineMap("embedding.W_E", rows=3))))


def _between(W: Drawn) -> tuple[StepSequence, ...]:
    W.draw("embedding.W_E", VOCAB, d)
    W.draw("compression.W", 3, d)
    W.draw("decompression.W", d, 3)
    W.draw("positions.W_pos", 3, 3)
    blocks = [StepSequence((TokenTable("embedding.W_E"),))]
    for i in range(2):
        W.heads(f"attention.{i}", 3, 2, 6, 3)
        steps = AffineMap("compression.W"), PositionTable("positions.W_pos"), attention(f"attention.{i}", 2, 1)
        blocks.append(StepSequence((*steps, AffineMap("decompression.W")), skip=True))
    W.draw("unembedding.W_U", 6, d)
    return (*blocks, StepSequence((Activation("relu"), AffineMap("unembedding.W_U"))))


def _padded(W: Drawn) -> tuple[StepSequence, ...]:
    W.draw("embedding.W_E", VOCAB, d)
    W.heads("attention.0", d, 3, 5, 2, biases="QVO")
    W.draw("mlp.0.W_in", 7, 2)
    W.draw("unembedding.W_U", VOCAB, 7)
    W.draw("unembedding.b_U", VOCAB)
    behind = AffineMap("mlp.0.W_in"), Activation("tanh"), AffineMap("unembedding.W_U", "unembedding.b_U")
    first = TokenTable("embedding.W_E", padded=True), PositionTable()
    return (StepSequence((*first, attention("attention.0", 1, 4, "QVO"), *behind)),)


def _queries(W: Drawn) -> tuple[StepSequence, ...]:
    W.draw("embedding.W", 5, 2)
    W.draw("embedding.b", 5)
    W.heads("attention.0", 5, 4, 2, 3)
    W.draw("unembedding.W_U", 6, 3)
    steps = AffineMap("embedding.W", "embedding.b"), PositionTable(), attention("attention.0", 2, 5)
    return (StepSequence((*steps, Activation("gelu"), AffineMap("unembedding.W_U"))),)


def chain(*steps: Any, **weights: Any) -> TrainedNetwork:
    """Steps of one block, with weights as lists."""
    return TrainedNetwork(
        (StepSequence(steps),), {name: np.array(value, np.float64) for name, value in weights.items()}
    )
