"""Takes docs/img/report.png, the first screen of the demo's report: python tools/report_picture.py

Needs a Chromium, the system's or Playwright's own.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import apeval
from apeval.results.report import write_report

PICTURE = Path(__file__).parents[1] / "docs" / "img" / "report.png"
SCREEN = (1100, 780)


def demo(folder: Path) -> Path:
    """The report of the run that `make demo` makes."""
    run = folder / "demo"
    problem = apeval.make("int-v1")
    apeval.evaluate(problem, steps=3000, seed=1, recorder=apeval.Recorder(run))
    return write_report([run], folder / "report.html")


def first_screen(report: Path) -> Image.Image:
    """What a visitor sees before scrolling."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": SCREEN[0], "height": SCREEN[1]})
        page.goto(report.resolve().as_uri())
        shot = page.screenshot()
        browser.close()
    return Image.open(io.BytesIO(shot)).convert("RGB")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        picture = first_screen(demo(Path(folder)))
    picture.quantize(64, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
