"""How large a model must be to memorize data, and whether a model at hand has room.

:mod:`.data` reads and measures the data, :mod:`.needs` lists the parameters and bytes that hold them, :mod:`.room`
compares these with a model, and :mod:`.picture` draws. Every number has one of the four kinds of
:mod:`byheart.bounds.bound`, and a source.
"""

from byheart.sizing.size import Sizing, size

__all__ = ["Sizing", "size"]
