"""Which constructions build exact networks, and which softmax networks: tests of either kind go through its list."""

from byheart.constructions.registry import BUILT_IN

EXACT = [module.CONSTRUCTION.name for module in BUILT_IN if module.CONSTRUCTION.kind == "exact"]
SOFTMAX = [module.CONSTRUCTION.name for module in BUILT_IN if module.CONSTRUCTION.kind == "softmax"]
