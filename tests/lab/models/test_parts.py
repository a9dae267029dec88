import math

import pytest
import torch

from byheart.lab.models.parts import looked_up, sinusoids, uniform


def test_sinusoids_are_even_sines_and_odd_cosines():
    table = sinusoids(50, 64, torch.device("cpu"), torch.float64)
    assert table.shape == (50, 64)
    assert table[0].tolist() == [0.0, 1.0] * 32
    assert table[7, 10].item() == pytest.approx(math.sin(7 / 10000 ** (10 / 64)))
    assert table[7, 11].item() == pytest.approx(math.cos(7 / 10000 ** (10 / 64)))


def test_first_weights_fill_their_ranges_and_follow_from_the_generator():
    shapes, bounds = {"W": (40, 50), "b": (50,)}, {"W": 0.5, "b": 2.0}
    drawn, again = (uniform(shapes, bounds, torch.Generator().manual_seed(3)) for _ in range(2))
    for name, tensor in drawn.items():
        assert tensor.dtype == torch.float64
        assert tensor.shape == shapes[name]
        assert 0.9 * bounds[name] < tensor.abs().max() <= bounds[name]
        assert torch.equal(tensor, again[name])


def test_every_model_looks_up_in_its_own_table():
    tables = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    tokens = torch.randint(7, (3, 5, 2), generator=torch.Generator().manual_seed(1))
    found = looked_up(tables, tokens)
    assert torch.equal(found, torch.stack([table[own] for table, own in zip(tables, tokens, strict=True)]))
    found.sum().backward()
    counts = torch.stack([torch.bincount(own.flatten(), minlength=7) for own in tokens])
    assert torch.equal(tables.grad, counts[..., None].expand(3, 7, 4).float())
