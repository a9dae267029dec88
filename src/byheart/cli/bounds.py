"""``byheart bounds``: what is known, and what our constructions take, at given sizes."""

from dataclasses import asdict, dataclass, field

from tyro.conf import OmitArgPrefixes

from byheart.bounds import Letters
from byheart.cli.output import DONE, Json, console, number, print_json, table
from byheart.cli.sizes import SizeFlags


@dataclass(frozen=True)
class BoundsCommand:
    """All bounds and the true counts of our constructions at given sizes."""

    sizes: OmitArgPrefixes[SizeFlags] = field(default_factory=SizeFlags)
    letters: OmitArgPrefixes[Letters] = field(default_factory=lambda: Letters(bits=32))
    crossovers: bool = True
    """Also find which construction is smallest from which N on."""
    json: Json = False

    def run(self) -> int:
        """Evaluate every bound and every plan."""
        from byheart.bounds import bounds_for
        from byheart.report.planner import crossovers, planned

        size, setting = self.sizes.size, self.sizes.setting
        known = [b for s in ((setting, "points") if setting == "next-token" else (setting,)) for b in bounds_for(s)]
        known = list(dict.fromkeys(known))
        answers = [(bound, bound.answer(size, self.letters)) for bound in known]
        plans = planned(size, setting, positions=self.sizes.positions)
        winners = crossovers(size, setting, positions=self.sizes.positions) if self.crossovers else []
        if self.json:
            print_json(
                {
                    "size": asdict(size),
                    "bounds": [
                        {
                            "name": b.name, "paper": b.paper, "setting": b.setting, "side": b.side, "kind": b.kind,
                            "expression": b.expression, "hypotheses": b.hypotheses,
                            "parameters": a.parameters, "reason": a.reason,
                        }
                        for b, a in answers
                    ],
                    "constructions": [asdict(plan) for plan in plans],
                    "crossovers": [asdict(winner) for winner in winners],
                }
            )  # fmt: skip
            return DONE
        out = console()
        for kind, title in (
            ("proved", "Proved, with constants (parameters)"),
            ("order", "Order only: the expression with constant 1, never a count"),
        ):
            rows = table(title, "result", "setting", "says", ">value", "")
            for b, a in answers:
                if b.kind == kind:
                    words = "enough" if b.side == "upper" else "needed"
                    rows.add_row(b.paper, b.setting, f"{b.expression} {words}", number(a.parameters), a.reason)
            out.print(rows)
        rows = table(
            "Our constructions (true counts, zeros included, for the hardest task of this size)",
            "construction",
            ">parameters",
            ">of these embedding",
            ">depth",
            ">width",
        )
        for plan in plans:
            rows.add_row(
                plan.construction,
                number(plan.parameters),
                number(plan.embedding),
                number(plan.depth),
                number(plan.width),
            )
        out.print(rows)
        if winners:
            says = ", ".join(f"from N = {number(w.examples)} on {w.construction}" for w in winners)
            out.print(f"Smallest, the other sizes fixed: {says}.")
        return DONE
