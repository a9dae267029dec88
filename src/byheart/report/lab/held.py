"""How many associations attention alone holds: proved of trained networks, beside what a theorem promises.

One layer of attention (Dana, Pydi & Chevaleyre 2025) is asked for the answers to all ω² contexts of two tokens, drawn
at random. For each number of heads there are, and what each number is:

- *trained*: right answers of one network after gradient descent, proved from its saved weights, one by one;
- *promised*: H·d_h + d, which some weights hold whatever the answers are (their Corollary 1);
- *built*: right answers of the network that ``byheart build dana-2025 --hold`` makes of that proof, with the same sizes
  and for the same task, proved likewise: those promised, and others by luck;
- *guessed*: what the commonest answer gets, and what uniform guesses get in the mean, one in ω;
- *counting*: of how many associations W parameters of 32 bits could reach *every* labelling, at most
  (:mod:`byheart.bounds.counting`). Those of :mod:`byheart.bounds.vc` are for ReLU networks, which these are not.

What a network was trained to is a fact about one seed, and bounds nothing: another may hold more, or fewer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from byheart.bounds import counting
from byheart.bounds.dana_2025 import capacity
from byheart.report.lab.series import (
    BUILT,
    PROVED,
    PROVED_BEFORE,
    RAMP,
    Entry,
    Rows,
    check_columns,
    draw_line,
    heading,
    label,
    legend_below,
    one,
)
from byheart.report.style import QUIET, canvas, save_picture

BITS = 32
"""Of a trained parameter."""
SHOWN = 20
"""Heads of the network of which the finding speaks, if there is one."""
TRAINED_INK, THEORY_INK = RAMP[2], RAMP[4]
TRAINED: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 1.4}
ALL: dict[str, Any] = {"linewidth": 1.0}


@dataclass(frozen=True)
class MemorizedCount:
    """A network that was trained, and how many of so many ``examples`` are right: a row of the table ``held``."""

    vocab: int
    model_dim: int
    head_dim: int
    heads: int
    parameters: int
    examples: int
    measured: int
    """In floats, while it was trained."""
    right: int
    """Proved right."""
    built: int
    """Proved right of the network that was built."""
    constant: int
    """Those that have the commonest answer."""

    @property
    def promised(self) -> int:
        """H·d_h + d, or all there are."""
        return min(capacity(self.heads, self.head_dim, self.model_dim), self.examples)

    @property
    def guessed(self) -> float:
        """In the mean, by uniform guesses."""
        return self.examples / self.vocab

    @property
    def most(self) -> int:
        """What counting allows this many parameters."""
        return counting.most(self.parameters, self.vocab, BITS)

    def cells(self) -> dict[str, int | float]:
        """A row for people."""
        return {
            "H": self.heads,
            "parameters": self.parameters,
            "asked for": self.examples,
            "trained, measured": self.measured,
            "trained, proved": self.right,
            "promised: H·d_h + d": self.promised,
            "built, proved": self.built,
            "commonest answer": self.constant,
            "uniform guesses": self.guessed,
            f"counting, {BITS} bits": self.most,
        }

    def in_words(self) -> str:
        """The finding.

        >>> MemorizedCount(50, 10, 10, 20, 9020, 2500, 1837, 1837, 267, 70).in_words()
        'Of 2,500 associations 9,020 parameters (H = 20) hold 1,837 after training, proved one by one; the theorem \
promises 210, the network that its proof builds holds 267, the commonest answer gets 70. Counting allows 51,142.'
        """
        return (
            f"Of {self.examples:,} associations {self.parameters:,} parameters (H = {self.heads}) hold {self.right:,} "
            f"after training, proved one by one; the theorem promises {self.promised:,}, the network that its proof "
            f"builds holds {self.built:,}, the commonest answer gets {self.constant:,}. Counting allows {self.most:,}."
        )


def held_of(rows: Rows) -> list[MemorizedCount]:
    """The rows of a table, fewest heads first."""
    names = [field.name for field in fields(MemorizedCount)]
    check_columns(rows, *names)
    return sorted(
        (MemorizedCount(**{name: int(row[name]) for name in names}) for row in rows), key=lambda held: held.heads
    )


def spoken_of(table: Sequence[MemorizedCount]) -> MemorizedCount:
    """The network of which the finding speaks: that of :data:`SHOWN` heads, or else of most."""
    return next((held for held in table if held.heads == SHOWN), table[-1])


def draw_held(rows: Rows, path: Path) -> None:
    """Associations held against heads: trained and proved, promised, built and proved, guessed, and all there are."""
    table = held_of(rows)
    sizes = ", ".join(f"{letter} = {one(rows, name):g}" for letter, name in _LETTERS.items())
    every = int(one(rows, "examples"))
    picture, (axes,) = canvas(path, height=5.2)
    draw_line(axes, [(held.heads, every) for held in table], QUIET, ALL)
    heads = [held.heads for held in table]
    axes.plot(heads, [held.right for held in table], color=TRAINED_INK, **TRAINED)
    axes.plot(heads, [held.built for held in table], color=THEORY_INK, **BUILT)
    draw_line(axes, [(held.heads, held.promised) for held in table], THEORY_INK, PROVED)
    draw_line(axes, [(held.heads, held.guessed) for held in table], QUIET, PROVED_BEFORE)
    _write_numbers(axes, spoken_of(table))
    axes.set(ylim=(0, 1.06 * every))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    label(axes, "H, heads", f"associations held, of {every:,}", "")
    legend_below(picture, _entries(table))
    heading(picture, f"What one layer of attention alone holds; {sizes}")
    save_picture(picture, path)


_LETTERS = {"ω": "vocab", "d": "model_dim", "d_h": "head_dim"}


def _write_numbers(axes: Any, held: MemorizedCount) -> None:
    """Three numbers of one network, beside their marks."""
    places = (
        (held.right, TRAINED_INK, (-20, 9)),
        (held.built, THEORY_INK, (0, 12)),
        (held.promised, THEORY_INK, (0, -8.5)),
    )
    for number, colour, shift in places:
        text = {"textcoords": "offset points", "ha": "center", "va": "center", "fontsize": 9.5}
        axes.annotate(f"{number:,}", (held.heads, number), shift, color=colour, **text)


def _entries(table: Sequence[MemorizedCount]) -> list[Entry]:
    least = min(held.most for held in table)
    allowed = f"; counting allows {least:,} or more" if least >= table[0].examples else ""
    return [
        ("trained, single runs; each answer proved", TRAINED | {"color": TRAINED_INK}),
        ("built by dana-2025; each answer proved", BUILT | {"color": THEORY_INK}),
        ("promised by the theorem: H·d_h + d", PROVED | {"color": THEORY_INK}),
        (f"uniform guesses, in the mean: {table[0].guessed:g}", PROVED_BEFORE),
        (f"all that are asked for{allowed}", ALL),
    ]
