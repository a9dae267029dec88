"""``byheart show DIR``: where the parameters are."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from byheart.cli.output import DONE, Json, console, number, print_json, table
from byheart.networks.folders import kind_of

if TYPE_CHECKING:
    from byheart.networks.account import Account
    from byheart.report.parts import Part


@dataclass(frozen=True)
class ShowCommand:
    """Show where a network's parameters are, part by part."""

    network: Positional[Path]
    """Network folder."""
    plot: Path | None = None
    """Draw them into this picture (.png or .svg)."""
    json: Json = False

    def run(self) -> int:
        """Load, count, print, draw."""
        from byheart.report.parts import check_picture, draw_parts, parts_of

        if self.plot is not None:
            check_picture(self.plot)
        kind = kind_of(self.network)
        accounts = {"float": _float_account, "llama": _llama_account}
        account, facts = accounts.get(kind or "exact", _exact_account)(self.network)
        parts = parts_of(account, reciting=kind == "float")
        if self.json:
            rows = [{"part": p.name, "parameters": p.parameters, "nonzero": p.nonzero} for p in parts]
            print_json({"parameters": account.dense, "facts": facts, "parts": rows})
        else:
            _print(self.network, account, parts, facts)
        if self.plot is not None:
            draw_parts(parts, f"{self.network.name}: {', '.join(facts.values())}", self.plot)
            if not self.json:
                console().print(f"drew {self.plot}", markup=False)
        return DONE


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
    from byheart.networks import store
    from byheart.networks.account import count

    account = count(store.load(folder))
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
