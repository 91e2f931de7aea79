"""The documentation says what the code does: fields, options, names and exact values."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import pydoc
import re
import runpy
import textwrap
from pathlib import Path
from typing import Any

import pytest

import apeval
from apeval.cli.main import commands
from apeval.environments import entries
from apeval.estimate.diagnostics import Diagnostics
from apeval.estimate.sample import Sample
from apeval.estimate.tail import TailPoint
from apeval.learn.method import methods
from apeval.run.budget_plan import Plan
from apeval.run.failure_modes import Mode
from apeval.run.merge import Merged, MergedRun
from apeval.run.pairing import ControlArm, Pairing
from apeval.run.policy_comparison import PolicyComparison
from apeval.run.progress import Progress
from apeval.run.result import FinalStage, Kind, Result
from apeval.run.run_options import (
    ComparisonKeywords,
    PlanKeywords,
    RunKeywords,
    SimulationKeywords,
)
from apeval.run.target_answers import BelowAnswer, TargetAnswer
from apeval.run.whatif import WhatIf
from apeval.simulate.check.report import CheckReport, Finding
from apeval.simulate.episodes import Episodes
from apeval_bench.registry import experiments

DOCS = Path(__file__).parents[2] / "docs"
with_options = runpy.run_path(str(DOCS.parent / "tools" / "option_table.py"))["with_options"]
PAGES = {
    path.relative_to(DOCS).as_posix(): with_options(path.read_text("utf-8"))
    for path in DOCS.rglob("*.md")
}
COMMANDS = commands()


def documented(page: str) -> set[str]:
    """What stands in backticks in the first column of the page's tables."""
    return set(re.findall(r"^\| `([^`]+)`", PAGES[page], re.MULTILINE))


def test_every_field_of_the_result_is_documented() -> None:
    stored_elsewhere = {"curve", "records"}
    fields = {f.name for f in dataclasses.fields(Result)} - stored_elsewhere
    for part in PARTS:
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
    where = f"methods/{name}.md"
    assert where in PAGES, f"write docs/{where}, with a table of the settings"
    page = PAGES[where]
    assert page.startswith(f"# {name}\n")
    settings = {f.name for f in dataclasses.fields(methods()[name].config)}
    assert settings <= set(re.findall(r"`(\w+)(?:=\w+)?`", page))
    assert set(re.findall(r"`(\w+)=\w+`", page)) <= settings


def test_every_problem_is_on_a_page() -> None:
    pages = [text for page, text in PAGES.items() if page.startswith("problems/")]
    text = "\n".join([*pages, PAGES["public.md"]])
    names = {name for name in entries() if "@" not in name}
    missing = sorted(name for name in names if f"`{name}`" not in text)
    assert not missing, f"write about them in docs/problems, by name: {missing}"


@pytest.mark.parametrize("page", ["problems/minigrid.md", "problems/walk.md"])
def test_exact_values_are_those_of_the_code(page: str) -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|.*\| (\d\.\d+e-\d+) \|$", PAGES[page], re.MULTILINE)
    assert rows
    for name, value in rows:
        truth = apeval.make(name).truth
        assert truth is not None
        assert f"{truth().value:.5e}" == value


def test_every_public_name_is_on_a_page_of_the_api() -> None:
    pages = {name: text for name, text in PAGES.items() if name.startswith("reference/api/")}
    shown = re.findall(r"^::: apeval\.(\w+)$", "\n".join(pages.values()), re.MULTILINE)
    public = set(apeval.__all__) - {"__version__"}
    assert sorted(shown) == sorted(public)
    assert set(re.findall(r"`(\w+)`", pages["reference/api/index.md"])) == public


def said_in(section: str, text: str) -> set[str]:
    """Names in a Google-style section of a docstring."""
    found = re.search(rf"^{section}:\n((?:[ ]{{4,}}.*\n?|\n)*)", text, re.MULTILINE)
    return set(re.findall(r"^ {4}\**(\w+):", found[1], re.MULTILINE)) if found else set()


def documented_fields(kind: type) -> set[str]:
    """Fields of a class with a docstring below them."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body  # type: ignore[attr-defined]
    return {
        field.target.id
        for field, below in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


PARTS = (FinalStage, Kind, Mode, TailPoint, Diagnostics, TargetAnswer, BelowAnswer)
OPTIONS = (SimulationKeywords, PlanKeywords, ComparisonKeywords, RunKeywords)
ANSWERS = (
    Plan,
    Merged,
    MergedRun,
    PolicyComparison,
    Pairing,
    ControlArm,
    WhatIf,
    CheckReport,
    Finding,
    Progress,
    Episodes,
    Sample,
)
PUBLIC = [getattr(apeval, name) for name in sorted(set(apeval.__all__) - {"__version__"})]


@pytest.mark.parametrize("it", [*PUBLIC, *PARTS, *ANSWERS], ids=lambda it: it.__name__)
def test_every_argument_and_field_has_its_docstring(it: Any) -> None:
    text = inspect.getdoc(it) or ""
    said = said_in("Args", text)
    if inspect.isclass(it):
        said |= documented_fields(it)
    else:
        assert "\nReturns:\n" in text
    if "options" in said:  # documented once, for all functions that take them
        said = said - {"options"} | set(RunKeywords.__annotations__)
    if inspect.isclass(it) and issubclass(it, Exception):
        return
    assert said >= set(inspect.signature(it).parameters)
    assert said_in("Args", text) - {"options"} <= set(inspect.signature(it).parameters)


def test_every_option_of_a_run_has_its_docstring() -> None:
    said = {name for keywords in OPTIONS for name in documented_fields(keywords)}
    assert said == set(RunKeywords.__annotations__)


def test_examples_beside_arguments_have_a_heading() -> None:
    """mkdocstrings sets what follows a section as text; an example there needs its own section."""
    bare = [
        f"{path.name}: {node.name}"
        for path in (DOCS.parent / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and (text := ast.get_docstring(node) or "")
        and re.search(r"^(Args|Returns|Raises):\n(.|\n)*^>>> ", text, re.MULTILINE)
    ]
    assert bare == []


def test_symbols_of_docstrings_become_formulae_on_the_site() -> None:
    pytest.importorskip("griffe", reason="the extra docs is not installed")
    symbols = runpy.run_path(str(DOCS.parent / "tools" / "symbols.py"))
    text = "Args:\n    a_E: The law π_E,gt of `a_E`, shape (n, d_E).\n\n    >>> a_E > 0\n"
    assert symbols["set_as_formulae"](text) == text.replace("π_E,gt", r"$\pi_{E,gt}$").replace(
        "(n, d_E)", "$(n, d_E)$"
    )


def test_symbols_of_included_tables_become_formulae_on_the_site() -> None:
    symbols = runpy.run_path(str(DOCS.parent / "tools" / "result_symbols.py"))
    plain = (
        '<p title="a_E">@1 &lt; 2, @2: <code>a_E</code> <pre><code>v*</code> v*</pre> '
        '<span class="arithmatex">\\(a_E\\)</span> &amp; data_E, @3</p>'
    )
    given, wanted = plain, plain
    for mark, text, latex in (
        ("@1", "β", r"\beta"),
        ("@2", "0.1 &lt; β ≤ 1", r"0.1 &lt; \beta \le 1"),
        ("@3", "v*", r"v^\star"),
    ):
        given = given.replace(mark, text)
        wanted = wanted.replace(mark, rf'<span class="arithmatex">\({latex}\)</span>')
    assert symbols["set_as_formulae"](given) == wanted


def test_equations_carry_the_number_of_the_pdf_beside_their_name() -> None:
    page = PAGES["reference/equations.md"]
    table = re.findall(r"^\| \((\d+)\) \| `?(\w+)`? \|", page, re.MULTILINE)
    assert [int(number) for number, _ in table] == list(range(1, 19))
    text = "\n".join([*PAGES.values(), (DOCS.parent / "README.md").read_text("utf-8")])
    cited = re.findall(r"\bEq\.\s+(?:\((\d+)\),\s+`(\w+)`)?", text)
    assert cited
    assert set(cited) <= set(table)


def test_files_that_pages_of_methods_name_exist() -> None:
    folders = (DOCS.parent / "src", DOCS.parent / "packages")
    there = {path.as_posix() for folder in folders for path in folder.rglob("*.py")}
    named = [
        (page, file)
        for page, text in PAGES.items()
        if page.startswith("methods/")
        for file in re.findall(r"`([\w/]+\.py)`", text)
    ]
    assert len(named) > 40
    missing = [it for it in named if not any(path.endswith(f"/{it[1]}") for path in there)]
    assert missing == []


def test_the_glossary_names_what_exists() -> None:
    names = re.findall(r"`(apeval\w*(?:\.\w+)+)`", PAGES["reference/glossary.md"])
    assert len(names) > 40
    for name in names:
        assert pydoc.locate(name) is not None, name


def test_every_example_has_a_line() -> None:
    folder = DOCS.parent / "examples"
    lines = (folder / "README.md").read_text("utf-8")
    assert set(re.findall(r"^- \[(\w+\.py)\]", lines, re.MULTILINE)) == {
        path.name for path in folder.glob("*.py")
    }


def test_the_citation_has_the_version() -> None:
    assert f"version: {apeval.__version__}\n" in (DOCS.parent / "CITATION.cff").read_text("utf-8")


SITE = [f"docs/{page}" for page in sorted(PAGES)]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "examples/README.md", *SITE])
def test_links_lead_somewhere(page: str) -> None:
    """The files that links name exist; mkdocs checks the places within a page as well."""
    file = DOCS.parent / page
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", file.read_text("utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        assert link.startswith("https://") or (file.parent / link).exists(), link
