"""The kernels put together: a training step of a stack, and the measuring of rows.

Everything that a kernel reads or writes has one name, the same in all of them; so a launch is told the kernel and the
grid, and finds the rest by the names of its arguments.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import triton

from byheart.lab.fused import ends, own, shared
from byheart.lab.fused.launching import EIGHT, FOUR, launch, side
from byheart.lab.member import State, Tensors
from byheart.lab.models.mahdavi import QueryAttention
from byheart.lab.models.parts import sinusoids

TILE = 64
"""Examples that a program has before it; eight warps take two tiles."""
SOME = 16
"""Columns of W_E that a program changes."""
PROGRAMS = 256
"""How many a GPU has at a time: fewer leave it idle, and their work is cut smaller."""
FEW = {"num_warps": 2, "num_stages": 2}
"""For tiles of 32 times 32, as of the heads and tokens of an example; larger ones need FOUR."""


class Step:
    """A step of M models whose weights, moments, orders and rates lie in tensors of a stack.

    ``state``: weights and both moments [M, P]. ``data``: queries, contexts and answers, those of all members one below
    the other. A ``plan`` has places [steps, M, B] in them, sizes [steps, M, 1] and roots [steps, 1, 1] of Adam's steps,
    and ``at``, which step it is; ``told`` receives losses and accuracies [steps, M].
    """

    whole = False

    def __init__(
        self,
        model: QueryAttention,
        data: Tensors,
        state: State,
        betas: tuple[float, float],
    ) -> None:
        self.model, self.data, self.state, self.betas = model, data, state, betas
        self.M, P = state[0].shape
        unit = 4 if P % 4 == 0 else 1  # that rows of weights begin at a multiple of 16 bytes
        contexts = data["contexts"]
        self.known: dict[str, Any] = {
            **dict(zip(("W", "first", "second"), state, strict=True)),
            **data,
            "positions": sinusoids(model.length + 1, model.model_dim, state[0].device, torch.float32),
            **{"M": self.M, "P": P // unit, "UNIT": unit, "H": model.heads, "n": model.length, "C": model.labels},
            "by_context": contexts.stride(0) if model.fixed and len(contexts) > 1 else 0,  # to the next model's
            **{"DIM": model.model_dim, "HEAD": model.head_dim, "K": side(model.head_dim), "SOME": SOME},
            **{"N": side(model.length), "HEADS": side(model.heads), "COLUMNS": side(model.labels)},
            **{"beta1": betas[0], "beta2": betas[1], "SHARED": model.fixed},
            "LABELS": not data["answers"].is_floating_point(),
        }
        self.few = FEW if max(self.known["HEADS"], self.known["N"]) <= TILE // 2 else FOUR
        self.rooms: dict[tuple[int, bool], dict[str, Any]] = {}
        self.parts: dict[tuple[int, ...], Step] = {}
        self.aside = torch.cuda.Stream(state[0].device) if state[0].is_cuda else None

    def train(self, plan: Tensors, told: tuple[torch.Tensor, torch.Tensor]) -> None:
        """The step that ``at`` says."""
        known = self._all(plan, train=True) | {"mean_losses": told[0], "mean_rights": told[1]}
        self._forward(known, train=True)
        M, B, H, tile = self.M, known["B"], self.model.heads, {"ROWS": TILE}
        with self._beside():
            launch(ends.output_back, (M,), known, tile, EIGHT)
            if not self.model.fixed:
                launch(own.directions_back, (M, triton.cdiv(B, 2 * TILE)), known, {"ROWS": 2 * TILE}, EIGHT)
        if self.model.fixed:
            launch(shared.examples_back, (M, triton.cdiv(B, TILE), known["shares"]), known, tile, FOUR)
            launch(shared.heads_back, (M * H,), known, tile, FOUR)
        else:
            launch(own.heads_sums, (M * H,), known, {"ROWS": TILE // 2}, FOUR)
            launch(own.heads_back, (M * H,), known, {}, FOUR)
        self._join()
        launch(ends.embedding_back, (M, self.model.model_dim // SOME), known, {}, FOUR)

    def measure(self, places: torch.Tensor, some: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Losses and right answers [m, rows] of the rows at places [m, rows] of m members; the next call overwrites."""
        if len(some) < self.M:
            part = self._part(tuple(some))
            part.state[0].copy_(self.state[0][list(some)])
            return part.measure(places, range(part.M))
        known = self._all({"places": places, "at": places.new_zeros(1)}, train=False)
        self._forward(known, train=False)
        return known["losses"], known["rights"]

    def _forward(self, known: Mapping[str, Any], *, train: bool) -> None:
        """To the losses, and when training to what these pass to the heads' averages, and examples to directions."""
        M, B, H = self.M, known["B"], self.model.heads
        tiles, tile = triton.cdiv(B, TILE), {"ROWS": TILE}
        if self.model.fixed:
            launch(shared.heads, (M * H,), known, {}, FOUR)
            launch(shared.examples, (M, tiles, known["shares"]), known, tile, FOUR)
        else:
            launch(own.heads, (M * H,), known, {}, FOUR)
            launch(own.directions, (M, triton.cdiv(B, 2 * TILE)), known, {"ROWS": 2 * TILE}, EIGHT)
            launch(own.examples, (M, known["groups"]), known, {}, self.few)
        launch(ends.outputs, (M, tiles), known, {**tile, "TRAIN": train}, FOUR)
        if train and not self.model.fixed:
            launch(own.examples_back, (M, known["groups"]), known, {}, self.few)

    def _all(self, plan: Tensors, *, train: bool) -> dict[str, Any]:
        """All that kernels ask for, by name; the room for batches of this many rows is made once."""
        B = plan["places"].shape[-1]
        if (B, train) not in self.rooms:
            self.rooms[B, train] = self._room(B, train)
        return self.known | self.rooms[B, train] | plan

    def _room(self, B: int, train: bool) -> dict[str, Any]:
        """Where kernels leave what the next ones read, and how examples are shared out among programs."""
        M, H, d, known = self.M, self.model.heads, self.model.model_dim, self.known
        N, HEADS, COLUMNS = known["N"], known["HEADS"], known["COLUMNS"]
        tiles = triton.cdiv(B, TILE)
        shares = max(1, min(4, H, PROGRAMS // (M * tiles)))
        group = 16 if M * B >= 16 * PROGRAMS else 4
        groups = triton.cdiv(B, group)
        shapes: dict[str, tuple[int, ...]] = {"losses": (M, B), "rights": (M, B), "U": (M, HEADS, COLUMNS)}
        shapes |= {"asked": (M, B, d), "A": (M, HEADS, B)}
        back: dict[str, tuple[int, ...]] = {"DA": (M, HEADS, B), "DL": (M, B, COLUMNS)}
        if self.model.fixed:
            parts = tiles * shares
            shapes |= {"F": (M, H, d, N), "V": (M, H, N), "X": (M, N, d)}
            back |= {"DX": (M, H, N, d)}
        else:
            parts = triton.cdiv(B, 2 * TILE) + H
            shapes |= {"T": (M, H, d, d), "R": (M, H, d, N), "VD": (M, H, d), "VS": (M, H, N)}
            shapes |= {"Q": (M, B, H, d), "Z": (M, B, H, N)}
            back |= {"DVD": (M, groups, H, d), "DVS": (M, groups, H, N), "DT": (M, H, d, d), "DR": (M, H, d, N)}
        back |= {"DE": (M, parts, d, d), "DB": (M, parts, d)}
        made = {name: self.state[0].new_empty(shape) for name, shape in (shapes | back if train else shapes).items()}
        if not train:
            made |= {"DA": made["A"], "DL": made["A"]}  # named, and not touched
        made.setdefault("DX", made["A"])
        by_head, by_row = (B, 1) if self.model.fixed else (1, HEADS)
        numbers = {"B": B, "part_count": parts, "shares": shares, "GROUP": group, "groups": groups}
        return made | numbers | {"by_head": by_head, "by_row": by_row}

    def _part(self, some: tuple[int, ...]) -> "Step":
        """Some of the models alone, to be measured."""
        if some not in self.parts:
            data = dict(self.data)
            if self.known["by_context"]:
                data["contexts"] = data["contexts"][list(some)]
            flat = self.state[0].new_empty(len(some), self.state[0].shape[1])
            self.parts[some] = Step(self.model, data, (flat, flat, flat), self.betas)
        return self.parts[some]

    @contextmanager
    def _beside(self) -> Iterator[None]:
        """Kernels that leave most of a GPU idle run beside what follows, up to :meth:`_join`."""
        if self.aside is None:
            yield
            return
        self.aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.aside):
            yield

    def _join(self) -> None:
        if self.aside is not None:
            torch.cuda.current_stream().wait_stream(self.aside)
