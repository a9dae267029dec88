"""Users' own files, and names."""

import sys
import textwrap
from pathlib import Path

import pytest

from byheart.errors import BadInput
from byheart.lab.experiments.experiment import Experiment
from byheart.lab.jobs import Local, execute
from byheart.lab.runs import Run
from byheart.lab.sources import Given, Named, load, source


def own(tmp_path: Path, text: str, scale: str = "smoke") -> Experiment:
    (tmp_path / "own.py").write_text(text)
    return load(source(str(tmp_path / "own.py"), scale))


def test_a_list_of_our_configs_is_an_experiment(tmp_path: Path) -> None:
    text = """
        from byheart.lab.experiments import dana_2025
        sizes = dict(vocab=5, model_dim=2, head_dim=2, batch=8, batches=2, epochs=1)
        CONFIGS = [dana_2025.Config("own", heads=heads, **sizes) for heads in (1, 2)]
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
        from byheart.lab.experiments import Experiment

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
        ("CONFIGS = [1]", "own.py: no function work beside the class of the CONFIGS"),
        ("from byheart.lab.experiments import dana_2025\nCONFIGS = [dana_2025.Config(3)]", "own.py:2: TypeError"),
        ("work = print\nclass Config: pass\nCONFIGS = [Config()]", "is no config; expected a dataclass"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadInput) as refused:
        own(tmp_path, text)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("name", "near"), [("dana-205-1", "as dana-2025-1 or dana-2025-"), ("nonsense", "as dana-2025-1, or a Python file")]
)
def test_an_unknown_name_is_told_the_nearest_ones(name: str, near: str) -> None:
    told = f"no experiment is called '{name}'; expected a name of byheart lab list, {near}"
    with pytest.raises(BadInput, match=told):
        load(Named(name, "smoke"))
