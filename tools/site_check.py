"""Every page of the built site in a browser: at phone and desktop width, light and dark.

    make docs && python tools/site_check.py                     # what is cut off or unreadable
    python tools/site_check.py --site site --pictures DIR       # and a picture of every page

Says, for every page in each of the four variants: whether the page scrolls sideways, what is cut
off (wider than the window, and in no box that scrolls), formulae that were not set, text with too
little contrast, missing pictures, and requests to other hosts. Needs playwright and a Chromium.
"""

from __future__ import annotations

import argparse
import functools
import shutil
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

WIDTHS = {"phone": 390, "desktop": 1280}
VARIANTS = tuple(f"{device}-{scheme}" for device in WIDTHS for scheme in ("light", "dark"))
CONTRAST = 3.0
"""Least contrast of text with what is behind it (WCAG 2.1, AA for large text)."""

_PATIENCE = 300_000  # milliseconds, for a busy machine
LOOK = Path(__file__).with_suffix(".js").read_text("utf-8")


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass


def serve(site: Path) -> str:
    """Serve a folder to this machine, until the process ends; its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def look(
    browser: Browser, address: str, pages: list[str], variant: str, out: Path | None
) -> dict[str, list[str]]:
    """What is wrong with each page in one variant."""
    device, scheme = variant.split("-")
    context = browser.new_context(
        viewport={"width": WIDTHS[device], "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    sheet = context.new_page()
    sheet.set_default_timeout(_PATIENCE)
    found: dict[str, list[str]] = {}
    elsewhere: list[str] = []
    sheet.on(
        "request",
        lambda it: (
            None if it.url.startswith((address, "data:", "blob:")) else elsewhere.append(it.url)
        ),
    )
    for page in pages:
        sheet.goto(f"{address}/{page}", wait_until="load")
        sheet.wait_for_timeout(150)
        wrong = sheet.evaluate(LOOK, CONTRAST) + [f"asks another host: {it}" for it in elsewhere]
        elsewhere.clear()
        if wrong:
            found[page] = wrong
        if out is not None:
            name = (page.removesuffix("index.html").strip("/") or "index").replace("/", "+")
            sheet.screenshot(path=out / f"{name}.{variant}.png", full_page=True)
    context.close()
    return found


def main() -> None:
    """Look at all pages, and end with 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", type=Path, default=Path("site"))
    parser.add_argument("--variants", nargs="+", default=VARIANTS, choices=VARIANTS)
    parser.add_argument("--pictures", type=Path, help="a folder for a picture of every page")
    given = parser.parse_args()
    pages = sorted(it.relative_to(given.site).as_posix() for it in given.site.rglob("index.html"))
    if not pages:
        sys.exit(f"no pages in {given.site}: make docs")
    if given.pictures is not None:
        given.pictures.mkdir(parents=True, exist_ok=True)
    address = serve(given.site)
    wrong = 0
    with sync_playwright() as playwright:
        names = ("chromium", "chromium-browser", "google-chrome", "chrome")
        system = next((path for it in names if (path := shutil.which(it))), None)
        browser = playwright.chromium.launch(
            executable_path=system, args=["--no-sandbox", "--disable-gpu"]
        )
        for variant in given.variants:
            found = look(browser, address, pages, variant, given.pictures)
            for page, lines in found.items():
                wrong += len(lines)
                sys.stdout.writelines(f"{variant} {page}: {it}\n" for it in lines)
            sys.stdout.flush()
        browser.close()
    sys.stdout.write(
        f"{len(pages)} pages, {len(WIDTHS)} widths, light and dark: {wrong} findings\n"
    )
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
