"""The layouts that are stock models, by their names."""

from byheart.constructions.reciting.experts.qwen import Experts
from byheart.constructions.reciting.stock.compiling import Layout, Name
from byheart.constructions.reciting.uniform.llama import Uniform

STOCK: dict[Name, type[Layout]] = {"uniform": Uniform, "experts": Experts}
