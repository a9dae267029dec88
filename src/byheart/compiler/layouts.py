"""The layouts that are stock models, by their names."""

from byheart.compiler.experts.qwen import Experts
from byheart.compiler.stock.compiling import Name, StockLayout
from byheart.compiler.uniform.llama import Uniform

STOCK: dict[Name, type[StockLayout]] = {"uniform": Uniform, "experts": Experts}
