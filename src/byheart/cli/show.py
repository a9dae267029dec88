"""``byheart show DIR``: where the parameters are; with a task, which head holds which example."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from byheart.cli.output import DONE, Json, console, number, print_json, table
from byheart.errors import BadInput
from byheart.networks.folders import kind_of

if TYPE_CHECKING:
    from byheart.networks.account import Account
    from byheart.report.parts import Part
    from byheart.report.saturation import Saturation


@dataclass(frozen=True)
class ShowCommand:
    """Show where a network's parameters are, part by part."""

    network: Positional[Path]
    """Network folder."""
    task: Path | None = None
    """Softmax networks: the task that was memorized, to show which head holds which example."""
    plot: Path | None = None
    """Draw it into this picture (.png or .svg): the parameters, or with --task the heads."""
    json: Json = False

    def run(self) -> int:
        """Load, count, print, draw."""
        from byheart.report.parts import draw_parts, parts_of
        from byheart.report.style import check_picture

        if self.plot is not None:
            check_picture(self.plot)
        kind = kind_of(self.network)
        if self.task is not None and kind != "softmax":
            raise BadInput(f"{self.network}: --task shows the heads of a softmax network; this is none")
        accounts = {"float": _float_account, "llama": _llama_account}
        account, facts = accounts.get(kind or "exact", _exact_account)(self.network)
        parts = parts_of(account, reciting=kind == "float")
        heads = None if self.task is None else _heads(self.network, self.task)
        if self.json:
            rows = [{"part": p.name, "parameters": p.parameters, "nonzero": p.nonzero} for p in parts]
            held = {} if heads is None else {"held": heads.held.tolist(), "saturated": heads.share}
            print_json({"parameters": account.dense, "facts": facts, "parts": rows, **held})
        else:
            _print(self.network, account, parts, facts)
            if heads is not None:
                _print_heads(heads)
        if self.plot is not None:
            title = f"{self.network.name}: {', '.join(facts.values())}"
            if heads is None:
                draw_parts(parts, title, self.plot)
            else:
                from byheart.report.saturation import draw_saturation

                draw_saturation(heads, title, self.plot)
            if not self.json:
                console().print(f"drew {self.plot}", markup=False)
        return DONE


def _heads(folder: Path, task: Path) -> "Saturation":
    from byheart.certificates.balls import inputs_of
    from byheart.networks import softmax
    from byheart.report.saturation import saturation_of
    from byheart.tasks import load

    return saturation_of(softmax.load(folder).network, inputs_of(load(task)))


def _print_heads(heads: "Saturation") -> None:
    from byheart.report.saturation import caption

    console().print(caption(heads), markup=False)


def _float_account(folder: Path) -> "tuple[Account, dict[str, str]]":
    from byheart.networks.transformer import count, store

    loaded = store.load(folder)
    tensors = {name: tensor.detach().to(_dtype(tensor)).numpy() for name, tensor in loaded.module.state_dict().items()}
    account = count({name: tensors[name] for name in loaded.spec.shapes()}, loaded.spec)
    facts = {"parameters": f"{account.dense:,} parameters", "padded": f"{loaded.spec.padded:,} padded to one width"}
    if "bits" in loaded.about:
        facts["bits"] = f"{loaded.about['bits'] / account.dense:.1f} bits a parameter"
    return account, facts


def _llama_account(folder: Path) -> "tuple[Account, dict[str, str]]":
    """The tensors of a stock Llama, by their last names: q_proj, gate_proj, …"""
    import numpy as np
    from safetensors.numpy import load_file

    from byheart.networks.account import Account, Item

    items = []
    for name, tensor in load_file(folder / "model.safetensors").items():
        own = name.removesuffix(".weight").rsplit(".", maxsplit=1)[-1]
        free = len(np.setdiff1d(tensor, [-1, 0, 1]))
        nonzero = int(np.count_nonzero(tensor))
        items.append(Item(own, tensor.shape, tensor.size, nonzero, free, 32, 32 * tensor.size))
    account = Account(tuple(items), depth=0, width=0)
    return account, {"parameters": f"{account.dense:,} parameters", "kind": "a stock Llama"}


def _dtype(tensor: object) -> object:
    import torch

    dtype = tensor.dtype  # type: ignore[attr-defined]
    return torch.float32 if dtype == torch.bfloat16 else dtype


def _exact_account(folder: Path) -> "tuple[Account, dict[str, str]]":
    """An exact network's, or a softmax network's."""
    from byheart.networks import kinds

    account = kinds.count(kinds.load(folder))
    return account, {"parameters": f"{account.dense:,} parameters", "bits": f"at most {account.max_bits} bits an entry"}


def _print(folder: Path, account: "Account", parts: "list[Part]", facts: dict[str, str]) -> None:
    rows = table(f"{folder}: {', '.join(facts.values())}", "part", ">parameters", ">non-zero", "")
    most = max(part.parameters for part in parts)
    for part in parts:
        bar = "█" * max(1, round(24 * part.parameters / most))
        rows.add_row(part.name, number(part.parameters), number(part.nonzero), bar)
    rows.add_section()
    rows.add_row("all", number(account.dense), number(account.nonzero), "")
    console().print(rows)
