"""``byheart theorems``: build every theorem's network as stated and ours, and certify both on one task."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

from byheart.cli.compare import Compared, build_and_certify
from byheart.cli.options import Arg, Json, Positional
from byheart.cli.output import steps
from byheart.cli.result import Block, Result, Styled
from byheart.constructions import Construction, find, known
from byheart.constructions.construction import Theorem, flags, settings_from
from byheart.files.writing import check_file, write_text
from byheart.progress import Report

COLUMNS = ("parameters", "width", "depth", "bits", "certified")
"""Columns that :meth:`TheoremRow.numbers` fills."""
_HEAD = """# Theorem by theorem

Every theorem that Byheart runs, and what its paper assumes. *As stated* is the network that the theorem is about;
*ours* is smaller, and usually the default. Both are built on the same task and certified: every answer, or as many as
the theorem promises. *Width* is the width of the widest layer, including the input; *bits* are those of the largest
weight; *differs* says where our network departs from the paper's. A dash means that there is nothing to build: the
command shows the statement in another way. `byheart theorems -o docs/theorems.md` writes this page.
"""
_FOOT = """
## A lemma that is false as printed

Lemma 2 of Dana, Pydi & Chevaleyre 2025, on which their Theorem 1, Corollary 1 and Remark 2 rest, says that T₀ contexts,
*whichever they are*, have values of rank min(T₀, H·d_h) for some weights. Take constant contexts (t, …, t): every head
averages x_n + Σ a_s (pos_s − pos_n), and its first term is the same in all heads. So the rank of the features, last
token included, is at most d + H·min(d_h, n − 1), whatever the weights:

    byheart task random --examples 42 --length 2 --vocab 60 --labels 60 --shape constant --seed 1 -o c.npz
    byheart build dana-2025 --task c.npz --model-dim 4 --heads 10 -o net

    byheart: dana-2025: the features of the 42 contexts have rank 14; expected 42.

The lemma promises 40 for the heads alone. What can be said instead (ours):

- **Proved.** If n ≥ 2, d ≥ 2, d_h = 1, and the contexts differ and end in L different tokens, then for almost all
  weights the features have rank min(N, min(d, L) + H). So the paper's counts hold for all contexts that differ and end
  in at least d tokens, if heads have dimension 1; together such heads take no more parameters. The proof is in
  [`bounds/dana_2025.py`](../src/byheart/bounds/dana_2025.py).
  `byheart build dana-2025 --task c.npz --model-dim 4 --head-dim 1 --heads 38 -o net` holds all 42.
- **Proved.** For any d_h the rank is at most |T ∖ S| + min(d, L(S)) + H·min(d_h, D(S)) for every part S of the contexts
  T, with L(S) the number of last tokens in S, and D(S) the rank of all differences x_s − x_n in S.
- **Observed.** In a hundred random families of up to ten contexts, many of a rank below min(N, H·d_h + d), the smallest
  of these numbers is the rank (`tests/bounds/test_remarks.py`). So H·d_h + d is reached, it seems, iff no part
  S is in the way. For d_h > 1 the build checks the rank, and `byheart bounds` lists it as a hypothesis.
"""


@dataclass(frozen=True)
class TheoremRow:
    """One form of one theorem; ``built`` is None for statements that no single network shows."""

    paper: str
    theorem: Theorem
    form: str
    command: str
    """The command that builds or shows it."""
    built: Compared | None

    def as_json(self) -> dict[str, Any]:
        """Return the statement, the command, and the network that was built."""
        theorem = self.theorem
        statement = {name: getattr(theorem, name) for name in ("name", "says", "assumes", "limits", "differs")}
        task = theorem.task.flags if theorem.task is not None else None
        forms = {"form": self.form, "command": self.command, "built": self.built}
        return {"paper": self.paper, **statement, "task": task, **forms}

    def numbers(self) -> list[str]:
        """Return parameters, width, depth, bits of the largest weight, and whether every answer was certified."""
        built = self.built
        if built is None:
            return ["–"] * len(COLUMNS)
        counts = (built.parameters, built.width, built.depth, built.max_bits)
        return [*(f"{count:,}" for count in counts if count is not None), "yes" if built.certified else "NO"]

    def in_words(self) -> str:
        """Return the numbers of a network that was built, in a sentence."""
        parameters, width, depth, bits, certified = self.numbers()
        size = f"{parameters} parameters, width {width}, depth {depth}, up to {bits} bits"
        return f"{size}; {'certified' if certified == 'yes' else 'NOT certified'}"


def build_theorems(names: Iterable[str] = (), *, build: bool = True, report: Report | None = None) -> list[TheoremRow]:
    """Build and certify the theorems of the named constructions, or of all if there are no ``names``.

    Without ``build``, only the statements are returned.
    """
    forms = list(_forms(names))
    rows = []
    for done, (construction, theorem, form) in enumerate(forms):
        if report is not None:
            report(done, len(forms), f"{construction.name}, {theorem.name}")
        rows.append(_row(construction, theorem, form, build))
    return rows


def _forms(names: Iterable[str]) -> Iterator[tuple[Construction, Theorem, str]]:
    for construction in [find(name) for name in names] or known().values():
        for theorem in construction.theorems:
            for form in theorem.forms or ("",):
                yield construction, theorem, form


def _row(construction: Construction, theorem: Theorem, form: str, build: bool) -> TheoremRow:
    paper = theorem.paper or construction.paper or "Byheart"
    if theorem.task is None:
        return TheoremRow(paper, theorem, form, theorem.shown_by, None)
    options = theorem.forms[form]
    command = f"byheart build {construction.name} {flags(options)}".rstrip()
    settings = settings_from(construction.settings, construction.name, None, options)
    built = build_and_certify(construction, theorem.task.draw(), settings, theorem.judged) if build else None
    return TheoremRow(paper, theorem, form, command, built)


def statement(theorem: Theorem) -> list[str]:
    """Return lines that state the theorem, its assumptions, its network, how ours differs, and the task."""
    lines = [theorem.says, f"assumes: {theorem.assumes}", f"network: {theorem.limits}"]
    lines += [f"differs: {theorem.differs}"] if theorem.differs else []
    return [*lines, f"task: byheart task random {theorem.task.flags}"] if theorem.task is not None else lines


def markdown(rows: list[TheoremRow]) -> str:
    """Return a page in Markdown that states every theorem once, with the commands that build it, and remarks."""
    lines = [_HEAD, "| theorem | form | " + " | ".join(COLUMNS) + " |", "|---|---|" + "---:|" * 4 + "---|"]
    last: Theorem | None = None
    for row in rows:
        heading = [f"**{row.paper}, {row.theorem.name}**", *statement(row.theorem)]
        first = "" if row.theorem is last else "<br>".join(heading).replace("|", "\\|")
        command = f"{row.form}: `{row.command}`" if row.form else f"`{row.command}`"
        lines.append("| " + " | ".join([first, command, *row.numbers()]) + " |")
        last = row.theorem
    return "\n".join(lines) + "\n" + _FOOT


@dataclass(frozen=True)
class TheoremsResult(Result):
    """Theorems, with the networks that were built for them."""

    theorems: list[TheoremRow]

    def rows(self) -> Iterator[Block]:
        """Yield every theorem's statement, and the command and numbers of every form of its network."""
        for theorem, forms in groupby(self.theorems, key=lambda row: row.theorem):
            rows = list(forms)
            yield Styled(f"{rows[0].paper}, {theorem.name}", "bold")
            yield from (f"  {line}" for line in statement(theorem))
            for row in rows:
                yield f"  {row.form or 'shown by'}: {row.command}" + (f"\n    {row.in_words()}" if row.built else "")
            yield ""

    @property
    def is_true(self) -> bool:
        """False if a network is not certified."""
        return all(row.built is None or bool(row.built.certified) for row in self.theorems)


@dataclass(frozen=True)
class TheoremsCommand:
    """State every theorem that Byheart runs, and certify its networks, as stated and ours, on one task."""

    names: Positional[tuple[str, ...]] = ()
    """Show only the theorems of these constructions."""
    brief: bool = False
    """Print the statements alone: build and certify nothing."""
    out: Annotated[Path | None, Arg(aliases=("-o",))] = None
    """Markdown file for the table."""
    json: Json = False

    def run(self) -> TheoremsResult:
        """Build, certify, and write the page."""
        if self.out is not None:
            check_file(self.out)
        with steps("building and certifying", quiet=self.json) as report:
            rows = build_theorems(self.names, build=not self.brief, report=report)
        if self.out is not None:
            write_text(self.out, markdown(rows))
        return TheoremsResult(rows)
