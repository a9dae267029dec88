
from dataclasses import dataclass

@dataclass(frozen=True)
class Config:
    heads: int
    seed: int

CONFIGS = [Config(heads, seed) for heads in (1, 2, 4) for seed in (0, 1)]

def work(configs, device, report):
    return [{"accuracy": 1 - 1 / c.heads, "held": 8 * c.heads, "steps": 4} for c in configs]
