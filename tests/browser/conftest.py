"""Chromium, and the pages to look at; all is skipped where there is none, or not the extra ``browser``."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from byheart.explore import explorer

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is missing: `make browser` installs it")
    pytest.importorskip("axe_core_python", reason="axe-core-python is missing: `make browser` installs it")
    from selenium.webdriver.chrome.service import Service

    programs = [shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")]
    if None in programs:
        pytest.skip("Chromium or its driver is missing (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = str(programs[0])
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(programs[1])))
    driver.set_script_timeout(120)  # axe takes its time on long pages
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def explorer_page(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    path.write_text(explorer(), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def demo_page(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("demo"), ROOT / "examples" / "demo.py", "demo", "--tiny") / "demo/index.html"


@pytest.fixture(scope="session")
def lab_page(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    return made(folder, "-m", "byheart", "lab", "plot", "--shipped", "dana-2025-2", "-o", "lab") / "lab/index.html"


@pytest.fixture(scope="session")
def site(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("site"), "-m", "sphinx", "-W", "-q", ROOT / "docs", ".")


def made(folder: Path, *arguments: object) -> Path:
    """The folder, after Python has run in it."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder
