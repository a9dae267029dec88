"""Facts and associations stored in weights: linear in N up to logarithms, by five papers.

A fact is a subject and a relation with their answer. All numbers are orders. With b bits per parameter,
:mod:`.counting` has the lower bound with its constant.

**Nichani, Lee & Bietti 2024.** One layer of self-attention and an MLP recall all facts, each in a sequence of noise, as
soon as the parameters of the attention, *or* those of the MLP, are linear in the number of facts up to logarithmic
factors: one can be traded for the other. Their S subjects times R relations are our N. Not checked here: that
embeddings are random, and that sequences have the form that the theorem assumes.

**Yu, Gao & Zhang 2025.** All parameters of an autoregressive Transformer have a fixed number of digits. The paper
characterizes the finite sets of questions and answers that can be memorized at all, without chain of thought and with
it; neither implies the other. In all cases Θ̄(N) parameters are needed and suffice, where the bar leaves out smaller
factors. Not checked here: whether a task can be memorized at all. (Without positions, sequences of one repeated token
look the same at any length.)

**Ravfogel, Yehudai, Bruna & Bietti 2026.** S subjects have R relations, each a random bijection from subjects to one
set of attributes. A Transformer of one layer whose subjects' embeddings are sums of attribute vectors recalls all facts
with embeddings of dimension O(R log S). A small MLP selects the requested attribute and stores no facts. Chains of
relations ("the mother of the wife of") trade width against depth, or against a chain of thought. S times R are our N,
and R is ``relations``. In parameters, S embeddings of that dimension are N log S numbers, in agreement with counting.
Not checked here: that relations are bijections onto the same attributes.

**Dugan et al. 2025.** Keys and values are vectors; an MLP stores a fact if its output at the key has a larger product
with the right value than with any other. Such MLPs are constructed for all keys and values outside a null set. For
values that are easily told apart after a random projection the parameters meet the information-theoretic order. A
factor that depends on how well values can be told apart is left out. Not checked here: the embeddings.

**Giorlandino, Goldt & Maillard 2026.** A matrix maps p random inputs in R^d to p targets in R^d, and each must come
nearer to its own target than to any other. With each input given competing targets of its own (the *decoupled* model)
the most that can be stored is p with p log p / d² = ½ as d grows: d² = 2p log p parameters suffice, and fewer do not.
Their p is our N. It is an order, not a count: the number is a limit, from a calculation of statistical physics, for the
decoupled model. Numerical and analytical evidence shows that it agrees with the original model. Not checked here: that
inputs and targets are random.
"""

import math
from functools import partial

from byheart.bounds.bound import Bound
from byheart.errors import BadInput


def linear(examples: int) -> int:
    """Return N, the expression inside Õ(·), Ō(·) or Ω̄(·)."""
    return examples


def dimension(examples: int, relations: int) -> float:
    """Return R log(N/R), the expression inside O(·) for the dimension of embeddings.

    >>> round(dimension(examples=1000, relations=4), 2)
    22.09
    """
    if relations > examples:
        raise BadInput(f"relations is {relations} and examples {examples}; expected R ≤ N, a subject or more")
    return relations * math.log(examples / relations)


def embedding_entries(examples: int, relations: int) -> float:
    """Return N log(N/R), the entries of N/R embeddings of dimension R log(N/R).

    >>> round(embedding_entries(examples=1000, relations=4))
    5521
    """
    return examples / relations * dimension(examples, relations)


def critical(examples: int) -> float:
    """Return 2N log N, the expression inside Θ(·) with the constant of the limit.

    >>> round(critical(examples=1000))
    13816
    """
    return 2 * examples * math.log(examples)


RAVFOGEL_HYPOTHESES = (
    "examples are facts: each of N/R subjects with each of R relations",
    "relations are random bijections onto one set of attributes",
)
_yu_gao_zhang = partial(
    Bound,
    paper="Yu, Gao & Zhang 2025",
    source="Analyzing the Power of Chain of Thought through Memorization Capabilities, arXiv:2511.01190",
    setting="next-token",
    model="autoregressive Transformer of fixed precision, with chain of thought or without",
    kind="order",
    formula=linear,
)
_giorlandino = partial(
    Bound,
    paper="Giorlandino, Goldt & Maillard 2026",
    source="Factual recall in linear associative memories: sharp asymptotics and mechanistic insights, "
    "arXiv:2605.10795",
    setting="points",
    model="one d × d matrix, read by the nearest target (decoupled model)",
    kind="order",
    hypotheses=("N random inputs, each with a random target of its own", "d → ∞"),
    formula=critical,
    paper_letters={"p": "N, examples"},
)

BOUNDS = (
    Bound(
        name="nichani-2024-facts",
        paper="Nichani, Lee & Bietti 2024",
        source="Understanding Factual Recall in Transformers via Associative Memories, arXiv:2412.06538",
        setting="next-token",
        model="one layer of self-attention and an MLP; the facts in either of the two",
        side="upper",
        kind="order",
        expression="Õ(N)",
        hypotheses=("examples are facts: a subject and a relation among noise", "random embeddings"),
        formula=linear,
        paper_letters={"SR": "N, examples: subjects times relations"},
    ),
    _yu_gao_zhang(
        name="yu-gao-zhang-2025-upper",
        side="upper",
        expression="Ō(N)",
        hypotheses=("parameters of a fixed precision", "the task is one that such Transformers can memorize at all"),
    ),
    _yu_gao_zhang(
        name="yu-gao-zhang-2025-lower",
        side="lower",
        expression="Ω̄(N)",
        hypotheses=("parameters of a fixed precision", "every answer may be asked for"),
    ),
    Bound(
        name="ravfogel-2026-facts",
        paper="Ravfogel, Yehudai, Bruna & Bietti 2026",
        source="Geometric Factual Recall in Transformers, arXiv:2605.12426; stated for the dimension, multiplied here "
        "by the subjects",
        setting="next-token",
        model="one layer with learned embeddings and a small MLP",
        side="upper",
        kind="order",
        expression="O(N log(N/R)) in the embedding table",
        hypotheses=RAVFOGEL_HYPOTHESES,
        formula=embedding_entries,
        paper_letters={"R": "relations"},
    ),
    Bound(
        name="dugan-2025-facts",
        paper="Dugan et al. 2025",
        source="Constructing Efficient Fact-Storing MLPs for Transformers, arXiv:2512.00207",
        setting="points",
        model="a gated MLP from keys to values, read by the largest product",
        side="upper",
        kind="order",
        expression="Õ(N)",
        hypotheses=(
            "keys and values outside of a set of measure zero",
            "values that a random projection to few dimensions keeps apart",
        ),
        formula=linear,
    ),
    _giorlandino(name="giorlandino-2026-upper", side="upper", expression="O(2N log N)"),
    _giorlandino(name="giorlandino-2026-lower", side="lower", expression="Ω(2N log N)"),
)
