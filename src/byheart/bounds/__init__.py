"""How many parameters suffice, how many are needed: one module per paper or argument; theorems have hypotheses.

>>> from byheart.size import Size
>>> size = Size(examples=1000, length=32, labels=10, vocab=200)
>>> for bound in bounds_for("next-token"):
...     answer = bound.answer(size, Letters(bits=32))
...     print(f"{bound.paper:36}{bound.side:7}{bound.kind:8}{answer.parameters or answer.reason}")
Mahdavi, Liao & Thrampoulidis 2024  upper  proved  needs: dim, head_dim
Dana, Pydi & Chevaleyre 2025        upper  proved  8848
Kajitsuka & Sato 2025               upper  order   31.622776601683793
Kajitsuka & Sato 2025               lower  order   31.622776601683793
counting                            lower  proved  104
VC dimension                        lower  proved  68
"""

from byheart.bounds import (
    counting,
    dana_2025,
    kajitsuka_sato_2024,
    kajitsuka_sato_2025,
    kim_2023,
    kim_moon_yun_2025,
    madden_2024,
    mahdavi_2024,
    vardi_2022,
    vc,
    yang_2026,
)
from byheart.bounds.bound import Answer, Bound, Kind, Letters, Setting, Side

__all__ = ["BOUNDS", "Answer", "Bound", "Kind", "Letters", "Setting", "Side", "bounds_for"]

_ON_TRANSFORMERS = (kim_2023, mahdavi_2024, kajitsuka_sato_2024, madden_2024, dana_2025, kajitsuka_sato_2025)
_ON_POINTS = (vardi_2022, yang_2026, kim_moon_yun_2025)
BOUNDS: tuple[Bound, ...] = tuple(
    bound for module in (*_ON_TRANSFORMERS, *_ON_POINTS, counting, vc) for bound in module.BOUNDS
)
"""Every bound: those on Transformers by year, then those on points, then counting and VC dimension."""


def bounds_for(setting: Setting) -> tuple[Bound, ...]:
    """The bounds of a setting and those of any setting, in the order of :data:`BOUNDS`.

    >>> [bound.name for bound in bounds_for("next-token-distribution")]
    ['madden-2024-distribution-upper', 'madden-2024-distribution-lower', 'dana-2025-bottleneck', 'counting']
    """
    return tuple(bound for bound in BOUNDS if bound.setting in (setting, "any"))
