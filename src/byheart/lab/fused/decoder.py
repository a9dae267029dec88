"""A training step of Madden's decoders in kernels: M of them on the same contexts, a batch of all of them.

The products with W_U are nearly all of the work, 6Nωm operations a model; they are made of halves
(:mod:`~byheart.lab.fused.halves`), and what is between them passes over logits three times: written, read, and written
as the halves of their gradient. Frozen models begin at what attention gives them, which is there beforehand.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import triton

from byheart.lab.fused import attended, halves, units
from byheart.lab.fused.launching import FOUR, launch, side
from byheart.lab.member import ANSWERS, State, Tensors
from byheart.lab.models.madden import ATTENDED, Decoder
from byheart.lab.models.parts import sinusoids

ROWS, UNITS = 64, 32
"""Contexts and units that a program has before it."""
CUT = 2048
"""Contexts whose gradient of W_U is one product: sums of more would leave processors idle, and be less exact."""
CONTEXTS = 16
"""That a program of attention has: a context is as large as a row of units."""
PIECE = 128
"""Places of a token that one program sums up."""
ENTRIES = 1024
SOME = {"SOME": 32, "TILES": 32}


class DecoderStep:
    """As :class:`byheart.lab.fused.step.Step`; a batch is all contexts, so a plan's places are not read.

    ``state``: weights and both moments [M, P], without the tensors that are frozen. ``data``: counts of next tokens,
    and tokens and lengths or, frozen, what attention gives.
    """

    whole = True

    def __init__(
        self,
        model: Decoder,
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
            **{"K": halves.padded(m + 1), "WIDE": halves.padded(model.vocab)},
            **{"ROOM": halves.padded(self.N, halves.MULTIPLE * self.cuts), "cuts": self.cuts, "TRAINED": self.trained},
            **{"FINER": halves.FINER},
            **{"beta1": betas[0], "beta2": betas[1], "ROWS": ROWS, "UNITS": UNITS},
            **{"groups": triton.cdiv(m, UNITS), "ENTRIES": ENTRIES},
            **{"S": side(model.length), "T": CONTEXTS, "PIECE": PIECE, "COLUMNS": side(model.vocab)},
            **_counted(data[ANSWERS]),
        }
        self.known |= self._room()
        self.known["of_G"] = 2.0 ** math.floor(math.log2(halves.LARGEST / float(self.known["often"].max())))
        self.known |= self._before(data, model.length) if self.trained else {"z": data[ATTENDED], "by_z": 0}

    def _room(self) -> Tensors:
        """Where kernels and products leave what the next ones read; what they never write is zero."""
        known, M, device = self.known, self.M, self.known["W"].device
        K, WIDE, ROOM, pieces = known["K"], known["WIDE"], known["ROOM"], self.M * self.cuts
        half: dict[str, tuple[int, ...]] = {"halves_H": (M, ROOM, 3 * K), "halves_W": (M, 3 * K, WIDE)}
        half |= {"high": (M, ROOM, WIDE), "low": (M, ROOM, WIDE)}
        full: dict[str, tuple[int, ...]] = {"logits": (M, ROOM, WIDE), "DH": (M, ROOM, 2 * K), "DH_low": (M, ROOM, K)}
        full |= {"DW": (pieces, 2 * K, WIDE), "DW_low": (pieces, K, WIDE)}
        full |= {"normers": (M, self.N), "losses": (M, known["found"])}
        full |= {"unit_parts": (M, triton.cdiv(self.N, ROWS), (known["D"] + 1) * known["units"])}
        made = {name: torch.zeros(shape, dtype=torch.float16, device=device) for name, shape in half.items()}
        made |= {name: torch.zeros(shape, device=device) for name, shape in full.items()}
        made |= {name: torch.zeros(M, dtype=torch.int32, device=device) for name in ("peaks_H", "peaks_W")}
        return made | {"DZ": made["DH"]}  # not touched where nothing before is trained

    def _before(self, data: Tensors, length: int) -> dict[str, Any]:
        """What kernels of attention and embeddings read, and their room."""
        M, N, D, device = self.M, self.N, self.known["D"], self.known["W"].device
        ids, lengths = (data[name].to(torch.int32) for name in ("tokens", "lengths"))
        tables = _pieces(ids.cpu().numpy(), lengths.cpu().numpy(), self.known["vocab"])
        made: dict[str, Any] = {name: torch.tensor(table, device=device) for name, table in tables.items()}
        shapes: dict[str, tuple[int, ...]] = {"z": (M, N, D), "DX": (M, N, length, D)}
        shapes |= {"DZ": (M, self.known["groups"], N, D)}
        shapes |= {"attention_parts": (M, triton.cdiv(N, CONTEXTS), self.attention)}
        pieces = len(tables["piece_starts"]) - 1
        shapes |= {"of_pieces": (M, pieces, D)}
        made |= {name: torch.empty(shape, device=device) for name, shape in shapes.items()}
        made |= {"ids": ids, "lengths": lengths, "positions": sinusoids(length, D, device, torch.float32)}
        return made | {"pieces": pieces, "by_z": N * D}

    def train(self, plan: Tensors, told: tuple[torch.Tensor, torch.Tensor]) -> None:
        """The step that ``at`` says; accuracies are not told."""
        known = self.known | plan | {"mean_losses": told[0]}
        self._forward(known)
        self._back(known)
        launch(units.means, (self.M,), known, {}, FOUR)

    def measure(self, places: torch.Tensor, some: Sequence[int]) -> None:
        """Left to the plain operations: what is told of a model at the end does not depend on these kernels."""

    def _forward(self, known: dict[str, Any]) -> None:
        """To the losses, and the gradient by the logits."""
        M, N = self.M, self.N
        if self.trained:
            launch(attended.attended, (M, triton.cdiv(N, CONTEXTS)), known, {}, FOUR)
        tiles = triton.cdiv(N, ROWS), triton.cdiv(known["units"], UNITS)
        for peek in (True, False):
            launch(halves.weights, (M, triton.cdiv(self.output, ENTRIES)), known, {"PEEK": peek}, FOUR)
            launch(units.activated, (M, *tiles), known, {"PEEK": peek}, FOUR)
        halves.products(known["halves_H"], known["halves_W"], known["logits"])
        launch(units.chances, (N, M), known, {}, FOUR)
        few = {"ENTRIES": ROWS}
        launch(units.judged, (M, triton.cdiv(known["found"], ROWS)), known, few, {"num_warps": 1})

    def _back(self, known: dict[str, Any]) -> None:
        """From there to all weights, and Adam for them."""
        M, K, WIDE, tiles = self.M, known["K"], known["WIDE"], triton.cdiv(self.N, ROWS)
        halves_W, high, low = known["halves_W"], known["high"], known["low"]
        halves.products(high, halves_W[:, K:].mT, known["DH"])
        halves.products(low, halves_W[:, :K].mT, known["DH_low"])
        halves_H = known["halves_H"].view(M * self.cuts, -1, 3 * K)
        high, low = (half.view(M * self.cuts, -1, WIDE) for half in (high, low))
        halves.products(halves_H[:, :, : 2 * K].mT, high, known["DW"])
        halves.products(halves_H[:, :, :K].mT, low, known["DW_low"])
        own = {"parts": known["unit_parts"], "tiles": tiles, "begin": known["at_in"]}
        own |= {"columns": known["unit_parts"].shape[-1]}
        launch(units.units_back, (M, tiles, known["groups"]), known, own, FOUR)
        launch(units.output_back, (M, triton.cdiv(self.output, ENTRIES)), known, {}, FOUR)
        if self.trained:
            self._back_to_embeddings(known)
        launch(units.sums, (M, triton.cdiv(own["columns"], SOME["SOME"])), known, own | SOME, FOUR)

    def _back_to_embeddings(self, known: dict[str, Any]) -> None:
        M, tiles = self.M, triton.cdiv(self.N, CONTEXTS)
        own = {"parts": known["attention_parts"], "tiles": tiles, "begin": known["at_A"], "columns": self.attention}
        launch(attended.attended_back, (M, tiles), known, own, FOUR)
        launch(attended.token_sums, (known["pieces"], M), known, {}, FOUR)
        some = {"SOME": CONTEXTS}
        launch(attended.embedding_back, (M, triton.cdiv(known["vocab"], CONTEXTS)), known, some, FOUR)
        launch(units.sums, (M, triton.cdiv(self.attention, SOME["SOME"])), known, own | SOME, FOUR)


def _counted(answers: torch.Tensor) -> dict[str, Any]:
    """How often each context [N] occurs; and counts [N, ω] that are not zero: rows, tokens, how many there are."""
    rows, tokens = answers.nonzero(as_tuple=True)
    return {
        "often": answers.sum(dim=-1).to(torch.float32),
        "counts": answers[rows, tokens].to(torch.float32),
        "rows": rows.to(torch.int32),
        "tokens": tokens.to(torch.int32),
        "found": len(rows),
    }


def _pieces(ids: np.ndarray, lengths: np.ndarray, vocab: int) -> dict[str, np.ndarray]:
    """All places of contexts [N, n], those of a token together, cut into pieces; where a token's pieces begin."""
    places = np.flatnonzero(np.arange(ids.shape[1]) < lengths[:, None])
    tokens = ids.ravel()[places]
    order = np.argsort(tokens, kind="stable")
    firsts = np.searchsorted(tokens[order], np.arange(vocab + 1))
    of_token = [range(start, stop, PIECE) for start, stop in pairwise(firsts)]
    made = {
        "token_places": places[order],
        "piece_starts": np.array([*(start for own in of_token for start in own), len(places)]),
        "token_pieces": np.cumsum([0, *map(len, of_token)]),
    }
    return {name: table.astype(np.int32) for name, table in made.items()}
