"""Park, Park & Hwang 2026: what Transformers can do in floating point, rounding included.

Statement: with floating-point parameters and floating-point operations, Transformers represent all
permutation-equivariant functions of sequences of bounded length, and do not for long ones; and some functions that are
not equivariant, even without positional codes, because sums depend on their order.

- No number: how long is long depends on the format. Byheart's float networks avoid the question: every sum is shown to
  be exact in any order (``verify.py``), so that rounding has no part in what they answer.
"""

from byheart.bounds.bound import Statement

STATEMENTS = (
    Statement(
        name="park-2026-floats",
        paper="Park, Park & Hwang 2026",
        source="On the Expressive Power of Floating-Point Transformers, arXiv:2601.16450",
        setting="seq-to-seq",
        model="Transformer with floating-point parameters and operations",
        kind="proved",
        says="floats represent all equivariant functions of bounded length, and not all of long sequences",
        hypotheses=("the length is bounded, by a number that depends on the format",),
    ),
)
