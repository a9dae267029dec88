"""One entry is enough: a registered construction is known to every command, and what is none is refused in words."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byheart
from byheart.cli.compare import compare
from byheart.cli.main import main
from byheart.constructions import CONSTRUCTIONS, Construction, Made, build, find, interpolate, register
from byheart.constructions.construction import Reading
from byheart.constructions.planner import planned
from byheart.constructions.registry import BUILT_IN, from_file
from byheart.errors import BadInput
from byheart.report.figures import TaskPanel, draw_parameters, parameter_table
from byheart.sizes import Size
from byheart.tasks import NextToken, Task, random_next_token, save
from byheart.tasks.theorems import Hypothesis

TASK = random_next_token(examples=20, length=3, vocab=30, labels=4, rng=np.random.default_rng(0))


@dataclass(frozen=True)
class Settings:
    """What the toy leaves open."""

    positions: bool = False
    """Order matters."""
    colourful: bool = False
    """It makes no difference."""


def build_toy(task: Task, settings: Settings, rng: np.random.Generator, report: object) -> Made:
    made = interpolate.CONSTRUCTION.build(task, Reading(settings.positions), rng, None)
    return replace(made, chosen={"colourful": settings.colourful})


TOY = Construction(
    name="toy-1999",
    paper="Nobody 1999",
    summary="the interpolator once more",
    settings=Settings,
    build=build_toy,
    covers=("next-token",),
    plan=lambda size, setting, s: interpolate.CONSTRUCTION.plan(size, setting, Reading(s.positions)),
    orders={"next-token": "3 as well"},
    hypotheses=lambda task, settings: [Hypothesis.decided("order matters", settings.positions, "as was said")],
    colour="#123456",
    flags="--colourful",
)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """No test leaves anything in the registry."""
    before = dict(CONSTRUCTIONS)
    yield
    CONSTRUCTIONS.clear()
    CONSTRUCTIONS.update(before)


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return int(stopped.value.code or 0), said.out, said.err  # type: ignore[arg-type]


def test_every_built_in_module_has_one_entry() -> None:
    assert [name.replace("-", "_") for name in CONSTRUCTIONS] == list(BUILT_IN)
    for name, entry in CONSTRUCTIONS.items():
        assert entry.name == name
        assert entry.summary
        assert not entry.summary.endswith(".")
        assert entry.settings() == entry.settings_with(positions=False)
        assert re.fullmatch("#[0-9a-f]{6}", entry.colour)
        assert set(entry.covers) <= {"next-token", "seq-to-seq"}
    colours = [entry.colour for entry in CONSTRUCTIONS.values()]
    assert len(set(colours)) == len(colours)


def test_one_entry_is_known_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    register(TOY)
    save(TASK, tmp_path / "t.npz")
    net = tmp_path / "net"

    code, out, _ = run(capsys, "build", "--help")
    assert (code, "toy-1999" in out, "the interpolator once more (Nobody 1999)" in out) == (0, True, True)
    code, out, _ = run(capsys, "build", "toy-1999", "--help")
    assert "byheart build toy-1999 --task t.npz -o net --colourful" in " ".join(out.split())
    assert "It makes no difference." in out
    code, out, _ = run(capsys, "build", "toy-1999", "--task", tmp_path / "t.npz", "-o", net, "--colourful", "--json")
    assert (code, json.loads(out)["chosen"]) == (0, {"colourful": True})
    assert json.loads((net / "config.json").read_text())["about"]["settings"] == {"positions": False, "colourful": True}
    assert run(capsys, "certify", net, "--task", tmp_path / "t.npz")[0] == 0

    code, out, _ = run(capsys, "bounds", "--json")
    rows = {row["construction"]: row for row in json.loads(out)["constructions"]}
    assert rows["toy-1999"]["parameters"] == rows["interpolate"]["parameters"]
    code, out, _ = run(capsys, "compare", "--task", tmp_path / "t.npz", "--json")
    (row,) = [row for row in json.loads(out)["tasks"][0]["rows"] if row["construction"] == "toy-1999"]
    assert (code, row["certified"], row["published"]) == (0, True, "3 as well")

    code, _, err = run(capsys, "task", "check", tmp_path / "t.npz", "--theorem", "unknown")
    assert (code, "madden-2024, toy-1999" in err) == (2, True)
    checked = ("task", "check", tmp_path / "t.npz", "--theorem", "toy-1999", "--json")
    assert run(capsys, *checked)[0] == 1
    assert run(capsys, *checked, "--positions")[0] == 0

    size = replace(TASK.size, examples=10)
    panel = TaskPanel(parameter_table(size, "next-token", largest=1000), size, "next-token")
    draw_parameters([panel], tmp_path / "p.svg")
    picture = (tmp_path / "p.svg").read_text()
    assert "toy-1999" in picture
    assert "#123456" in picture


def test_python_takes_a_name_a_construction_or_a_file() -> None:
    example = Path(__file__).parents[2] / "examples" / "own_construction.py"
    assert byheart.build(TOY, TASK, colourful=True).chosen == {"colourful": True}
    assert "toy-1999" not in CONSTRUCTIONS
    for path in (example, str(example)):
        built = build(path, TASK, seed=4)
        assert (built.construction, built.seed, built.questions) == ("staircase", 4, TASK)
        assert byheart.certify(built.network, TASK).certified
    assert "staircase" not in CONSTRUCTIONS
    register(TOY)
    assert find("toy-1999") is TOY
    assert build("toy-1999", TASK).construction == "toy-1999"


def test_the_plan_is_held_against_the_account() -> None:
    def lying(task: Task, settings: Any, rng: np.random.Generator, report: object) -> Made:
        made = build_toy(task, settings, rng, report)
        return replace(made, plan=replace(made.plan, depth=made.plan.depth + 1))

    with pytest.raises(BadInput, match=r"^toy-1999: built .*depth 4, .* planned .*depth 5, .*: a mistake"):
        build(replace(TOY, build=lying), TASK)


def test_refused_like_any_other() -> None:
    """Where it is not for a size or a task, it is a row that says so, and no plan."""

    def picky(task: Task, settings: Any, rng: np.random.Generator, report: object) -> Made:
        raise BadInput("toy-1999 is tired")

    def none(size: Size, setting: str, settings: Any) -> Any:
        raise BadInput("toy-1999 is tired")

    register(replace(TOY, build=picky, plan=none))
    (row,) = [row for row in compare(TASK) if row.construction == "toy-1999"]
    assert (row.parameters, row.note) == (None, "toy-1999 is tired")
    assert "toy-1999" not in {row.construction for row in planned(TASK.size, "next-token")}
    with pytest.raises(BadInput, match="folding has no hypotheses beyond those that its build checks"):
        find("folding").check(TASK)


def test_settings_that_leave_something_to_say() -> None:
    @dataclass(frozen=True)
    class Open:
        heads: int

    for settings in (Open, dict):
        with pytest.raises(BadInput, match=r"^toy-1999: expected settings to be a dataclass with a default for every"):
            replace(TOY, settings=settings)


def test_names_of_built_in_ones_are_taken() -> None:
    with pytest.raises(BadInput, match=r"^a construction called 'folding' is built in; expected another name$"):
        register(replace(TOY, name="folding"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "its CONSTRUCTION is NoneType; expected a byheart.constructions.Construction"),
        ("CONSTRUCTION = 3", "its CONSTRUCTION is int; expected"),
        ("1 / 0", "running it failed: ZeroDivisionError: division by zero"),
        ("CONSTRUCTION =", "running it failed: SyntaxError: "),
    ],
)
def test_files_that_define_none(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(BadInput, match=f"^{re.escape(f'{tmp_path}/mine.py: {message}')}"):
        from_file(tmp_path / "mine.py")


def test_files_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput, match="no such file; expected Python that defines CONSTRUCTION"):
        from_file(tmp_path / "mine.py")
    (tmp_path / "mine.txt").write_text("CONSTRUCTION = 3")
    with pytest.raises(BadInput, match=r"expected a Python file, its name ending in \.py"):
        from_file(tmp_path / "mine.txt")
    code, _, err = run(capsys, "bounds", "--construction", tmp_path / "mine.py")
    assert (code, err) == (2, f"byheart: {tmp_path}/mine.py: no such file; expected Python that defines CONSTRUCTION\n")
    assert run(capsys, "bounds", "--construction")[0] == 2


def test_a_misspelt_construction_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "build", "foldng", "--task", "t.npz", "-o", "net")
    assert (code, err) == (2, "byheart: no construction is called 'foldng'; did you mean 'folding'?\n")


def test_installed_packages_offer_theirs(tmp_path: Path) -> None:
    """By an entry point; one that does not load is left out with a warning, and nothing else is lost."""
    (tmp_path / "toys.py").write_text(
        "from dataclasses import replace\n"
        "from byheart.constructions import interpolate\n"
        "TOY = replace(interpolate.CONSTRUCTION, name='toy-1999')\n"
    )
    about = tmp_path / "toys-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[byheart.constructions]\ntoy = toys:TOY\nbroken = toys:NOTHING\n")
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    found = subprocess.run(
        [sys.executable, "-m", "byheart", "bounds", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": paths},
    )
    assert "toy-1999" in {row["construction"] for row in json.loads(found.stdout)["constructions"]}
    assert "the construction toys:NOTHING was not loaded" in found.stderr


def test_nothing_in_a_folder_is_executed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder may name any construction, and hold its file: nothing runs it, and certifying refuses the file."""
    save(TASK, tmp_path / "t.npz")
    net = tmp_path / "net"
    assert run(capsys, "build", "interpolate", "--task", tmp_path / "t.npz", "-o", net)[0] == 0
    (net / "mine.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')")
    for place in (net / "mine.py", tmp_path / "mine.py"):
        config = json.loads((net / "config.json").read_text())
        config["about"]["construction"] = str(place)
        (net / "config.json").write_text(json.dumps(config))
        code, *said = run(capsys, "certify", net, "--task", tmp_path / "t.npz")
        assert (code == 2) == (place.parent == net), said
        assert run(capsys, "show", net)[0] == 0
        if place.parent == net:
            place.rename(tmp_path / "mine.py")
    assert not (tmp_path / "executed").exists()


def test_tasks_of_the_example() -> None:
    """What the example says of itself: 6(N − 1) + n + 2 parameters, repeated sequences counted once; refusals."""
    staircase = from_file(Path(__file__).parents[2] / "examples" / "own_construction.py")
    assert build(staircase, TASK).account.dense == 6 * 19 + 3 + 2
    for tokens, labels in (([[0, 1], [0, 1], [2, 1]], [1, 1, 0]), ([[5]], [3]), ([[1, 0], [0, 1]], [0, 2])):
        task = NextToken(tokens=tokens, labels=labels)
        assert byheart.certify(build(staircase, task).network, task).certified
    with pytest.raises(BadInput, match="example 0 and example 1 are equal sequences"):
        build(staircase, NextToken(tokens=[[0, 1], [0, 1]], labels=[0, 1]))
    with pytest.raises(BadInput, match="reads token ids"):
        build(staircase, NextToken(vectors=[[[0.5]]], labels=[0]))
    with pytest.raises(BadInput, match="reads token ids"):
        staircase.plan(Size(5, 2, 2, 5, dim=3), "next-token", staircase.settings())


@pytest.mark.parametrize("name", ["", "--json", "mine.py", 5])
def test_names_that_no_command_could_take(name: Any) -> None:
    with pytest.raises(BadInput, match=r"a construction is called .*; expected a name such as"):
        replace(TOY, name=name)


def test_settings_that_every_build_has() -> None:
    @dataclass(frozen=True)
    class Clashing:
        seed: int = 3

    with pytest.raises(BadInput, match="toy-1999: a setting is called seed, as a flag of every build"):
        replace(TOY, settings=Clashing)


def test_a_mistake_of_the_user_is_the_users() -> None:
    def raising(*_: object) -> Made:
        raise KeyError("a bug of mine")

    with pytest.raises(BadInput, match="toy-1999: its build failed: KeyError: 'a bug of mine'"):
        build(replace(TOY, build=raising), TASK)
    with pytest.raises(BadInput, match="toy-1999: its build returned NoneType; expected"):
        build(replace(TOY, build=lambda *_: None), TASK)
