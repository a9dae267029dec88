"""Questions in, a stock Qwen2-MoE that answers them all out: blocks are the experts of one layer."""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from byheart.compiler.stock.architecture import Named, StockName
from byheart.compiler.stock.dimensions import CODES, Grid, StockSizes, grids, plan
from byheart.compiler.stock.draft import around
from byheart.compiler.stock.spread import finish_squares
from byheart.compiler.stock.stream_map import StreamMap
from byheart.compiler.stock.table import UP_UNIT, Tables, swiglus
from byheart.compiler.stock.units import ONE, Layer

_MOST_UNITS = 64


class ExpertSizes(StockSizes):
    """Blocks are experts, with a multiple of 4 units each, as transformers' kernels want it."""

    layered: ClassVar[bool] = False

    @property
    def layers(self) -> int:
        """All of them: one has the experts."""
        return self.around + 1

    def parameters(self, vocab: int) -> int:
        """All of them; the router has a row an expert, and the gate of the shared expert, which has no units, one."""
        dense = self.around * (self.attention + 3 * self.width * self.units)
        experts = self.attention + self.width + self.blocks * (self.width + 3 * self.width * self.rows)
        return (vocab + 1) * self.width + dense + experts


def sized(width: int, pair: tuple[Grid, Grid], rows: int, blocks: int, steps: int) -> ExpertSizes | None:
    """Sizes with the dense layers that have the fewest parameters."""
    return None if rows % 4 else ExpertSizes(width, *pair, rows, blocks, *dense(width, steps))


@lru_cache
def dense(width: int, steps: int) -> tuple[int, int]:
    """How many units the dense layers have, and how many of these there are, for the fewest parameters."""
    tried = (ExpertSizes(width, (1, 1), (3, 1), 4, 1, units, 0) for units in range(CODES + 1, _MOST_UNITS))
    found = ((around(sizes, steps) * (sizes.attention + 3 * width * sizes.units), sizes.units) for sizes in tried)
    units = min(found)[1]
    return units, around(ExpertSizes(width, (1, 1), (3, 1), 4, 1, units, 0), steps)


class Experts:
    """A Qwen2-MoE."""

    name: ClassVar[StockName] = "experts"
    called: ClassVar[str] = "a network of experts"
    plan = staticmethod(partial(plan, sized))

    def sizes_of(self, config: Mapping[str, Any], steps: int) -> StockSizes | None:
        """Those of a network with this configuration; None if there are none."""
        rows = config.get("moe_intermediate_size", 0)
        pair, count = grids(rows), config["num_hidden_layers"] - 1
        if pair is None:
            return None
        return ExpertSizes(
            config["hidden_size"], *pair, rows, config["num_experts"], config["intermediate_size"], count
        )

    def tables(self, sizes: StockSizes, at: StreamMap) -> list[Layer]:
        """One layer."""
        layer = Layer()
        finish_squares(layer, at)
        return [layer]

    def blocks(self, sizes: StockSizes, at: StreamMap, tables: Tables, place: int) -> dict[int, Named]:
        """The layer's experts; the shared expert has no units."""
        named = {"mlp.gate.weight": _router(sizes, at)}
        for part, matrices in swiglus(sizes, at, tables).items():
            named |= {f"mlp.experts.{number}.{part}_proj.weight": matrix for number, matrix in enumerate(matrices)}
        return {place: {**named, **_no_shared_expert(sizes.width)}}

    def matrix(self, place: int, block: int, part: str) -> str:
        """One of an expert's."""
        return f"model.layers.{place}.mlp.experts.{block}.{part}_proj.weight"

    def config(self, sizes: StockSizes, place: int) -> dict[str, Any]:
        """Qwen2MoeConfig's arguments; ``place`` is the layer of experts."""
        return {
            "architectures": ["Qwen2MoeForCausalLM"],
            "model_type": "qwen2_moe",
            "qkv_bias": False,
            "use_sliding_window": False,
            "mlp_only_layers": [number for number in range(sizes.layers) if number != place],
            "decoder_sparse_step": 1,
            "num_experts": sizes.blocks,
            "num_experts_per_tok": 1,
            "norm_topk_prob": True,
            "moe_intermediate_size": sizes.rows,
            "shared_expert_intermediate_size": 0,
        }

    def noted(self, sizes: StockSizes) -> dict[str, object]:
        """How many experts there are, and their units."""
        return {"experts": sizes.blocks, "expert_units": sizes.rows}


def _router(sizes: StockSizes, at: StreamMap) -> NDArray[np.float64]:
    number = np.arange(sizes.blocks) - sizes.blocks // 2
    router = np.zeros((sizes.blocks, sizes.width))
    router[:, at.total] = 128.0 * number / UP_UNIT
    router[:, ONE] = -64.0 * number**2
    return router


def _no_shared_expert(width: int) -> dict[str, NDArray[np.float64]]:
    return {
        "mlp.shared_expert.gate_proj.weight": np.zeros((0, width)),
        "mlp.shared_expert.up_proj.weight": np.zeros((0, width)),
        "mlp.shared_expert.down_proj.weight": np.zeros((width, 0)),
        "mlp.shared_expert_gate.weight": np.zeros((1, width)),
    }
