"""Yu, Gao & Zhang 2025: at a fixed precision N examples take Θ̄(N) parameters, with or without chain of thought.

Statement: let all parameters of an autoregressive Transformer have a fixed number of digits. The paper characterizes
the finite sets of questions and answers that can be memorized at all, without chain of thought and with it; neither
implies the other. In all cases Θ̄(N) parameters are needed and suffice, where the bar leaves out smaller factors.

- Letters: N is the same.
- Order only, on both sides. With b bits per parameter :mod:`.counting` has the lower bound with its constant.
- Not checked here: whether a task can be memorized at all. (Without positions, sequences of one repeated token look
  the same at any length.)
"""

from functools import partial

from byheart.bounds.bound import Bound


def linear(examples: int) -> int:
    """Return N, the expression inside Θ̄(·).

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
