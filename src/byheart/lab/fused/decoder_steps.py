"""Training steps of Madden's decoders by kernels: M decoders on the same contexts, all of which are one batch.

The products with W_U are nearly all of the work, 6Nωm operations per model. They are computed from float16 halves
(:mod:`byheart.lab.fused.decoder_kernels`), and the steps between them pass over the logits three times. A step has
fifteen kernels, or twenty if the attention is trained. On an H200, PyTorch's operations take 6.6 times as long for 64
units, and 4.7 times as long for 512 (``python benchmarks/lab_kernels.py --device cuda``).
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from triton import cdiv

from byheart.lab.fused import decoder_kernels as kernels
from byheart.lab.fused.tiles import Stacked, tile_side
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

    def __init__(self, model: MaddenDecoder, data: Tensors, state: State, betas: tuple[float, float]) -> None:
        self.state, self.trained = state, ATTENDED not in data
        (M, P), N, D, m, vocab = state[0].shape, len(data[ANSWERS]), model.model_dim, model.hidden, model.vocab
        inputs = _count(data[ANSWERS])
        if self.trained:
            ids, lengths = (data[name].to(torch.int32) for name in ("tokens", "lengths"))
            inputs |= {"ids": ids, "lengths": lengths} | _pieces(ids, lengths, vocab)
            inputs["positions"] = sinusoids(model.length, D, state[0].device, torch.float32)
        else:
            inputs["z"] = data[ATTENDED]
        at_in = model.attention_parameters if self.trained else 0
        at_A, at_U, cuts = vocab * D, at_in + (D + 1) * m, cdiv(N, CUT)
        layout = (m, vocab, (m + 1) * vocab, at_A, at_in, at_U)
        K, WIDE, ROOM = _padded(m + 1), _padded(vocab), _padded(N, ALIGNMENT * cuts)
        pieces, by_z = (len(inputs["piece_starts"]) - 1, N * D) if self.trained else (0, 0)
        of_G = 2.0 ** math.floor(math.log2(MAX_GRADIENT / float(inputs["often"].max())))
        more = (cuts, cdiv(m, UNITS), pieces, len(inputs["rows"]), by_z, of_G)
        self.counts = kernels.DecoderCounts(M, P, N, model.length, *layout, K, WIDE, ROOM, *more)
        tiles = (ROWS, UNITS, ENTRIES, tile_side(vocab), PIECE)
        self.sides = kernels.DecoderSides(D, tile_side(model.length), CONTEXTS, *tiles, FINER, self.trained, *betas)
        self.buffers = kernels.DecoderBuffers(**(self._allocate() | inputs))

    def _allocate(self) -> Tensors:
        """Allocate the buffers, with zeros where no kernel writes; unused names stand for one of the others."""
        C, D, device = self.counts, self.sides.D, self.state[0].device
        M, N, K, WIDE, ROOM, products = C.M, C.N, C.K, C.WIDE, C.ROOM, C.M * C.cuts
        shapes: dict[str, tuple[int, ...]] = {"halves_H": (M, ROOM, 3 * K), "halves_W": (M, 3 * K, WIDE)}
        shapes |= {"high": (M, ROOM, WIDE), "low": (M, ROOM, WIDE), "logits": (M, ROOM, WIDE)}
        shapes |= {"DH": (M, ROOM, 2 * K), "DH_low": (M, ROOM, K)}
        shapes |= {"DW": (products, 2 * K, WIDE), "DW_low": (products, K, WIDE)}
        shapes |= {"normers": (M, N), "losses": (M, C.counted), "unit_parts": (M, cdiv(N, ROWS), (D + 1) * C.units)}
        if self.trained:
            shapes |= {"z": (M, N, D), "DX": (M, N, C.n, D), "DZ": (M, C.groups, N, D)}
            shapes |= {"attention_parts": (M, cdiv(N, CONTEXTS), C.at_in - C.at_A), "of_pieces": (M, C.pieces, D)}
        kinds = dict.fromkeys(kernels.HALVES, torch.float16) | dict.fromkeys(("peaks_H", "peaks_W"), torch.int32)
        shapes |= {"peaks_H": (M,), "peaks_W": (M,)}
        buffers = {
            name: torch.zeros(s, dtype=kinds.get(name, torch.float32), device=device) for name, s in shapes.items()
        }
        return dict.fromkeys(kernels.DecoderBuffers._fields, buffers["DH"]) | buffers

    def train(self, plan: Tensors, results: tuple[torch.Tensor, torch.Tensor]) -> None:
        """Take the step that the plan's ``at`` names, and write losses into ``results``; there are no accuracies."""
        stacked = Stacked(*self.state, *(plan[name] for name in ("sizes", "roots", "at")))
        arguments = stacked, self.buffers._replace(mean_losses=results[0]), self.counts, self.sides
        self._forward(arguments)
        self._back(arguments)
        kernels.average_losses[(self.counts.M,)](*arguments)

    def measure(self, places: torch.Tensor, members: Sequence[int]) -> None:
        """Return None: PyTorch's operations measure, so that reported results do not depend on these kernels."""

    def _forward(self, arguments: tuple[Any, ...]) -> None:
        """Compute the losses and the gradients of the logits."""
        _, buffers, counts, _ = arguments
        M, N = counts.M, counts.N
        if self.trained:
            kernels.average_contexts[(M, cdiv(N, CONTEXTS))](*arguments)
        for peek in (True, False):
            kernels.cut_weights[(M, cdiv(counts.output, ENTRIES))](*arguments, PEEK=peek)
            kernels.activate[(M, cdiv(N, ROWS), counts.groups)](*arguments, PEEK=peek)
        _multiply(buffers.halves_H, buffers.halves_W, buffers.logits)
        kernels.find_chances[(N, M)](*arguments)
        kernels.judge_counts[(M, cdiv(counts.counted, ROWS))](*arguments, num_warps=1)

    def _back(self, arguments: tuple[Any, ...]) -> None:
        """Compute the gradients of all weights and update them."""
        _, buffers, counts, _ = arguments
        M, N, K, cuts, tiles = counts.M, counts.N, counts.K, counts.cuts, cdiv(counts.N, ROWS)
        halves_H, halves_W, high, low = (getattr(buffers, name) for name in kernels.HALVES)
        _multiply(high, halves_W[:, K:].mT, buffers.DH)
        _multiply(low, halves_W[:, :K].mT, buffers.DH_low)
        halves_H, high, low = (half.view(M * cuts, -1, half.shape[-1]) for half in (halves_H, high, low))
        _multiply(halves_H[:, :, : 2 * K].mT, high, buffers.DW)
        _multiply(halves_H[:, :, :K].mT, low, buffers.DW_low)
        kernels.units_back[(M, tiles, counts.groups)](*arguments)
        kernels.update_unembedding[(M, cdiv(counts.output, ENTRIES))](*arguments)
        if self.trained:
            kernels.average_contexts_back[(M, cdiv(N, CONTEXTS))](*arguments)
            kernels.sum_pieces[(counts.pieces, M)](*arguments)
            kernels.update_tokens[(M, cdiv(counts.vocab, CONTEXTS))](*arguments)
            self._update_from_parts(arguments, buffers.attention_parts, counts.at_A)
        self._update_from_parts(arguments, buffers.unit_parts, counts.at_in)

    def _update_from_parts(self, arguments: tuple[Any, ...], parts: torch.Tensor, begin: int) -> None:
        """Update the weights from ``begin`` on by the sums of parts [M, tiles, weights]."""
        stacked, _, counts, sides = arguments
        M, tiles, weights = parts.shape
        grid = M, cdiv(weights, SUMS["SOME"])
        kernels.update_from_parts[grid](stacked, parts, counts, begin, weights, tiles, sides, **SUMS)


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


def _count(answers: torch.Tensor) -> Tensors:
    """Return how often each context [N] occurs, and rows, tokens and values of the non-zero counts [N, ω]."""
    rows, tokens = answers.nonzero(as_tuple=True)
    often, counts = (values.to(torch.float32) for values in (answers.sum(dim=-1), answers[rows, tokens]))
    return {"often": often, "counts": counts, "rows": rows.to(torch.int32), "tokens": tokens.to(torch.int32)}


def _pieces(ids: torch.Tensor, lengths: torch.Tensor, vocab: int) -> Tensors:
    """Group the places of contexts [N, n] by token, divide each group into pieces, and index the pieces by token."""
    places = np.flatnonzero(np.arange(ids.shape[1]) < lengths.cpu().numpy()[:, None])
    tokens = ids.cpu().numpy().ravel()[places]
    order = np.argsort(tokens, kind="stable")
    firsts = np.searchsorted(tokens[order], np.arange(vocab + 1))
    of_token = [range(start, stop, PIECE) for start, stop in pairwise(firsts)]
    tables = {
        "token_places": places[order],
        "piece_starts": np.array([*(start for pieces in of_token for start in pieces), len(places)]),
        "token_pieces": np.cumsum([0, *map(len, of_token)]),
    }
    return {name: torch.tensor(table.astype(np.int32), device=ids.device) for name, table in tables.items()}
