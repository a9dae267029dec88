"""The kernels put together: a training step of a stack, and the measuring of rows."""

from collections.abc import Sequence

import torch
import triton

from byheart.lab.fused import ends, own, shared
from byheart.lab.member import Tensors
from byheart.lab.models.mahdavi import QueryAttention
from byheart.lab.models.parts import sinusoids

TILE = 64
"""Examples, or heads' rows of them, that a program has before it; eight warps take two tiles."""
GROUP = 16
"""Examples with contexts of their own that a program takes one after the other."""
SOME = 16
"""Columns of W_E that a program changes."""
LEAST = 16
"""Of a side of a tile."""
FOUR, EIGHT = {"num_warps": 4}, {"num_warps": 8}
FEW = {"num_warps": 2, "num_stages": 2}
"""For tiles of 32 times 32, as of the heads and tokens of an example; larger ones need FOUR."""


class Step:
    """A step of M models whose weights, moments, orders and rates lie in tensors of a stack.

    ``state``: weights and both moments [M, P]. ``data``: queries, contexts and answers, those of all members one below
    the other. A ``plan`` has places [steps, M, B] in them, sizes [steps, M, 1] and roots [steps, 1, 1] of Adam's steps,
    and ``at``, which step it is; ``told`` receives losses and accuracies [steps, M].
    """

    def __init__(
        self,
        model: QueryAttention,
        data: Tensors,
        state: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
        betas: tuple[float, float],
    ) -> None:
        self.model, self.data, self.state = model, data, state
        self.M, self.P = state[0].shape
        self.betas = {"beta1": betas[0], "beta2": betas[1]}
        device = state[0].device
        self.positions = sinusoids(model.length + 1, model.model_dim, device, torch.float32)
        unit = 4 if self.P % 4 == 0 else 1  # that rows of weights begin at a multiple of 16 bytes
        self.columns = max(LEAST, triton.next_power_of_2(model.labels))
        self.heads = max(LEAST, triton.next_power_of_2(model.heads))
        self.tokens = max(LEAST, triton.next_power_of_2(model.length))
        self.units = self.P // unit
        self.sides = {"N": self.tokens, "DIM": model.model_dim}
        self.width = {"HEAD": model.head_dim, "UNIT": unit}
        self.inner = {**self.width, "K": max(LEAST, triton.next_power_of_2(model.head_dim))}
        self.outer = {"HEADS": self.heads, "COLUMNS": self.columns}
        self.small = FEW if max(self.heads, self.tokens) <= TILE // 2 else FOUR
        self.labels = not data["answers"].is_floating_point()
        self.buffers: dict[tuple[int, bool], Tensors] = {}
        self.parts: dict[tuple[int, ...], Step] = {}

    def _room(self, rows: int, train: bool) -> Tensors:
        """Where kernels leave what the next ones read, for batches of so many rows."""
        if (rows, train) not in self.buffers:
            self.buffers[rows, train] = self._made(rows, train)
        return self.buffers[rows, train]

    def _made(self, B: int, train: bool) -> Tensors:
        M, H, d, N, model = self.M, self.model.heads, self.model.model_dim, self.tokens, self.model
        tiles = triton.cdiv(B, TILE if model.fixed else 2 * TILE)
        shapes: dict[str, tuple[int, ...]] = {"losses": (M, B), "rights": (M, B), "U": (M, self.heads, self.columns)}
        shapes |= {"A": (M, self.heads, B)}
        back: dict[str, tuple[int, ...]] = {"DA": (M, self.heads, B), "DL": (M, B, self.columns)}
        if model.fixed:
            shapes |= {"F": (M, H, d, N), "V": (M, H, N), "X": (M, N, d)}
            back |= {"asked": (M, B, d), "DX": (M, H, N, d)}
            back |= {"DE": (M, tiles, d, d), "DB": (M, tiles, d)}
        else:
            groups = triton.cdiv(B, GROUP)
            shapes |= {"T": (M, H, d, d), "R": (M, H, d, N), "VD": (M, H, d), "VS": (M, H, N)}
            shapes |= {"asked": (M, B, d), "Q": (M, B, H, d), "Z": (M, B, H, N)}
            back |= {"DVD": (M, groups, H, d), "DVS": (M, groups, H, N)}
            back |= {"DE": (M, tiles + H, d, d), "DB": (M, tiles + H, d)}
        if train:
            shapes |= back
        return {name: self.state[0].new_empty(shape) for name, shape in shapes.items()}

    def train(self, plan: Tensors, told: tuple[torch.Tensor, torch.Tensor]) -> None:
        """The step that ``at`` says."""
        B = plan["places"].shape[-1]
        room = self._room(B, True)
        (self._shared if self.model.fixed else self._own)(plan, room, B, train=True)
        (self._shared_back if self.model.fixed else self._own_back)(plan, room, B)
        model, P, M, H, d = self.model, self.units, self.M, self.model.heads, self.model.model_dim
        ends.output_back[(M,)](
            *self.state, *_in(plan, "sizes roots at"), *_in(room, "A DL losses rights"), *told,
            P, M, B, H, model.labels, *((B, 1) if model.fixed else (1, self.heads)),
            DIM=d, **self.width, **self.outer, ROWS=TILE, **self.betas, **EIGHT,
        )  # fmt: skip
        contexts, stride = self._contexts()
        passed = room["DX" if model.fixed else "DE"]
        ends.embedding_back[(M, d // SOME)](
            *self.state, *_in(plan, "sizes roots at"), contexts, *_in(room, "DE DB"), passed,
            P, M, H, model.length, room["DE"].shape[1], stride, **self.sides, SOME=SOME, UNIT=self.width["UNIT"],
            SHARED=model.fixed, **self.betas, **FOUR,
        )  # fmt: skip

    def _shared_back(self, plan: Tensors, room: Tensors, B: int) -> None:
        M, H = self.M, self.model.heads
        shared.heads_back[(M * H,)](
            *self.state, *_in(plan, "sizes roots at"), *_in(room, "X F V asked A DA DX"),
            self.units, M, B, H, self.model.length, **self.sides, **self.inner, HEADS=self.heads, ROWS=TILE,
            **self.betas, **FOUR,
        )  # fmt: skip

    def _own_back(self, plan: Tensors, room: Tensors, B: int) -> None:
        M, H, tiles, groups = self.M, self.model.heads, room["DE"].shape[1], room["DVD"].shape[1]
        own.directions_back[(M, triton.cdiv(B, 2 * TILE))](
            self.data["queries"], *_in(plan, "places at"), *_in(room, "T R Q Z DE DB"), M, B, H, tiles,
            **self.sides, ROWS=2 * TILE, **EIGHT,
        )  # fmt: skip
        own.heads_back[(M * H,)](
            *self.state, *_in(plan, "sizes roots at"), self.positions, *_in(room, "asked Q Z DVD DVS DE DB"),
            self.units, M, B, H, self.model.length, groups, tiles, **self.sides, **self.inner, ROWS=TILE // 2,
            **self.betas, **FOUR,
        )  # fmt: skip

    def measure(self, places: torch.Tensor, some: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Losses and right answers [m, rows] of the rows at places [m, rows] of m members; the next call overwrites."""
        if len(some) < self.M:
            part = self._part(tuple(some))
            part.state[0].copy_(self.state[0][list(some)])
            return part.measure(places, range(part.M))
        B = places.shape[-1]
        room = self._room(B, False)
        plan = {"places": places, "at": places.new_zeros(1)}
        (self._shared if self.model.fixed else self._own)(plan, room, B, train=False)
        return room["losses"], room["rights"]

    def _part(self, some: tuple[int, ...]) -> "Step":
        """Some of the models alone, to be measured."""
        if some not in self.parts:
            data = dict(self.data)
            if self.model.fixed and len(data["contexts"]) > 1:
                data["contexts"] = data["contexts"][list(some)]
            flat = self.state[0].new_empty(len(some), self.P)
            self.parts[some] = Step(self.model, data, (flat, flat, flat), (self.betas["beta1"], self.betas["beta2"]))
        return self.parts[some]

    def _contexts(self) -> tuple[torch.Tensor, int]:
        """The contexts, and how far a model's is from the next one's (0: all have the same)."""
        contexts = self.data["contexts"]
        return contexts, contexts.stride(0) if self.model.fixed and len(contexts) > 1 else 0

    def _shared(self, plan: Tensors, room: Tensors, B: int, *, train: bool) -> None:
        model, P, M, H, flat = self.model, self.units, self.M, self.model.heads, self.state[0]
        contexts, stride = self._contexts()
        shared.heads[(M * H,)](
            flat, contexts, self.positions, *_in(room, "F V X U"), P, H, model.length, model.labels, stride,
            **self.sides, **self.inner, **self.outer, **FOUR,
        )  # fmt: skip
        kept = _in(room, "DA DL DE DB asked") if train else [room["losses"]] * 5
        shared.examples[(M, triton.cdiv(B, TILE))](
            flat, *_in(self.data, "queries answers"), *_in(plan, "places at"), self.positions,
            *_in(room, "F V U A losses rights"), *kept, P, M, B, H, model.length, model.labels,
            **self.sides, **self.width, **self.outer, LABELS=self.labels, ROWS=TILE, TRAIN=train,
            **FOUR,
        )  # fmt: skip

    def _own(self, plan: Tensors, room: Tensors, B: int, *, train: bool) -> None:
        model, P, M, H, flat = self.model, self.units, self.M, self.model.heads, self.state[0]
        own.heads[(M * H,)](
            flat, self.positions, *_in(room, "T R VD VS U"), P, H, model.length, model.labels,
            **self.sides, **self.inner, **self.outer, **FOUR,
        )  # fmt: skip
        own.directions[(M, triton.cdiv(B, 2 * TILE))](
            flat, self.data["queries"], *_in(plan, "places at"), self.positions, *_in(room, "T R asked Q Z"),
            P, M, B, H, **self.sides, UNIT=self.width["UNIT"], ROWS=2 * TILE, **EIGHT,
        )  # fmt: skip
        kept = _in(room, "DA DL DVD DVS") if train else [room["losses"]] * 4
        own.examples[(M, triton.cdiv(B, GROUP))](
            flat, *_in(self.data, "contexts answers"), *_in(plan, "places at"),
            *_in(room, "Q Z U VD VS A losses rights"), *kept, P, M, B, H, model.length, model.labels,
            **self.sides, **self.width, **self.outer, LABELS=self.labels, GROUP=GROUP, TRAIN=train,
            **self.small,
        )  # fmt: skip


def _in(tensors: Tensors, names: str) -> list[torch.Tensor]:
    return [tensors[name] for name in names.split()]
