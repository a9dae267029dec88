"""What came out, in sentences: the first thing that a page says, computed from its table."""

from collections.abc import Sequence

from byheart.bounds.morris_2025 import BITS_PER_PARAMETER
from byheart.lab.fits import Estimate
from byheart.lab.linear import SATURATED
from byheart.lab.rows import is_number
from byheart.papers.capacity.ladder import CapacityEstimate, Tuning, plateaus, tunings
from byheart.papers.dana_2025.gaps import gaps
from byheart.papers.dana_2025.published import beside
from byheart.papers.madden_2024.widths import growth as width_growth
from byheart.papers.madden_2024.widths import widths
from byheart.papers.mahdavi_2024.blocks import SaturationLine, axis_of, beyond_length, early, growth
from byheart.papers.mahdavi_2024.needed import examples_each, needed, needed_line, same_step
from byheart.report.lab.dana import other_steps
from byheart.report.lab.madden import law_told
from byheart.report.lab.record import claims, summary
from byheart.report.lab.series import Rows, one, values

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
MOST = 0.5
"""Of all that is gained along an axis: where its first step gains more at every N, that is said."""
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
    """Slopes for all N in a sentence, how much lines explain, where they are not straight by the F test, and what the
    theorem promises beside.
    """
    what = "the share of the targets' variance explained" if rows[0].get("answers") == "targets" else "accuracy"
    each = {"heads": "head", "length": "token of context"}[along]
    found = growth(rows, along)
    lines = [(line.examples, line.line) for line in found if line.line is not None]
    if not lines:
        return _needed(rows, along)
    slopes = ", ".join(f"{_in_words(line.slope)} at N = {N:,}" for N, line in lines)
    explained = sorted(line.r_squared.value for _, line in lines)
    lowest = min(line.r_squared.low for _, line in lines)
    bent = [f"{N:,}" for N, line in lines if line.lack_of_fit is not None and line.lack_of_fit < BENT]
    return [
        f"Below {SATURATED}, {what} grows with every {each} by {slopes}.",
        f"Lines have R² = {_range(explained, '.3f')} (the lowest interval begins at {lowest:.2f})"
        + (f"; at N = {', '.join(bent)} it is not quite straight (F test, p < {BENT})." if bent else "."),
        *_at_first(rows, along),
        *_beside_proved(found, each),
        *_needed(rows, along),
    ]


def _at_first(rows: Rows, along: str) -> list[str]:
    """That a line is not what to look at, where the first step of the axis gains most of all there is."""
    found = early(rows, along)
    if found is None or min(found.shares) <= MOST:
        return []
    names = {"heads": "heads", "length": "tokens of context"}
    shares = _range(sorted(found.shares), ".0%")
    return [
        f"From {found.first:g} to {found.second:g} {names[along]} it gains {shares} of what it gains up to"
        f" {found.last:g}: growth that ends early, and no line."
    ]


def _beside_proved(found: Sequence[SaturationLine], each: str) -> list[str]:
    """Right answers a head, or a token, and what the proved number grows by."""
    right = sorted(line.right.value for line in found if line.right is not None)
    proved = found[0].proved
    if not right or not proved:
        return []
    times = [value / proved for value in right]
    return [
        f"That is {_range(right, ',.0f')} right answers with every {each}, {_range(times, '.1f')} times the"
        f" {proved:,.0f} by which the proved H(min(n, d_h) − 1) + 1 grows."
    ]


def _needed(rows: Rows, along: str) -> list[str]:
    """How fast what N examples need grows with N, and how straight."""
    found = needed(rows, along)
    each = {"heads": "heads", "length": "tokens of context"}[along]
    if step := same_step(found, values(rows, along)):
        where = f"between {step[0]:,} and {step[1]:,} {each}"
        return [f"Where {SATURATED} is crossed, it is {where}: one step, which does not tell how that grows with N."]
    through = needed_line(found)
    more = None if through is None else examples_each(through)
    if through is None or more is None:
        return []
    whole = [some for some in found if len(some.found) == some.seeds]
    return [
        f"The {each} at which {SATURATED} is reached grow with N: one more for every {_in_words(more, '.0f')} examples"
        f" (a line over {len(whole)} numbers of examples, R² = {through.r_squared.value:.3f})."
    ]


def _flat(rows: Rows) -> list[str]:
    """What a doubling of d_h brings up to n and beyond, and whether that differs."""
    said = []
    for found in beyond_length(rows):
        slopes = found.doublings
        if found.saturated:
            said.append(f"At N = {found.examples:,}, accuracy reaches {SATURATED}: it says nothing about d_h.")
        elif slopes is not None:
            n = one(rows, "length")
            same = f"equal slopes: p = {slopes.equal:.2g}"
            said.append(
                f"At N = {found.examples:,}, accuracy gains {_in_words(slopes.before.slope)} with a doubling of d_h"
                f" up to n = {n:,}, and {_in_words(slopes.beyond.slope)} beyond ({same})."
            )
    return said


def _madden(_: str, rows: Rows) -> list[str]:
    found = widths(rows)
    enough = [one for one in found if one.least is not None]
    missed = [
        f"{one.told} for {one.stories:,} stories ({100 * one.nearest:.2g} % above at best)"
        for one in found
        if one.least is None
    ]
    said = []
    if enough:
        listed = ", ".join(f"{one.told} for {one.stories:,} stories" for one in enough)
        said.append(f"The fewest hidden neurons of the grid that come within 1 % of the entropy: {listed}.")
    if missed:
        said.append(f"More than were tried: {', '.join(missed)}.")
    if width_growth(found).status == "fitted":
        said.append(
            f"Where the excess crosses 1 %, {law_told(width_growth(found))}{', where it is crossed' if missed else ''}."
        )
    if enough:
        shares = sorted((one.parameters or 0) / one.needed for one in enough)
        said.append(
            f"They have {_range(shares, '.2g')} times the N(ω − 1) parameters that any N distributions"
            " take; behind most of these contexts stands one token only."
        )
    return said


def _capacity(_: str, rows: Rows) -> list[str]:
    best = plateaus(rows)
    found = [f"{point.parameters:,} parameters hold {_bits_of(point)} bits each." for point in best]
    if any(point.edge for point in best):
        full = ", ".join(f"{point.parameters:,}" for point in best if point.edge)
        found.append(f"Of {full} parameters most was held where most was asked for: they may not be full.")
    published = f"Published, for GPTs of 5·10⁵ to 1.5·10⁹ parameters: about {BITS_PER_PARAMETER} (Morris et al. 2025)."
    return [*found, published, *(_tuned(tuning) for tuning in tunings(rows))]


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


def _bits_of(point: CapacityEstimate) -> str:
    interval = "" if point.low is None else f" ({point.low:.2f} to {point.high:.2f})"
    return f"{point.bits_per_parameter:.2f}{interval}"


def _range(ordered: Sequence[float], digits: str) -> str:
    """From the first to the last.

    >>> _range([0.5, 0.75], ".2f"), _range([0.5], ".2f")
    ('0.50 to 0.75', '0.50')
    """
    return " to ".join(dict.fromkeys(f"{end:{digits}}" for end in (ordered[0], ordered[-1])))


def _in_words(found: Estimate, digits: str = ".3g") -> str:
    value, low, high = (f"{end:,{digits}}" for end in (found.value, found.low, found.high))
    return f"{value} ({low} to {high})".replace("-", "−")
