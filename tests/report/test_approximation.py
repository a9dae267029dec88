"""The picture of networks that approximate: drawn for any shape, and it says what was measured."""

from pathlib import Path

import numpy as np
import pytest

from byheart.approximation import Approximation, DistanceEstimate, Target, approximate, find, measure
from byheart.errors import BadInput
from byheart.report.approximation import draw_approximations, slice_points


def found(name: str, length: int, dim: int, *epsilons: float) -> list[tuple[Approximation, DistanceEstimate]]:
    results = [
        approximate(find(name), length=length, dim=dim, epsilon=epsilon, construction="kajitsuka-sato-2025")
        for epsilon in epsilons
    ]
    return [(result, measure(result.network, result.target, samples=500)) for result in results]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.parametrize(
    ("name", "length", "dim", "epsilons"),
    [
        ("rank", 3, 1, (0.3, 0.2, 0.1)),
        ("contrast", 1, 1, (0.2,)),
        ("contrast", 2, 2, (0.4, 0.2)),
        ("wave", 1, 1, (0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1)),
    ],
    ids=["three", "one", "plane", "many"],
)
def test_a_picture(tmp_path: Path, suffix: str, name: str, length: int, dim: int, epsilons: tuple[float, ...]) -> None:
    path = tmp_path / f"picture{suffix}"
    draw_approximations(found(name, length, dim, *epsilons), path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG" if suffix == ".png" else b"<?xml")
    assert len(content) > 10_000


def test_what_the_picture_says(tmp_path: Path) -> None:
    """SVG keeps texts as comments."""
    results = found("rank", 3, 1, 0.3, 0.1)
    draw_approximations(results, tmp_path / "picture.svg")
    content = (tmp_path / "picture.svg").read_text(encoding="utf-8")
    for result, measured in results:
        assert f"ε = {result.epsilon:g}" in content
        assert f"{result.design.cells} cells, {result.account.dense:,} parameters" in content
        assert f"{measured.error:.3g}" in content
    for text in ("function", "network", "distance = ε", "the grid memorized by kajitsuka-sato-2025"):
        assert text in content


def test_no_distance_at_all(tmp_path: Path) -> None:
    """Zero has no place on a logarithmic axis; the picture is drawn all the same."""
    zero = Target("zero", lambda x: 0 * x[:, :, 0])
    result = approximate(zero, length=2, epsilon=0.1, construction="interpolate")
    measured = measure(result.network, zero, samples=100)
    assert measured.high == 0
    draw_approximations([(result, measured)], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_the_slice() -> None:
    points = slice_points(4, 2)
    assert points.shape == (513, 4, 2)
    assert (points[0, 0, 0], points[-1, 0, 0]) == (0, 1)
    assert (points[:, 1:] == points[0, 1:]).all()
    assert (np.diff(points[0, 1:, 0]) > 0).all()
    assert (points >= 0).all()
    assert (points <= 1).all()


@pytest.mark.parametrize(
    ("name", "says"), [("picture.gif", "expected a picture's name"), ("no/picture.png", "its folder does not exist")]
)
def test_refused(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        draw_approximations(found("contrast", 1, 1, 0.3), tmp_path / name)
