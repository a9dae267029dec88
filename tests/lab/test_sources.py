"""Users' own files, and names."""

import ast
import sys
import textwrap
from pathlib import Path

import pytest

from byheart.errors import BadInput
from byheart.executors import Local
from byheart.lab.experiment import Experiment
from byheart.lab.jobs import execute
from byheart.lab.runs import Run
from byheart.lab.sources import Given, load
from byheart.papers.experiments import Named, source


def own(tmp_path: Path, text: str, scale: str = "smoke") -> Experiment:
    (tmp_path / "own.py").write_text(text)
    return load(source(str(tmp_path / "own.py"), scale))


def test_a_list_of_our_configs_is_an_experiment(tmp_path: Path) -> None:
    text = """
        from byheart.papers import dana_2025
        sizes = dict(vocab=5, model_dim=2, head_dim=2, batch=8, batches=2, epochs=1)
        CONFIGS = [dana_2025.DanaConfig("own", heads=heads, **sizes) for heads in (1, 2)]
    """
    mine = own(tmp_path, textwrap.dedent(text))
    assert (mine.name, mine.scale, len(mine.configs)) == ("own", "smoke", 2)
    with Local(Given(mine)) as executor, Run.create(tmp_path / "run", mine) as run:
        execute(run, mine, executor)
    assert [row["steps"] for row in run.table] == [2, 2]


def test_a_file_may_import_what_lies_beside_it_and_make_its_experiment_of_the_scale(tmp_path: Path) -> None:
    (tmp_path / "beside_own.py").write_text("SIZES = {'smoke': 1, 'paper': 3}\n")
    text = """
        from dataclasses import dataclass
        from beside_own import SIZES
        from byheart.lab.experiment import Experiment

        @dataclass(frozen=True)
        class Config:
            seed: int

        def EXPERIMENT(scale):
            configs = tuple(Config(seed) for seed in range(SIZES[scale]))
            return Experiment("mine", scale, configs, lambda c: [c], lambda c, device, report: [{} for _ in c])
    """
    assert len(own(tmp_path, textwrap.dedent(text), "paper").configs) == 3
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "own.py: expected it to define CONFIGS, a list of configs, or EXPERIMENT"),
        ("CONFIGS = []", "own.py: expected it to define CONFIGS"),
        ("CONFIGS = 3", "own.py: expected it to define CONFIGS"),
        ("x = 1\nCONFIGS = [", "own.py:2: '[' was never closed; expected a Python file"),
        ("def f():\n    return 1 / 0\n\nf()", "own.py:2: ZeroDivisionError: division by zero"),
        ("import nonsense_of_mine", "own.py:1: ModuleNotFoundError: No module named 'nonsense_of_mine'"),
        ("raise SystemExit(3)", "own.py:1: SystemExit: 3"),
        ("EXPERIMENT = 3", "own.py: EXPERIMENT is 3; expected an Experiment"),
        ("CONFIGS = [1, 'a']", "own.py: CONFIGS are of several kinds (int, str)"),
        ("CONFIGS = [1]", "own.py: CONFIGS[0] is 1; expected an instance of a frozen dataclass"),
        (
            "from byheart.lab import Training as T\nCONFIGS = [T(1, 1, 1.0)]",
            "own.py: no function trains a Training; expected work(configs, device, report) in the file",
        ),
        (
            "from byheart.lab import Training as T\nCONFIGS = [T(1, 1, 1.0)]\ndef work(configs, device): pass",
            "own.py: work takes (configs, device); expected work(configs, device, report)",
        ),
        (
            "from byheart.papers.dana_2025 import DanaConfig as C\nCONFIGS = [C(3)]",
            "own.py:2: TypeError",
        ),
        (
            "work = print\nclass Config: pass\nCONFIGS = [Config()]",
            "expected an instance of a frozen dataclass",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadInput) as refused:
        own(tmp_path, text)
    assert complaint in str(refused.value)


def test_a_file_may_train_our_configs_in_its_own_way(tmp_path: Path) -> None:
    text = """
        from byheart.papers import dana_2025
        sizes = dict(vocab=5, model_dim=2, head_dim=2, batch=8, batches=2, epochs=1)
        CONFIGS = [dana_2025.DanaConfig("own", heads=heads, seed=seed, **sizes) for heads in (1, 2) for seed in (0, 1)]

        def work(configs, device, report):
            return [{"models": len(configs)} for _ in configs]
    """
    mine = own(tmp_path, textwrap.dedent(text))
    with Local(Given(mine)) as executor, Run.create(tmp_path / "run", mine) as run:
        execute(run, mine, executor)
    assert [row["models"] for row in run.table] == [4, 4, 4, 4], "in groups as those of our configs"


EXAMPLE = Path(__file__).parents[2] / "examples" / "own_experiment.py"


def test_the_example_of_ones_own_experiment_has_fifteen_lines() -> None:
    """Everything but imports, docstrings and blank lines."""
    tree = ast.parse(EXAMPLE.read_text())
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    nodes += [node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    skipped = {line for node in nodes for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    lines = enumerate(EXAMPLE.read_text().splitlines(), start=1)
    assert len([line for number, line in lines if line.strip() and number not in skipped]) == 15


def test_the_example_of_ones_own_experiment_is_run(tmp_path: Path) -> None:
    """A new model: with a rank of 2, it is no better than guessing; with one of 32 it knows most associations."""
    mine = load(source(str(EXAMPLE), "smoke"))
    assert (len(mine.configs), len(mine.groups(mine.configs))) == (15, 5)
    first, last = mine.work([mine.configs[0], mine.configs[-1]], "cpu", None)
    assert first["accuracy"] < 0.3
    assert last["accuracy"] > 0.6


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("dana-205-1", "did you mean 'dana-2025-1'"),
        ("nonsense", "expected a name of byheart lab list, or a Python file"),
    ],
)
def test_an_unknown_name_is_told_the_nearest_ones(name: str, near: str) -> None:
    told = f"no experiment is called '{name}'; {near}"
    with pytest.raises(BadInput, match=told):
        load(Named(name, "smoke"))
