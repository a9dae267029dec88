"""Which constructions build exact networks, and which softmax networks: tests of either kind go through its list."""

EXACT = ["interpolate", "vardi-2022", "kajitsuka-sato-2025", "kim-2023", "kajitsuka-sato-2024", "folding"]
SOFTMAX = ["mahdavi-2024", "dana-2025", "madden-2024"]
