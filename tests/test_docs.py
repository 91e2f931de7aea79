"""The documentation says what the code does: fields, options, names and exact values."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from pathlib import Path

import pytest

import apeval
from apeval.cli.main import commands
from apeval.environments import entries
from apeval.estimate.diagnostics import Diagnostics
from apeval.estimate.tail import TailPoint
from apeval.learn.method import methods
from apeval.run.answers import BelowAnswer, TargetAnswer
from apeval.run.modes import Mode
from apeval.run.result import FinalStage, Kind, Result
from apeval_bench.registry import experiments

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {path.relative_to(DOCS).as_posix(): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
COMMANDS = commands()


def documented(page: str) -> set[str]:
    """What stands in backticks in the first column of the page's tables."""
    return set(re.findall(r"^\| `([^`]+)`", PAGES[page], re.MULTILINE))


def test_every_field_of_the_result_is_documented() -> None:
    stored_elsewhere = {"curve", "records"}
    fields = {f.name for f in dataclasses.fields(Result)} - stored_elsewhere
    for part in (FinalStage, Kind, Mode, TailPoint, Diagnostics, TargetAnswer, BelowAnswer):
        fields |= {f.name for f in dataclasses.fields(part)}
    fields.add("schema_version")
    assert documented("reference/json.md") == fields


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_option_is_documented(command: str) -> None:
    _, found, text = PAGES["reference/cli.md"].partition(f"\n## apeval {command}\n")
    assert found
    section = text.split("\n## ")[0]
    given = [o for p in COMMANDS[command].params for o in (*p.opts, *p.secondary_opts)]
    options = {o for o in given if o.startswith("--")}
    mentioned = set(re.findall(r"--[a-z][a-z-]*", section))
    assert options - {"--help", "--quiet"} <= mentioned  # documented once, for all of them
    assert mentioned <= options


@pytest.mark.parametrize("command", ["reproduce", "bench"])
def test_every_experiment_is_documented(command: str) -> None:
    section = PAGES["reference/cli.md"].split(f"\n## apeval {command}\n")[1].split("\n## ")[0]
    assert set(experiments(command)) <= set(re.findall(r"`([\w-]+)`", section))


def test_commands_name_what_exists() -> None:
    text = "\n".join([*PAGES.values(), (DOCS.parent / "README.md").read_text("utf-8")])
    # an address of a user's own problem (my_problem.py, lab.cars:merge) is no registered name
    problems = set(re.findall(r"apeval (?:run|truth) ([a-z][\w@-]*)(?![\w@.:/-])", text))
    assert problems
    assert problems <= set(entries())
    assert set(re.findall(r"--method ([a-z][\w-]*)", text)) <= set(methods())


@pytest.mark.parametrize("name", sorted(methods()))
def test_every_method_has_a_page_with_its_settings(name: str) -> None:
    page = PAGES[f"methods/{name}.md"]
    assert page.startswith(f"# {name}\n")
    settings = {f.name for f in dataclasses.fields(methods()[name].config)}
    assert settings <= set(re.findall(r"`(\w+)(?:=\w+)?`", page))
    assert set(re.findall(r"`(\w+)=\w+`", page)) <= settings


@pytest.mark.parametrize("page", ["problems/minigrid.md", "problems/walk.md"])
def test_exact_values_are_those_of_the_code(page: str) -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|.*\| (\d\.\d+e-\d+) \|$", PAGES[page], re.MULTILINE)
    assert rows
    for name, value in rows:
        truth = apeval.make(name).truth
        assert truth is not None
        assert f"{truth().value:.5e}" == value


def test_the_api_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("api_page", DOCS.parent / "tools" / "api_page.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.page() == PAGES["reference/api.md"], "run python tools/api_page.py"


def test_every_example_has_a_line() -> None:
    folder = DOCS.parent / "examples"
    lines = (folder / "README.md").read_text("utf-8")
    assert set(re.findall(r"^- \[(\w+\.py)\]", lines, re.MULTILINE)) == {
        path.name for path in folder.glob("*.py")
    }


def test_the_citation_has_the_version() -> None:
    assert f"version: {apeval.__version__}\n" in (DOCS.parent / "CITATION.cff").read_text("utf-8")


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "examples/README.md"])
def test_links_outside_the_site_lead_somewhere(page: str) -> None:
    file = DOCS.parent / page  # mkdocs checks those of the site
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", file.read_text("utf-8"))
    for link in links:
        assert link.startswith("https://") or (file.parent / link).exists(), link
