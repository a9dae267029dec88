"""What the configurations of all stock models have in common."""

from typing import Any

from byheart.compiler.stock.looking import POSITIONS, THETA
from byheart.compiler.stock.tokens import Tokens
from byheart.compiler.stock.units import HEAD


def shared(*, width: int, units: int, layers: int, tokens: Tokens) -> dict[str, Any]:
    """Arguments of every architecture's configuration.

    Attention is plain: on GPUs, PyTorch's fused kernel for float32 is not exact even where softmax is one-hot.
    """
    return {
        "vocab_size": tokens.count,
        "hidden_size": width,
        "intermediate_size": units,
        "num_hidden_layers": layers,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": HEAD,
        "hidden_act": "silu",
        "max_position_embeddings": POSITIONS,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": THETA},
        "tie_word_embeddings": True,
        "bos_token_id": tokens.first,
        "eos_token_id": tokens.end,
        "dtype": "float32",
        "attn_implementation": "eager",
    }
