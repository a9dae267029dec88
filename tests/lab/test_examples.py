import torch

from byheart.lab.examples import shuffles

CPU = torch.device("cpu")


def test_an_epoch_shows_every_example_once_and_epochs_differ():
    orders = [shuffles([3, 4], [epoch], 100, CPU) for epoch in range(3)]
    for order in orders:
        assert torch.equal(order.sort(dim=1).values, torch.arange(100).expand(2, 100))
    rows = {tuple(row) for order in orders for row in order.tolist()}
    assert len(rows) == 6
    assert torch.equal(shuffles([4], [1], 100, CPU)[0], orders[1][1])
    assert torch.equal(shuffles([3, 4], range(3), 100, CPU), torch.cat(orders, dim=1))


def test_orders_are_uniform():
    """Each of six orders of three examples about as often as any other: χ² with 5 degrees of freedom."""
    orders = shuffles(list(range(6000)), [0], 3, CPU)
    counts = torch.unique(orders, dim=0, return_counts=True)[1]
    assert len(counts) == 6
    assert ((counts - 1000).square() / 1000).sum() < 20.5  # the 0.999 quantile
