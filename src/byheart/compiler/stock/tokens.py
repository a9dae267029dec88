"""The tokens of a stock model: those of the questions, and where one is missing, one more."""

import numpy as np

from byheart.tasks.contexts import Contexts


class Tokens:
    """Which token stands for what is missing: the end of texts, or one more, or none if nothing is."""

    def __init__(self, contexts: Contexts) -> None:
        sequence = np.searchsorted(contexts.starts, contexts.places, side="right") - 1
        missing = bool((contexts.places - contexts.starts[sequence] + 1 < contexts.window).any())
        self.end = contexts.end
        self.count = max(contexts.vocab, contexts.label_count)
        self.first = contexts.end
        if missing and self.first is None:
            self.first, self.count = self.count, self.count + 1
