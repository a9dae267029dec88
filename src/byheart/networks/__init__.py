"""What a network is: exact layers, the one counter, evaluation, saving and loading, and PyTorch twins."""

from byheart.networks.account import Account, Item, count

__all__ = ["Account", "Item", "count"]
