"""The demonstration: calm to watch, and its page is self-contained and true, every certificate checked again."""

import importlib.util
import keyword
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from byheart.cli.main import main as command

from .report.test_page import Reader

ROOT = Path(__file__).parents[1]
CERTIFICATE = re.compile(
    r'<div class="certificate">\n<p class="finding">(.*?)</p>.*?<pre class="recheck">(.*?)</pre>', re.S
)


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def said_by(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[object, str]:
    """Exit code and first line of a command."""
    program, *arguments = shlex.split(line)
    assert program == "byheart"
    with pytest.raises(SystemExit) as stop:
        command(arguments)
    return stop.value.code, capsys.readouterr().out.split("\n", maxsplit=1)[0]


def timeless(text: str) -> str:
    return re.sub(r"\d+\.\d s", "T s", text)


@pytest.mark.slow
def test_the_page_is_whole_and_every_certificate_can_be_checked_again(
    demo: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["demo.py", "demo", "--tiny"])
    assert demo.main() == 0
    told = capsys.readouterr()
    steps = [line for line in told.out.splitlines() if re.match(r"\d+/\d+  ", line)]
    assert len(steps) == len(demo.STEPS)
    assert len(re.findall(r"\(\d+\.\d s\)\n\n", told.out)) == len(steps)
    assert max(map(len, told.out.splitlines())) <= 100
    spoken = "\n".join(line.partition("│ ")[2] for line in told.out.splitlines() if "│" in line)
    assert Path(keyword.__file__).read_text(encoding="utf-8").startswith(spoken.removesuffix("…"))
    assert len(spoken) > 400
    assert told.err == ""

    text = (tmp_path / "demo" / "index.html").read_text(encoding="utf-8")
    page = Reader(text)
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert "http" not in text
    assert "@import" not in text
    assert page.tags.count("svg") >= 8, "four pictures, each wide and narrow"
    inside = {link.removeprefix("#") for link in page.links if link.startswith("#")}
    assert inside <= set(page.ids)
    files = [link for link in page.links if not link.startswith("#")]
    assert "lab/index.html" in files
    assert all((tmp_path / "demo" / link).exists() for link in files)

    certificates = [(says, re.sub(r"</?span>", "", line)) for says, line in CERTIFICATE.findall(text)]
    assert "all but about one in 262,144 are refused" in text
    assert len(certificates) == 5
    for says, line in certificates:
        assert "certified: " in says
        code, said = said_by(line, capsys)
        assert code == 0
        assert timeless(said) == timeless(says)

    weights = tmp_path / "demo" / "folded" / "model.safetensors"  # a control: the commands do look at the weights
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert said_by(next(line for _, line in certificates if "folded" in line), capsys)[0] != 0


def test_a_command_that_fails_stops_everything_and_is_named(demo: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(
        demo.DemoError, match=r"byheart certify nothing --task t\.npz\nended with 2, expected 0\n.*nothing"
    ):
        demo.Demo(tmp_path, demo.TINY).run("certify", "nothing", "--task", "t.npz")


def test_what_is_recited_must_be_what_is_imported(demo: ModuleType, tmp_path: Path) -> None:
    """By hand: an empty folder has no module, so Python's own is found, which is not the recited one."""
    with pytest.raises(demo.DemoError, match=r"keyword came from .*keyword\.py, expected the recited one"):
        demo._used(demo.Demo(tmp_path, demo.TINY), tmp_path)
    (tmp_path / "keyword.py").write_text("def iskeyword(word): return len(word)\n")
    assert demo._used(demo.Demo(tmp_path, demo.TINY), tmp_path) == "6"
