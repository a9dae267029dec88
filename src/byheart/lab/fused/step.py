"""The kernels put together: a training step of a stack, and the measuring of rows."""

import torch
import triton

from byheart.lab.fused import ends, own, shared
from byheart.lab.member import Tensors
from byheart.lab.models.mahdavi import QueryAttention
from byheart.lab.models.parts import sinusoids

ROWS = 64
"""Examples of a tile."""
BACK_ROWS = 32
EXAMPLES = 64
GROUP = 16
"""Examples with contexts of their own that a program takes one after the other."""
SOME = 16
"""Columns of W_E that a program changes."""
LEAST = 16
"""Of a side of a tile."""
TUNED = {
    "heads": {"num_warps": 4},
    "examples": {"num_warps": 4},
    "heads_back": {"num_warps": 4},
    "own_heads": {"num_warps": 4},
    "directions": {"num_warps": 4},
    "own_examples": {"num_warps": 4},
    "directions_back": {"num_warps": 4},
    "own_heads_back": {"num_warps": 4},
    "output_back": {"num_warps": 8},
    "embedding_back": {"num_warps": 4},
}


Plan = Tensors


class Step:
    """A step of M models whose weights, moments, orders and rates lie in tensors of a stack.

    ``state`` has ``flat`` and both moments [M, P]; ``plan`` places [steps, M, B], sizes [steps, M, 1], roots
    [steps, 1, 1] and ``at``, which step it is; ``told`` receives losses and accuracies [steps, M].
    """

    def __init__(
        self,
        model: QueryAttention,
        data: Plan,
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
        self.labels = not data["answers"].is_floating_point()
        self.buffers: dict[tuple[int, bool], Plan] = {}

    def _room(self, rows: int, train: bool) -> Plan:
        """Where kernels leave what the next ones read, for batches of so many rows."""
        if (rows, train) not in self.buffers:
            self.buffers[rows, train] = self._made(rows, train)
        return self.buffers[rows, train]

    def _made(self, B: int, train: bool) -> Plan:
        M, H, d, N, model = self.M, self.model.heads, self.model.model_dim, self.tokens, self.model
        tiles = triton.cdiv(B, EXAMPLES if model.fixed else ROWS)
        shapes = {"losses": (M, B), "rights": (M, B), "U": (M, self.heads, self.columns)}
        shapes |= {"A": (M, self.heads, B)}
        back = {"DA": (M, self.heads, B), "DL": (M, B, self.columns)}
        if model.fixed:
            shapes |= {"F": (M, H, d, N), "V": (M, H, N), "X": (M, N, d)}
            back |= {"asked": (M, B, d), "DX": (M, H, N, d)}
            back |= {"DE": (M, tiles, d, d), "DB": (M, tiles, d)}
        else:
            groups = triton.cdiv(B, GROUP)
            shapes |= {"T": (M, H, d, d), "R": (M, H, d, N), "VD": (M, H, d), "VS": (M, H, N)}
            shapes |= {"asked": (M, B, d), "S": (M, B, H, d), "O": (M, B, H, N)}
            back |= {"DVD": (M, groups, H, d), "DVS": (M, groups, H, N)}
            back |= {"DE": (M, tiles + H, d, d), "DB": (M, tiles + H, d)}
        if train:
            shapes |= back
        return {name: self.state[0].new_empty(shape) for name, shape in shapes.items()}

    def train(self, plan: Plan, told: tuple[torch.Tensor, torch.Tensor]) -> None:
        """The step that ``at`` says."""
        B = plan["places"].shape[-1]
        room = self._room(B, True)
        (self._shared if self.model.fixed else self._own)(plan, room, B, train=True)
        (self._shared_back if self.model.fixed else self._own_back)(plan, room, B)
        model, P, M, H, d = self.model, self.units, self.M, self.model.heads, self.model.model_dim
        ends.output_back[(M,)](
            *self.state, *_in(plan, "sizes roots at"), *_in(room, "A DL losses rights"), *told,
            P, M, B, H, model.labels, *((B, 1) if model.fixed else (1, self.heads)), DIM=d, **self.width, **self.outer, ROWS=ROWS, **self.betas,
            **TUNED["output_back"],
        )  # fmt: skip
        contexts, stride = self._contexts()
        passed = room["DX" if model.fixed else "DE"]
        ends.embedding_back[(M, d // SOME)](
            *self.state, *_in(plan, "sizes roots at"), contexts, *_in(room, "DE DB"), passed,
            P, M, H, model.length, room["DE"].shape[1], stride, **self.sides, SOME=SOME, UNIT=self.width["UNIT"],
            SHARED=model.fixed, **self.betas, **TUNED["embedding_back"],
        )  # fmt: skip

    def _shared_back(self, plan: Plan, room: Plan, B: int) -> None:
        M, H = self.M, self.model.heads
        shared.heads_back[(M * H,)](
            *self.state, *_in(plan, "sizes roots at"), *_in(room, "X F V asked A DA DX"),
            self.units, M, B, H, self.model.length, **self.sides, **self.inner, HEADS=self.heads, ROWS=ROWS,
            **self.betas, **TUNED["heads_back"],
        )  # fmt: skip

    def _own_back(self, plan: Plan, room: Plan, B: int) -> None:
        M, H, tiles, groups = self.M, self.model.heads, room["DE"].shape[1], room["DVD"].shape[1]
        own.directions_back[(M, triton.cdiv(B, ROWS))](
            self.data["queries"], *_in(plan, "places at"), *_in(room, "T R S O DE DB"), M, B, H, tiles,
            **self.sides, ROWS=ROWS, **TUNED["directions_back"],
        )  # fmt: skip
        own.heads_back[(M * H,)](
            *self.state, *_in(plan, "sizes roots at"), self.positions, *_in(room, "asked S O DVD DVS DE DB"),
            self.units, M, B, H, self.model.length, groups, tiles, **self.sides, **self.inner, ROWS=BACK_ROWS,
            **self.betas, **TUNED["own_heads_back"],
        )  # fmt: skip

    def measure(self, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Losses and right answers [M, rows] of the rows at places [M, rows]; the next call writes over them."""
        B = places.shape[-1]
        room = self._room(B, False)
        plan = {"places": places, "at": places.new_zeros(1)}
        (self._shared if self.model.fixed else self._own)(plan, room, B, train=False)
        return room["losses"], room["rights"]

    def _contexts(self) -> tuple[torch.Tensor, int]:
        """The contexts, and how far a model's is from the next one's (0: all have the same)."""
        contexts = self.data["contexts"]
        return contexts, contexts.stride(0) if self.model.fixed and len(contexts) > 1 else 0

    def _shared(self, plan: Plan, room: Plan, B: int, *, train: bool) -> None:
        model, P, M, H, flat = self.model, self.units, self.M, self.model.heads, self.state[0]
        contexts, stride = self._contexts()
        shared.heads[(M * H,)](
            flat, contexts, self.positions, *_in(room, "F V X U"), P, H, model.length, model.labels, stride,
            **self.sides, **self.inner, **self.outer, **TUNED["heads"],
        )  # fmt: skip
        kept = _in(room, "DA DL DE DB asked") if train else [room["losses"]] * 5
        shared.examples[(M, triton.cdiv(B, EXAMPLES))](
            flat, *_in(self.data, "queries answers"), *_in(plan, "places at"), self.positions,
            *_in(room, "F V U A losses rights"), *kept, P, M, B, H, model.length, model.labels,
            **self.sides, **self.width, **self.outer, LABELS=self.labels, ROWS=EXAMPLES, TRAIN=train,
            **TUNED["examples"],
        )  # fmt: skip

    def _own(self, plan: Plan, room: Plan, B: int, *, train: bool) -> None:
        model, P, M, H, flat = self.model, self.units, self.M, self.model.heads, self.state[0]
        own.heads[(M * H,)](
            flat, self.positions, *_in(room, "T R VD VS U"), P, H, model.length, model.labels,
            **self.sides, **self.inner, **self.outer, **TUNED["own_heads"],
        )  # fmt: skip
        own.directions[(M, triton.cdiv(B, ROWS))](
            flat, self.data["queries"], *_in(plan, "places at"), self.positions, *_in(room, "T R asked S O"),
            P, M, B, H, **self.sides, UNIT=self.width["UNIT"], ROWS=ROWS, **TUNED["directions"],
        )  # fmt: skip
        kept = _in(room, "DA DL DVD DVS") if train else [room["losses"]] * 4
        own.examples[(M, triton.cdiv(B, GROUP))](
            flat, *_in(self.data, "contexts answers"), *_in(plan, "places at"), *_in(room, "S O U VD VS A losses rights"),
            *kept, P, M, B, H, model.length, model.labels,
            **self.sides, **self.width, **self.outer, LABELS=self.labels, GROUP=GROUP, TRAIN=train,
            **TUNED["own_examples"],
        )  # fmt: skip


def _in(tensors: Plan, names: str) -> list[torch.Tensor]:
    return [tensors[name] for name in names.split()]
