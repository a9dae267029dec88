"""``byheart bounds``: what is known, and what our constructions take, at given sizes."""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from byheart.bounds import STATEMENTS, Bound, BoundAnswer, Letters, Statement, bounds_for
from byheart.cli.options import Json, OwnConstructions
from byheart.cli.output import DONE, steps
from byheart.cli.result import console, number, print_json, table
from byheart.cli.sizes import LetterFlags, SizeFlags

if TYPE_CHECKING:
    from byheart.constructions.planner import PlannedSize

_TITLES = {
    "proved": "Proved, with constants: parameters",
    "order": "Order only: the expression with constant 1, never a count",
    "fitted": "Fitted: a curve through measurements, no bound",
    "measured": "Measured: what training reached, no bound",
}


@dataclass(frozen=True)
class BoundsCommand:
    """All bounds and the true counts of our constructions at given sizes."""

    sizes: SizeFlags = field(default_factory=SizeFlags)
    letters: LetterFlags = field(default_factory=LetterFlags)
    hypotheses: bool = False
    """Also print what every bound assumes, and whether it holds, as far as sizes tell."""
    construction: OwnConstructions = ()
    json: Json = False

    def run(self) -> int:
        """Evaluate every bound and every plan."""
        from byheart.constructions.lower_bound import planned_in_words
        from byheart.constructions.planner import Planner, crossovers_in_words, smaller_in_words

        size, setting, answers = self.sizes.size, self.sizes.setting, self._answers()
        planner = Planner(size, setting, self.sizes.positions)
        with steps(f"planning for {size.examples:,} examples", quiet=self.json):
            plans, in_all = planner.at(size.examples), planner.at(size.examples, "in-all")
        with steps("where each is smallest", quiet=self.json) as report:
            winners, winners_in_all = planner.crossovers(report), planner.crossovers(fewest="in-all")
        with steps("where each is smaller than interpolate", quiet=self.json) as report:
            beaten = planner.smaller(report=report)
        if self.json:
            print_json(
                {
                    "size": asdict(size),
                    "bounds": [self._as_json(bound, answer) for bound, answer in answers],
                    "statements": [self._statement_as_json(statement) for statement in self._statements()],
                    "constructions": [asdict(plan) for plan in plans],
                    "constructions_in_all": [asdict(plan) for plan in in_all],
                    "crossovers": [asdict(winner) for winner in winners],
                    "crossovers_in_all": [asdict(winner) for winner in winners_in_all],
                    "smaller_than_interpolate": {name: r and asdict(r) for name, r in beaten.items()},
                }
            )
            return DONE
        out = console()
        self._print_bounds(out, answers)
        out.print(_constructions(in_all, plans))
        if (proved := planned_in_words(size, setting, in_all, positions=self.sizes.positions)) is not None:
            out.print(proved)
        out.print(crossovers_in_words(winners_in_all, "in-all"))
        out.print(crossovers_in_words(winners))
        out.print(smaller_in_words(beaten))
        return DONE

    def _answers(self) -> list[tuple[Bound, BoundAnswer]]:
        """Bounds of the setting; next-token tasks are also points, so the bounds for points apply to them too."""
        known = list(bounds_for(self.sizes.setting))
        if self.sizes.setting == "next-token":
            known += [bound for bound in bounds_for("points") if bound not in known]
        return [(bound, bound.answer(self.sizes.size, self._letters)) for bound in known]

    def _statements(self) -> list[Statement]:
        """Those of the setting, and of points likewise."""
        settings = ("next-token", "points") if self.sizes.setting == "next-token" else (self.sizes.setting,)
        return [statement for statement in STATEMENTS if statement.setting in settings]

    @property
    def _letters(self) -> Letters:
        return Letters(**asdict(self.letters))

    def _print_bounds(self, out: Any, answers: list[tuple[Bound, BoundAnswer]]) -> None:
        for kind, title in _TITLES.items():
            rows = table(title, "result", "setting", "says", ">value", "")
            for bound, answer in answers:
                if bound.kind == kind:
                    words = {"upper": "suffice", "lower": "are needed"}
                    says = f"{bound.expression} {'' if kind == 'measured' else words[bound.side]}".rstrip()
                    failed = [name for name, said in self._verdicts(bound).items() if said == "fails"]
                    reason = answer.reason or "; ".join(f"false here: {name}" for name in failed)
                    rows.add_row(bound.paper, bound.setting, says, number(answer.parameters), reason)
            if rows.row_count:
                out.print(rows)
        self._print_statements(out)
        if self.hypotheses:
            title = "Hypotheses; open: neither the sizes nor the letters given can tell"
            rows = table(title, "result", "side", "hypothesis", "verdict")
            for bound, _ in answers:
                for name, said in self._verdicts(bound).items():
                    rows.add_row(f"{bound.paper}, {bound.setting}", bound.side, name, said)
            out.print(rows)

    def _print_statements(self, out: Any) -> None:
        title = "Not of parameters: widths, dimensions, prompts"
        rows = table(title, "result", "setting", "kind", "says", ">value", "counts")
        for statement in self._statements():
            answer = statement.answer(self.sizes.size, self._letters)
            told = (statement.paper, statement.setting, statement.kind, statement.says)
            rows.add_row(*told, number(answer.parameters), answer.reason or statement.counts)
        if rows.row_count:
            out.print(rows)

    def _statement_as_json(self, statement: Statement) -> dict[str, object]:
        names = ("name", "paper", "source", "setting", "model", "kind", "says", "hypotheses", "counts")
        answer = statement.answer(self.sizes.size, self._letters)
        told = {"value": answer.parameters, "reason": answer.reason}
        return {name: getattr(statement, name) for name in names} | told

    def _verdicts(self, bound: Bound) -> dict[str, Any]:
        return dict(bound.verdicts(self.sizes.size, self._letters))

    def _as_json(self, bound: Bound, answer: BoundAnswer) -> dict[str, object]:
        names = ("name", "paper", "source", "setting", "model", "side", "kind", "expression", "paper_letters")
        return {name: getattr(bound, name) for name in names} | {"hypotheses": self._verdicts(bound), **asdict(answer)}


def _constructions(in_all: "list[PlannedSize]", plans: "list[PlannedSize]") -> Any:
    """The fewest parameters in all first; what can be built with fewer without its embedding stands there twice."""
    title = "Our constructions: true counts, zeros included, for the hardest task of this size; fewest in all first"
    rows = table(title, "construction", ">parameters", ">without embedding", ">depth", ">width", "")
    least = min(plan.without_embedding for plan in plans)
    for plan in sorted({*in_all, *plans}, key=lambda plan: plan.parameters):
        numbers = (plan.parameters, plan.without_embedding, plan.depth, plan.width)
        name = f"{plan.construction} --fewest in-all" if plan.fewest == "in-all" else plan.construction
        marks = [
            "fewest in all" if plan == in_all[0] else "",
            "fewest without embedding" if plan.without_embedding == least else "",
            "expected: not proved for every task" if plan.expected else "",
        ]
        rows.add_row(name, *map(number, numbers), "; ".join(filter(None, marks)))
    return rows
