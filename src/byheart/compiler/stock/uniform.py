"""Questions in, a stock Llama that answers them all out: blocks are layers, one after the other.

A question must find its block without a router. Where block l is, the addresses' squares s hold (e − l)² besides, e the
block's number: 0 in its own block only (``table``). Attention takes s from one layer to the next, since
(e − l)² = (e − l + 1)² − 2·(e − l) − 1: linear in e. That takes no feature but e's, where 2^−offset is afterwards.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, ClassVar

from byheart.compiler.stock.architecture import Named, StockName
from byheart.compiler.stock.dimensions import CODES, Grid, StockSizes, grids, plan
from byheart.compiler.stock.draft import around
from byheart.compiler.stock.spread import finish_squares
from byheart.compiler.stock.stream_map import StreamMap
from byheart.compiler.stock.table import PARTS, Tables, swiglus
from byheart.compiler.stock.units import ONE, Layer


class LayerSizes(StockSizes):
    """Blocks are layers, and all layers have the same number of units."""

    layered: ClassVar[bool] = True

    @property
    def layers(self) -> int:
        """All of them."""
        return self.around + self.blocks

    def parameters(self, vocab: int) -> int:
        """All of them, the embedding once: it is the unembedding too."""
        return (vocab + 1) * self.width + self.layers * (self.attention + 3 * self.width * self.units)


def sized(width: int, pair: tuple[Grid, Grid], rows: int, blocks: int, steps: int) -> LayerSizes | None:
    """Sizes with as many other layers as it takes; None if they would have too few units."""
    return None if rows <= CODES else LayerSizes(width, *pair, rows, blocks, rows, _around(width, rows) + steps)


@cache
def _around(width: int, units: int) -> int:
    return around(LayerSizes(width, (1, 1), (3, 1), 4, 1, units, 0), 0)


class Uniform:
    """A Llama."""

    name: ClassVar[StockName] = "uniform"
    called: ClassVar[str] = "a uniform network"
    plan = staticmethod(partial(plan, sized))

    def sizes_of(self, config: Mapping[str, Any], steps: int) -> StockSizes | None:
        """Those of a network with this configuration; None if there are none."""
        units = config["intermediate_size"]
        pair = grids(units)
        sizes = None if pair is None else sized(config["hidden_size"], pair, units, 0, steps)
        blocks = 0 if sizes is None else config["num_hidden_layers"] - sizes.around
        return None if sizes is None or blocks < 1 or blocks % 2 == 0 else replace(sizes, blocks=blocks)

    def tables(self, sizes: StockSizes, at: StreamMap) -> list[Layer]:
        """Block after block: s has (e − l)² in it, e counted from the middle."""
        middle = (sizes.blocks - 1) / 2
        chain = [Layer() for _ in range(sizes.blocks)]
        finish_squares(chain[0], at, more=middle**2)
        for number, layer in enumerate(chain[1:], start=1):
            layer.carry({at.number: -2, ONE: 2 * (number - middle) - 1}, {s: 1 for _, _, s in at.address})
        return chain

    def blocks(self, sizes: StockSizes, at: StreamMap, tables: Tables, place: int) -> dict[int, Named]:
        """Layer after layer."""
        found = swiglus(sizes, at, tables)
        return {
            place + number: {f"mlp.{part}_proj.weight": found[part][number] for part in PARTS}
            for number in range(sizes.blocks)
        }

    def matrix(self, place: int, block: int, part: str) -> str:
        """One of a layer's."""
        return f"model.layers.{place + block}.mlp.{part}_proj.weight"

    def config(self, sizes: StockSizes, place: int) -> dict[str, Any]:
        """LlamaConfig's arguments."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "attention_bias": False,
            "mlp_bias": False,
        }

    def noted(self, sizes: StockSizes) -> dict[str, object]:
        """How many of the layers are tables."""
        return {"table_layers": sizes.blocks}
