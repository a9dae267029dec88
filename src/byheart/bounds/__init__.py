"""Bounds on the parameters that suffice or are needed, with their hypotheses.

A paper with a construction, or an argument of its own, has a module; :mod:`.facts` and :mod:`.trained_capacity` hold
the papers of one subject that state a single number. :mod:`.statements` is for results without a count of parameters.

>>> from byheart.sizes import Size
>>> size = Size(examples=1000, length=32, labels=10, vocab=200)
>>> for bound in bounds_for("next-token"):
...     answer = bound.answer(size, Letters(bits=32))
...     print(f"{bound.paper:40}{bound.side:7}{bound.kind:10}{answer.parameters or answer.reason}")
Mahdavi, Liao & Thrampoulidis 2024      upper  proved    needs: dim, head_dim
Dana, Pydi & Chevaleyre 2025            upper  proved    8848
Dana, Pydi & Chevaleyre 2025            upper  proved    6852
Kajitsuka & Sato 2025                   upper  order     31.622776601683793
Kajitsuka & Sato 2025                   lower  order     31.622776601683793
Nichani, Lee & Bietti 2024              upper  order     1000
Yu, Gao & Zhang 2025                    upper  order     1000
Yu, Gao & Zhang 2025                    lower  order     1000
Ravfogel, Yehudai, Bruna & Bietti 2026  upper  order     needs: relations
counting                                lower  proved    104
VC dimension                            lower  proved    68
Allen-Zhu & Li 2024                     upper  measured  1660.964047443681
Morris et al. 2025                      upper  measured  922.7578041353784
"""

from byheart.bounds import (
    counting,
    dana_2025,
    facts,
    kajitsuka_sato_2024,
    kajitsuka_sato_2025,
    kim_2023,
    kim_moon_yun_2025,
    madden_2024,
    mahdavi_2024,
    trained_capacity,
    vardi_2022,
    vc,
    yang_2026,
)
from byheart.bounds.bound import Bound, BoundAnswer, Kind, Letters, Setting, Side, Statement
from byheart.bounds.statements import STATEMENTS

__all__ = [
    "BOUNDS",
    "STATEMENTS",
    "Bound",
    "BoundAnswer",
    "Kind",
    "Letters",
    "Setting",
    "Side",
    "Statement",
    "bounds_for",
]

_ON_TRANSFORMERS = (kim_2023, mahdavi_2024, kajitsuka_sato_2024, madden_2024, dana_2025, kajitsuka_sato_2025)
_ON_POINTS = (vardi_2022, yang_2026, kim_moon_yun_2025)
BOUNDS: tuple[Bound, ...] = tuple(
    bound
    for module in (*_ON_TRANSFORMERS, *_ON_POINTS, facts, counting, vc, trained_capacity)
    for bound in module.BOUNDS
)
"""All bounds: on Transformers by year, on points, on facts, by counting, by VC dimension, and measured ones."""


def bounds_for(setting: Setting) -> tuple[Bound, ...]:
    """Return the bounds for ``setting`` and for any setting, in the order of :data:`BOUNDS`.

    >>> [bound.name for bound in bounds_for("next-token-distribution")]
    ['madden-2024-distribution-upper', 'madden-2024-distribution-lower', 'dana-2025-bottleneck', 'counting']
    """
    return tuple(bound for bound in BOUNDS if bound.setting in (setting, "any"))
