"""The layouts that are stock models, by their names."""

from byheart.compiler.stock.attempt import Name, StockLayout
from byheart.compiler.stock.experts import Experts
from byheart.compiler.stock.uniform import Uniform

STOCK: dict[Name, type[StockLayout]] = {"uniform": Uniform, "experts": Experts}
