"""Yu, Gao & Zhang 2025: at a fixed precision N examples take as many parameters, with chain of thought or without.

Statement: autoregressive Transformers whose parameters all have a fixed number of digits. The paper says which finite
sets of questions and answers they can memorize at all, without chain of thought and with it, neither of which implies
the other; and in all cases the parameters that are needed and that suffice are Θ̄(N): the bar leaves out lesser factors.

- Letters: N is the same.
- Order only, on both sides. With b bits a parameter :mod:`.counting` has the lower bound with its constant.
- Not checked here: which tasks can be memorized at all. (Without positions, a sequence of one and the same token looks
  the same at any length.)
"""

from functools import partial

from byheart.bounds.bound import Bound


def linear(examples: int) -> int:
    """N, the inside of Θ̄(·).

    >>> linear(examples=1000)
    1000
    """
    return examples


_bound = partial(
    Bound,
    paper="Yu, Gao & Zhang 2025",
    source="Analyzing the Power of Chain of Thought through Memorization Capabilities, arXiv:2511.01190",
    setting="next-token",
    model="autoregressive Transformer of fixed precision, with chain of thought or without",
    kind="order",
    formula=linear,
)

BOUNDS = (
    _bound(
        name="yu-gao-zhang-2025-upper",
        side="upper",
        expression="Ō(N)",
        hypotheses=("parameters of a fixed precision", "the task is one that such Transformers can memorize at all"),
    ),
    _bound(
        name="yu-gao-zhang-2025-lower",
        side="lower",
        expression="Ω̄(N)",
        hypotheses=("parameters of a fixed precision", "every answer may be asked for"),
    ),
)
