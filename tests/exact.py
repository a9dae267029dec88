"""Which constructions build exact networks, and which softmax networks: tests of either kind go through its list."""

from byheart.constructions import CONSTRUCTIONS

EXACT = [name for name, construction in CONSTRUCTIONS.items() if construction.kind == "exact"]
SOFTMAX = [name for name, construction in CONSTRUCTIONS.items() if construction.kind == "softmax"]
