"""What a reader of a page does and sees, in Chromium."""

import base64
import json
from pathlib import Path
from typing import Any

WIDE, PHONE = 1200, 390
WINDOWS = {"light": (WIDE, False), "dark": (WIDE, True), "phone": (PHONE, False), "dark phone": (PHONE, True)}
"""How wide a window is, and whether it is dark."""

UNREADABLE = """
const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const over = ([r, g, b, a], ground, opacity) =>
  [r, g, b].map((part, k) => part * opacity * a / 255 + ground[k] * (1 - opacity * a / 255));
const luminance = (colour) => {
  const [r, g, b] = colour.map((part) => part / 255).map((c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
};
const contrast = (one, other) => {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + .05) / (low + .05);
};
const paper = over(rgba(getComputedStyle(document.body).backgroundColor), [255, 255, 255], 1);
const painted = (shape, ground) => {
  const { fill, opacity, fillOpacity } = getComputedStyle(shape);
  return fill === "none" ? ground : over(rgba(fill), ground, opacity * fillOpacity);
};
const behind = (text) => {
  text.scrollIntoView({ block: "center", inline: "center" });
  const { left, top, width, height } = text.getBoundingClientRect();
  const there = document.elementsFromPoint(left + width / 2, top + height / 2).filter((e) => !text.contains(e));
  const shapes = there.filter((e) => e.matches("path, rect, circle")).reverse();
  return shapes.reduce((ground, shape) => painted(shape, ground), paper);
};
return [...document.querySelectorAll("svg text")].filter((text) => text.checkVisibility() && text.textContent.trim())
  .filter((text) => { const ground = behind(text); return contrast(painted(text, ground), ground) < 3; })
  .map((text) => text.textContent.trim());
"""
"""The words in pictures whose contrast to what is painted behind them is below 3, WCAG's least for large ones."""


class Reader:
    """Somebody in front of a page."""

    def __init__(self, driver: Any, page: str) -> None:
        self.driver = driver
        for log in ("browser", "performance"):
            driver.get_log(log)
        driver.get("about:blank")
        self.look(WIDE)
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
        """What the console says."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> set[str]:
        """Everything that was asked for, by address; what is in the page itself is not."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [
            event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"
        ]
        return {url for url in asked if not url.startswith("data:")}

    def width(self) -> int:
        """Of all that there is to see, to the right of the window included."""
        return int(self.run("return document.documentElement.scrollWidth"))

    def unreadable(self) -> list[str]:
        """Words in the page's own pictures that hardly stand out from what is behind them."""
        return list(self.run(UNREADABLE))

    def barriers(self) -> set[str]:
        """The rules of axe that the page breaks: what keeps out readers with a keyboard, a screen reader, weak eyes."""
        from axe_core_python.selenium import Axe

        return {found["id"] for found in Axe().run(self.driver)["violations"]}

    def photograph(self, path: Path) -> None:
        """Write a picture of the whole page."""
        width, height = self.run("return [innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        path.write_bytes(base64.b64decode(shot["data"]))
