"""The report in a real browser: it opens offline, replays play, tables sort, names stay names."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

import apeval
from apeval.cli.main import app
from apeval.estimate.interval import estimate
from apeval.results.folder import load
from apeval.results.report import write_report
from apeval.results.report.markup import script_json
from apeval.results.report.stages import prefix, stages

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
    "\u2028\"'{{ data }}"
)
LARGEST = 3_000_000  # bytes


def record(folder: Path, problem: apeval.Problem, **budget: Any) -> Path:
    apeval.evaluate(problem, **budget, seed=1, recorder=apeval.Recorder(folder))
    return folder


def hostile_problem() -> apeval.Problem:
    """All that a user may name has a hostile name."""
    return apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=lambda x: (x[:, 0] > 4.0).astype(np.int64) + 2 * (x[:, 0] < -4.0),
        margin=lambda x: 4.0 - np.abs(x[:, 0]),
        horizon=4,
        kinds=(HOSTILE, "sinks"),
        views={HOSTILE: lambda x: x},
        name=HOSTILE,
        description=HOSTILE,
        parameters={HOSTILE: HOSTILE},
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One run of each kind that a report must cope with."""
    base = tmp_path_factory.mktemp("runs")
    make = apeval.make
    return {
        "pendulum": record(base / "pendulum", make("pendulum"), steps=24_000),
        "grid": record(base / "grid", make("minigrid-s1"), steps=4_000),
        "never": record(base / "never", make("never"), steps=1_000),
        "mc": record(base / "mc", make("walk", top=4), method="mc", episodes=300),
        "hostile": record(base / "hostile <b>", hostile_problem(), steps=3_000),
    }


@pytest.fixture(scope="module")
def reports(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("reports")
    made = {name: write_report([path], out / f"{name}.html") for name, path in folders.items()}
    made["two"] = write_report([folders["pendulum"], folders["never"]], out / "two.html")
    return made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, the system's or Playwright's own."""
    required = os.environ.get("APEVAL_REQUIRE_BROWSER") == "1"

    def give_up(reason: str) -> None:
        if required:
            pytest.fail(f"APEVAL_REQUIRE_BROWSER=1, but {reason}")
        pytest.skip(f"{reason}: the report is not looked at")

    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        give_up("playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    system = next((path for name in names if (path := shutil.which(name))), None)
    with sync_playwright() as playwright:
        try:
            found = playwright.chromium.launch(executable_path=system, args=["--no-sandbox"])
        except Error as error:
            give_up(f"no browser can be started ({str(error).splitlines()[0]})")
        yield found
        found.close()


class Visit:
    """A page with all that it complains about or asks the network for."""

    def __init__(self, browser: Browser, path: Path, **options: Any) -> None:
        self.page: Page = browser.new_page(**options)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.route("**/*", self._only_the_file)
        self.address = path.as_uri()
        self.page.goto(self.address)

    def _only_the_file(self, route: Any) -> None:
        if route.request.url == self.address:
            route.continue_()
        else:
            self.requests.append(route.request.url)
            route.abort()

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.page.close()


def until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for something; the page's policy does not let Playwright evaluate it there."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


RUNS = ["pendulum", "grid", "never", "mc", "hostile", "two"]


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("width", [360, 1280])
def test_opens_quietly_and_offline(
    browser: Browser, reports: dict[str, Path], name: str, width: int
) -> None:
    with Visit(browser, reports[name], viewport={"width": width, "height": 800}) as visit:
        page = visit.page
        drawn = page.evaluate(
            "[...document.querySelectorAll('[data-chart]')]"
            ".map(p => p.querySelectorAll('svg').length)"
        )
        assert drawn
        assert all(drawn)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("window.hacked") is None
        assert (visit.complaints, visit.requests) == ([], [])


def test_replay_plays_pauses_and_scrubs(browser: Browser, reports: dict[str, Path]) -> None:
    with Visit(browser, reports["pendulum"]) as visit:
        replay = visit.page.locator(".replay").first
        button, slider = replay.locator("button"), replay.locator("input[type=range]")
        body = replay.locator(".stage.live .mover").first
        frame = "Number(document.querySelector('.replay').dataset.frame)"
        before = body.get_attribute("transform")
        button.focus()
        visit.page.keyboard.press("Enter")
        until(lambda: visit.page.evaluate(frame) >= 3)
        assert button.text_content() == "Pause"
        assert body.get_attribute("transform") != before
        button.click()
        stopped = visit.page.evaluate(frame)
        visit.page.wait_for_timeout(300)
        assert visit.page.evaluate(frame) == stopped
        slider.focus()
        visit.page.keyboard.press("End")
        last = int(slider.get_attribute("max") or 0)
        assert visit.page.evaluate(frame) == last
        assert re.search(r": (left|right)$", replay.locator(".clock").text_content() or "")
        visit.page.keyboard.press("ArrowLeft")
        assert visit.page.evaluate(frame) == last - 1
        assert visit.complaints == []


def test_tables_sort(browser: Browser, reports: dict[str, Path]) -> None:
    with Visit(browser, reports["pendulum"]) as visit:
        table = visit.page.locator("table.sortable")
        heads = table.locator("thead th")
        titles = [t.strip() for t in heads.all_text_contents()]

        def column(title: str) -> list[str]:
            return table.locator(
                f"tbody td:nth-child({titles.index(title) + 1})"
            ).all_text_contents()

        first = column("episode")
        heads.nth(titles.index("episode")).locator("button").click()
        assert [int(t) for t in column("episode")] == sorted(int(t) for t in first)
        heads.nth(titles.index("episode")).locator("button").click()
        assert [int(t) for t in column("episode")] == sorted((int(t) for t in first), reverse=True)
        assert heads.nth(titles.index("episode")).get_attribute("aria-sort") == "descending"
        heads.nth(titles.index("kind")).locator("button").click()
        assert column("kind") == sorted(column("kind"))


def test_hover_and_arrow_keys_tell_values(browser: Browser, reports: dict[str, Path]) -> None:
    with Visit(browser, reports["pendulum"]) as visit:
        chart = visit.page.locator("figure.xy svg[role=img]").first
        chart.focus()
        visit.page.keyboard.press("ArrowRight")
        tip = visit.page.locator("#tip")
        assert tip.is_visible()
        before = tip.text_content()
        visit.page.keyboard.press("ArrowRight")
        assert tip.text_content() != before
        visit.page.keyboard.press("Escape")
        assert not tip.is_visible()
        visit.page.locator("figure.heat svg[role=img]").first.hover()
        assert "failure probability" in (tip.text_content() or "")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dark_mode_follows_the_system_and_switches(
    browser: Browser, reports: dict[str, Path], scheme: str
) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    with Visit(browser, reports["never"], color_scheme=scheme) as visit:
        page = visit.page
        colours = {scheme: page.evaluate(background)}
        page.locator("#theme").click()
        other = "light" if scheme == "dark" else "dark"
        colours[other] = page.evaluate(background)
        brightness = {k: sum(map(int, re.findall(r"\d+", v)[:3])) for k, v in colours.items()}
        assert brightness["dark"] < 150 < 700 < brightness["light"]
        page.reload()
        assert page.evaluate(background) == colours[other]


def test_print_shows_key_frames_on_white(browser: Browser, reports: dict[str, Path]) -> None:
    with Visit(browser, reports["pendulum"], color_scheme="dark") as visit:
        visit.page.emulate_media(media="print")
        assert visit.page.locator(".keyframes .stage").first.is_visible()
        assert not visit.page.locator(".controls").first.is_visible()
        background = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == "rgb(255, 255, 255)"


def test_controls_have_names_and_images_have_descriptions(
    browser: Browser, reports: dict[str, Path]
) -> None:
    with Visit(browser, reports["two"]) as visit:
        nameless = visit.page.evaluate(
            """[...document.querySelectorAll('button, input, select, [role=img]')]
            .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim())).length"""
        )
        assert nameless == 0
        assert visit.page.locator("main").count() == visit.page.locator("h1").count() == 1
        ids = visit.page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
        assert len(ids) == len(set(ids))
        targets = visit.page.evaluate(
            "[...document.querySelectorAll('nav a')].map(a => a.getAttribute('href').slice(1))"
        )
        assert set(targets) <= set(ids)


INJECTED = (
    "<script>window.hacked = 1</script>"
    '<img src="x" onerror="window.hacked = 2"><svg onload="window.hacked = 3"></svg>'
    '<button id="bad" onclick="window.hacked = 4">x</button>'
    '<a id="link" href="javascript:window.hacked = 5">y</a>'
    '<script src="data:text/javascript,window.hacked = 6"></script>'
    '<iframe srcdoc="<script>parent.hacked = 7</script>"></iframe>'
)


def test_markup_that_got_in_would_not_run(
    browser: Browser, reports: dict[str, Path], tmp_path: Path
) -> None:
    """Were escaping to fail, the page's own policy would still keep a foreign script from running,
    and the page's own one goes on."""
    page = reports["pendulum"].read_text("utf-8")
    bad = tmp_path / "bad.html"
    bad.write_text(page.replace("</h1>", f"</h1>{INJECTED}", 1), "utf-8")
    assert INJECTED in bad.read_text("utf-8")
    with Visit(browser, bad) as visit:
        until(lambda: visit.page.locator(".plot svg").count() > 0)
        visit.page.locator("#bad").click()
        visit.page.locator("#link").click()
        assert visit.page.evaluate("typeof window.hacked") == "undefined"
        assert visit.complaints  # the browser says what it refused


def test_the_policy_allows_the_pages_own_script_alone(reports: dict[str, Path]) -> None:
    page = reports["hostile"].read_text("utf-8")
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert found is not None
    rules = dict(rule.split(maxsplit=1) for rule in found[1].split("; "))
    own = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(own) == 1
    digest = base64.b64encode(hashlib.sha256(own[0].encode()).digest()).decode()
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert not re.search(
        r"<[^>]*\son\w+=", re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    )


def test_names_stay_names(reports: dict[str, Path]) -> None:
    page = reports["hostile"].read_text("utf-8")
    assert "window.hacked" in page  # the names are there, as text
    assert not re.search(r"<img|<script>window", page)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert "\u2028" not in data[1]
    assert HOSTILE in json.dumps(json.loads(data[1]), ensure_ascii=False).replace('\\"', '"')
    assert json.loads(script_json(HOSTILE)) == HOSTILE


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("pendulum", ["Failure probability per episode", "about 1 in", "Mode 1:", "Pareto k"]),
        ("grid", ["has no margin", "Outcome"]),
        ("never", ["No failure was seen", "below 0.", "Do not rely"]),
        ("mc", ["plain Monte Carlo", "learned no value function", "has no margin"]),
        ("two", ["2 runs compared", "pendulum", "never", "different problems"]),
    ],
)
def test_what_is_there_and_what_is_missing_is_said(
    reports: dict[str, Path], name: str, says: list[str]
) -> None:
    page = reports[name].read_text("utf-8")
    assert len(page.encode()) < LARGEST
    assert [text for text in says if text.lower() not in page.lower()] == []
    assert "NaN" not in re.sub(r"<script>.*", "", page, flags=re.DOTALL)


def test_a_folder_without_episodes_still_has_its_number(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folders["pendulum"], copy)
    shutil.rmtree(copy / "episodes")
    page = write_report([copy], tmp_path / "r.html").read_text("utf-8")
    assert "holds no episodes" in page
    assert "Mode 1: " in page


def test_a_run_of_ones_own_problem_replays_its_recorded_series(reports: dict[str, Path]) -> None:
    page = reports["hostile"].read_text("utf-8")
    assert '"kind":"replay"' in page
    assert "code of its own" in page


def test_the_convergence_curve_ends_at_the_estimate(folders: dict[str, Path]) -> None:
    run = load(folders["pendulum"])
    assert run.sample.log_share is not None  # stages of learning count: the hard case
    whole = estimate(prefix(run.sample, run.sample.n), 0.95)
    assert whole.value == run.result.estimate
    early = prefix(run.sample, run.sample.n // 2)
    _, first = np.unique(stages(early), return_index=True)
    assert len(first) > 1
    assert np.isclose(np.exp(early.log_share[first]).sum(), 1.0)


def test_the_command_writes_the_file(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apeval.cli.main import main

    out = tmp_path / "new" / "r.html"
    monkeypatch.setattr("sys.argv", ["apeval", "report", str(folders["mc"]), "--out", str(out)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert out.read_text("utf-8").startswith("<!doctype html>")


def test_without_out_only_a_report_of_the_same_run_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    problem = apeval.make("one-step", beta=2.0)
    for name, episodes in (("a", 60), ("b", 70)):
        record(tmp_path / name, problem, method="mc", episodes=episodes)
    for words, code in ((["a"], 0), (["a"], 0), (["b"], 1), (["b", "--out", "report.html"], 0)):
        assert CliRunner().invoke(app, ["report", *words]).exit_code == code, words
    (tmp_path / "report.html").write_text("mine")
    refused = CliRunner().invoke(app, ["report", "b"])
    assert "is no report of b: name the file to write" in str(refused.exception)
    assert (tmp_path / "report.html").read_text() == "mine"


def test_the_report_names_no_push_where_chance_decides(tmp_path: Path) -> None:
    """Failures that no disturbance causes; the old code named the largest of 120 means."""
    problem = apeval.Problem(
        nominal=apeval.Normal([0.0, 0.0], [1.0, 1.0]),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: draws.uniform(1),
        failed=lambda x: x[:, 0] < 0.02,
        judge_at_end=True,
        horizon=60,
    )
    run = record(tmp_path / "run", problem, method="mc", episodes=400, check=False)
    text = write_report([run], tmp_path / "report.html").read_text("utf-8")
    assert "No push stands out" in text
    assert "The strongest push" not in text
