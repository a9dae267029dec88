"""Stacks: members of one shape whose tensors have a leading model axis, so that one step trains all of them.

The trained weights of M members are one matrix [M, P], and the tensors that the architecture reads are views of it. So
are the gradients and Adam's moments. A step of Adam is a few operations on matrices, with one learning rate per member
(:mod:`byheart.lab.adam`). On CUDA a whole step (cut the batch, outputs, gradients, Adam) is one CUDA graph. Values that
differ between steps (rows of examples, rates) are read from tensors that hold a block of steps.

On CUDA every stack has its own stream, and :meth:`Stack.start` returns before its steps are done. Stacks that
:func:`byheart.lab.ensemble.train` starts one after the other therefore run side by side.

Members may have different numbers of examples (:mod:`byheart.lab.examples`). If a batch consists of all examples of
each member, it is cut once, and members with the same examples share it. First weights come from the members' own
generators, and orders of examples from :mod:`byheart.lab.examples`.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np
import torch

from byheart.errors import BadInput
from byheart.lab.adam import adam_, learning_rates, root_corrections, step_sizes
from byheart.lab.examples import StackedExamples, placed, shuffles
from byheart.lab.fused import step_for
from byheart.lab.losses import Counted, losses, rights
from byheart.lab.member import ANSWERS, Member, MemberArchitecture, State, Tensors

PLACES_PER_BLOCK = 1 << 24
"""Largest number of rows of examples whose order is drawn ahead of the steps."""
STEPS_PER_BLOCK = 512
"""Largest number of steps that are prepared together."""
ROWS_MEASURED_AT_ONCE = 1 << 10
"""Number of rows per member that are measured at once; a fused step measures four times as many."""
WARM_UP_STEPS = 3
"""Number of steps before a graph is recorded, so that lazy initialization is not part of the graph."""


Shapes = dict[str, tuple[int, ...]]


def tensor_shapes(architecture: MemberArchitecture, without: Collection[str] = ()) -> Shapes:
    """Return the shapes of an architecture's tensors, in the order in which a matrix of weights has them."""
    tensors = architecture.init(torch.Generator()).items()
    return {name: tuple(tensor.shape) for name, tensor in tensors if name not in without}


def first_weights(member: Member) -> Tensors:
    """Return a member's first weights, float64, drawn with its seed or replaced by ``initial``."""
    first = member.architecture.init(torch.Generator().manual_seed(member.seed))
    for name in member.frozen:
        if name not in first:
            raise BadInput(f"frozen has {name!r}; expected tensors of {', '.join(first)}")
    for name, tensor in (member.initial or {}).items():
        if name not in first or first[name].shape != tensor.shape:
            shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in first.items())
            raise BadInput(f"initial has {name!r} {list(tensor.shape)}; expected tensors of {shapes}")
        first[name] = tensor.to("cpu", torch.float64)
    return first


def views(matrix: torch.Tensor, shapes: Mapping[str, tuple[int, ...]]) -> Tensors:
    """Return views of the tensors [M, …] in a matrix [M, P].

    >>> {name: view.shape for name, view in views(torch.zeros(2, 7), {"W": (2, 3), "b": (1,)}).items()}
    {'W': torch.Size([2, 2, 3]), 'b': torch.Size([2, 1])}
    """
    tensors, start = {}, 0
    for name, shape in shapes.items():
        stop = start + math.prod(shape)
        tensors[name] = matrix.detach()[:, start:stop].view(len(matrix), *shape)
        start = stop
    return tensors


class Stack:
    """M members whose tensors have the same shapes, and their training.

    ``architecture`` is the one that is computed: that of all members, or a larger one that holds theirs.
    """

    def __init__(
        self,
        members: Sequence[Member],
        architecture: MemberArchitecture,
        device: torch.device,
        dtype: torch.dtype,
        *,
        graph: bool,
    ) -> None:
        self.members, self.architecture = list(members), architecture
        self.device, self.dtype, self.graph = device, dtype, graph and device.type == "cuda"
        self.training = members[0].training
        self.step = self.begun = 0
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        with self._on_stream():
            firsts = [first_weights(member) for member in members]
            self.small = [{name: tensor.shape for name, tensor in first.items()} for first in firsts]
            stacked = {}
            for name, shape in tensor_shapes(architecture).items():
                padded = torch.zeros(len(members), *shape, dtype=torch.float64)
                for corner, first in zip(padded, firsts, strict=True):
                    corner[tuple(slice(size) for size in first[name].shape)] = first[name]
                stacked[name] = padded.to(device, dtype)
            frozen = members[0].frozen  # the same for all members, like batch, loss, betas and largest_norm
            self.shapes = tensor_shapes(architecture, without=frozen)
            if not self.shapes:
                raise BadInput("all tensors are frozen; expected at least one to train")
            self.flat = torch.cat([stacked[name].flatten(1) for name in self.shapes], dim=1)
            self.frozen = {name: stacked[name] for name in frozen}
            self.moments = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
            self.rows = self.measured = StackedExamples([member.examples for member in members], device, dtype)
            if any(member.measured_on is not None for member in members):
                self.measured = StackedExamples([member.measured for member in members], device, dtype)
            self._set_up()

    def _on_stream(self) -> AbstractContextManager[object]:
        """Return a context in which operations run on the stack's own stream."""
        return nullcontext() if self.stream is None else torch.cuda.stream(self.stream)

    def _set_up(self) -> None:
        """Derive everything that follows from the members and the matrices of their weights."""
        members, device, dtype, training = self.members, self.device, self.dtype, self.training
        self.constants = {name: self._constant(name) for name in members[0].constants}
        self.weights = {name: view.requires_grad_() for name, view in views(self.flat, self.shapes).items()}
        self.gradients = torch.empty_like(self.flat)
        self.at = torch.zeros(1, dtype=torch.int64, device=device)
        data, batch = self.rows.tensors | self.constants, training.batch
        counts = {member.count for member in members}
        self.fused = step_for(self.architecture, training, data, (self.flat, *self.moments))
        self.works: dict[bool, Callable[[], object]] = {}
        self.orders: dict[int, tuple[range, torch.Tensor]] = {}
        # The order of examples does not matter in a sum over all of them.
        is_whole = counts == {batch} and self.fused is None
        self.whole = self.rows.whole(batch) if is_whole else None
        answers = None if self.whole is None else self.whole[ANSWERS]
        has_counts = answers is not None and answers.is_floating_point() and answers.dim() == 3
        is_sum = training.loss == "summed-cross-entropy"
        self.counted = Counted(answers) if answers is not None and has_counts and is_sum else None
        self.alike: dict[int, tuple[list[int], torch.Tensor]] = {}  # seeds and indices of members, by their examples
        for count in counts if not is_whole else ():
            indices = [i for i, member in enumerate(members) if member.count == count]
            self.alike[count] = [members[i].seed for i in indices], torch.tensor(indices, device=device)
        # A block of steps: rows of examples, Adam's factors, losses and accuracies.
        M, places = len(members), 0 if is_whole else batch
        self.block = max(1, min(STEPS_PER_BLOCK, PLACES_PER_BLOCK // (M * max(1, places))))
        self.places = torch.zeros(self.block, M, places, dtype=torch.int64, device=device)
        self.sizes = torch.zeros(self.block, M, 1, dtype=dtype, device=device)
        self.roots = torch.ones(self.block, 1, 1, dtype=dtype, device=device)
        self.losses = torch.zeros(self.block, M, dtype=dtype, device=device)
        self.rights = torch.zeros(self.block, M, dtype=dtype, device=device)

    def _constant(self, name: str) -> torch.Tensor:
        """Return a constant [M, …] of all members, or [1, …] if they share it."""
        values = [member.constants[name] for member in self.members]
        if all(value is values[0] for value in values):
            values = values[:1]
        return torch.stack([placed(value, self.device, self.dtype) for value in values])

    def keep(self, indices: Sequence[int]) -> None:
        """Keep only the members at these indices."""
        with self._on_stream():
            index = torch.tensor(indices, device=self.device)
            self.members = [self.members[i] for i in indices]
            self.small = [self.small[i] for i in indices]
            self.flat = self.flat.index_select(0, index)
            self.frozen = {name: tensor.index_select(0, index) for name, tensor in self.frozen.items()}
            self.moments = self.moments[0].index_select(0, index), self.moments[1].index_select(0, index)
            for rows in {id(rows): rows for rows in (self.rows, self.measured)}.values():
                rows.keep(index)
            self.works = {}  # graphs hold memory
            self._set_up()

    def go_on(self, step: int, matrices: Sequence[torch.Tensor]) -> None:
        """Continue after ``step`` steps from weights and both moments, as :meth:`matrices` returned them.

        Nothing else is needed, because orders and learning rates are functions of the step.
        """
        self.step = step
        with self._on_stream(), torch.no_grad():
            for matrix, stored in zip((self.flat, *self.moments), matrices, strict=True):
                matrix.copy_(stored)

    def matrices(self) -> State:
        """Return current weights and both moments [M, P] on the CPU, without a copy if they are there already."""
        with self._on_stream():
            flat, first, second = (matrix.cpu() for matrix in (self.flat, *self.moments))
        return flat, first, second

    def advance(self, steps: int, *, measure: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Take steps. Return losses of their batches, and with ``measure`` accuracies, [steps, M] on the CPU."""
        parts = []
        while steps > 0:
            steps -= self.start(steps, measure=measure)
            parts.append(self.finish())
        all_losses, all_rights = (torch.cat(column) for column in zip(*parts, strict=True))
        return all_losses, all_rights if measure else None

    def start(self, steps: int, *, measure: bool = False) -> int:
        """Start up to ``steps`` steps, at most a block, and return their number. On CUDA they run asynchronously."""
        self.begun = min(steps, self.block)
        with self._on_stream():
            self._prepare(self.begun)
            work = self._work(measure)
            for _ in range(self.begun):
                work()
        return self.begun

    def finish(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Wait for the started steps, and return losses and accuracies (if measured), [steps, M] on the CPU."""
        done, self.begun = self.begun, 0
        self.step += done
        with self._on_stream():
            return self.losses[:done].cpu(), self.rights[:done].cpu()

    @torch.no_grad()
    def measure(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return mean loss and accuracy of every member over its measured examples, float64 [M] each, on the CPU."""
        with self._on_stream():
            sums = torch.zeros(2, len(self.members), dtype=torch.float64, device=self.device)
            counts = self.measured.counts.tolist()
            at_once = ROWS_MEASURED_AT_ONCE * (1 if self.fused is None else 4)
            for start in range(0, max(counts), at_once):
                some = [i for i, count in enumerate(counts) if count > start]
                sums[:, some] += self._measured(some, start, at_once)
            loss, right = (sums / self.measured.counts).cpu()
        return loss, right

    def _measured(self, some: list[int], start: int, at_once: int) -> torch.Tensor:
        """Return sums of losses and right answers over the next rows of members ``some``, float64 [2, m]."""
        counts, starts = self.measured.counts[some, None], self.measured.starts[some, None]
        stop = min(start + at_once, int(counts.max()))
        rows = torch.arange(start, stop, device=self.device)
        places = starts + torch.minimum(rows, counts - 1)
        if self.fused is not None and self.measured is self.rows:
            pair = self.fused.measure(places, some)
        else:
            batch, weights, constants = self.measured.cut(places), self.weights | self.frozen, self.constants
            if len(some) < len(self.members):
                weights = {name: tensor[some] for name, tensor in weights.items()}
                constants = {name: tensor[some] if len(tensor) > 1 else tensor for name, tensor in constants.items()}
            outputs, answers = self.architecture.outputs(weights, batch | constants), batch[ANSWERS]
            pair = losses(outputs, answers, self.training.loss), rights(outputs, answers, self.training.loss)
        return torch.stack([torch.where(rows < counts, values.double(), 0).sum(dim=1) for values in pair])

    def weights_of(self, index: int) -> Tensors:
        """Return the weights of one member on the CPU, in the shapes of its own architecture."""
        with self._on_stream():
            return {
                name: tensor[index][tuple(slice(size) for size in self.small[index][name])].detach().cpu().clone()
                for name, tensor in (self.weights | self.frozen).items()
            }

    def _prepare(self, block: int) -> None:
        """Write the rows of examples and Adam's factors for the next steps."""
        steps = np.arange(self.step, self.step + block, dtype=np.float64)
        rates = np.stack([learning_rates(m.training, m.count, steps) for m in self.members], axis=1)
        sizes = step_sizes(rates, steps[:, None], self.training.betas[0])
        self.sizes[:block, :, 0] = torch.from_numpy(sizes).to(self.device, self.dtype)
        roots = root_corrections(steps, self.training.betas[1])
        self.roots[:block, 0, 0] = torch.from_numpy(roots).to(self.device, self.dtype)
        for count, (seeds, index) in self.alike.items():
            places = self._stream(count, seeds, block) + self.rows.starts.index_select(0, index)[:, None]
            self.places[:block].index_copy_(1, index, places.view(len(seeds), block, -1).transpose(0, 1))
        self.at.zero_()

    def _stream(self, count: int, seeds: list[int], block: int) -> torch.Tensor:
        """Return the next examples of members that have ``count`` of them, int64 [m, block · B], epoch after epoch."""
        if count == self.training.batch:  # the order does not matter in a sum
            return torch.arange(count, device=self.device).repeat(len(seeds), block)
        start, stop = (step * self.training.batch for step in (self.step, self.step + block))
        first, last = start // count, (stop - 1) // count
        epochs, order = self.orders.get(count, (range(0), None))
        if order is None or first not in epochs or last not in epochs:
            epochs = range(first, last + 1)
            order = shuffles(seeds, epochs, count, self.device)
            self.orders[count] = epochs, order
        return order[:, start - epochs.start * count : stop - epochs.start * count]

    def _work(self, measure: bool) -> Callable[[], object]:
        """Return a function that takes one step, as a graph if the device has graphs."""
        if measure not in self.works:
            self.works[measure] = self._recorded(measure) if self.graph else partial(self._do, measure)
        return self.works[measure]

    def _recorded(self, measure: bool) -> Callable[[], object]:
        state = (self.flat, *self.moments, self.at)
        before = [tensor.clone() for tensor in state]
        with torch.cuda.device(self.device):
            for _ in range(WARM_UP_STEPS):
                self.at.zero_()
                self._do(measure)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream):
                self._do(measure)
        with torch.no_grad():
            for tensor, old in zip(state, before, strict=True):
                tensor.copy_(old)
        return graph.replay

    def _do(self, measure: bool) -> None:
        """Take one step of all members."""
        if self.fused is not None:
            plan = {"places": self.places, "sizes": self.sizes, "roots": self.roots, "at": self.at}
            self.fused.train(plan, (self.losses, self.rights))
            self.at += 1
            return
        batch = self.rows.cut(self.places.index_select(0, self.at)[0]) if self.whole is None else self.whole
        outputs = self.architecture.outputs(self.weights | self.frozen, batch | self.constants)
        if self.counted is not None:
            (mean, by_outputs), aim = self.counted(outputs.detach()), outputs
        else:
            values = losses(outputs, batch[ANSWERS], self.training.loss)
            mean, by_outputs = values.mean(dim=1), None
            aim = (values if self.training.loss == "summed-cross-entropy" else mean).sum()
        weights = list(self.weights.values())
        gradients = torch.autograd.grad(aim, weights, grad_outputs=by_outputs, materialize_grads=True)
        with torch.no_grad():
            torch.cat([gradient.flatten(1) for gradient in gradients], dim=1, out=self.gradients)
            if self.training.largest_norm is not None:
                norms = self.gradients.norm(dim=1, keepdim=True)
                self.gradients.mul_((self.training.largest_norm / norms).clamp(max=1.0))
            factors = self.sizes.index_select(0, self.at)[0], self.roots.index_select(0, self.at)[0]
            adam_(self.flat, self.gradients, self.moments, factors, self.training.betas)
            self.losses.index_copy_(0, self.at, mean[None])
            if measure:
                right = rights(outputs, batch[ANSWERS], self.training.loss).mean(dim=1)
                self.rights.index_copy_(0, self.at, right[None])
            self.at += 1
