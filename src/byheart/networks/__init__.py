"""Networks: five kinds that implement one interface, one counter of parameters, and one way to a folder and back.

Importing this room needs numpy only. :mod:`~byheart.networks.kinds` says which kinds there are.
"""

from byheart.networks.account import Account, Item
from byheart.networks.kinds import generate, generate_all, load, save, write
from byheart.networks.network import Network, count
from byheart.networks.reciting import recite

__all__ = ["Account", "Item", "Network", "count", "generate", "generate_all", "load", "recite", "save", "write"]
