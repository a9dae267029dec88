"""``byheart collapse NETWORK -o OUT``: the plain ReLU network that a Transformer is on constant sequences."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from byheart.cli.options import Arg, Json, Positional
from byheart.cli.output import steps, typed
from byheart.cli.result import Block, Cell, Result, Styled, Table, dim
from byheart.errors import BadInput
from byheart.files.writing import check_apart
from byheart.networks.folders import replacing

if TYPE_CHECKING:
    from byheart.certificates import Verdict
    from byheart.networks import Account


@dataclass(frozen=True)
class CollapseCommand:
    """Collapse an exact Transformer to the ReLU network that gives the same answers on sequences of equal tokens."""

    network: Positional[Path]
    """Network folder."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """Network folder to write."""
    task: Path | None = None
    """Task file (.npz or .jsonl) with the tokens on which to compare the two networks (default: all tokens of the
    embedding table)."""
    json: Json = False

    def run(self) -> "CollapseResult":
        """Collapse, save, and compare the saved network with the Transformer before it takes its place."""
        from byheart.certificates.judges.collapsed import judge_collapsed, tokens_for
        from byheart.networks import load, write
        from byheart.networks.exact import ExactNetwork
        from byheart.networks.exact.collapse import collapse
        from byheart.tasks import load as load_task

        with replacing(self.out) as new, steps("comparing", quiet=self.json):
            check_apart(self.out, self.network, self.task)
            network = load(self.network)
            if not isinstance(network, ExactNetwork):
                expected = "expected an exact network, as `byheart build kajitsuka-sato-2025` makes it"
                raise BadInput(f"{self.network}: is {network.title}; {expected}")
            tokens = tokens_for(network, None if self.task is None else load_task(self.task))
            write(collapse(network), new)
            plain = load(new)
            assert isinstance(plain, ExactNetwork)
            verdict = judge_collapsed(network, plain, tokens)
            if verdict.errors:
                raise RuntimeError(
                    f"{self.network}: its collapsed network answers differently: {verdict.counterexample}"
                )
            if not verdict.certified:
                raise BadInput(f"{self.network}: {verdict.undecided:,} answers could not be compared; try fewer tokens")
        return CollapseResult(self, network.account, plain.account, verdict)


@dataclass(frozen=True)
class CollapseResult(Result):
    """Both networks' parameters, and the proof that they agree."""

    command: CollapseCommand
    before: "Account"
    after: "Account"
    equal: "Verdict"

    def rows(self) -> Iterator[Block]:
        """Yield the parameters before and after, the verdict, and the command that certifies the result."""
        rows: list[list[Cell]] = []
        for name, account in (("Transformer", self.before), ("plain ReLU network", self.after)):
            counts = (account.dense, account.dense - account.embedding, account.nonzero, account.max_bits)
            rows.append([name, *counts, account.depth, account.width])
        columns = ("network", ">parameters", ">no embedding", ">non-zero", ">most bits", ">depth", ">width")
        yield Table(f"{self.command.network} on constant sequences", columns, rows)
        summary = f": {self.equal.statement} {self.equal.method}, {self.equal.seconds:.1f} s"
        yield Styled("certified", "bold green"), summary
        check = f"byheart certify {typed(self.command.out)} --task FILE"
        yield dim(f"saved in {self.command.out}; on a task of constant sequences:  {check}")
