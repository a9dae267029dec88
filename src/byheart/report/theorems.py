"""Theorem by theorem: as its paper states it, and ours where that is smaller, both built and certified on one task."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from byheart.constructions import Construction, find, known
from byheart.constructions.construction import settings_from
from byheart.constructions.theorem import Theorem, flags
from byheart.progress import Report
from byheart.report.compare import Compared, measured


@dataclass(frozen=True)
class Row:
    """One form of one theorem; ``built`` is None for statements that no one network shows."""

    paper: str
    theorem: Theorem
    form: str
    command: str
    """What builds it, or shows it."""
    built: Compared | None


def rows(names: Iterable[str] = (), *, build: bool = True, report: Report | None = None) -> list[Row]:
    """The theorems of these constructions (default: of all); without ``build`` nothing is built or certified."""
    chosen = list(_forms(names))
    found = []
    for done, (construction, theorem, form) in enumerate(chosen):
        if report is not None:
            report(done, len(chosen), f"{construction.name}, {theorem.name}")
        found.append(_row(construction, theorem, form, build))
    return found


def _forms(names: Iterable[str]) -> Iterator[tuple[Construction, Theorem, str]]:
    for construction in [find(name) for name in names] or known().values():
        for theorem in construction.theorems:
            for form in theorem.forms or ("",):
                yield construction, theorem, form


def _row(construction: Construction, theorem: Theorem, form: str, build: bool) -> Row:
    paper = theorem.paper or construction.paper or "Byheart"
    if theorem.task is None:
        return Row(paper, theorem, form, theorem.shown_by, None)
    given = theorem.forms[form]
    command = f"byheart build {construction.name} {flags(given)}".rstrip()
    settings = settings_from(construction.settings, construction.name, None, given)
    built = measured(construction, theorem.task.draw(), settings, theorem.judged) if build else None
    return Row(paper, theorem, form, command, built)


def statement(theorem: Theorem) -> list[str]:
    """What it says, assumes and promises, in what the network as stated still differs, the task: a line each."""
    lines = [theorem.says, f"assumes: {theorem.assumes}", f"network: {theorem.limits}"]
    lines += [f"differs: {theorem.differs}"] if theorem.differs else []
    return [*lines, f"task: byheart task random {theorem.task.flags}"] if theorem.task is not None else lines


def in_words(row: Row) -> str:
    """The numbers of a network that was built."""
    parameters, width, depth, bits, certified = numbers(row)
    told = f"{parameters} parameters, width {width}, depth {depth}, up to {bits} bits"
    return f"{told}; {'certified' if certified == 'yes' else 'NOT certified'}"


def numbers(row: Row) -> list[str]:
    """Parameters, width, depth, bits of the largest weight, and whether every answer was certified."""
    built = row.built
    if built is None:
        return ["–"] * 5
    counted = (built.parameters, built.width, built.depth, built.max_bits)
    return [*(f"{count:,}" for count in counted if count is not None), "yes" if built.certified else "NO"]


_HEAD = """# Theorem by theorem

Every theorem that Byheart runs, and what its paper assumes. *As stated* is the network that the theorem is about;
*ours* is smaller, and usually the default. Both are built on the same task and certified: every answer, or as many as
the theorem promises. *Width* is the width of the widest layer, including the input; *bits* are those of the largest
weight; *differs* says where our network departs from the paper's. A dash means that there is nothing to build: the
command shows the statement in another way. `byheart theorems -o docs/theorems.md` writes this page.
"""
COLUMNS = ("parameters", "width", "depth", "bits", "certified")
"""What :func:`numbers` returns."""


def page(found: list[Row]) -> str:
    """A page in Markdown: every theorem once, with the commands that build it."""
    lines = [_HEAD, "| theorem | form | " + " | ".join(COLUMNS) + " |", "|---|---|" + "---:|" * 4 + "---|"]
    last: Theorem | None = None
    for row in found:
        said = "" if row.theorem is last else _said(row)
        how = f"{row.form}: `{row.command}`" if row.form else f"`{row.command}`"
        lines.append("| " + " | ".join([said, how, *numbers(row)]) + " |")
        last = row.theorem
    return "\n".join(lines) + "\n"


def _said(row: Row) -> str:
    told = [f"**{row.paper}, {row.theorem.name}**", *statement(row.theorem)]
    return "<br>".join(told).replace("|", "\\|")
