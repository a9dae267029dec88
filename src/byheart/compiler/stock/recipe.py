"""All that a stock network is made from, apart from the questions: what to try first, and what next."""

from dataclasses import dataclass, replace

import numpy as np

from byheart.compiler.codes import Code, make_code
from byheart.compiler.layouts import CompilerSettings, Unsolvable
from byheart.compiler.stock.architectures import ARCHITECTURES
from byheart.compiler.stock.dimensions import BITS, GATE, StockSizes
from byheart.compiler.stock.front import POSITIONS, REACH, Tokens, distances
from byheart.errors import BadInput
from byheart.files.memory import check_memory
from byheart.tasks.contexts import Contexts

DRAWS = 2
"""Number of draws of the hash before the network grows."""
QUESTION_BYTES = 500
"""Memory of compiling, in bytes per question, without the questions themselves (measured: 494 at 10⁶, 317 at 4·10⁶)."""


@dataclass(frozen=True, eq=False)
class StockRecipe:
    """All that a stock network is made from, apart from the questions."""

    settings: CompilerSettings
    code: Code
    sizes: StockSizes
    seed: int
    attempt: int = 0

    @property
    def rng(self) -> np.random.Generator:
        """A new generator of the attempt's random numbers."""
        return np.random.default_rng([self.seed, *divmod(self.attempt, DRAWS)])


def first_recipe(contexts: Contexts, settings: CompilerSettings, seed: int = 0) -> StockRecipe:
    """Return the recipe to try first. Raise BadInput if no recipe can do."""
    assert settings.layout != "rectangular"
    architecture = ARCHITECTURES[settings.layout]
    if settings.precision != "float32" or settings.words is not None:
        problem = f"the layout {architecture.name} is for float32 and words of its own sizes"
        raise BadInput(f"{problem}; omit precision and words")
    code = code_of(architecture, contexts)
    check_memory(QUESTION_BYTES * len(contexts), f"to compile {len(contexts):,} questions into {architecture.called}")
    return StockRecipe(settings, code, planned_sizes(architecture, contexts, code), seed)


def next_recipe(recipe: StockRecipe, contexts: Contexts, failure: Unsolvable) -> StockRecipe:
    """Return the recipe to try after ``recipe`` has failed: another draw, or a larger network after ``DRAWS``."""
    recipe = replace(recipe, attempt=recipe.attempt + 1)
    round_, draw = divmod(recipe.attempt, DRAWS)
    if draw:
        return recipe
    return replace(recipe, sizes=planned_sizes(type(recipe.sizes), contexts, recipe.code, round_))


def planned_sizes(architecture: type[StockSizes], contexts: Contexts, code: Code, round_: int = 0) -> StockSizes:
    """Return the sizes of the network that is tried in one round of attempts."""
    questions, looks = len(contexts), len(distances(contexts.window))
    return architecture.plan(code.total, questions, Tokens(contexts).count, looks, deviations(round_))


def deviations(round_: int) -> float:
    """Return the room in each bit plane, in standard deviations above the mean."""
    return 0.9 + 0.2 * round_


def code_of(architecture: type[StockSizes], contexts: Contexts) -> Code:
    """Return the code of the labels. Raise BadInput if no network of this architecture holds such questions."""
    if not len(contexts):
        raise BadInput("there is no question to answer; expected at least one")
    code = make_code(contexts.labels, contexts.label_count)
    if contexts.window > 2 * REACH:
        raise BadInput(f"the window is {contexts.window}; expected at most {2 * REACH} in {architecture.called}")
    if code.low or code.longest > BITS[GATE] - 1:
        used = f"{len(np.unique(contexts.labels)):,} different labels"
        raise BadInput(f"{used} are too many for {architecture.called}; expected at most 2,048")
    if contexts.longest >= POSITIONS:
        raise BadInput(f"a text has {contexts.longest} tokens; expected less than {POSITIONS}")
    return code


def planned_parameters(architecture: type[StockSizes], contexts: Contexts) -> int:
    """Return the parameters of the network that is tried first. Nothing is solved.

    They are those of the compiled network if one of the first ``DRAWS`` hashes leaves every question with an answer.
    """
    code = code_of(architecture, contexts)
    return planned_sizes(architecture, contexts, code).parameters(Tokens(contexts).count)
