"""The kernels put together: a training step of a stack, and the measuring of rows."""

from typing import Any

import torch
import triton

from byheart.lab.fused import ends, own, shared
from byheart.lab.models.mahdavi import QueryAttention
from byheart.lab.models.parts import sinusoids

ROWS = 64
"""Examples of a tile."""
GROUP = 16
"""Examples with contexts of their own that a program takes one after the other."""
SOME = 16
"""Columns of W_E that a program changes."""
LEAST = 16
"""Of a side of a tile."""
WARPS = {"heads": 4, "examples": 4, "heads_back": 4, "output_back": 4, "embedding_back": 4, "directions": 4, "directions_back": 4, "own_examples": 4, "own_heads": 4, "own_heads_back": 4}


class Step:
    """A step of M models whose weights, moments, orders and rates lie in tensors of a stack.

    ``state`` has ``flat`` and both moments [M, P]; ``plan`` places [steps, M, B], sizes [steps, M, 1], roots
    [steps, 1, 1] and ``at``, which step it is; ``told`` receives losses and accuracies [steps, M].
    """

    def __init__(
        self,
        model: QueryAttention,
        data: dict[str, torch.Tensor],
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
        self.inner = {"HEAD": model.head_dim, "K": max(LEAST, triton.next_power_of_2(model.head_dim)), "UNIT": unit}
        self.labels = not data["answers"].is_floating_point()
        self.buffers: dict[tuple[int, bool], dict[str, torch.Tensor]] = {}

    def _room(self, rows: int, train: bool) -> dict[str, torch.Tensor]:
        """Where kernels leave what the next ones read, for batches of so many rows."""
        if (rows, train) not in self.buffers:
            self.buffers[rows, train] = self._made(rows, train)
        return self.buffers[rows, train]

    def _made(self, B: int, train: bool) -> dict[str, torch.Tensor]:
        M, H, d, N, model = self.M, self.model.heads, self.model.model_dim, self.tokens, self.model
        tiles = triton.cdiv(B, ROWS)
        shapes = {"losses": (M, B), "rights": (M, B)}
        back = {"A": (M, self.heads, B), "DL": (M, B, self.columns)}
        if model.fixed:
            shapes |= {"F": (M, H, d, N), "V": (M, H, N), "X": (M, N, d)}
            back |= {"asked": (M, B, d), "DA": (M, self.heads, B), "DX": (M, H, N, d)}
            back |= {"DE": (M, tiles, d, d), "DB": (M, tiles, d)}
        else:
            groups = triton.cdiv(B, GROUP)
            shapes |= {"T": (M, H, d, d), "R": (M, H, d, N), "VD": (M, H, d), "VS": (M, H, N)}
            shapes |= {"asked": (M, B, d), "S": (M, B, H, d), "O": (M, B, H, N), "U": (M, self.heads, self.columns)}
            back |= {"DVD": (M, groups, H, d), "DVS": (M, groups, H, N)}
            back |= {"DE": (M, tiles + H, d, d), "DB": (M, tiles + H, d)}
        if train:
            shapes |= back
        return {name: self.state[0].new_empty(shape) for name, shape in shapes.items()}

    def train(self, plan: dict[str, torch.Tensor], told: tuple[torch.Tensor, torch.Tensor]) -> None:
        """The step that ``at`` says."""
        B = plan["places"].shape[-1]
        room = self._room(B, True)
        (self._shared if self.model.fixed else self._own)(plan, room, B, train=True)
        model, P, M, H, d = self.model, self.units, self.M, self.model.heads, self.model.model_dim
        rates = (plan["sizes"], plan["roots"], plan["at"])
        tiles = room["DE"].shape[1]
        if model.fixed:
            shared.heads_back[(M * H,)](
                *self.state, *rates, *(room[name] for name in ("X", "F", "V", "asked", "A", "DA", "DX")),
                P, M, B, H, model.length, **self.sides, **self.inner, HEADS=self.heads, ROWS=ROWS, **self.betas, num_warps=WARPS["heads_back"],
        )  # fmt: skip
        else:
            own.directions_back[(M, triton.cdiv(B, ROWS))](
                self.data["queries"], plan["places"], plan["at"],
                *(room[name] for name in ("T", "R", "S", "O", "DE", "DB")), M, B, H, tiles, **self.sides, ROWS=ROWS, num_warps=WARPS["directions_back"],
        )  # fmt: skip
            groups = room["DVD"].shape[1]
            names = ("asked", "S", "O", "DVD", "DVS", "DE", "DB")
            own.heads_back[(M * H,)](
                *self.state, *rates, self.positions, *(room[name] for name in names),
                P, M, B, H, model.length, groups, tiles, **self.sides, **self.inner, ROWS=ROWS, **self.betas, num_warps=WARPS["own_heads_back"],
        )  # fmt: skip
        outer = {"DIM": d, "HEAD": model.head_dim, "HEADS": self.heads, "COLUMNS": self.columns}
        ends.output_back[(M,)](
            *self.state, *rates, *(room[name] for name in ("A", "DL", "losses", "rights")), *told,
            P, M, B, H, model.labels, **outer, UNIT=self.inner["UNIT"], ROWS=ROWS, **self.betas, num_warps=WARPS["output_back"],
        )  # fmt: skip
        contexts, stride = self._contexts()
        ends.embedding_back[(M, d // SOME)](
            *self.state, *rates, contexts, room["DE"], room["DB"], room.get("DX", room["DE"]),
            P, M, H, model.length, tiles, stride, **self.sides, SOME=SOME, UNIT=self.inner["UNIT"],
            SHARED=model.fixed, **self.betas, num_warps=WARPS["embedding_back"],
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

    def _shared(self, plan: dict[str, torch.Tensor], room: dict[str, torch.Tensor], B: int, *, train: bool) -> None:
        model, P, M, H, flat = self.model, self.units, self.M, self.model.heads, self.state[0]
        contexts, stride = self._contexts()
        shared.heads[(M * H,)](
            flat, contexts, self.positions, room["F"], room["V"], room["X"], P, H, model.length, stride,
            **self.sides, **self.inner, num_warps=WARPS["heads"],
        )  # fmt: skip
        names = ("asked", "A", "DA", "DL", "DE", "DB")
        kept = (room[name] if train else room["losses"] for name in names)
        shared.examples[(M, triton.cdiv(B, ROWS))](
            flat, self.data["queries"], self.data["answers"], plan["places"], plan["at"], self.positions,
            room["F"], room["V"], *kept, room["losses"], room["rights"],
            P, M, B, H, model.length, model.labels, **self._outer(), ROWS=ROWS, TRAIN=train, num_warps=WARPS["examples"],
        )  # fmt: skip

    def _own(self, plan: dict[str, torch.Tensor], room: dict[str, torch.Tensor], B: int, *, train: bool) -> None:
        model, P, M, H, flat = self.model, self.units, self.M, self.model.heads, self.state[0]
        made = [room[name] for name in ("T", "R", "VD", "VS")]
        own.heads[(M * H,)](flat, self.positions, *made, P, H, model.length, **self.sides, **self.inner, num_warps=WARPS["own_heads"],
        )
        outer = self._outer()
        own.directions[(M, triton.cdiv(B, ROWS))](
            flat, self.data["queries"], plan["places"], plan["at"], self.positions,
            *(room[name] for name in ("T", "R", "asked", "S", "O", "U")), P, M, B, H, model.labels,
            **{name: value for name, value in outer.items() if name != "LABELS"}, ROWS=ROWS, num_warps=WARPS["directions"],
        )  # fmt: skip
        names = ("A", "DL", "DVD", "DVS")
        kept = (room[name] if train else room["losses"] for name in names)
        own.examples[(M, triton.cdiv(B, GROUP))](
            flat, self.data["contexts"], self.data["answers"], plan["places"], plan["at"],
            *(room[name] for name in ("S", "O", "U", "VD", "VS")), *kept, room["losses"], room["rights"],
            P, M, B, H, model.length, model.labels, **outer, GROUP=GROUP, TRAIN=train, num_warps=WARPS["own_examples"],
        )  # fmt: skip

    def _outer(self) -> dict[str, Any]:
        sides = {"HEADS": self.heads, "COLUMNS": self.columns, "LABELS": self.labels}
        return {**self.sides, "HEAD": self.inner["HEAD"], "UNIT": self.inner["UNIT"], **sides}
