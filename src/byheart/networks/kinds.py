"""Exact and softmax networks alike: count, save, load and name them by their fingerprints."""

from pathlib import Path
from typing import TypeAlias

from byheart.networks import account, softmax
from byheart.networks.account import Account
from byheart.networks.exact import store
from byheart.networks.exact.layers import ExactNetwork
from byheart.networks.folders import kind_of
from byheart.networks.softmax import SoftmaxNetwork

AnyNetwork: TypeAlias = ExactNetwork | SoftmaxNetwork


def count(network: AnyNetwork) -> Account:
    """Every tensor of a network of either kind."""
    return softmax.count(network) if isinstance(network, SoftmaxNetwork) else account.count(network)


def save(network: AnyNetwork, folder: Path, about: dict[str, object] | None = None) -> None:
    """Write a network of either kind to ``folder``."""
    if isinstance(network, SoftmaxNetwork):
        softmax.save(network, folder, about)
    else:
        store.save(network, folder, about)


def load(folder: Path) -> AnyNetwork:
    """The network in ``folder``, of either kind."""
    return softmax.load(folder).network if kind_of(folder) == "softmax" else store.load(folder)


def fingerprint(network: AnyNetwork) -> str:
    """SHA-256 over everything that a network of either kind consists of."""
    return softmax.fingerprint(network) if isinstance(network, SoftmaxNetwork) else store.fingerprint(network)
