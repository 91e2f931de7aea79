"""Files for contributors agree with each other: checks, workflow, forms, versions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import apeval
from apeval import plugins

ROOT = Path(__file__).parents[2]
PACKAGES = sorted((ROOT / "packages").iterdir())
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*-*.yml"))


def read(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text("utf-8"))


def test_a_commit_is_checked_as_make_lint_does() -> None:
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert recipe
    commands = re.findall(r"^\t\$\(BIN\)/(.+)$", recipe[1], re.MULTILINE)
    (local,) = (it for it in read(".pre-commit-config.yaml")["repos"] if it["repo"] == "local")
    entries = [hook["entry"] for hook in local["hooks"]]
    assert commands
    for command in commands:
        assert any(entry.startswith(f".venv/bin/{command}") for entry in entries), command


def test_actions_are_pinned() -> None:
    used = re.findall(r"uses: (\S+)", (ROOT / ".github/workflows/test.yml").read_text("utf-8"))
    assert used
    assert [it for it in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+", it)] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_asks_in_the_host_s_terms(form: Path) -> None:
    it = read(str(form.relative_to(ROOT)))
    assert {"name", "description", "body"} <= set(it)
    asked = [part for part in it["body"] if part["type"] != "markdown"]
    assert {part["type"] for part in asked} <= {"textarea", "input", "dropdown", "checkboxes"}
    ids = [part["id"] for part in asked]
    assert len(set(ids)) == len(ids)
    assert all(part["attributes"]["label"] for part in asked)


@pytest.mark.parametrize("stem", ["bug-report", "wrong-number"])
def test_reports_of_faults_ask_for_what_repeats_a_run(stem: str) -> None:
    text = (ROOT / f".github/ISSUE_TEMPLATE/{stem}.yml").read_text("utf-8")
    for what in ("label: Run folder", "label: Seed", "label: Versions"):
        assert what in text


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_package_has_the_version_of_the_core_and_needs_just_that(package: Path) -> None:
    text = (package / "pyproject.toml").read_text("utf-8")
    assert re.findall(r'^version = "(.+)"$', text, re.MULTILINE) == [apeval.__version__]
    assert re.findall(r'^    "apeval(?:\[.+\])?(.+?)"', text, re.MULTILINE) == [
        f"=={apeval.__version__}"
    ]


def test_the_extra_takes_the_package_of_this_version() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    for extra in ("paper", "public"):
        assert f'{extra} = ["apeval-{extra}=={apeval.__version__}"]' in text
    assert f'scalable = ["apeval-paper[scalable]=={apeval.__version__}"]' in text
    for extra in ("jsbsim", "sumo"):
        assert f'{extra} = ["apeval-public[{extra}]=={apeval.__version__}"]' in text


def test_every_package_is_installed_and_named() -> None:
    recipe = (ROOT / "Makefile").read_text("utf-8")
    assert re.findall(r"-e (packages/\w+)", recipe) == [f"packages/{it.name}" for it in PACKAGES]
    assert ("apeval", *(f"apeval_{it.name}" for it in PACKAGES)) == plugins.PACKAGES


def test_the_newest_released_version_is_this_one() -> None:
    log = (ROOT / "CHANGELOG.md").read_text("utf-8")
    released = re.findall(r"^## \[(\d[^\]]*)\]", log, re.MULTILINE)
    assert released[:1] in ([], [apeval.__version__])
