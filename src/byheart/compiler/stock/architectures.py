"""The two stock architectures: a Llama, whose blocks are layers, and a Qwen2-MoE, whose blocks are experts.

In a Llama, a question must find its block without a router. In block l, the addresses' squares s also hold (e − l)²,
where e is the number of the question's block: this is 0 in its own block only (:mod:`.table`). Attention takes s from
one layer to the next, because (e − l)² = (e − l + 1)² − 2·(e − l) − 1 is linear in e. This takes no feature but that of
e, where 2^−offset is afterwards.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.stock.dimensions import CODES, Grid, StockName, StockSizes, StreamMap, grids
from byheart.compiler.stock.read import reading
from byheart.compiler.stock.spread import finish_squares, spread
from byheart.compiler.stock.table import PARTS, UP_UNIT, swiglus
from byheart.compiler.stock.units import ONE, Named, StockLayer

_MOST_UNITS = 64


def layers_around(
    sizes: StockSizes, at: StreamMap, stride: int, longest: int
) -> tuple[list[StockLayer], list[StockLayer]]:
    """Return the layers between the hash and the tables, and those after the tables. Set ``at.columns``."""
    before, powers = spread(sizes, at, stride)
    return before, reading(at, sizes.units, powers, longest, layered=sizes.layered)


def count_around(sizes: StockSizes, steps: int) -> int:
    """Count the layers besides the tables."""
    return steps + sum(map(len, layers_around(sizes, StreamMap(sizes.width), 1, 1)))


class LayerSizes(StockSizes):
    """A Llama. Blocks are layers, and all layers have the same number of units."""

    layered: ClassVar[bool] = True
    name: ClassVar[StockName] = "uniform"
    called: ClassVar[str] = "a uniform network"

    @classmethod
    def shaped(cls, width: int, pair: tuple[Grid, Grid], rows: int, blocks: int, steps: int) -> "LayerSizes | None":
        """Return sizes with as many other layers as needed; None if these would have too few units."""
        return None if rows <= CODES else cls(width, *pair, rows, blocks, rows, cls._around(width, rows) + steps)

    @classmethod
    @cache
    def _around(cls, width: int, units: int) -> int:
        return count_around(cls(width, (1, 1), (3, 1), 4, 1, units, 0), 0)

    @classmethod
    def of_config(cls, config: Mapping[str, Any], steps: int) -> StockSizes | None:
        """Return the sizes of a network with this configuration; None if no network has it."""
        units = config["intermediate_size"]
        pair = grids(units)
        sizes = None if pair is None else cls.shaped(config["hidden_size"], pair, units, 0, steps)
        blocks = 0 if sizes is None else config["num_hidden_layers"] - sizes.around
        return None if sizes is None or blocks < 1 or blocks % 2 == 0 else replace(sizes, blocks=blocks)

    @property
    def layers(self) -> int:
        """Number of all layers."""
        return self.around + self.blocks

    def parameters(self, vocab: int) -> int:
        """Count the parameters."""
        return (vocab + 1) * self.width + self.layers * (self.attention + 3 * self.width * self.units)

    def table_layers(self, at: StreamMap) -> list[StockLayer]:
        """Return one layer per block: s has (e − l)² in it, e counted from the middle."""
        middle = (self.blocks - 1) / 2
        chain = [StockLayer() for _ in range(self.blocks)]
        finish_squares(chain[0], at, more=middle**2)
        for number, layer in enumerate(chain[1:], start=1):
            layer.carry({at.number: -2, ONE: 2 * (number - middle) - 1}, {s: 1 for _, _, s in at.address})
        return chain

    def feed_forward(self, at: StreamMap, tables: NDArray[np.int64], place: int) -> dict[int, Named]:
        """Return the feed-forward tensors of each block's layer."""
        matrices = swiglus(self, at, tables)
        return {
            place + number: {f"mlp.{part}_proj.weight": matrices[part][number] for part in PARTS}
            for number in range(self.blocks)
        }

    def matrix(self, place: int, block: int, part: str) -> str:
        """Return the name of a matrix of a block's layer."""
        return f"model.layers.{place + block}.mlp.{part}_proj.weight"

    def config(self, place: int) -> dict[str, Any]:
        """Return LlamaConfig's arguments."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "attention_bias": False,
            "mlp_bias": False,
        }

    @property
    def noted(self) -> dict[str, object]:
        """Number of layers that are tables."""
        return {"table_layers": self.blocks}


class ExpertSizes(StockSizes):
    """A Qwen2-MoE. Blocks are experts of one layer, with a multiple of 4 units each, for transformers' kernels."""

    layered: ClassVar[bool] = False
    name: ClassVar[StockName] = "experts"
    called: ClassVar[str] = "a network of experts"

    @classmethod
    def shaped(cls, width: int, pair: tuple[Grid, Grid], rows: int, blocks: int, steps: int) -> "ExpertSizes | None":
        """Return sizes with the dense layers that have the fewest parameters."""
        return None if rows % 4 else cls(width, *pair, rows, blocks, *dense(width, steps))

    @classmethod
    def of_config(cls, config: Mapping[str, Any], steps: int) -> StockSizes | None:
        """Return the sizes of a network with this configuration; None if no network has it."""
        rows = config.get("moe_intermediate_size", 0)
        pair, count = grids(rows), config["num_hidden_layers"] - 1
        if pair is None:
            return None
        return cls(config["hidden_size"], *pair, rows, config["num_experts"], config["intermediate_size"], count)

    @property
    def layers(self) -> int:
        """Number of all layers: one has the experts."""
        return self.around + 1

    def parameters(self, vocab: int) -> int:
        """Count the parameters. The router has a row per expert; the gate of the shared expert is a row of its own."""
        dense = self.around * (self.attention + 3 * self.width * self.units)
        experts = self.attention + self.width + self.blocks * (self.width + 3 * self.width * self.rows)
        return (vocab + 1) * self.width + dense + experts

    def table_layers(self, at: StreamMap) -> list[StockLayer]:
        """Return the one layer that holds all tables."""
        layer = StockLayer()
        finish_squares(layer, at)
        return [layer]

    def feed_forward(self, at: StreamMap, tables: NDArray[np.int64], place: int) -> dict[int, Named]:
        """Return the layer's router and experts. The shared expert has no units."""
        named = {"mlp.gate.weight": self.router(at)}
        for part, matrices in swiglus(self, at, tables).items():
            named |= {f"mlp.experts.{number}.{part}_proj.weight": matrix for number, matrix in enumerate(matrices)}
        for part, shape in (("gate", (0, self.width)), ("up", (0, self.width)), ("down", (self.width, 0))):
            named[f"mlp.shared_expert.{part}_proj.weight"] = np.zeros(shape)
        return {place: {**named, "mlp.shared_expert_gate.weight": np.zeros((1, self.width))}}

    def router(self, at: StreamMap) -> NDArray[np.float64]:
        """Return the router [blocks, width], whose largest score is that of the block with the number in total."""
        number = np.arange(self.blocks) - self.blocks // 2
        router = np.zeros((self.blocks, self.width))
        router[:, at.total] = 128.0 * number / UP_UNIT
        router[:, ONE] = -64.0 * number**2
        return router

    def matrix(self, place: int, block: int, part: str) -> str:
        """Return the name of a matrix of an expert."""
        return f"model.layers.{place}.mlp.experts.{block}.{part}_proj.weight"

    def config(self, place: int) -> dict[str, Any]:
        """Return Qwen2MoeConfig's arguments; ``place`` is the layer of experts."""
        return {
            "architectures": ["Qwen2MoeForCausalLM"],
            "model_type": "qwen2_moe",
            "qkv_bias": False,
            "use_sliding_window": False,
            "mlp_only_layers": [number for number in range(self.layers) if number != place],
            "decoder_sparse_step": 1,
            "num_experts": self.blocks,
            "num_experts_per_tok": 1,
            "norm_topk_prob": True,
            "moe_intermediate_size": self.rows,
            "shared_expert_intermediate_size": 0,
        }

    @property
    def noted(self) -> dict[str, object]:
        """Number of experts, and of the units of each."""
        return {"experts": self.blocks, "expert_units": self.rows}


@cache
def dense(width: int, steps: int) -> tuple[int, int]:
    """Return the number of units of each dense layer, and the number of these layers, for the fewest parameters."""
    candidates = (ExpertSizes(width, (1, 1), (3, 1), 4, 1, units, 0) for units in range(CODES + 1, _MOST_UNITS))
    layers = ((count_around(sizes, steps), sizes) for sizes in candidates)
    costs = ((count * (sizes.attention + 3 * width * sizes.units), sizes.units, count) for count, sizes in layers)
    return min(costs)[1:]


ARCHITECTURES: dict[StockName, type[StockSizes]] = {"uniform": LayerSizes, "experts": ExpertSizes}
