"""What a network is: four kinds behind one protocol, one counter, one way to a folder and back.

Importing this room needs numpy only. :mod:`~byheart.networks.kinds` says which kinds there are.
"""

from byheart.networks.account import Account, Item
from byheart.networks.kinds import generate, generate_all, load, save, write
from byheart.networks.network import Network, count

__all__ = ["Account", "Item", "Network", "count", "generate", "generate_all", "load", "save", "write"]
