"""Training steps of stacked models of Mahdavi, and the measuring of their examples, by kernels."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
import triton

from byheart.lab.fused import attention_kernels as kernels
from byheart.lab.fused.tiles import Stacked, tile_side
from byheart.lab.member import ANSWERS, State, Tensors
from byheart.lab.models.mahdavi import QueryAttention
from byheart.lab.models.parts import sinusoids

ROWS = 64
"""Number of examples per tile; programs with eight warps take two tiles."""
WIDTH = 16
"""Number of columns of W_E that a program updates."""
PROGRAMS = 256
"""Number of programs that run at the same time on a GPU: with fewer, work is divided further."""
SMALL_TILES = {"num_warps": 2, "num_stages": 2}
"""Launch options for a context whose heads and tokens both fit into 32."""


class AttentionStep:
    """The training step of M models whose weights and moments ``state`` are [M, P].

    ``data`` has queries, contexts and answers, those of all members one below the other.
    """

    def __init__(self, model: QueryAttention, data: Tensors, state: State, betas: tuple[float, float]) -> None:
        self.model, self.data, self.state, self.betas = model, data, state, betas
        self.positions = sinusoids(model.length + 1, model.model_dim, state[0].device, torch.float32)
        contexts = data["contexts"]
        self.context_stride = contexts.stride(0) if model.fixed and len(contexts) > 1 else 0
        self.buffers: dict[tuple[int, bool], Tensors] = {}
        self.parts: dict[tuple[int, ...], AttentionStep] = {}
        self.side_stream = torch.cuda.Stream(state[0].device) if state[0].is_cuda else None

    def train(self, plan: Tensors, results: tuple[torch.Tensor, torch.Tensor]) -> None:
        """Take the step that the plan's ``at`` names, and write losses and accuracies into ``results`` [steps, M].

        The plan also has places [steps, M, B] of examples, sizes [steps, M, 1] and roots [steps, 1, 1] of Adam's steps.
        """
        arguments = self._arguments(plan, {"mean_losses": results[0], "mean_rights": results[1]}, train=True)
        M, H = len(self.state[0]), self.model.heads
        self._forward(arguments, train=True)
        if self.side_stream is not None:  # programs that leave most of a GPU idle run beside the others
            self.side_stream.wait_stream(torch.cuda.current_stream())
        with nullcontext() if self.side_stream is None else torch.cuda.stream(self.side_stream):
            kernels.update_output[(M,)](*arguments, ROWS=ROWS, num_warps=8)
            if not self.model.fixed:
                self._attend(kernels.attend_back, arguments)
        if self.model.fixed:
            self._attend(kernels.attend_back, arguments)
        else:
            kernels.sum_heads[(M * H,)](*arguments, ROWS=ROWS // 2)
        kernels.update_heads[(M * H,)](*arguments, ROWS=ROWS)
        if self.side_stream is not None:
            torch.cuda.current_stream().wait_stream(self.side_stream)
        kernels.update_embedding[(M, self.model.model_dim // WIDTH)](*arguments, WIDTH=WIDTH)

    def measure(self, places: torch.Tensor, members: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return losses and correctness [m, rows] of the examples at ``places`` [m, rows]; the next call overwrites."""
        if len(members) < len(self.state[0]):
            part = self._part(tuple(members))
            part.state[0].copy_(self.state[0][list(members)])
            return part.measure(places, range(len(members)))
        plan = {"places": places, "at": places.new_zeros(1), "sizes": self.state[0], "roots": self.state[0]}  # not read
        arguments = self._arguments(plan, {}, train=False)
        self._forward(arguments, train=False)
        return arguments[2].losses, arguments[2].rights

    def _forward(self, arguments: tuple[Any, ...], *, train: bool) -> None:
        """Compute the losses, and with ``train`` the gradients of the heads' averages and of Q and Z."""
        M, counts, sides = len(self.state[0]), arguments[3], arguments[4]
        options = SMALL_TILES if max(sides.HEADS, sides.N) <= ROWS // 2 else {}
        kernels.fold_heads[(M * self.model.heads,)](*arguments)
        self._attend(kernels.attend, arguments)
        if not self.model.fixed:
            kernels.read_contexts[(M, counts.groups)](*arguments, **options)
        kernels.judge[(M, triton.cdiv(counts.B, ROWS))](*arguments, ROWS=ROWS, TRAIN=train)
        if train and not self.model.fixed:
            kernels.read_contexts_back[(M, counts.groups)](*arguments, **options)

    def _attend(self, kernel: Any, arguments: tuple[Any, ...]) -> None:
        """Launch a kernel on tiles of examples; the heads of a shared context are divided among programs."""
        M, B = len(self.state[0]), arguments[3].B
        if self.model.fixed:
            kernel[(M, triton.cdiv(B, ROWS), self._shares(B))](*arguments, ROWS=ROWS)
        else:
            kernel[(M, triton.cdiv(B, 2 * ROWS), 1)](*arguments, ROWS=2 * ROWS, num_warps=8)

    def _shares(self, B: int) -> int:
        """Return the number of programs that divide the heads of a tile of examples among themselves."""
        return max(1, min(4, self.model.heads, PROGRAMS // (len(self.state[0]) * triton.cdiv(B, ROWS))))

    def _arguments(self, plan: Tensors, results: Tensors, *, train: bool) -> tuple[Any, ...]:
        """Return the arguments of all kernels; buffers for batches of one size are allocated once."""
        model, (M, P), B = self.model, self.state[0].shape, plan["places"].shape[-1]
        H, n, C = model.heads, model.length, model.labels
        N, DIM, K, HEADS, COLUMNS = map(tile_side, (n, model.model_dim, model.head_dim, H, C))
        unit, group = 4 if P % 4 == 0 else 1, 16 if M * B >= 16 * PROGRAMS else 4
        groups = triton.cdiv(B, group)
        parts = triton.cdiv(B, ROWS) * self._shares(B) if model.fixed else triton.cdiv(B, 2 * ROWS) + H
        switches = model.fixed, not self.data[ANSWERS].is_floating_point(), *self.betas
        sides = kernels.Sides._make((N, DIM, model.head_dim, K, HEADS, COLUMNS, unit, group, *switches))
        counts = kernels.Counts(M, P // unit, B, H, n, C, self.context_stride, parts, groups)
        if (B, train) not in self.buffers:
            self.buffers[B, train] = self._allocate(counts, sides, train=train)
        buffers = kernels.Buffers(**(self.buffers[B, train] | results))
        stacked = Stacked(*self.state, *(plan[name] for name in ("sizes", "roots", "at")))
        queries, contexts, answers = (self.data[name] for name in ("queries", "contexts", ANSWERS))
        batch = kernels.Batches(queries, contexts, answers, plan["places"], self.positions)
        return stacked, batch, buffers, counts, sides

    def _allocate(self, counts: Any, sides: Any, *, train: bool) -> Tensors:
        """Allocate the buffers of a step; all names that it does not use stand for one of the others."""
        M, B, H, d, N = counts.M, counts.B, counts.H, sides.DIM, sides.N
        shapes: dict[str, tuple[int, ...]] = {"losses": (M, B), "rights": (M, B), "U": (M, sides.HEADS, sides.COLUMNS)}
        shapes |= {"asked": (M, B, d), "A": (M, sides.HEADS, B), "F": (M, H, d, N), "V": (M, H, N)}
        if sides.SHARED:
            shapes |= {"X": (M, N, d), "DX": (M, H, N, d)}
        else:
            shapes |= {"T": (M, H, d, d), "VE": (M, H, d), "Q": (M, B, H, d), "Z": (M, B, H, N)}
            shapes |= {"DT": (M, H, d, d), "DF": (M, H, d, N)}
            shapes |= {"DVE": (M, counts.groups, H, d), "DV": (M, counts.groups, H, N)}
        shapes |= {"DA": (M, sides.HEADS, B), "DL": (M, B, sides.COLUMNS)}
        shapes |= {"DE": (M, counts.parts, d, d), "DB": (M, counts.parts, d)}
        used = {name: shape for name, shape in shapes.items() if train or name in kernels.BUFFERS}
        buffers = {name: self.state[0].new_empty(shape) for name, shape in used.items()}
        return dict.fromkeys(kernels.Buffers._fields, buffers["A"]) | buffers

    def _part(self, members: tuple[int, ...]) -> "AttentionStep":
        """Return a step of some of the models alone, to measure them."""
        if members not in self.parts:
            data = dict(self.data)
            if self.context_stride:
                data["contexts"] = data["contexts"][list(members)]
            flat = self.state[0].new_empty(len(members), self.state[0].shape[1])
            self.parts[members] = AttentionStep(self.model, data, (flat, flat, flat), self.betas)
        return self.parts[members]
