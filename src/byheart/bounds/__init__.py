"""Bounds on the parameters that suffice or are needed, with their hypotheses: one module per paper or argument.

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
    allen_zhu_li_2024,
    counting,
    dana_2025,
    dugan_2025,
    egosi_2025,
    giorlandino_2026,
    kajitsuka_sato_2024,
    kajitsuka_sato_2025,
    kim_2023,
    kim_moon_yun_2025,
    madden_2024,
    mahdavi_2024,
    meyer_2025,
    morris_2025,
    nichani_2024,
    park_2026,
    ravfogel_2026,
    vardi_2022,
    vc,
    xu_2026,
    yang_2026,
    yu_gao_zhang_2025,
)
from byheart.bounds.bound import Bound, BoundAnswer, Kind, Letters, Setting, Side, Statement

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
_ON_FACTS = (nichani_2024, yu_gao_zhang_2025, ravfogel_2026)
_ON_POINTS = (vardi_2022, yang_2026, kim_moon_yun_2025, dugan_2025, giorlandino_2026)
BOUNDS: tuple[Bound, ...] = tuple(
    bound
    for module in (*_ON_TRANSFORMERS, *_ON_FACTS, *_ON_POINTS, counting, vc, allen_zhu_li_2024, morris_2025)
    for bound in module.BOUNDS
)
"""All bounds: on Transformers by year, on facts, on points, by counting, by VC dimension, and measured ones."""
STATEMENTS: tuple[Statement, ...] = tuple(
    statement
    for module in (egosi_2025, meyer_2025, park_2026, ravfogel_2026, xu_2026)
    for statement in module.STATEMENTS
)
"""Statements of papers about widths, dimensions or prompts, or without a number."""


def bounds_for(setting: Setting) -> tuple[Bound, ...]:
    """Return the bounds for ``setting`` and for any setting, in the order of :data:`BOUNDS`.

    >>> [bound.name for bound in bounds_for("next-token-distribution")]
    ['madden-2024-distribution-upper', 'madden-2024-distribution-lower', 'dana-2025-bottleneck', 'counting']
    """
    return tuple(bound for bound in BOUNDS if bound.setting in (setting, "any"))
