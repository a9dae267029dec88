"""Training steps of Madden's decoders by kernels: M decoders on the same contexts, all of which are one batch.

The products with W_U are nearly all of the work, 6Nωm operations per model. They are computed from float16 halves
(:mod:`byheart.lab.fused.decoder_kernels`), and the steps between them pass over the logits three times. A step has
fifteen kernels, or twenty if the attention is trained. On an H200, PyTorch's operations take 6.6 times as long for 64
units, and 4.7 times as long for 512 (``python benchmarks/lab_kernels.py --device cuda``).
"""

import math
from collections import ChainMap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import triton

from byheart.lab.fused import decoder_kernels as kernels
from byheart.lab.fused.tiles import Betas, tile_side
from byheart.lab.member import ANSWERS, State, Tensors
from byheart.lab.models.madden import ATTENDED, MaddenDecoder
from byheart.lab.models.parts import sinusoids

ROWS, UNITS = 64, 32
"""Number of contexts and of units per program."""
CUT = 2048
"""Number of contexts per product for the gradient of W_U: more would leave processors idle, and be less exact."""
CONTEXTS = 16
"""Number of contexts per program of the attention."""
PIECE = 128
"""Number of places of a token that one program sums."""
ENTRIES = 1024
"""Number of weights that one program updates."""
SUMS = {"SOME": 32, "TILES": 32}
"""Number of weights, and of tiles at a time, per program that sums parts."""
FINER = 2048.0
"""Factor of the second half of a gradient."""
MAX_GRADIENT = 32768.0
"""Largest absolute value of a scaled gradient."""
ALIGNMENT = 16
"""Triton reads several float16 numbers at once if the length of rows is a multiple of this."""


class DecoderStep:
    """The training step of M decoders whose weights and moments ``state`` are [M, P], without frozen tensors.

    A batch has all contexts, so a plan's places are not read. ``data`` has the counts of next tokens, and tokens and
    lengths, or z if embedding and attention are frozen.
    """

    whole_batches = True

    def __init__(
        self,
        model: MaddenDecoder,
        data: Tensors,
        state: State,
        betas: tuple[float, float],
    ) -> None:
        self.trained = ATTENDED not in data
        (self.M, P), D, m = state[0].shape, model.model_dim, model.hidden
        self.N, self.attention = len(data[ANSWERS]), 4 * (D * D + D) if self.trained else 0
        self.cuts = triton.cdiv(self.N, CUT)
        at_in = self.attention + (model.vocab * D if self.trained else 0)
        self.output = (m + 1) * model.vocab
        self.known: dict[str, Any] = {
            **dict(zip(("W", "first", "second"), state, strict=True)),
            **{"M": self.M, "P": P, "N": self.N, "n": model.length, "units": m, "vocab": model.vocab, "D": D},
            **{"at_A": model.vocab * D, "at_in": at_in, "at_U": at_in + (D + 1) * m, "output": self.output},
            **{"K": _padded(m + 1), "WIDE": _padded(model.vocab)},
            **{"ROOM": _padded(self.N, ALIGNMENT * self.cuts), "cuts": self.cuts, "TRAINED": self.trained},
            **{"FINER": FINER},
            **{"BETAS": Betas(*betas), "ROWS": ROWS, "UNITS": UNITS},
            **{"groups": triton.cdiv(m, UNITS), "ENTRIES": ENTRIES},
            **{"S": tile_side(model.length), "T": CONTEXTS, "PIECE": PIECE, "COLUMNS": tile_side(model.vocab)},
            **_counted(data[ANSWERS]),
        }
        self.known |= self._room()
        self.known["of_G"] = 2.0 ** math.floor(math.log2(MAX_GRADIENT / float(self.known["often"].max())))
        self.known |= self._before(data, model.length) if self.trained else {"z": data[ATTENDED], "by_z": 0}

    def _room(self) -> Tensors:
        """Allocate the buffers between kernels and products; entries that are never written are zero."""
        known, M, device = self.known, self.M, self.known["W"].device
        K, WIDE, ROOM, pieces = known["K"], known["WIDE"], known["ROOM"], self.M * self.cuts
        half: dict[str, tuple[int, ...]] = {"halves_H": (M, ROOM, 3 * K), "halves_W": (M, 3 * K, WIDE)}
        half |= {"high": (M, ROOM, WIDE), "low": (M, ROOM, WIDE)}
        full: dict[str, tuple[int, ...]] = {"logits": (M, ROOM, WIDE), "DH": (M, ROOM, 2 * K), "DH_low": (M, ROOM, K)}
        full |= {"DW": (pieces, 2 * K, WIDE), "DW_low": (pieces, K, WIDE)}
        full |= {"normers": (M, self.N), "losses": (M, known["found"])}
        full |= {"unit_parts": (M, triton.cdiv(self.N, ROWS), (known["D"] + 1) * known["units"])}
        buffers = {name: torch.zeros(shape, dtype=torch.float16, device=device) for name, shape in half.items()}
        buffers |= {name: torch.zeros(shape, device=device) for name, shape in full.items()}
        buffers |= {name: torch.zeros(M, dtype=torch.int32, device=device) for name in ("peaks_H", "peaks_W")}
        return buffers | {"DZ": buffers["DH"]}  # not touched where nothing before is trained

    def _before(self, data: Tensors, length: int) -> dict[str, Any]:
        """Return the inputs and the buffers of the kernels for attention and embeddings."""
        M, N, D, device = self.M, self.N, self.known["D"], self.known["W"].device
        ids, lengths = (data[name].to(torch.int32) for name in ("tokens", "lengths"))
        tables = _pieces(ids.cpu().numpy(), lengths.cpu().numpy(), self.known["vocab"])
        buffers: dict[str, Any] = {name: torch.tensor(table, device=device) for name, table in tables.items()}
        shapes: dict[str, tuple[int, ...]] = {"z": (M, N, D), "DX": (M, N, length, D)}
        shapes |= {"DZ": (M, self.known["groups"], N, D)}
        shapes |= {"attention_parts": (M, triton.cdiv(N, CONTEXTS), self.attention)}
        pieces = len(tables["piece_starts"]) - 1
        shapes |= {"of_pieces": (M, pieces, D)}
        buffers |= {name: torch.empty(shape, device=device) for name, shape in shapes.items()}
        buffers |= {"ids": ids, "lengths": lengths, "positions": sinusoids(length, D, device, torch.float32)}
        return buffers | {"pieces": pieces, "by_z": N * D}

    def train(self, plan: Tensors, results: tuple[torch.Tensor, torch.Tensor]) -> None:
        """Take the step that the plan's ``at`` names, and write losses into ``results``; there are no accuracies."""
        known = self.known | plan | {"mean_losses": results[0]}
        self._forward(known)
        self._back(known)
        _launch(kernels.means, (self.M,), known)

    def measure(self, places: torch.Tensor, members: Sequence[int]) -> None:
        """Return None: PyTorch's operations measure, so that reported results do not depend on these kernels."""

    def _forward(self, known: dict[str, Any]) -> None:
        """Compute the losses and the gradients of the logits."""
        M, N = self.M, self.N
        if self.trained:
            _launch(kernels.attended, (M, triton.cdiv(N, CONTEXTS)), known)
        tiles = triton.cdiv(N, ROWS), triton.cdiv(known["units"], UNITS)
        for peek in (True, False):
            _launch(kernels.weights, (M, triton.cdiv(self.output, ENTRIES)), known, {"PEEK": peek})
            _launch(kernels.activated, (M, *tiles), known, {"PEEK": peek})
        _multiply(known["halves_H"], known["halves_W"], known["logits"])
        _launch(kernels.chances, (N, M), known)
        few = {"ENTRIES": ROWS}
        _launch(kernels.judged, (M, triton.cdiv(known["found"], ROWS)), known, few, num_warps=1)

    def _back(self, known: dict[str, Any]) -> None:
        """Compute the gradients of all weights and update them."""
        M, K, WIDE, tiles = self.M, known["K"], known["WIDE"], triton.cdiv(self.N, ROWS)
        halves_W, high, low = known["halves_W"], known["high"], known["low"]
        _multiply(high, halves_W[:, K:].mT, known["DH"])
        _multiply(low, halves_W[:, :K].mT, known["DH_low"])
        halves_H = known["halves_H"].view(M * self.cuts, -1, 3 * K)
        high, low = (half.view(M * self.cuts, -1, WIDE) for half in (high, low))
        _multiply(halves_H[:, :, : 2 * K].mT, high, known["DW"])
        _multiply(halves_H[:, :, :K].mT, low, known["DW_low"])
        own = {"parts": known["unit_parts"], "tiles": tiles, "begin": known["at_in"]}
        own |= {"columns": known["unit_parts"].shape[-1]}
        _launch(kernels.units_back, (M, tiles, known["groups"]), known, own)
        _launch(kernels.output_back, (M, triton.cdiv(self.output, ENTRIES)), known)
        if self.trained:
            self._back_to_embeddings(known)
        _launch(kernels.sums, (M, triton.cdiv(own["columns"], SUMS["SOME"])), known, own | SUMS)

    def _back_to_embeddings(self, known: dict[str, Any]) -> None:
        M, tiles = self.M, triton.cdiv(self.N, CONTEXTS)
        own = {"parts": known["attention_parts"], "tiles": tiles, "begin": known["at_A"], "columns": self.attention}
        _launch(kernels.attended_back, (M, tiles), known, own)
        _launch(kernels.token_sums, (known["pieces"], M), known)
        _launch(kernels.embedding_back, (M, triton.cdiv(known["vocab"], CONTEXTS)), known, {"SOME": CONTEXTS})
        _launch(kernels.sums, (M, triton.cdiv(self.attention, SUMS["SOME"])), known, own | SUMS)


def _launch(kernel: Any, grid: tuple[int, ...], *named: Mapping[str, Any], num_warps: int = 4) -> None:
    """Launch a kernel with the arguments of its names; later mappings take precedence."""
    values = ChainMap(*map(dict, reversed(named)))
    kernel[grid](**{name: values[name] for name in kernel.arg_names}, num_warps=num_warps)


def _multiply(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """Multiply stacked float16 matrices, and write the float32 products to ``out``."""
    if a.is_cuda:
        torch.bmm(a, b, out_dtype=torch.float32, out=out)
    else:  # in Triton's interpreter
        torch.bmm(a.float(), b.float(), out=out)


def _padded(size: int, multiple: int = ALIGNMENT) -> int:
    """Return the smallest multiple of ``multiple`` that is at least ``size``.

    >>> _padded(17)
    32
    """
    return -(-size // multiple) * multiple


def _counted(answers: torch.Tensor) -> dict[str, Any]:
    """Return how often each context [N] occurs, and rows, tokens and values of the non-zero counts [N, ω]."""
    rows, tokens = answers.nonzero(as_tuple=True)
    return {
        "often": answers.sum(dim=-1).to(torch.float32),
        "counts": answers[rows, tokens].to(torch.float32),
        "rows": rows.to(torch.int32),
        "tokens": tokens.to(torch.int32),
        "found": len(rows),
    }


def _pieces(ids: np.ndarray, lengths: np.ndarray, vocab: int) -> dict[str, np.ndarray]:
    """Group the places of contexts [N, n] by token, divide each group into pieces, and index the pieces by token."""
    places = np.flatnonzero(np.arange(ids.shape[1]) < lengths[:, None])
    tokens = ids.ravel()[places]
    order = np.argsort(tokens, kind="stable")
    firsts = np.searchsorted(tokens[order], np.arange(vocab + 1))
    of_token = [range(start, stop, PIECE) for start, stop in pairwise(firsts)]
    buffers = {
        "token_places": places[order],
        "piece_starts": np.array([*(start for own in of_token for start in own), len(places)]),
        "token_pieces": np.cumsum([0, *map(len, of_token)]),
    }
    return {name: table.astype(np.int32) for name, table in buffers.items()}
