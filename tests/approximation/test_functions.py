"""Functions: the examples do what they say, and what a user gives is held to what is expected."""

from pathlib import Path

import numpy as np
import pytest

from byheart.approximation import FUNCTIONS, Target, find
from byheart.approximation.functions import check_equivariance
from byheart.errors import BadInput

EXAMPLES = Path(__file__).parents[2] / "examples" / "functions.py"


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("length", "dim"), [(1, 1), (2, 3), (5, 1)])
def test_examples(name: str, length: int, dim: int) -> None:
    target, rng = find(name), np.random.default_rng(0)
    points = rng.random((50, length, dim))
    values = target(points)
    assert values.shape == (50, length)
    assert values.dtype == np.float64
    assert np.abs(values).max() <= 1
    check_equivariance(target, length, dim, rng)


def test_many_points_go_in_pieces() -> None:
    seen: list[int] = []

    def counting(points: np.ndarray) -> np.ndarray:
        seen.append(len(points))
        return points[:, :, 0]

    points = np.random.default_rng(0).random((100, 256, 1))
    assert (Target("f", counting)(points) == points[:, :, 0]).all()
    assert seen == [64, 36]


def test_own_function(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import numpy as np\ndef twice(x):\n    return 2 * x[:, :, 0]\n")
    target = find(f"{path}:twice")
    assert target.name == f"{path}:twice"
    assert target(np.array([[[0.5], [1.0]]])).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("rnk", "no function is called 'rnk'; did you mean 'rank'?"),
        ("missing.py:f", "missing.py: no such Python file; expected path/to/file.py:function"),
        ("mine.txt:f", "mine.txt: no such Python file"),
        ("mine.py:g", "mine.py: has no function 'g'; it has f"),
        ("mine.py:constant", "mine.py: has no function 'constant'"),
        ("mine.py:", "mine.py: has no function ''"),
        ("broken.py:f", "broken.py: cannot be run: SyntaxError"),
        ("raising.py:f", "raising.py: cannot be run: ZeroDivisionError (division by zero)"),
    ],
)
def test_refused_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("constant = 3\ndef f(x):\n    return x\n")
    (tmp_path / "mine.txt").write_text("")
    (tmp_path / "broken.py").write_text("def f(x:\n")
    (tmp_path / "raising.py").write_text("1 / 0\n")
    with pytest.raises(BadInput) as refusal:
        find(name)
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: x, "gives shape (4, 3, 2) on points (4, 3, 2); expected (4, 3), one number per token"),
        (lambda x: 7.0, "gives shape () on points"),
        (lambda x: x[:, :, 5], "raised IndexError"),
        (lambda x: "words", "raised ValueError"),
        (lambda x: np.where(x > 2, x, np.nan)[:, :, 0], "gives nan for token 0 of [[0, 0], [0, 0], [0, 0]]; expected"),
        (lambda x: 1 / x[:, :, 0], "gives inf for token 0"),
        (lambda x: 1e200 + x[:, :, 0], "gives 1e+200 for token 0"),
    ],
)
def test_refused_values(function: object, says: str) -> None:
    with pytest.raises(BadInput) as refusal:
        Target("f", function)(np.zeros((4, 3, 2)))  # type: ignore[arg-type]
    assert str(refusal.value).startswith("f: ")
    assert says in str(refusal.value)


def test_a_function_may_write_into_its_argument() -> None:
    def careless(points: np.ndarray) -> np.ndarray:
        points += 1
        return points[:, :, 0]

    points = np.zeros((2, 2, 1))
    assert Target("f", careless)(points).tolist() == [[1, 1], [1, 1]]
    assert not points.any()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:, :, 0] * np.arange(x.shape[1]),
        lambda x: x[:, ::-1, 0],
        lambda x: (
            x[:, :, 0] + 0.01 * (x[:, :, 0] == x[:, :1, 0]) * np.arange(x.shape[1])
        ),  # wrong for equal tokens only
        lambda x: np.random.default_rng().random(x.shape[:2]),
    ],
    ids=["position", "reversed", "ties", "random"],
)
def test_what_does_not_move_with_the_tokens_is_refused(function: object) -> None:
    with pytest.raises(
        BadInput, match=r"f: is not permutation-equivariant: on \[\[.* it answers \[.*in the order"
    ) as no:
        check_equivariance(Target("f", function), 3, 1, np.random.default_rng(0))  # type: ignore[arg-type]
    assert str(no.value).endswith("expected the same numbers in the new order")


def test_rounding_is_no_violation() -> None:
    """Sums in another order differ in the last bits."""
    check_equivariance(
        Target("f", lambda x: x[:, :, 0] * np.cumsum(x[:, :, 0], 1)[:, -1:]), 50, 1, np.random.default_rng(0)
    )


@pytest.mark.parametrize("name", ["nearest", "soft_maximum"])
@pytest.mark.parametrize(("length", "dim"), [(1, 1), (2, 3), (5, 1)])
def test_the_examples_of_ones_own(name: str, length: int, dim: int) -> None:
    target = find(f"{EXAMPLES}:{name}")
    check_equivariance(target, length, dim, np.random.default_rng(0))
    assert target(np.full((1, 1, dim), 0.5)).tolist() == [[1.0]]


def test_nearest_by_hand() -> None:
    assert find(f"{EXAMPLES}:nearest")(np.array([[[0.0], [0.25], [1.0]]])).tolist() == [[0.25, 0.25, 0.75]]


def test_complex_numbers_and_exits_are_refused(tmp_path: Path) -> None:
    points = np.zeros((1, 1, 1))
    with pytest.raises(BadInput, match="f: gives complex numbers; expected real ones"):
        Target("f", lambda x: x[:, :, 0] * 1j)(points)  # type: ignore[arg-type,return-value]
    (tmp_path / "leaves.py").write_text("import sys\n\ndef f(x):\n    sys.exit(3)\n")
    with pytest.raises(BadInput, match=r"raised SystemExit \(3\)"):
        find(f"{tmp_path}/leaves.py:f")(points)
    (tmp_path / "gone.py").write_text("raise SystemExit(5)\n")
    with pytest.raises(BadInput, match=r"cannot be run: SystemExit \(5\)"):
        find(f"{tmp_path}/gone.py:f")
