"""``byheart show DIR``: where the parameters are."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from byheart.cli.output import DONE, Json, console, number, print_json, table

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
        from byheart.report.parts import draw_parts, parts_of

        reciting = is_float(self.network)
        account, facts = _float_account(self.network) if reciting else _exact_account(self.network)
        parts = parts_of(account, reciting=reciting)
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


def is_float(folder: Path) -> bool:
    """Whether the folder holds a float Transformer, going by its config.json (and without importing PyTorch)."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("model_type") == "byheart"


def _float_account(folder: Path) -> "tuple[Account, dict[str, str]]":
    from byheart.networks.transformer import count, store

    loaded = store.load(folder)
    tensors = {name: tensor.detach().to(_dtype(tensor)).numpy() for name, tensor in loaded.module.state_dict().items()}
    account = count({name: tensors[name] for name in loaded.spec.shapes()}, loaded.spec)
    facts = {"parameters": f"{account.dense:,} parameters", "padded": f"{loaded.spec.padded:,} padded to one width"}
    if "bits" in loaded.about:
        facts["bits"] = f"{loaded.about['bits'] / account.dense:.1f} bits a parameter"
    return account, facts


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
