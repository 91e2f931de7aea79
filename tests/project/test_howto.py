"""The code of the tutorial and of every how-to page runs, block after block, in an empty folder."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from apeval.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md"))]
BLOCK = re.compile(r'^```(python|sh)(?: title="([\w.]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DEMO = re.DOTALL | re.MULTILINE
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
MOST = 30  # lines of a user's own code in the tutorial


def command(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a line of a shell block in this process."""
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = BLOCK.findall(page.read_text("utf-8"))
    if any("stable_baselines3" in code for _, _, code in blocks):
        pytest.importorskip("stable_baselines3", reason="the extra train is not installed")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    with contextlib.redirect_stdout(io.StringIO()):
        for language, title, code in blocks:
            if title:
                Path(title).write_text(code, encoding="utf-8")
            elif language == "python":
                exec(compile(code, page.name, "exec"), names)
            else:
                for line in code.splitlines():
                    command(line, monkeypatch)
    if page.stem == "tutorial":
        assert Path("report.html").stat().st_size > 0
        assert Path("crash.gif").read_bytes()[:3] == b"GIF"


@pytest.mark.parametrize("page", ["what-if", "compare"])
def test_a_shown_answer_is_the_one_that_comes(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first console block: its commands print what stands below them, to 1 in 1,000."""
    block = CONSOLE.findall((DOCS / "how-to" / f"{page}.md").read_text("utf-8"))[0]
    lines = block.splitlines()
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    shown = "\n".join(lines[len(commands) :])
    monkeypatch.chdir(tmp_path)
    for line in commands:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            command(line, monkeypatch)
    came = printed.getvalue().strip()
    assert_alike(came, shown)


def test_the_readme_shows_what_the_demo_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = (DOCS.parent / "README.md").read_text("utf-8")
    found = re.search(r"^`make demo` runs `(apeval [^`]+)`.*?```text\n(.*?)^```$", readme, DEMO)
    assert found is not None
    assert found[1] in (DOCS.parent / "Makefile").read_text("utf-8").replace("$(BIN)/", "")
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        command(found[1], monkeypatch)
    assert_alike(printed.getvalue().strip(), found[2].strip())


def assert_alike(came: str, shown: str) -> None:
    """The same words, and the same numbers to 1 in 1,000."""
    assert NUMBER.sub("#", came) == NUMBER.sub("#", shown)
    assert _numbers(came) == pytest.approx(_numbers(shown), rel=1e-3)


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def test_the_tutorial_is_short() -> None:
    blocks = BLOCK.findall(PAGES[0].read_text("utf-8"))
    own = [line for kind, _, code in blocks if kind == "python" for line in code.splitlines()]
    assert 0 < len([line for line in own if line.strip()]) <= MOST
