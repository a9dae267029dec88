"""``byheart approximate``: Transformers that approximate a function, one for every ε, measured and certified."""

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from byheart.cli.options import Arg, Json
from byheart.cli.output import DONE, NOT_TRUE, steps, typed
from byheart.cli.result import console, number, print_json, table
from byheart.errors import BadInput
from byheart.files.writing import check_apart
from byheart.networks.folders import GRID, replacing

if TYPE_CHECKING:
    from byheart.approximation import Approximation, DistanceEstimate


@dataclass(frozen=True)
class ApproximateCommand:
    """Approximate a permutation-equivariant function of sequences by a Transformer: quantise, memorize the grid."""

    function: str
    """What to approximate: attention, contrast, rank, variance or wave; or your own, path/to/file.py:function, which
    takes float64 [S, n, d] in [0, 1] and gives float64 [S, n]. The file is run."""
    length: int = 3
    """Tokens of a sequence, n."""
    dim: int = 1
    """Coordinates of a token, d."""
    epsilon: tuple[float, ...] = (0.3, 0.2, 0.1)
    """The distances allowed, ε: one network each."""
    p: float = 2.0
    """The exponent of the distance d_p = (∫ Σ |f − network|^p)^(1/p)."""
    construction: str = "kajitsuka-sato-2024"
    """What memorizes the grid: a construction for one label a token."""
    samples: int = 20_000
    """Random points on which the distance is measured."""
    seed: int = 0
    """Seed of all random choices and points."""
    out: Annotated[Path | None, Arg(aliases=("-o",))] = None
    """Save the network of the smallest ε in this folder."""
    plot: Path | None = None
    """Draw function, networks, errors and parameters into this file (.png or .svg)."""
    json: Json = False

    def run(self) -> int:
        """Approximate, measure, save, draw, print."""
        from byheart.approximation import approximate, find, measure

        self._check()
        target, found = find(self.function), []
        with nullcontext() if self.out is None else replacing(self.out) as new:
            for epsilon in sorted(set(self.epsilon), reverse=True):
                with steps(f"approximating to ε = {epsilon:g}", quiet=self.json) as report:
                    result = approximate(
                        target,
                        length=self.length,
                        dim=self.dim,
                        epsilon=epsilon,
                        p=self.p,
                        construction=self.construction,
                        seed=self.seed,
                        report=report,
                    )
                with steps(f"measuring on {self.samples:,} points", quiet=self.json) as report:
                    draws = {"samples": self.samples, "seed": self.seed}
                    found.append((result, measure(result.network, target, p=self.p, **draws, report=report)))
            if new is not None:
                self._write(*found[-1], new)
        if self.plot is not None:
            from byheart.report.approximation import draw_approximations

            draw_approximations(found, self.plot)
        if self.json:
            sizes = {"length": self.length, "dim": self.dim, "p": self.p, "samples": self.samples}
            rows = [_as_json(*each) for each in found]
            print_json({"function": target.name, "construction": self.construction, **sizes, "rows": rows})
        else:
            self._print(found)
        return DONE if all(result.close(measured) for result, measured in found) else NOT_TRUE

    def _check(self) -> None:
        """BadInput for what would come to nothing after all the work."""
        from byheart.approximation.approximate import check_sizes
        from byheart.approximation.measure import check_p, check_samples
        from byheart.report.style import check_picture

        if not self.epsilon:
            raise BadInput("no epsilon is given; expected at least one positive number")
        for epsilon in self.epsilon:
            check_sizes(self.length, self.dim, epsilon, self.construction, self.seed)
        check_p(self.p)
        check_samples(self.samples)
        if self.plot is not None:
            check_picture(self.plot)
            check_apart(self.plot, self.out)

    def _write(self, result: "Approximation", measured: "DistanceEstimate", folder: Path) -> None:
        """The network, and what was certified, to be checked again: the part that memorized the grid, and the grid."""
        from byheart import networks
        from byheart.certificates import write
        from byheart.tasks import save

        about = {"construction": self.construction, "seed": self.seed, "approximates": _as_json(result, measured)}
        networks.write(result.network, folder, about | {"function": self.function, "p": self.p})
        networks.save(result.built.network, folder / GRID, about)
        save(result.task, folder / f"{GRID}.npz")
        write(result.certificate, folder / GRID / "certificate.json")

    def _print(self, found: "list[tuple[Approximation, DistanceEstimate]]") -> None:
        rows = table(
            f"{self.function} on [0, 1]^({self.length}×{self.dim}), d_{self.p:g}; grid: {self.construction}",
            *(">ε", ">measured", "95 %", ">cells", ">sequences", ">questions", ">parameters", ">most bits"),
            *(">depth", ">built in", "certified"),
        )
        for result, measured in found:
            rows.add_row(*_cells(result, measured))
        out = console()
        out.print(rows)
        for result, measured in found:
            if not result.close(measured):
                limit = f"upper limit {measured.high:.4g}, ramps at most {result.design.ramps:.2g}"
                out.print(f"[red]not shown[/]: distance at most {result.epsilon:g} ({limit})")
        ramps = "by the function's measured spread the ramps between cells add at most ε/1000"
        notes = f"measured on {number(self.samples)} random points; {ramps}"
        out.print(notes, style="dim")
        if self.out is not None:
            grid, task = (typed(self.out / name) for name in ("grid", "grid.npz"))
            again = f"byheart certify {grid} --task {task} --recheck"
            out.print(f"saved the last in {self.out}; check its grid again with:  {again}", style="dim", markup=False)
        if self.plot is not None:
            out.print(f"drew {self.plot}", style="dim", markup=False)


def _cells(result: "Approximation", measured: "DistanceEstimate") -> list[str]:
    colour = "green" if result.close(measured) else "red"
    account, design = result.account, result.design
    numbers = (design.cells, result.task.size.examples, result.certificate.checked, account.dense, account.max_bits)
    verdict = "[green]yes[/]" if result.certificate.certified else "[red]no[/]"
    return [
        f"{result.epsilon:g}",
        f"[{colour}]{measured.error:.4f}[/]",
        f"{measured.low:.4f} – {measured.high:.4f}",
        *(number(value) for value in (*numbers, account.depth)),
        f"{result.built.seconds:.1f} s",
        f"{verdict}, {result.certificate.seconds:.1f} s",
    ]


def _as_json(result: "Approximation", measured: "DistanceEstimate") -> dict[str, object]:
    account, design = result.account, result.design
    return {
        "epsilon": result.epsilon,
        "close": result.close(measured),
        "measured": asdict(measured),
        "ramps": design.ramps,
        "cells": design.cells,
        "step_bits": design.step_bits,
        "ramp_bits": design.ramp_bits,
        "sequences": result.task.size.examples,
        "questions": result.certificate.checked,
        "labels": result.task.label_count,
        "parameters": account.dense,
        "nonzero": account.nonzero,
        "max_bits": account.max_bits,
        "depth": account.depth,
        "width": account.width,
        "build_seconds": result.built.seconds,
        "certified": result.certificate.certified,
        "certify_seconds": result.certificate.seconds,
    }
