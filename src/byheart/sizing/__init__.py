"""How large must it be? Data in, parameters and bytes to hold them out; and whether a model at hand has room.

The way of the data: :mod:`.data` reads and measures, :mod:`.needs` says what holds it, :mod:`.room` holds that against
a model, :mod:`.picture` draws. Every number is of one of the four kinds of :mod:`byheart.bounds.bound`, and says where
it comes from.
"""

from byheart.sizing.size import Sizing, size

__all__ = ["Sizing", "size"]
