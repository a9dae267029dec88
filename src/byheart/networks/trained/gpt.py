"""The blocks of a GPT, by the names that its tensors have: those of the lab and those of other people alike."""

from byheart.networks.trained.steps import (
    Activation,
    AffineMap,
    Function,
    Norm,
    PositionTable,
    StepSequence,
    TokenTable,
    TrainedAttention,
)

EMBEDDING, POSITIONS, UNEMBEDDING = "embedding.W_E", "positions.W_pos", "unembedding.W_U"


def attention(name: str, heads: int, over: int, *, biases: bool = False) -> TrainedAttention:
    """Return attention with tensors called ``name``.W_Q, and so on, and ``name``.b_Q if it has ``biases``."""
    tensors = {f"{kind}_{part}": f"{name}.{kind}_{part}" for kind in ("Wb" if biases else "W") for part in "QKVO"}
    return TrainedAttention(heads, over, **tensors)


def gpt_blocks(
    *, layers: int, heads: int, over: int, epsilon: float, function: Function, unembedding: AffineMap, biases: bool
) -> tuple[StepSequence, ...]:
    """Return the blocks of a GPT: embedding and positions, then norm, attention, norm and hidden units per layer.

    The tensors of layer i are attention.i.W_Q, …, mlp.i.W_in, b_in, W_out, b_out, and norm.i.1 and norm.i.2 with gain
    and bias each; the last norm's are norm.last.gain and norm.last.bias. ``biases`` are those of attention.
    """

    def norm(name: str) -> Norm:
        return Norm(epsilon, f"norm.{name}.gain", f"norm.{name}.bias")

    blocks = [StepSequence((TokenTable(EMBEDDING), PositionTable(POSITIONS)))]
    for i in range(layers):
        mixing = attention(f"attention.{i}", heads, over, biases=biases)
        units = AffineMap(f"mlp.{i}.W_in", f"mlp.{i}.b_in"), Activation(function)
        blocks.append(StepSequence((norm(f"{i}.1"), mixing), skip=True))
        blocks.append(StepSequence((norm(f"{i}.2"), *units, AffineMap(f"mlp.{i}.W_out", f"mlp.{i}.b_out")), skip=True))
    return (*blocks, StepSequence((norm("last"), unembedding)))
