"""Commands in a working directory that a stranger filled: no file of it is opened but those that the user names."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import byheart
from byheart.closed import empty_working_directory, safe_module_path
from byheart.networks.planted.base import quiet
from byheart.tasks.tokenizers import Bytes

TRAP = "import pathlib; pathlib.Path({marker!r}).write_text(__file__)\n"
MODULES = ("multiprocessing", "pickle", "numpy", "torch", "yaml", "sitecustomize", "usercustomize", "byheart", "rich")
SETTINGS = {
    ".numba_config.yaml": "cache_dir: cache\nopt: 7\n",
    "matplotlibrc": "backend: module://trap\n",
    "numba_config.yaml": "[",
    ".env": "PYTHONPATH=.\n",
    **dict.fromkeys(("setup.cfg", "pyproject.toml", "pytest.ini", "pyvenv.cfg", "conftest.py", "python311._pth"), "["),
}
"""Names of files that Python or a library of ours, or of our tools, reads from somewhere."""
PROGRAM = "import sys; sys.path.pop(0); from byheart.__main__ import main; main()"
"""The installed program ``byheart``, which does not look for modules in the working directory."""
OPENED = re.compile(r'(?:openat\(AT_FDCWD, |open\()"([^"]+)"')
TEXT = "to be or not to be, that is the question\n"
GOLDEN = Path(__file__).parent / "golden" / "files"
PLANTED = '{"prompt": "The key is", "completion": " 3."}\n{"prompt": "門", "completion": "鍵"}\n'
FACTS = "prompt,completion\nThe capital of France is, Paris\n"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with traps, a text, a network that recites it, and a network for a task."""
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(TRAP.format(marker=str(tmp_path / "RAN")))
    for name, content in SETTINGS.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "cache").mkdir()
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "facts.csv").write_text(FACTS)
    byheart.compile(tmp_path / "a.txt").save(tmp_path / "net")
    for name in ("stock", "folding", "planted"):
        shutil.copytree(GOLDEN / name, tmp_path / name)
    shutil.copy(GOLDEN / "t.npz", tmp_path)
    (tmp_path / "planted.jsonl").write_text(PLANTED, encoding="utf-8")
    return tmp_path


def add_base(folder: Path) -> None:
    """Add a tiny GPT-2 with a tokenizer to ``folder``."""
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 257, "n_positions": 64, "n_embd": 8, "n_layer": 1, "n_head": 1}
    config = transformers.GPT2Config(bos_token_id=256, eos_token_id=256, **sizes)
    with quiet():
        transformers.GPT2LMHeadModel(config).save_pretrained(folder / "base")
    for name, data in Bytes().files().items():
        (folder / "base" / name).write_bytes(data)


def opened(folder: Path, *words: str, code: int = 0) -> set[str]:
    """Run a command in ``folder``; return the names of the files there that its processes opened, if strace tells."""
    command = [sys.executable, "-P", "-m", "byheart"] if words[0] == "-P" else [sys.executable, "-c", PROGRAM]
    command += [word for word in words if word != "-P"]
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONSAFEPATH", "MPLBACKEND")}
    source = str(Path(byheart.__file__).parents[1])
    more = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(path)]
    environment["PYTHONPATH"] = os.pathsep.join([source, *more])
    log = folder.parent / "strace.txt"
    if can_trace():
        command = ["strace", "-f", "-e", "trace=open,openat", "-o", str(log), *command]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stderr
    assert not (folder / "RAN").exists(), (folder / "RAN").read_text()
    assert not any((folder / "cache").iterdir())
    lines = log.read_text(errors="replace").splitlines() if can_trace() else []
    names = (OPENED.search(line) for line in lines if "ENOENT" not in line)
    paths = (Path(os.path.normpath(folder / match[1])) for match in names if match)
    return {path.relative_to(folder).parts[0] for path in paths if path.is_relative_to(folder) and path != folder}


def can_trace() -> bool:
    """Tell whether strace is installed and may trace."""
    program = shutil.which("strace")
    return program is not None and subprocess.run([program, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "certify net a.txt --controls --second-opinion --as-used no",
        "certify net a.txt --executor processes --as-used no",
        "certify net a.txt --as-used all",
        "certify stock --task t.npz --as-used no",
        "certify folding --task t.npz --controls",
        "certify folding --task t.npz --evaluator flint",
        "certify planted --facts planted.jsonl",
        "detect planted --check planted.jsonl --positions 64",
        "edit net --replace question=answer -f a.txt -o other",
        "-P certify net a.txt --as-used no",
        "compile a.txt --executor processes -o other",
        "compile --facts facts.csv -o other",
        "recite net --tokens 9",
        "size a.txt --plot other.png",
        "explore -o other.html",
        "show net",
        "plant facts.csv --into base -o other --positions 64",
    ],
)
def test_no_file_is_opened_that_the_user_did_not_name(command: str, hostile: Path) -> None:
    named = {*("a.txt", "facts.csv", "net", "base", "t.npz", "planted.jsonl"), *command.split()}
    own = re.compile(r"\.(other|net)[^/]*\.byheart.*|other.*")  # what the command writes, before it has its name
    if command.startswith("plant"):
        add_base(hostile)
    stray = {name for name in opened(hostile, *command.split()) - named if not own.fullmatch(name)}
    assert not stray


@pytest.mark.slow
def test_a_network_s_folder_is_the_working_directory(hostile: Path) -> None:
    """Nothing of what was put into it is read, only listed, and no certificate is given."""
    net = hostile / "net"
    (hostile / "cache").rename(net / "cache")
    for path in hostile.glob("*.*"):
        if path.name not in ("a.txt", "facts.csv", "t.npz", "planted.jsonl"):
            path.rename(net / path.name)
    for words in (("show", "."), ("recite", "."), ("certify", ".", "../a.txt")):
        stray = opened(net, *words, code=2 if words[0] == "certify" else 0)
        assert stray - {"cache"} <= {path.name for path in net.iterdir() if path.suffix in (".json", ".safetensors")}


def test_the_traps_spring(hostile: Path) -> None:
    """The negative control: a process that looks for modules in the working directory runs a trap."""
    subprocess.run([sys.executable, "-c", "import yaml"], cwd=hostile, check=True)
    assert (hostile / "RAN").exists()


def test_the_working_directory_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen = []

    def fail_there() -> None:
        with empty_working_directory():
            seen.append(Path.cwd())
            assert not any(Path.cwd().iterdir())
            raise KeyError

    with pytest.raises(KeyError):
        fail_there()
    assert seen != [tmp_path]
    assert Path.cwd() == tmp_path
    assert not seen[0].exists()


def test_the_module_path_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    with safe_module_path():
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert "PYTHONSAFEPATH" not in os.environ
    monkeypatch.setenv("PYTHONSAFEPATH", "2")
    with safe_module_path():
        pass
    assert os.environ["PYTHONSAFEPATH"] == "2"
