"""Your own experiment in fifteen lines: a new model in the ensemble, a new sweep, a figure.

    byheart lab run examples/own_experiment.py -o runs/product
    byheart lab plot runs/product

How many associations (a, b) → c does a product of two embeddings hold, without any attention? The logits are
W(U_a ∘ V_b), with ω × r matrices U, V and W. ``Product`` is the model; ``CONFIGS`` are Dana et al.'s configs, for their
data and their training, with r in place of d; ``work`` trains the models of a job at once. Byheart does the rest: jobs,
resuming, processes, GPUs, clusters, tables, and the figure of accuracy against r.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from byheart.lab import train
from byheart.lab.experiment import Row
from byheart.lab.member import Tensors
from byheart.lab.models.parts import looked_up
from byheart.papers.dana_2025 import DanaConfig, member_of
from byheart.progress import Report


@dataclass(frozen=True)
class Product:
    """A product of embeddings of ω tokens, of rank r."""

    vocab: int
    rank: int
    parameters = property(lambda self: 3 * self.vocab * self.rank)

    def init(self, generator: torch.Generator) -> Tensors:
        """Draw the first weights from the normal distribution."""
        return {name: torch.randn(self.vocab, self.rank, generator=generator, dtype=torch.float64) for name in "UVW"}

    def outputs(self, weights: Tensors, batch: Tensors) -> torch.Tensor:
        """Return the logits [M, B, ω] of tokens [M, B, 2], for M models at once."""
        first, second = (looked_up(weights[name], batch["tokens"])[:, :, place] for place, name in enumerate("UV"))
        return (first * second) @ weights["W"].mT


SIZES = {"vocab": 20, "head_dim": 1, "heads": 1, "batch": 100, "batches": 16, "epochs": 32}
CONFIGS = [DanaConfig("product", model_dim=r, seed=seed, **SIZES) for r in (2, 4, 8, 16, 32) for seed in range(3)]


def work(configs: Sequence[DanaConfig], device: str, report: Report | None) -> list[Row]:
    """Train the models of a job and return their metrics."""
    members = [replace(member_of(config), architecture=Product(config.vocab, config.model_dim)) for config in configs]
    return [{"accuracy": one.accuracy, "loss": one.loss} for one in train(members, device=device, report=report)]
