"""Settings that all layouts share, and the three steps of an attempt.

A layout is a shape of network. ``rectangular`` is our own; ``uniform`` and ``experts`` are stock models. In all of them
a hash of the window draws the places that a question reads (``front``, ``address``), the words there (``table``) are
solved for (``solve``), and a few bits of their sum are the answer (``read``). A draw of the hash may leave some
question without an answer. The next attempt then follows another *recipe*: all that a network is made from, apart from
the questions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from byheart.executors import Workplace
from byheart.progress import Report
from byheart.tasks.contexts import Contexts

if TYPE_CHECKING:
    from byheart.compiler.rectangular.shelf import Shelf
    from byheart.networks import Network

NAME = "reciting"
"""Name of the construction in ``Built`` and in config.json."""
ATTEMPTS = 40
"""Number of recipes that are tried before compiling gives up."""
Precision: TypeAlias = Literal["float32", "float64", "bfloat16"]
LayoutName: TypeAlias = Literal["rectangular", "uniform", "experts"]
Refuse: TypeAlias = int | Literal["auto", "key"] | None


@dataclass(frozen=True)
class CompilerSettings:
    """How to compile."""

    precision: Precision = "float32"
    """Format of the weights. bfloat16 is for the table; the rest of such a network is float32."""
    words: int | None = None
    """Bits per word of the table: 24 or 31 (float32), 53 or 60 (float64), 8 or 15 (bfloat16). The larger one puts data
    into sign and exponent too. Default: the smaller one."""
    layout: LayoutName = "rectangular"
    """rectangular: every sublayer as large as it needs to be. uniform: a stock Llama. experts: a stock
    Qwen2-MoE, which takes fewer parameters. Both are float32, with words of 16 and 22 bits."""
    refuse: Refuse = None
    """How the network recognizes contexts that were never memorized: for facts, in the rectangular layout, with the
    smaller words. A number is the bits of a print, kept beside the label in a word of the table, or in a store if the
    word has no room. "key" stores the whole context. "auto": 20 bits, or as many as there is room for."""
    shards: int | None = None
    """Number of tables behind one front, in the rectangular layout. None: one table if one is enough, otherwise as many
    as needed."""


class Unsolvable(Exception):  # noqa: N818 - it is about a system of equations, and caught by name
    """This draw of the hash leaves some question without an answer: draw again."""

    def __init__(self, message: str, *, dependent: int = 0) -> None:
        super().__init__(message)
        self.dependent = dependent
        """Number of equations of a bit plane that depend on others, at least; 0 if that is not the reason."""


@dataclass(frozen=True)
class Resources:
    """Resources of an attempt. Only ``files`` become part of the network; the rest changes none of its bits."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    """The tokenizer's files, by name."""
    report: Report | None = None
    """Hears of bit planes, tables or shards that are solved."""
    executor: Workplace | None = None
    """Place where shards are solved. None: this process."""
    shelf: "Shelf | None" = None
    """Folder that keeps solved shards. None: they are not kept."""


class Attempt(NamedTuple):
    """A compiled network, and the choices that its recipe made."""

    network: "Network"
    choices: dict[str, object]


R = TypeVar("R")
"""The layout's recipes."""


@dataclass(frozen=True)
class Layout(Generic[R]):
    """The steps of compiling into one layout."""

    first_recipe: Callable[[Contexts, CompilerSettings, int], R]
    """Questions, settings, seed → the recipe to try first; BadInput if no recipe can do."""
    attempt: Callable[[R, Contexts, Resources], Attempt]
    """Follow a recipe; raises Unsolvable."""
    next_recipe: Callable[[R, Contexts, Unsolvable], R]
    """The recipe to try after this one has failed."""
