"""Compare an ensemble with a plain loop: one model of Dana, Pydi & Chevaleyre 2025, trained on one CPU thread.

    OMP_NUM_THREADS=1 python benchmarks/lab.py

The plain loop is written as the authors wrote theirs: a PyTorch module with a list of H attention modules,
torch.optim.Adam, and a loop over batches. First weights and batches are the same, so in float64 the losses of 256 steps
must agree to within 1e-9. Times are CPU time of the process, so other work on the machine does not count.
"""

import argparse
import sys
import time
from dataclasses import replace

import torch
from tables import OUT, table
from torch import nn

from byheart.lab import Member
from byheart.lab.adam import learning_rates
from byheart.lab.examples import shuffles
from byheart.lab.member import Tensors
from byheart.lab.stack import Stack
from byheart.papers.dana_2025 import DanaConfig, member_of

CONFIG = DanaConfig("1", vocab=50, model_dim=10, head_dim=10, heads=20, batch=256, batches=64, epochs=64)
COMPARED_STEPS, FEW_STEPS = 256, 8
EQUAL = 1e-9
CPU = torch.device("cpu")


class Plain(nn.Module):
    """A layer of H heads, each a separate attention module, on an input with positions; d = d_h."""

    def __init__(self, weights: Tensors, dtype: torch.dtype) -> None:
        super().__init__()
        H, d, _ = weights["0.W_Q"].shape
        self.embedding, self.unembedding, self.positions = (
            nn.Parameter(weights[name].to(dtype, copy=True)) for name in ("embedding", "unembedding", "positions")
        )
        self.heads = nn.ModuleList(
            [nn.MultiheadAttention(d, 1, bias=False, batch_first=True, dtype=dtype) for _ in range(H)]
        )
        with torch.no_grad():
            for h, head in enumerate(self.heads):
                head.in_proj_weight.copy_(torch.cat([weights[f"0.{name}"][h] for name in ("W_Q", "W_K", "W_V")]))
                head.out_proj.weight.copy_(weights["0.W_O"][h])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits [B, 2, ω] of tokens [B, 2]."""
        stream = self.embedding[tokens]
        seen = stream + self.positions
        mask = torch.ones(2, 2, dtype=torch.bool).triu(1)
        attended = sum(head(seen, seen, seen, attn_mask=mask, need_weights=False)[0] for head in self.heads)
        return (stream + attended) @ self.unembedding.T


def plain_losses(member: Member, steps: int, dtype: torch.dtype) -> list[float]:
    """Train one model for ``steps`` steps and return the loss of every batch."""
    training, N = member.training, member.count
    model = Plain(member.architecture.init(torch.Generator().manual_seed(member.seed)), dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=training.learning_rate)
    loss_of = nn.CrossEntropyLoss()
    tokens, answers = member.examples["tokens"], member.examples["answers"]
    rates = learning_rates(training, N, torch.arange(steps, dtype=torch.float64).numpy())
    losses = []
    for step in range(steps):
        epoch, inside = divmod(step * training.batch, N)
        if inside == 0:
            order = shuffles([member.seed], [epoch], N, CPU)[0]
        rows = order[inside : inside + training.batch]
        optimizer.param_groups[0]["lr"] = rates[step]
        optimizer.zero_grad()
        loss = loss_of(model(tokens[rows])[:, 1], answers[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def compared(steps: int) -> float:
    """Return the largest difference between the float64 losses of the plain loop and the ensemble."""
    member = member_of(CONFIG)
    beside = member_of(replace(CONFIG, seed=1))
    stack = Stack([member, beside], member.architecture, CPU, torch.float64, graph=False)
    together, _ = stack.advance(steps)
    alone = torch.tensor(plain_losses(member, steps, torch.float64), dtype=torch.float64)
    return float((together[:, 0] - alone).abs().max())


def plain_rate(steps: int) -> float:
    """Return the plain loop's steps per second."""
    member = member_of(CONFIG)
    plain_losses(member, 5, torch.float32)
    start = time.process_time()
    plain_losses(member, steps, torch.float32)
    return steps / (time.process_time() - start)


def ensemble_rate(members: int, steps: int) -> float:
    """Return the model-steps per second of an ensemble of ``members`` models."""
    drawn = [member_of(replace(CONFIG, seed=seed)) for seed in range(members)]
    stack = Stack(drawn, CONFIG.architecture, CPU, torch.float32, graph=False)
    stack.advance(5)
    start = time.process_time()
    stack.advance(steps)
    return members * steps / (time.process_time() - start)


def main() -> int:
    """Print the table. Return 1 if the losses differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=256, help="number of timed steps")
    parser.add_argument(
        "--members", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="numbers of models trained at once"
    )
    parser.add_argument("--tiny", action="store_true", help="time a few steps, to see that it runs; times mean nothing")
    options = parser.parse_args()
    if options.tiny:
        options.steps, options.members = 4, [1, 2]
    torch.set_num_threads(1)
    plain = plain_rate(options.steps)
    sizes = f"ω = {CONFIG.vocab}, d = d_h = {CONFIG.model_dim}, H = {CONFIG.heads}"
    columns = ("way", "models at once", "model-steps/s", "seconds per model", "ratio")
    rows = table(f"Dana: {sizes}, batch {CONFIG.batch}, one thread", *columns)
    steps = CONFIG.batches * CONFIG.epochs
    rows.add_row("plain loop", "1", f"{plain:,.0f}", f"{steps / plain:.1f}", "1.0")
    for members in options.members:
        rate = ensemble_rate(members, options.steps)
        rows.add_row("ensemble", f"{members}", f"{rate:,.0f}", f"{steps / rate:.2f}", f"{rate / plain:.1f}")
    OUT.print(rows)
    compared_steps = FEW_STEPS if options.tiny else COMPARED_STEPS
    apart = compared(compared_steps)
    OUT.print(f"float64, {compared_steps} steps: losses of ensemble and loop differ by at most {apart:.1e}")
    return 0 if apart <= EQUAL else 1


if __name__ == "__main__":
    sys.exit(main())
