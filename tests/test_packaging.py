"""What is released: an sdist, the wheel that is built from it, and what the wheel does where nothing else of ours is.

An environment is a folder of links to what a set of extras requires, by the metadata of what is installed here: what is
used but not declared is not found in it. Nothing is downloaded.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import byheart

ROOT = Path(__file__).parents[1]
OURS = ROOT / "src" / "byheart"
NOT_RELEASED = {".git", ".venv", "demo", "build", "dist", "__pycache__", ".hypothesis", ".pytest_cache"}
FIXTURES = Path(__file__).parent / "fixtures" / "0.1.0"
HOOK = "import sys; from setuptools import build_meta; print(getattr(build_meta, 'build_' + sys.argv[1])(sys.argv[2]))"
SIZES = ("--examples", "20", "--length", "3", "--vocab", "30", "--labels", "4")


def ran(*command: object, folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    return subprocess.run(
        list(map(str, command)), cwd=folder, env=alone, capture_output=True, text=True, check=False, **options
    )


def built(kind: str, source: Path, into: Path) -> Path:
    """What setuptools makes of a source tree: ``sdist`` or ``wheel``."""
    done = ran(sys.executable, "-c", HOOK, kind, into, folder=source)
    assert done.returncode == 0, done.stderr
    return into / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, into = tmp_path_factory.mktemp("source") / "byheart", tmp_path_factory.mktemp("sdist")
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*NOT_RELEASED, "*.egg-info", ".*_cache"))
    return built("sdist", source, into)


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From the sdist alone: what is missing there is missing here."""
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    return built("wheel", unpacked / sdist.name.removesuffix(".tar.gz"), tmp_path_factory.mktemp("wheel"))


def required(*extras: str) -> dict[str, metadata.Distribution]:
    """What byheart with these extras requires, and what that requires, and so on."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [("byheart", extra) for extra in ("", *extras)]
    seen = set(waiting)
    for name, extra in waiting:
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # a choice of this platform's, or of another's
            continue
        for line in found[name].requires or ():
            needs = Requirement(line)
            if needs.marker is None or needs.marker.evaluate({"extra": extra}):
                more = {(canonicalize_name(needs.name), each) for each in ("", *needs.extras)} - seen
                seen |= more
                waiting += more
    del found["byheart"]
    return found


def environment(place: Path, wheel: Path, *extras: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A Python that has the wheel and what it requires; runs its arguments in an empty folder."""
    site, work = place / "site", place / "work"
    work.mkdir(parents=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    for distribution in required(*extras).values():
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))))
    start = f"import sys; sys.path[:] = [{str(site)!r}] + [path for path in sys.path if 'site-packages' not in path]; "

    def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        return ran(sys.executable, "-I", "-S", "-c", start + code, *arguments, folder=work)

    return python


ALL = """
import json, byheart
from byheart.__main__ import main
codes = []
for command in json.loads(sys.argv[1]):
    sys.argv = ["byheart", *command]
    try:
        main()
    except SystemExit as stop:
        codes.append(stop.code)
found = {"matplotlib", "transformers", "hypothesis"} & sys.modules.keys()
print(json.dumps([byheart.__file__, codes, sorted(found)]))
"""
"""One command after the other in one process; then where the package is, the exit codes, and extras that were found."""


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_its_data_and_nothing_else(wheel: Path) -> None:
    ours = {path.relative_to(OURS.parent) for path in OURS.rglob("*") if path.is_file()}
    ours = {path for path in ours if "__pycache__" not in path.parts}
    with zipfile.ZipFile(wheel) as archive:
        names = {Path(name) for name in archive.namelist() if ".dist-info/" not in name}
        (about,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        text = archive.read(about).decode()
        scripts = archive.read(about.replace("METADATA", "entry_points.txt")).decode()
    assert names == ours
    assert {Path("byheart/py.typed"), Path("byheart/verify.py")} < names
    assert f"Version: {byheart.__version__}\n" in text
    assert "Requires-Python: >=3.11\n" in text
    assert "Classifier: Typing :: Typed\n" in text
    assert "byheart = byheart.__main__:program" in scripts


@pytest.mark.slow
def test_the_sdist_is_enough_to_test_from(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"Makefile", "conftest.py", "constraints.txt", "README.md", "LICENSE", "SECURITY.md"} < names
    for folder in ("tests", "benchmarks", "examples"):
        paths = [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        assert {str(path.relative_to(ROOT)) for path in paths} <= names
    assert not [name for name in names if name.endswith((".pyc", ".nbc", ".nbi"))]


@pytest.mark.slow
def test_the_wheel_alone_builds_and_certifies(wheel: Path, tmp_path: Path) -> None:
    """Without extras, and outside the source tree; what needs an extra says so in one line."""
    python = environment(tmp_path, wheel)
    commands = (
        ("task", "random", *SIZES, "-o", "t.npz"),
        ("build", "folding", "--task", "t.npz", "-o", "net"),
        ("certify", "net", "--task", "t.npz", "--second-opinion"),
        ("lab", "compare", "--shipped", "--paper", "mahdavi-2024", "--json"),
        ("--help",),
        ("show", "net", "--plot", "net.png"),
        ("compile", "--task", "t.npz", "--layout", "uniform", "-o", "llama"),
    )
    done = python(ALL, json.dumps(commands))
    assert done.returncode == 0, done.stderr
    where, codes, extras = json.loads(done.stdout.splitlines()[-1])
    assert Path(where).is_relative_to(tmp_path), "the wheel, not the source tree"
    assert codes == [0, 0, 0, 0, 0, 2, 2], done.stderr
    assert extras == []
    assert "certified: 20 of 20 answers right" in done.stdout
    assert "second opinion: agrees" in done.stdout
    assert "matplotlib" in done.stderr
    assert "transformers" in done.stderr


@pytest.mark.slow
def test_the_wheel_with_extras_draws_and_compiles_a_llama(wheel: Path, tmp_path: Path) -> None:
    python = environment(tmp_path, wheel, "plots", "hf")
    (tmp_path / "work" / "a.txt").write_text("abracadabra")
    commands = (
        ("lab", "plot", "--shipped", "dana-2025-6", "-o", "six"),
        ("compile", "a.txt", "--layout", "uniform", "-o", "llama"),
    )
    done = python(ALL, json.dumps(commands))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])[1:] == [[0, 0], ["matplotlib", "transformers"]], done.stderr
    assert (tmp_path / "work" / "six" / "index.html").stat().st_size > 10_000


def test_what_is_not_declared_is_not_there() -> None:
    """The other way round: the extras are what makes the difference."""
    bare, more = required(), required("plots", "hf")
    assert {"numpy", "torch", "rich"} < bare.keys()
    assert not {"matplotlib", "transformers", "pytest", "hypothesis", "byheart"} & bare.keys()
    assert {"matplotlib", "transformers", "tokenizers"} < more.keys() - bare.keys()


def newest() -> str | None:
    """A Python 3.13 on this machine, if there is one that runs."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for python in (*sorted(pyenv.glob("3.13.*/bin/python3.13")), shutil.which("python3.13")):
        if python is not None and ran(python, "--version", folder=ROOT).returncode == 0:
            return str(python)
    return None


@pytest.mark.slow
def test_on_python_3_13_the_source_compiles_and_a_network_is_verified(wheel: Path, tmp_path: Path) -> None:
    """As far as it goes without numpy and PyTorch: syntax, warnings as errors, and the second opinion."""
    python = newest()
    if python is None:
        pytest.skip("no Python 3.13 here")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    compiled = ran(python, "-W", "error", "-m", "compileall", "-q", "byheart", folder=tmp_path)
    assert compiled.returncode == 0, compiled.stdout
    imported = ran(python, "-W", "error", "-c", "import byheart; print(byheart.__name__)", folder=tmp_path)
    assert (imported.returncode, imported.stdout) == (0, "byheart\n"), imported.stderr
    verify = (tmp_path / "byheart" / "verify.py", FIXTURES / "folding", "--task", FIXTURES / "next.jsonl")
    said = ran(python, "-W", "error", "-I", *verify, "--json", folder=tmp_path)
    assert (said.returncode, json.loads(said.stdout)["verdict"]) == (0, "right"), said.stderr


def test_one_version_in_all_places() -> None:
    import yaml

    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    releases = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert cited["version"] == byheart.__version__
    assert any(re.match(rf"{re.escape(byheart.__version__)}\b", release) for release in releases)
    assert {"cff-version", "message", "title", "authors"} <= cited.keys(), "what the format asks for"
    licences = metadata.metadata("byheart")["License-Expression"]  # the program's, and that of a text which it brings
    assert cited["license"] == licences.partition(" AND ")[0]
    for paper in cited["references"]:
        assert {"type", "title", "authors", "year"} <= paper.keys()


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_issue_templates_are_forms(path: Path) -> None:
    import yaml

    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.stem == "config":
        assert form == {"blank_issues_enabled": True}
        return
    assert {"name", "description", "body"} <= form.keys()
    for field in form["body"]:
        assert field["type"] in {"markdown", "textarea", "input", "dropdown", "checkboxes"}
        assert field["type"] == "markdown" or field["attributes"]["label"]
