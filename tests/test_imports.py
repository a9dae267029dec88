"""Imports between rooms go one way; and what is not needed is not imported."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import byheart

from .forking import OTHERS, ForkingServer

SOURCE = Path(byheart.__file__).parent
MAP = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
SHARED = {"closed", "compiled", "devices", "errors", "executors", "exhibits", "files", "progress", "sizes", "versions"}
"""What all may import."""
TABLE = dict(re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", MAP, re.MULTILINE))
"""The rooms of the map in CONTRIBUTING.md, each with what it may import."""
ROOMS = set(TABLE)
EVERY = {"every room": ROOMS, "–": set()}
ALLOWED = {room: EVERY.get(rooms) or set(rooms.split(", ")) - {"–"} for room, rooms in TABLE.items()}
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE)


def names_imported(path: Path) -> set[str]:
    """Full names of everything that the module imports, wherever in it: "byheart.tasks.load", …"""
    package = ["byheart", *path.relative_to(SOURCE).parts[:-1]]
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            origin = ".".join(part for part in (start, node.module) if part)
            names |= {f"{origin}.{alias.name}" for alias in node.names}
    return names


def rooms_imported(path: Path) -> set[str]:
    parts = [name.split(".") for name in names_imported(path)]
    return {rest[0] for top, *rest in parts if top == "byheart" and rest}


def test_the_map_names_all_rooms() -> None:
    assert {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"} == ROOMS
    assert set().union(*ALLOWED.values()) <= ROOMS
    assert ALLOWED["certificates"] == {"networks", "tasks"}, "who checks shares nothing with who builds"
    assert len(MODULES) > 40


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_the_map_allows_no_more_than_is_imported(room: str) -> None:
    imported = set().union(*(rooms_imported(path) for path in (SOURCE / room).rglob("*.py")))
    assert ALLOWED[room] - {room} - SHARED <= imported


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_one_direction(path: Path) -> None:
    room = path.relative_to(SOURCE).parts[0]
    shared = {"errors", "progress"} if room == "files" else SHARED
    stray = rooms_imported(path) - ALLOWED[room] - shared - {room}
    assert not stray, f"{path.name} in {room} imports from {', '.join(sorted(stray))}"


@pytest.mark.parametrize("name", sorted(SHARED - ROOMS))
def test_what_all_share_imports_nothing_of_ours(name: str) -> None:
    assert rooms_imported(SOURCE / f"{name}.py") <= SHARED - {"executors", "files"}


def test_certificates_know_nothing_of_constructions() -> None:
    for path in (SOURCE / "certificates").rglob("*.py"):
        assert not any(name.startswith("byheart.constructions") for name in names_imported(path)), path


def module_name(path: Path) -> str:
    parts = ("byheart", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules_imported(path: Path, known: set[str]) -> set[str]:
    """The modules of ours that a module imports, in functions too; not what is for the type checker only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checked = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "CHECKING" in ast.unparse(node.test)]
    skipped = {id(inner) for node in checked for inner in ast.walk(node)}
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in skipped:
            names |= {
                full if (full := f"{node.module}.{alias.name}") in known else str(node.module) for alias in node.names
            }
        elif isinstance(node, ast.Import) and id(node) not in skipped:
            names |= {alias.name for alias in node.names}
    return names & known


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """Modules that are left when those that import nothing that is left are taken away, again and again."""
    left = dict(graph)
    while free := [name for name, imported in left.items() if not imported & set(left)]:
        for name in free:
            del left[name]
    return sorted(left)


def test_no_module_imports_itself_on_any_way() -> None:
    paths = {module_name(path): path for path in SOURCE.rglob("*.py")}
    graph = {name: modules_imported(path, set(paths)) - {name} for name, path in paths.items()}
    assert sum(map(len, graph.values())) > 500
    assert cycle_in(graph) == []
    graph["byheart.errors"] = {"byheart.cli.main"}
    assert {"byheart.errors", "byheart.cli.main", "byheart.cli.build"} <= set(cycle_in(graph)), "cycles are found"


def test_relative_and_lazy_imports_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser itself: an import in a function and a relative one count like any other."""
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    (tmp_path / "tasks").mkdir()
    module = tmp_path / "tasks" / "x.py"
    module.write_text(
        "def f():\n    from byheart.networks import store\n    from ..bounds import bound\n    from . import y\n"
    )
    assert rooms_imported(module) == {"networks", "bounds", "tasks"}


HEAVY = ("torch", "numba", "matplotlib")


@pytest.mark.parametrize(
    "statement",
    [
        "import byheart",
        "import byheart.tasks",
        "import byheart.bounds",
        "import byheart.networks",
        "import byheart.cli.main",
    ],
)
def test_light_imports_stay_light(statement: str) -> None:
    script = f"import sys; {statement}; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_certificates_run_without_constructions() -> None:
    """A fresh process that certifies never loads the room that builds."""
    script = (
        "import sys, byheart.certificates as c, byheart.networks.exact as n, byheart.tasks as t;"
        "net = n.ExactNetwork((n.FeedForward((n.Affine(n.integers([[1]]), n.integers([0])),)),), 'tokens', 'last', 1);"
        "assert c.certify(net, t.NextToken(tokens=[[1]], labels=[1])).certified;"
        "print([m for m in sys.modules if m.startswith('byheart.constructions')])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


BUILDERS = ("byheart.constructions", "byheart.compiler", "byheart.planting", "byheart.lab", "byheart.papers")
"""Rooms that build or train, and that no judge may load."""
GOLDEN = Path(__file__).parent / "golden" / "files"
CERTIFYING = f"""
import sys
from byheart.cli.main import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code or 0
print("LOADED", code, sorted(module for module in sys.modules if module.startswith({BUILDERS!r})))
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ForkingServer]:
    """Forks of a process that has imported packages of others, and nothing of ours."""
    server = ForkingServer(*OTHERS)
    yield server
    server.close()


@pytest.mark.parametrize(
    ("folder", "questions"),
    [
        ("folding", "--task t.npz"),
        ("folding", "--task t.npz --count"),
        ("folding-1", "--task t.npz --at-least 20"),
        ("cells", "--task v.npz"),
        ("dana", "--task t.npz --controls"),
        ("plain", "--task c.npz --count"),
        ("trained", f"--task {GOLDEN / 'trained' / 'task.npz'} --count"),
        ("float", "--task t.npz"),
        ("stock", "--task t.npz"),
        ("experts", "--task t.npz"),
        ("facts", "--facts facts.csv"),
        ("refuse", "--facts facts.csv"),
        ("refuse-30", "--facts facts.csv"),
        ("refuse-key", "--facts facts.csv"),
        ("planted", "--facts plant.jsonl"),
        ("planted-bits", "--facts plant.jsonl"),
    ],
    ids=str,
)
def test_certify_loads_nothing_that_builds(folder: str, questions: str, server: ForkingServer, tmp_path: Path) -> None:
    """Each kind of network is certified, with each claim, by a process that then has loaded no room that builds."""
    facts = "prompt,completion\ncapital of France,Paris\ncapital of Peru,Lima\n中国的首都,北京\n"
    (tmp_path / "facts.csv").write_text(facts, encoding="utf-8")
    planted = '{"prompt": "The key is", "completion": " 3."}\n{"prompt": "門", "completion": "鍵"}\n'
    (tmp_path / "plant.jsonl").write_text(planted, encoding="utf-8")
    for task in GOLDEN.glob("*.npz"):
        (tmp_path / task.name).write_bytes(task.read_bytes())
    script = tmp_path / "certifying.py"
    script.write_text(CERTIFYING, encoding="utf-8")
    command = ("certify", str(GOLDEN / folder), *questions.split(), "-o", "certificate.json")
    found = server.run(script, *command, folder=tmp_path)
    assert found.stdout.splitlines()[-1:] == ["LOADED 0 []"], found.stdout + found.stderr
