"""What is special about one stock architecture: Llama (``uniform``) or Qwen2-MoE (``experts``)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.stock.dimensions import StockSizes
from byheart.compiler.stock.stream_map import StreamMap
from byheart.compiler.stock.table import Tables
from byheart.compiler.stock.units import Layer

StockName: TypeAlias = Literal["uniform", "experts"]
Named: TypeAlias = dict[str, NDArray[np.float64]]
"""Tensors by name."""


class Architecture(Protocol):
    """A stock architecture, whose blocks are tables: layers, or experts of one layer."""

    name: ClassVar[StockName]
    """The layout's name in ``CompilerSettings``."""
    called: ClassVar[str]
    """What a sentence calls such a network."""

    def plan(self, bits: int, questions: int, vocab: int, steps: int, deviations: float) -> StockSizes:
        """Return the sizes of the smallest network; see :func:`.dimensions.plan`."""

    def sizes_of(self, config: Mapping[str, Any], steps: int) -> StockSizes | None:
        """Return the sizes of a network with this configuration, or None if no network has it."""

    def tables(self, sizes: StockSizes, at: StreamMap) -> list[Layer]:
        """Return the layers that hold tables, with their attention alone."""

    def blocks(self, sizes: StockSizes, at: StreamMap, tables: Tables, place: int) -> dict[int, Named]:
        """Return the feed-forward tensors of these layers by layer number, from ``place`` on."""

    def matrix(self, place: int, block: int, part: str) -> str:
        """Return the name of the tensor that is one table; ``part`` is up, down or gate."""

    def config(self, sizes: StockSizes, place: int) -> dict[str, Any]:
        """Return the configuration's arguments, without those that all architectures share."""

    def noted(self, sizes: StockSizes) -> dict[str, object]:
        """Return sizes for ``Built.chosen``."""
