"""``byheart collapse NETWORK -o OUT``: the plain ReLU network that a Transformer is on constant sequences."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from byheart.cli.options import Arg, Json, Positional
from byheart.cli.output import DONE, steps, typed
from byheart.cli.result import console, number, print_json, table
from byheart.errors import BadInput
from byheart.files.writing import check_apart
from byheart.networks.folders import replacing

if TYPE_CHECKING:
    from byheart.certificates import Verdict
    from byheart.networks.exact import ExactNetwork


@dataclass(frozen=True)
class CollapseCommand:
    """Collapse an exact Transformer to the ReLU network that answers as it does on sequences of equal tokens."""

    network: Positional[Path]
    """Network folder."""
    out: Annotated[Path, Arg(aliases=("-o",))]
    """Network folder to write."""
    task: Path | None = None
    """Task file (.npz or .jsonl): whose tokens both are compared on (default: all of the embedding table)."""
    json: Json = False

    def run(self) -> int:
        """Collapse, save, compare the saved network with the Transformer, and let it take its place."""
        from byheart.certificates.collapsed import judge_collapsed, tokens_for
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
                raise RuntimeError(f"{self.network}: its collapsed network answers otherwise: {verdict.counterexample}")
            if not verdict.certified:
                raise BadInput(f"{self.network}: {verdict.undecided:,} answers could not be compared; try fewer tokens")
        self._print(network, plain, verdict)
        return DONE

    def _print(self, network: "ExactNetwork", plain: "ExactNetwork", verdict: "Verdict") -> None:
        if self.json:
            accounts = {"before": network.account.as_json(), "after": plain.account.as_json()}
            print_json({**accounts, "equal": verdict.as_json()})
            return
        title = f"{self.network} on constant sequences"
        rows = table(title, "network", ">parameters", ">no embedding", ">non-zero", ">most bits", ">depth", ">width")
        for name, account in (("Transformer", network.account), ("plain ReLU network", plain.account)):
            counts = (account.dense, account.dense - account.embedding, account.nonzero, account.max_bits)
            rows.add_row(name, *map(number, (*counts, account.depth, account.width)))
        out = console()
        out.print(rows)
        out.print(f"[bold green]certified[/]: {verdict.statement} {verdict.method}, {verdict.seconds:.1f} s")
        told = f"saved in {self.out}; on a task of constant sequences:  byheart certify {typed(self.out)} --task FILE"
        out.print(told, style="dim", markup=False)
