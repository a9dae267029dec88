"""Meyer, Michelessa, Chaux & Tan 2025: a tuned prompt holds at most as much as it is long.

Statement: keep a Transformer's weights and choose only the prompt. The amount memorized by the prompt grows at most
linearly with the prompt's length. Moreover, a Transformer forgets in long contexts, whatever its prompt says.

- Letters: N, examples.
- Order only, and about *tokens of the prompt*, whose vectors have a fixed dimension and precision.
"""

from byheart.bounds.bound import Statement


def prompt(examples: int) -> int:
    """Return N, the expression inside Ω(·).

    >>> prompt(examples=1000)
    1000
    """
    return examples


STATEMENTS = (
    Statement(
        name="meyer-2025-prompt",
        paper="Meyer, Michelessa, Chaux & Tan 2025",
        source="Memory Limitations of Prompt Tuning in Transformers, arXiv:2509.00421",
        setting="next-token",
        model="any Transformer whose weights are kept, with a tuned prompt",
        kind="order",
        says="a prompt of Ω(N) tokens is needed: what a prompt memorizes is at most linear in its length",
        counts="tokens of the prompt",
        hypotheses=("the weights are fixed before the labels are known", "every labelling may be asked for"),
        formula=prompt,
    ),
)
