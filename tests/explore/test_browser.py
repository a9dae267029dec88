"""The page in a real browser: a prompt is typed, a slider moved, a bit flipped; nothing complains, nothing is loaded.

Needs Chromium and its driver (Debian: chromium, chromium-driver) and the extra ``browser``; skipped without them.
"""

import base64
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from byheart.constructions.reciting import compile
from byheart.explore import explorer
from byheart.explore.reciting import TEXTS

pytestmark = pytest.mark.slow
SHOTS = "BYHEART_SCREENSHOTS"
"""A folder that screenshots are written into, if somebody wants to look."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    path.write_text(explorer(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is missing: the extra browser has it")
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
    yield driver
    driver.quit()


class Reader:
    """What a reader of the page does and sees."""

    def __init__(self, driver: Any, page: str) -> None:
        self.driver = driver
        for log in ("browser", "performance"):
            driver.get_log(log)
        driver.get("about:blank")
        self.look(1200)
        driver.get(page)

    def look(self, width: int, *, dark: bool = False) -> None:
        """From a window of this width, in the light or in the dark."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        return str(self.find(selector).get_property("textContent"))

    def run(self, script: str, *given: object) -> Any:
        return self.driver.execute_script(script, *given)

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Everything that was asked for, by address."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


@pytest.fixture
def reader(chromium: Any, page: str) -> Iterator[Reader]:
    reader = Reader(chromium, page)
    yield reader
    assert reader.complaints() == []
    assert {url for url in reader.requests() if not url.startswith("data:")} <= {page}


def typed(reader: Reader, prompt: str) -> None:
    box = reader.find("#prompt")
    box.clear()
    box.send_keys(prompt)


def test_a_prompt_is_typed_and_the_text_recited(reader: Reader) -> None:
    typed(reader, "To be, or")
    assert reader.text("#said") == TEXTS["Hamlet"] + "∎"
    assert reader.text("#letter") == "␣"
    typed(reader, "xyz")
    assert "No memory ends like this prompt" in reader.text("#strange")
    assert reader.text("#said") != TEXTS["Hamlet"] + "∎"


def test_a_bit_is_flipped_and_the_answer_changes(reader: Reader) -> None:
    typed(reader, "To be")
    assert reader.text("#letter") == ","
    read = reader.run(
        "const net = new Network(data.networks[0]); return reading(net, new Table(net), arguments[0])", [*b"To be"]
    )
    bit = read["code"][0]["bit"]
    lane = next(lane for lane in read["lanes"] if lane["entry"] is not None)
    switch = f'[data-entry="{lane["entry"]}"][data-bit="{bit}"]'
    reader.find(switch).click()
    assert reader.text("#letter") != ","
    assert "One bit is flipped" in reader.text("#damage")
    assert len(reader.driver.find_elements("css selector", "#broken li")) >= 1
    assert reader.run("return document.activeElement.dataset.bit") == str(bit), "the focus stays on the switch"
    reader.find("#reset").click()
    assert reader.text("#letter") == ","
    assert reader.text("#said") == TEXTS["Hamlet"] + "∎"


def test_a_word_is_chosen_and_its_memories_are_shown(reader: Reader) -> None:
    button = reader.find("#map button.now")
    uses = int(button.text)
    button.click()
    assert f"{uses} of 171 memories use it" in reader.text("#word-says")
    assert len(reader.driver.find_elements("css selector", "#uses li")) == uses


def test_a_prompt_of_two_lines(reader: Reader) -> None:
    prompt = TEXTS["Hamlet"][:50]
    box = reader.find("#prompt")
    reader.run("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))", box, prompt)
    assert reader.text("#strange") == ""
    assert reader.text("#said") == TEXTS["Hamlet"] + "∎"
    assert reader.text("#given").count("\n") == 1


def test_a_slider_is_moved_and_the_count_follows(reader: Reader) -> None:
    from selenium.webdriver.common.keys import Keys

    count = '#counts [data-name="interpolate"] td'
    assert reader.text(count) == "30,003"
    slider = reader.find("#slider-N")
    for _ in range(4):
        slider.send_keys(Keys.ARROW_LEFT)
    assert reader.text("#at") == "1,000"
    assert reader.text(count) == "3,003"
    address = reader.driver.current_url
    assert "N=1000&" in address
    reader.driver.get("about:blank")
    reader.driver.get(address)
    assert reader.text(count) == "3,003", "a link keeps the sizes"


def test_logits_in_the_browser_are_those_of_pytorch(reader: Reader) -> None:
    prompt = list(b"To be, or not to be?")
    found = reader.run("return new Network(data.networks[0]).forward(arguments[0]).map((row) => [...row])", prompt)
    with torch.no_grad():
        network: Any = compile(TEXTS["Hamlet"]).network
        assert found == network.module(torch.tensor([prompt]))[0].tolist()


def test_exact_networks_are_chosen_and_answer(reader: Reader) -> None:
    from selenium.webdriver.support.ui import Select

    for network, sequence, label in ((0, 1, 0), (1, 2, 1), (2, 4, 2)):
        Select(reader.find("#exact-network")).select_by_index(network)
        Select(reader.find("#exact-sequence")).select_by_index(sequence)
        assert f"it answers {label}; the label is {label}." in reader.text("#exact-facts")
        assert len(reader.driver.find_elements("css selector", "#exact-steps .layer")) > 4


def test_it_fits_every_window(reader: Reader) -> None:
    for width, dark in ((1200, False), (1200, True), (390, False), (390, True)):
        reader.look(width, dark=dark)
        check_window(reader, width, dark=dark)


def check_window(reader: Reader, width: int, *, dark: bool) -> None:
    assert reader.run("return document.documentElement.scrollWidth") <= width
    paper = reader.run("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(26, 26, 26)" if dark else "rgb(255, 255, 255)")
    unnamed = reader.run(
        "return [...document.querySelectorAll('button, input, select')].filter((e) => !e.textContent.trim()"
        " && !e.labels?.length && !e.ariaLabel).map((e) => e.outerHTML)"
    )
    assert unnamed == [], "everything that can be used has a name"
    if folder := os.environ.get(SHOTS):
        size = reader.run("return document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": size, "scale": 1}
        shot = reader.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        name = f"{'dark' if dark else 'light'}-{width}"
        (Path(folder) / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))
