"""Byheart's attention-only networks as models of TransformerLens, to look inside with its tools.

    from byheart.lens import to_transformer_lens

    model = to_transformer_lens(built.network)
    logits, cache = model.run_with_cache(torch.tensor(task.tokens))
    answers = logits[:, -1].argmax(dim=-1)
    weights = cache["blocks.0.attn.hook_pattern"][:, :, -1]

The networks are those of :mod:`byheart.constructions.dana_2025`: token ids, a skip connection, one layer of attention,
an unembedding. ``logits`` are [N, n, C]; those at the last position are the network's, and ``weights`` [N, H, n] its
heads'. At the other positions the model answers for the tokens up to there, which nobody asked of it: its mask is
causal. (``hook_attn_scores`` holds the weights too, not the scores, in TransformerLens 4.3.)

Exact: every tensor, in float64. Only W_Q is doubled: TransformerLens divides all scores by a number and refuses 1, so
it divides by 2, and both steps are exact. Biases are zero. Not exact: products and sums are taken in another order than
by :func:`byheart.networks.softmax.evaluate`, so logits differ by the rounding of either. Not checked: anything about
the answers. The certificate speaks of the network, not of this copy; in float32 it would be another network.

Models with memories planted in them (:mod:`byheart.planting`) go there too, with their memory: see
:func:`planted_in_transformer_lens`.

Needs TransformerLens 4, which is imported when a network is converted, not before (extra ``lens``).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from byheart.errors import BadInput, missing_package
from byheart.networks.softmax import SoftmaxNetwork
from byheart.tasks.arrays import Floats

if TYPE_CHECKING:
    from torch import Tensor
    from transformer_lens.model_bridge import TransformerBridge

SCALE = 2.0
"""Number that the model divides its scores by, and that W_Q is multiplied with: a power of two, but not 1."""


def to_transformer_lens(network: SoftmaxNetwork) -> "TransformerBridge":
    """Convert the network to a TransformerLens model in float64, on the CPU, without a tokenizer.

    Its tensors keep their values, under the names that TransformerLens gives them: ``model.W_E`` [ω, d], ``W_pos``
    [n, d], ``W_Q`` (doubled), ``W_K``, ``W_V`` [1, H, d, d_h], ``W_O`` [1, H, d_h, d], ``W_U`` [d, C]. BadInput if
    TransformerLens has no such model, or is not installed.
    """
    tensors = _tensors(network)
    bridge = _bridge()
    import torch

    H, d, d_h = network.W_Q.shape
    model: TransformerBridge = bridge.boot_native(
        {
            "n_layers": 1,
            "n_heads": H,
            "d_model": d,
            "d_head": d_h,
            "n_ctx": len(tensors["pos_embed.weight"]),
            "d_vocab": len(tensors["embed.weight"]),
            "d_vocab_out": network.outputs,
            "attn_only": True,
            "normalization_type": None,
            "attn_scale": SCALE,
            "default_prepend_bos": False,
            "dtype": torch.float64,
            "seed": 0,  # All weights are replaced; with a seed the caller's random numbers stay as they were.
        },
        device="cpu",
        dtype=torch.float64,
        model_name="byheart",
    )
    model.load_state_dict(_state(tensors))
    return model.eval()


def planted_in_transformer_lens(folder: Path | str) -> "TransformerBridge":
    """Load a planted model into TransformerLens, in float32 on the CPU: the base with its hooks, then the memory.

    The memory is ``model.original_model.plant``, on which :func:`byheart.planting.forget` works. TransformerLens goes
    by the names in a configuration, so it is told those of the base, and given the model; nothing in the folder is run.
    The folder must have a tokenizer, which TransformerLens loads. Not exact: it may compute the base's attention in
    another order than transformers does, so that logits differ by the rounding.
    """
    from byheart.networks.planted.base import load_planted
    from byheart.networks.planted.planted_folder import read_memory

    read_memory(Path(folder))
    bridge, model = _bridge(), load_planted(Path(folder))
    base = type(model).__bases__[1].__name__
    names = {"architectures": [base], "model_type": model.config.planted_into}
    return bridge.boot_transformers(str(folder), hf_config_overrides=names, hf_model=model, device="cpu")


def _bridge() -> Any:
    """Return TransformerLens' class of models; raise BadInput if it is not installed."""
    try:
        from transformer_lens.model_bridge import TransformerBridge
    except ImportError as error:
        raise BadInput(missing_package("transformer-lens 4", "byheart.lens", "lens")) from error
    return TransformerBridge


def _tensors(network: SoftmaxNetwork) -> dict[str, Floats]:
    """Return every tensor by TransformerLens' name, in its layout; raise BadInput if it has no such model.

    >>> import numpy as np
    >>> one = np.ones((1, 1, 1))
    >>> _tensors(SoftmaxNetwork(W_Q=one, W_K=one, W_V=one, W_O=one))
    Traceback (most recent call last):
    byheart.errors.BadInput: the network reads contexts and queries; expected token ids (dana-2025): TransformerLens \
has no model with a query beside the context
    """
    if not isinstance(network, SoftmaxNetwork):
        raise BadInput(f"got {network!r}; expected a softmax network of attention alone (dana-2025)")
    if network.W_E is None or network.W_pos is None:
        why = "TransformerLens has no model with a query beside the context"
        raise BadInput(f"the network reads contexts and queries; expected token ids (dana-2025): {why}")
    if network.W_in is not None:
        why = "TransformerLens adds what they give to the stream, here they take its place"
        raise BadInput(f"the network has tanh units (W_in); expected attention alone (dana-2025): {why}")
    if not network.skip:
        raise BadInput("the network has no skip connection; expected one (dana-2025): TransformerLens always has it")
    if network.W_U is None:
        raise BadInput("the network has no W_U; expected one (dana-2025): TransformerLens gives logits")
    d_h, d_v = network.W_Q.shape[-1], network.W_V.shape[-1]
    if d_h != d_v:
        raise BadInput(f"queries have dimension {d_h} and values {d_v}; expected the same: TransformerLens has one d_h")
    return {
        "embed.weight": network.W_E,
        "pos_embed.weight": network.W_pos,
        "blocks.0.attn.q.weight": SCALE * _rows(network.W_Q),
        "blocks.0.attn.k.weight": _rows(network.W_K),
        "blocks.0.attn.v.weight": _rows(network.W_V),
        "blocks.0.attn.o.weight": network.W_O.reshape(-1, network.W_O.shape[-1]).T,
        "unembed.weight": network.W_U.T,
    }


def _rows(heads: Floats) -> Floats:
    """Reshape [H, d, d_h] to [H·d_h, d], the layout of torch.nn.Linear, head after head."""
    return heads.transpose(0, 2, 1).reshape(-1, heads.shape[1])


def _state(tensors: dict[str, Floats]) -> "dict[str, Tensor]":
    """Return the model's state: copies of the tensors, and zeros for every bias."""
    import torch

    state = {name: torch.tensor(tensor) for name, tensor in tensors.items()}
    for name in [name for name in state if "attn" in name or "unembed" in name]:
        state[name.replace("weight", "bias")] = torch.zeros(len(state[name]), dtype=torch.float64)
    return state
