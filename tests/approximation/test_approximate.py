"""Networks that approximate: close where measured, certified on the grid, bounded on the ramps; refusals."""

from dataclasses import replace

import numpy as np
import pytest

from byheart.approximation import Target, approximate, find, measure
from byheart.approximation.approximate import DEFAULT, LARGEST_GRID, centres, choose, grid_size, grid_task, quantise
from byheart.approximation.measure import outputs, random_points
from byheart.constructions import CONSTRUCTIONS
from byheart.errors import BadInput
from byheart.networks import count
from byheart.networks.exact import ExactNetwork
from byheart.tasks import conflict

PLAIN = "kajitsuka-sato-2025"
ABLE = [name for name, known in CONSTRUCTIONS.items() if "seq-to-seq" in known.covers]


@pytest.mark.parametrize("construction", [PLAIN, DEFAULT])
@pytest.mark.parametrize("epsilon", [0.3, 0.2, 0.1])
def test_close(construction: str, epsilon: float) -> None:
    result = approximate(find("rank"), length=3, epsilon=epsilon, construction=construction)
    assert result.certificate.certified
    assert result.certificate.examples == grid_size(result.design.cells, 3, 1)
    measured = measure(result.network, result.target, samples=5000, seed=7)
    assert measured.low < measured.error < measured.high < epsilon
    assert result.close(measured)
    assert not result.close(replace(measured, high=epsilon))
    assert not replace(result, certificate=replace(result.certificate, certified=False)).close(measured)
    # Two samples of the same thing: the staircase's error beforehand, and the network's.
    assert measured.error == pytest.approx(result.design.expected.error, rel=0.05)
    assert result.account == count(result.network)
    assert result.account.dense > result.built.account.dense


@pytest.mark.parametrize(
    ("name", "length", "dim", "p", "epsilon"),
    [
        ("contrast", 1, 1, 2, 0.1),
        ("attention", 1, 2, 1, 0.3),
        ("attention", 2, 1, 3, 0.2),
        ("contrast", 2, 2, 2, 0.2),
        ("variance", 3, 1, 1, 0.6),
        ("rank", 2, 2, 1.5, 0.3),
        ("wave", 1, 1, 20, 0.3),
        ("contrast", 3, 2, 4, 0.4),
    ],
)
def test_shapes(name: str, length: int, dim: int, p: float, epsilon: float) -> None:
    result = approximate(find(name), length=length, dim=dim, p=p, epsilon=epsilon, construction=PLAIN, seed=3)
    assert result.close(measure(result.network, result.target, p=p, samples=4000, seed=11))


@pytest.mark.parametrize("construction", ABLE)
def test_every_construction_for_tokens(construction: str) -> None:
    """The grid is the same, so are the outputs at the cells' centres: the levels of the function."""
    result = approximate(find("contrast"), length=2, epsilon=0.2, construction=construction)
    assert result.certificate.certified
    at = centres(result.task.inputs, result.design.cells)
    assert at.shape[1:] == (2, 1)
    # Centres of a grid of three are not dyadic: points that are, well inside the cells, have the same outputs.
    values, _ = outputs(result.network, np.rint(at * 2**20) / 2**20)
    assert np.abs(values - result.target(at)).max() <= 2.0 ** -(result.design.step_bits + 1) + 1e-12


@pytest.mark.parametrize("value", [0.0, 0.3, -1000.25, 1e30])
def test_constants(value: float) -> None:
    """One cell, one label; large ones too, whose level has more bits than a float."""
    result = approximate(
        Target("constant", lambda x: np.full(x.shape[:2], value)), length=2, epsilon=0.1, construction=PLAIN
    )
    assert (result.design.cells, result.task.label_count) == (1, 1)
    assert measure(result.network, result.target, samples=100).error < 0.05


def test_large_values_have_large_steps() -> None:
    """A step above 1, where the scale multiplies instead of dividing."""
    target = Target("large", lambda x: 1000 * x[:, :, 0])
    result = approximate(target, length=2, epsilon=200, construction=PLAIN)
    assert result.design.step_bits < 0
    assert result.close(measure(result.network, target, samples=2000))


@pytest.mark.parametrize("construction", [PLAIN, "interpolate"])
def test_the_ramps_cost_at_most_what_is_said(construction: str) -> None:
    """Ramps of half a cell: the network stays among the levels, and the distance within the bound."""
    target, p = find("contrast"), 2.0
    result = approximate(target, length=2, epsilon=0.2, construction=construction)
    wide = replace(result.network, layers=(quantise(result.design.cells, 1, 1), *result.network.layers[1:]))
    points = random_points(4000, 2, 1, np.random.default_rng(0))
    exact, (values, _) = target(points), outputs(wide, points)
    levels = result.target(centres(result.task.inputs, result.design.cells))
    step = 2.0**-result.design.step_bits
    assert levels.min() - step <= values.min() <= values.max() <= levels.max() + step
    spread = max(exact.max(), values.max()) - min(exact.min(), values.min())
    bound = result.design.expected.high + spread * (2 * 2 * 1 * 2.0**-1) ** (1 / p)
    found = measure(wide, target, samples=4000)
    assert result.design.expected.high < found.error < bound
    assert result.design.ramps <= 0.2 / 1000


def test_the_grid_task() -> None:
    design = choose(find("contrast"), length=3, dim=2, epsilon=0.4, p=2)
    task, lowest = grid_task(find("contrast"), design, length=3, dim=2)
    assert task.inputs.min() >= 1
    assert (task.inputs == np.rint(task.inputs)).all()
    assert conflict(task, positions=False) is None
    levels = find("contrast")(centres(task.inputs, design.cells))
    assert np.abs((task.labels + lowest) * 2.0**-design.step_bits - levels).max() <= 2.0 ** -(design.step_bits + 1)
    assert (task.labels.min(), task.labels.max()) == (0, task.label_count - 1)


def test_rounding_does_not_part_equal_tokens() -> None:
    """A function whose equal tokens differ in the last bit, at a value between two levels: one label all the same."""

    def shaky(points: np.ndarray) -> np.ndarray:
        return 2.0**-5 + 1e-12 * np.array([-1, 1]) * np.ones(points.shape[:2])

    result = approximate(Target("shaky", shaky), length=2, epsilon=0.3, construction=PLAIN)
    assert result.certificate.certified


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epsilon": 0.0}, "epsilon is 0.0; expected a positive number"),
        ({"epsilon": -1.0}, "epsilon is -1.0"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"epsilon": float("inf")}, "epsilon is inf"),
        ({"p": 0.5}, "p is 0.5; expected 1 to 100"),
        ({"length": 0}, "length is 0; expected 1 or more"),
        ({"dim": -2}, "dim is -2; expected 1 or more"),
        ({"length": 300}, "length × dim is 300; expected at most 256"),
        ({"seed": -1}, "seed is -1; expected 0 or more"),
        (
            {"construction": "nothing"},
            "'nothing' does not memorize one label per token of vectors; expected interp",
        ),
        ({"construction": "vardi-2022"}, "'vardi-2022' does not memorize"),
        ({"epsilon": 0.001}, "sequences; expected at most 200,000; one step coarser the measured error is 0."),
        ({"length": 12, "dim": 12, "epsilon": 0.1}, "contrast: epsilon 0.1 takes 2 cells per coordinate or more"),
    ],
    ids=str,
)
def test_refusals(change: dict[str, object], says: str) -> None:
    arguments = {"length": 3, "epsilon": 0.2, "construction": PLAIN} | change
    with pytest.raises(BadInput) as refusal:
        approximate(find("contrast"), **arguments)  # type: ignore[arg-type]
    assert says in str(refusal.value)


def test_bad_functions_are_refused() -> None:
    with pytest.raises(
        BadInput, match=r"first: is not permutation-equivariant: on \[\[0\], \[1\]\] it answers \[0, 1\]"
    ):
        approximate(Target("first", lambda x: x[:, :, 0] - x[:, :1, 0]), length=2, epsilon=0.2, construction=PLAIN)
    with pytest.raises(BadInput, match="f: gives nan for token"):
        approximate(Target("f", lambda x: np.sqrt(x[:, :, 0] - 0.5)), length=2, epsilon=0.2, construction=PLAIN)


def test_seeds() -> None:
    def tensors(seed: int) -> list[list[int]]:
        result = approximate(find("contrast"), length=2, epsilon=0.2, construction=PLAIN, seed=seed)
        assert isinstance(result.network, ExactNetwork)
        return [tensor.ravel().tolist() for _, tensor in result.network.tensors()]

    assert tensors(1) == tensors(1) != tensors(2)


def test_it_says_what_it_does() -> None:
    heard: list[str] = []
    said = lambda done, total, note: heard.append(note)  # noqa: E731
    approximate(find("contrast"), length=2, epsilon=0.2, construction=PLAIN, report=said)
    assert heard == ["choosing the grid", "memorizing 3 sequences", "certifying 3 sequences"]


@pytest.mark.slow
def test_a_large_grid() -> None:
    result = approximate(find("wave"), length=3, epsilon=0.05, construction=PLAIN)
    assert 5000 < result.task.size.examples < LARGEST_GRID
    assert result.close(measure(result.network, result.target))
