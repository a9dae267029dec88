"""``byheart bounds``: all bounds, and the parameter counts of our constructions, at given sizes."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from byheart.bounds import STATEMENTS, Bound, BoundAnswer, Letters, Statement, bounds_for
from byheart.cli.options import Json, OwnConstructions
from byheart.cli.output import steps
from byheart.cli.result import Block, Cell, Result, Table, number
from byheart.sizes import Size

if TYPE_CHECKING:
    from byheart.constructions.planner import Crossover, PlannedSize, Range

_TITLES = {
    "proved": "Proved, with constants: parameters",
    "order": "Order only: the expression with constant 1, never a count",
    "fitted": "Fitted: a curve through measurements, no bound",
    "measured": "Measured: what training reached, no bound",
}


@dataclass(frozen=True)
class SizeFlags:
    """Sizes of the task, which need not exist."""

    examples: int = 1000
    """N: number of sequences."""
    length: int = 32
    """n: tokens per sequence."""
    vocab: int = 200
    """ω: number of different tokens."""
    labels: int = 10
    """C: number of different labels."""
    dim: int | None = None
    """d: dimension of the tokens if they are vectors instead of ids."""
    setting: Literal["next-token", "seq-to-seq"] = "next-token"
    """Memorize one label per sequence (next-token), or one per token (seq-to-seq)."""
    positions: bool = False
    """Allow networks with positional codes."""

    @property
    def size(self) -> Size:
        """The checked size."""
        from byheart.constructions.planner import check_size

        return check_size(Size(self.examples, self.length, self.labels, self.vocab, self.dim))


@dataclass(frozen=True)
class LetterFlags(Letters):
    """Letters that some bounds need beyond the sizes."""

    bits: int | None = 32
    """b: bits that store one parameter."""


@dataclass(frozen=True)
class BoundsCommand:
    """Evaluate all bounds, and plan all constructions, at given sizes."""

    sizes: SizeFlags = field(default_factory=SizeFlags)
    letters: LetterFlags = field(default_factory=LetterFlags)
    hypotheses: bool = False
    """List the assumptions of every bound, and whether they hold, as far as the sizes tell."""
    construction: OwnConstructions = ()
    json: Json = False

    def run(self) -> "BoundsResult":
        """Evaluate every bound and every plan."""
        from byheart.constructions.planner import Planner

        size, setting = self.sizes.size, self.sizes.setting
        planner = Planner(size, setting, self.sizes.positions)
        with steps(f"planning for {size.examples:,} examples", quiet=self.json):
            plans, in_all = planner.at(size.examples), planner.at(size.examples, "in-all")
        with steps("where each is smallest", quiet=self.json) as report:
            winners, winners_in_all = planner.crossovers(report), planner.crossovers(fewest="in-all")
        with steps("where each is smaller than interpolate", quiet=self.json) as report:
            ranges = planner.smaller(report=report)
        answers = [(bound, bound.answer(size, self.letters)) for bound in self._bounds()]
        return BoundsResult(self, size, answers, plans, in_all, winners, winners_in_all, ranges)

    def _bounds(self) -> list[Bound]:
        """Return the bounds of the setting. Next-token tasks are also points, so bounds for points apply to them."""
        bounds = list(bounds_for(self.sizes.setting))
        if self.sizes.setting == "next-token":
            bounds += [bound for bound in bounds_for("points") if bound not in bounds]
        return bounds

    def statements(self) -> list[Statement]:
        """Return the statements of the setting, and those for points if they apply."""
        settings = ("next-token", "points") if self.sizes.setting == "next-token" else (self.sizes.setting,)
        return [statement for statement in STATEMENTS if statement.setting in settings]


@dataclass(frozen=True)
class BoundsResult(Result):
    """Bounds with their numbers, and the plans of all constructions."""

    command: BoundsCommand
    size: Size
    answers: list[tuple[Bound, BoundAnswer]]
    plans: "list[PlannedSize]"
    """Plans with the fewest parameters without the embedding table."""
    in_all: "list[PlannedSize]"
    """Plans with the fewest parameters, embedding table included."""
    winners: "list[Crossover]"
    winners_in_all: "list[Crossover]"
    ranges: "dict[str, Range | None]"
    """Range of N in which each construction is smaller than ``interpolate``."""

    def as_json(self) -> dict[str, Any]:
        """Return the size, the bounds and statements, the plans, and where each construction is smallest."""
        return {
            "size": self.size,
            "bounds": [self._bound_as_json(bound, answer) for bound, answer in self.answers],
            "statements": [self._statement_as_json(statement) for statement in self.command.statements()],
            "constructions": self.plans,
            "constructions_in_all": self.in_all,
            "crossovers": self.winners,
            "crossovers_in_all": self.winners_in_all,
            "smaller_than_interpolate": self.ranges,
        }

    def _bound_as_json(self, bound: Bound, answer: BoundAnswer) -> dict[str, object]:
        names = ("name", "paper", "source", "setting", "model", "side", "kind", "expression", "paper_letters")
        return {name: getattr(bound, name) for name in names} | {"hypotheses": self._verdicts(bound), **asdict(answer)}

    def _statement_as_json(self, statement: Statement) -> dict[str, object]:
        names = ("name", "paper", "source", "setting", "model", "kind", "says", "hypotheses", "counts")
        answer = statement.answer(self.size, self.command.letters)
        return {name: getattr(statement, name) for name in names} | {
            "value": answer.parameters,
            "reason": answer.reason,
        }

    def _verdicts(self, bound: Bound) -> dict[str, Any]:
        return dict(bound.verdicts(self.size, self.command.letters))

    def rows(self) -> Iterator[Block]:
        """Yield the tables of bounds by kind, the table of constructions, and where each is smallest."""
        from byheart.constructions.lower_bound import planned_in_words
        from byheart.constructions.planner import crossovers_in_words, smaller_in_words

        sizes = self.command.sizes
        tables = [*(self._bounds(kind, title) for kind, title in _TITLES.items()), self._statements()]
        yield from (table for table in tables if table.rows)
        if self.command.hypotheses:
            yield self._hypotheses()
        yield self._constructions()
        if (proved := planned_in_words(self.size, sizes.setting, self.in_all, positions=sizes.positions)) is not None:
            yield proved
        yield crossovers_in_words(self.winners_in_all, "in-all")
        yield crossovers_in_words(self.winners)
        yield smaller_in_words(self.ranges)

    def _bounds(self, kind: str, title: str) -> Table:
        rows: list[list[Cell]] = []
        for bound, answer in self.answers:
            if bound.kind == kind:
                verb = "" if kind == "measured" else {"upper": "suffice", "lower": "are needed"}[bound.side]
                failed = [name for name, verdict in self._verdicts(bound).items() if verdict == "fails"]
                reason = answer.reason or "; ".join(f"false here: {name}" for name in failed)
                expression = f"{bound.expression} {verb}".rstrip()
                rows.append([bound.paper, bound.setting, expression, answer.parameters, reason])
        return Table(title, ("result", "setting", "says", ">value", ""), rows)

    def _statements(self) -> Table:
        rows: list[list[Cell]] = []
        for statement in self.command.statements():
            answer = statement.answer(self.size, self.command.letters)
            cells = (statement.paper, statement.setting, statement.kind, statement.says)
            rows.append([*cells, answer.parameters, answer.reason or statement.counts])
        title = "Not of parameters: widths, dimensions, prompts"
        return Table(title, ("result", "setting", "kind", "says", ">value", "counts"), rows)

    def _hypotheses(self) -> Table:
        rows = [
            (f"{bound.paper}, {bound.setting}", bound.side, name, verdict)
            for bound, _ in self.answers
            for name, verdict in self._verdicts(bound).items()
        ]
        title = "Hypotheses; open: neither the sizes nor the letters given can tell"
        return Table(title, ("result", "side", "hypothesis", "verdict"), rows)

    def _constructions(self) -> Table:
        """Return the table of constructions, the fewest parameters in all first.

        A construction is listed twice if it can be built with fewer parameters without its embedding table.
        """
        least = min(plan.without_embedding for plan in self.plans)
        rows: list[list[Cell]] = []
        for plan in sorted({*self.in_all, *self.plans}, key=lambda plan: plan.parameters):
            name = f"{plan.construction} --fewest in-all" if plan.fewest == "in-all" else plan.construction
            marks = [
                "fewest in all" if plan == self.in_all[0] else "",
                "fewest without embedding" if plan.without_embedding == least else "",
                "expected: not proved for every task" if plan.expected else "",
            ]
            counts = (plan.parameters, plan.without_embedding, plan.depth, plan.width)
            rows.append([name, *map(number, counts), "; ".join(filter(None, marks))])
        title = "Our constructions: true counts, zeros included, for the hardest task of this size; fewest in all first"
        return Table(title, ("construction", ">parameters", ">without embedding", ">depth", ">width", ""), rows)
