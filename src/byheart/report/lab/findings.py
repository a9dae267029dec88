"""What came out, in sentences: the first thing that a page says, computed from its table."""

from byheart.lab.blocks import axis_of, beyond_length, growth
from byheart.lab.capacity import Held, Tuning, plateaus, tunings
from byheart.lab.fits import Estimate
from byheart.lab.gaps import gaps
from byheart.lab.linear import SATURATED
from byheart.lab.published import beside
from byheart.lab.runs import is_number
from byheart.report.lab.dana import other_steps
from byheart.report.lab.madden import smallest_within
from byheart.report.lab.record import claims, summary
from byheart.report.lab.series import Rows

PAPERS = {
    "dana": "Dana, Pydi & Chevaleyre 2025, on the memorization of associations by attention-only Transformers",
    "mahdavi": "Mahdavi, Liao & Thrampoulidis 2024, on the memorization capacity of multi-head attention",
    "madden": "Madden, Fox & Thrampoulidis 2024, on the next-token prediction capacity of Transformers",
    "capacity": "after Morris et al. 2025, on how much language models memorize",
}
QUESTIONS = {
    "dana": "How many associations does an attention-only Transformer memorize?",
    "mahdavi": "How many examples do the heads of one attention layer memorize?",
    "madden": "How many hidden units take the loss to the entropy of the data?",
    "capacity": "How many bits does a trained GPT memorize per parameter?",
}
"""Who asked, and what is asked, by the first word of an experiment's name."""
BENT = 0.05
"""Where so bad a fit of a line would be rarer than this, the curve is called bent."""


def findings_of(experiment: str, rows: Rows) -> list[str]:
    """What the table says about its paper's question; nothing where it has too little."""
    about = {"dana": _dana, "mahdavi": _mahdavi, "madden": _madden, "capacity": _capacity}
    paper = experiment.split("-", maxsplit=1)[0]
    return about[paper](experiment, rows) if paper in about and rows else []


def _dana(experiment: str, rows: Rows) -> list[str]:
    found = []
    if any(is_number(row.get("last_accuracy")) for row in rows) and beside(rows):
        apart = gaps(experiment, rows)
        found.append(summary(apart) + other_steps(rows, beside(rows)))
        if apart.uniform is not None:
            side = "lower" if apart.uniform < 0 else "higher"
            found.append(
                f"Over all contexts, each counted once, accuracy is {abs(apart.uniform):.3f} {side} than the reported"
                " one, which is over the sample that was trained on."
            )
    bounded = [row for row in rows if is_number(row.get("lower_bound")) and is_number(row.get("accuracy"))]
    if bounded:
        above = sum(row["accuracy"] > row["lower_bound"] for row in bounded)
        found.append(f"{above:,} of {len(bounded):,} trained networks are above the proved lower bound.")
    for claim in claims({experiment: rows}):
        said = f"the paper says {claim.reported}; its points give {_in_words(claim.published)}"
        found.append(f"{claim.what[0].upper()}{claim.what[1:]}: {_in_words(claim.here)} here; {said}.")
    return found


def _mahdavi(experiment: str, rows: Rows) -> list[str]:
    shares = [row["saturated_share"] for row in rows if is_number(row.get("saturated_share"))]
    if shares:
        mean = sum(shares) / len(shares)
        return [f"On an example, {mean:.0%} of the heads are saturated on average ({len(shares)} runs)."]
    along = axis_of(rows)
    if along is None or any(row.get("answers") != rows[0].get("answers") for row in rows):
        return []
    return _flat(rows) if along == "head_dim" else _straight(rows, along)


def _straight(rows: Rows, along: str) -> list[str]:
    """Slopes for all N in a sentence, how much lines explain, and where they are not straight by the F test."""
    what = "the share of the targets' variance explained" if rows[0].get("answers") == "targets" else "accuracy"
    each = {"heads": "head", "length": "token of context"}[along]
    lines = [(found.examples, found.line) for found in growth(rows, along) if found.line is not None]
    if not lines:
        return []
    slopes = ", ".join(f"{_in_words(line.slope)} at N = {N:,}" for N, line in lines)
    explained = sorted(line.r_squared.value for _, line in lines)
    lowest = min(line.r_squared.low for _, line in lines)
    bent = [f"{N:,}" for N, line in lines if line.lack_of_fit is not None and line.lack_of_fit < BENT]
    return [
        f"Below {SATURATED}, {what} grows with every {each} by {slopes}.",
        f"Lines have R² = {explained[0]:.3f} to {explained[-1]:.3f} (the lowest interval begins at {lowest:.2f})"
        + (f"; at N = {', '.join(bent)} it is not quite straight (F test, p < {BENT})." if bent else "."),
    ]


def _flat(rows: Rows) -> list[str]:
    found = []
    for each in beyond_length(rows):
        if each.slopes is not None:
            n, slopes = each.slopes.at, each.slopes
            found.append(
                f"At N = {each.examples:,}, accuracy grows by {_in_words(slopes.before.slope)} a dimension of a head"
                f" up to d_h = n = {n:g} and by {_in_words(slopes.beyond.slope)} beyond"
                f" (equal slopes: p = {slopes.equal:.2g})."
            )
    return found


def _madden(_: str, rows: Rows) -> list[str]:
    found = smallest_within(rows)
    reached = [f"{m:,} for {n:,} stories" for n, m in found if m is not None]
    missed = [f"{n:,}" for n, m in found if m is None]
    said = [f"Hidden neurons that come within 1 % of the entropy: {', '.join(reached)}."] if reached else []
    return said + ([f"For {', '.join(missed)} stories, none that were tried do."] if missed else [])


def _capacity(_: str, rows: Rows) -> list[str]:
    best = plateaus(rows)
    found = [f"{point.parameters:,} parameters hold {_bits_of(point)} bits each." for point in best]
    if any(point.edge for point in best):
        full = ", ".join(f"{point.parameters:,}" for point in best if point.edge)
        found.append(f"Of {full} parameters most was held where most was asked for: they may not be full.")
    return found + [_tuned(tuning) for tuning in tunings(rows)]


def _tuned(tuning: Tuning) -> str:
    """Whether another learning rate, or more steps, would have brought more."""
    rate, steps = tuning.chosen
    first = tuning.points[0]
    where = f"At {first.parameters:,} parameters and N = {first.examples:,}"
    if tuning.along == "steps":
        held = ", ".join(f"{_bits_of(point)} after {point.steps:,} steps" for point in tuning.points)
        return f"{where}, networks hold {held}; those of the ladder were trained for {steps:,}."
    held = ", ".join(f"{_bits_of(point)} at {point.learning_rate:g}" for point in tuning.points)
    return f"{where}, by learning rate they hold {held}; those of the ladder were trained at {rate:g}."


def _bits_of(point: Held) -> str:
    interval = "" if point.low is None else f" ({point.low:.2f} to {point.high:.2f})"
    return f"{point.bits_per_parameter:.2f}{interval}"


def _in_words(found: Estimate) -> str:
    return f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g})".replace("-", "−")
