"""``byheart approximate``: Transformers that approximate a function, one for every ε, measured and certified."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from byheart.cli.options import Arg, Json
from byheart.cli.output import steps, typed
from byheart.cli.result import Block, Cell, Result, Styled, Table, dim, number, yes_or_no
from byheart.errors import BadInput
from byheart.files.writing import check_apart
from byheart.networks.folders import GRID, replacing

if TYPE_CHECKING:
    from byheart.approximation import Approximation, DistanceEstimate


@dataclass(frozen=True)
class ApproximateCommand:
    """Approximate a permutation-equivariant function of sequences by a Transformer that memorizes it on a grid."""

    function: str
    """Function to approximate: attention, contrast, rank, variance, wave, or your own as path/to/file.py:function. It
    takes float64 [S, n, d] in [0, 1] and returns float64 [S, n]. The file is executed."""
    length: int = 3
    """n: tokens per sequence."""
    dim: int = 1
    """d: coordinates per token."""
    epsilon: tuple[float, ...] = (0.3, 0.2, 0.1)
    """ε: allowed distances, with one network for each."""
    p: float = 2.0
    """Exponent of the distance d_p = (∫ Σ |f − network|^p)^(1/p)."""
    construction: str = "kajitsuka-sato-2024"
    """Construction that memorizes the grid; it must give one label per token."""
    samples: int = 20_000
    """Number of random points at which the distance is measured."""
    seed: int = 0
    """Seed of all random choices and points."""
    out: Annotated[Path | None, Arg(aliases=("-o",))] = None
    """Folder for the network of the smallest ε."""
    plot: Path | None = None
    """Picture to draw (.png or .svg): the function, the networks, errors and parameters."""
    json: Json = False

    def run(self) -> "ApproximateResult":
        """Approximate, measure, save and draw."""
        from byheart.approximation import approximate, find, measure

        self._check()
        target, networks = find(self.function), []
        with nullcontext() if self.out is None else replacing(self.out) as new:
            for epsilon in sorted(set(self.epsilon), reverse=True):
                with steps(f"approximating to ε = {epsilon:g}", quiet=self.json) as report:
                    approximation = approximate(
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
                    distance = measure(approximation.network, target, p=self.p, **draws, report=report)
                networks.append(Measured(approximation, distance))
            if new is not None:
                self._write(networks[-1], new)
        if self.plot is not None:
            from byheart.report.approximation import draw_approximations

            draw_approximations([(network.approximation, network.distance) for network in networks], self.plot)
        return ApproximateResult(self, target.name, networks)

    def _check(self) -> None:
        """Raise BadInput for options that would make all the work useless."""
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

    def _write(self, network: "Measured", folder: Path) -> None:
        """Write the network, the grid, and the part that memorized it with its certificate."""
        from byheart import networks
        from byheart.certificates import write
        from byheart.tasks import save

        approximation = network.approximation
        about = {"construction": self.construction, "seed": self.seed, "approximates": network.as_json()}
        networks.write(approximation.network, folder, about | {"function": self.function, "p": self.p})
        networks.save(approximation.built.network, folder / GRID, about)
        save(approximation.task, folder / f"{GRID}.npz")
        write(approximation.certificate, folder / GRID / "certificate.json")


@dataclass(frozen=True)
class Measured:
    """A network for one ε, and its measured distance from the function."""

    approximation: "Approximation"
    distance: "DistanceEstimate"

    @property
    def is_close(self) -> bool:
        """True if the grid is certified, and the distance is shown to be at most ε."""
        return self.approximation.close(self.distance)

    def as_json(self) -> dict[str, Any]:
        """Return ε, the measured distance, and the numbers of the grid and the network."""
        result = self.approximation
        account, design = result.account, result.design
        return {
            "epsilon": result.epsilon,
            "close": self.is_close,
            "measured": asdict(self.distance),
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

    def cells(self) -> list[Cell]:
        """Return the row of the table."""
        result, distance = self.approximation, self.distance
        account, certificate = result.account, result.certificate
        counts = (result.design.cells, result.task.size.examples, certificate.checked, account.dense, account.max_bits)
        verdict = yes_or_no(certificate.certified)
        return [
            f"{result.epsilon:g}",
            yes_or_no(self.is_close, *2 * (f"{distance.error:.4f}",)),
            f"{distance.low:.4f} – {distance.high:.4f}",
            *(*counts, account.depth),
            f"{result.built.seconds:.1f} s",
            Styled(f"{verdict.text}, {certificate.seconds:.1f} s", verdict.style),
        ]


@dataclass(frozen=True)
class ApproximateResult(Result):
    """One network for every ε."""

    command: ApproximateCommand
    function: str
    networks: list[Measured]

    def as_json(self) -> dict[str, Any]:
        """Return the function, the sizes, and one row per network."""
        names = ("construction", "length", "dim", "p", "samples")
        return {
            "function": self.function,
            **{name: getattr(self.command, name) for name in names},
            "rows": self.networks,
        }

    def rows(self) -> Iterator[Block]:
        """Yield the table, the distances that were not shown, how distances were measured, and what was written."""
        command = self.command
        yield Table(
            f"{command.function} on [0, 1]^({command.length}×{command.dim}), d_{command.p:g}; "
            f"grid: {command.construction}",
            (
                *(">ε", ">measured", "95 %", ">cells", ">sequences", ">questions", ">parameters", ">most bits"),
                *(">depth", ">built in", "certified"),
            ),
            [network.cells() for network in self.networks],
        )
        for network in self.networks:
            if not network.is_close:
                epsilon, ramps = network.approximation.epsilon, network.approximation.design.ramps
                limit = f"upper limit {network.distance.high:.4g}, ramps at most {ramps:.2g}"
                yield Styled("not shown", "red"), f": distance at most {epsilon:g} ({limit})"
        ramps_note = "by the function's measured spread the ramps between cells add at most ε/1000"
        yield dim(f"measured on {number(command.samples)} random points; {ramps_note}")
        if command.out is not None:
            grid, task = (typed(command.out / name) for name in (GRID, f"{GRID}.npz"))
            check = f"byheart certify {grid} --task {task} --recheck"
            yield dim(f"saved the last in {command.out}; check its grid again with:  {check}")
        if command.plot is not None:
            yield dim(f"drew {command.plot}")

    @property
    def is_true(self) -> bool:
        """False if a network is not shown to be within its ε."""
        return all(network.is_close for network in self.networks)
