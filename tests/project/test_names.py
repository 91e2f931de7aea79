"""A name means one thing: no class name, and no module name but for conventions, comes twice."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = ROOT / "src" / "apeval"
PACKAGES = (CORE, *sorted((ROOT / "packages").glob("*/src/*")))

CONVENTIONS = {
    "__init__": "Python's name for the file of a package",
    "config": "the settings of the method whose package it is in",
    "learner": "the learner of the method whose package it is in",
}
"""Modules of one name that have one meaning, each in its own package of `apeval`."""


def classes(folder: Path) -> Counter[str]:
    """How often each class name is defined below a folder."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        found.update(it.name for it in ast.walk(tree) if isinstance(it, ast.ClassDef))
    return found


def modules(folder: Path) -> Counter[str]:
    """How often each module name is used below a folder, conventions apart."""
    return Counter(it.stem for it in folder.rglob("*.py") if it.stem not in CONVENTIONS)


def twice(found: Counter[str]) -> list[str]:
    return sorted(name for name, number in found.items() if number > 1)


def test_no_class_name_means_two_things() -> None:
    found = sum((classes(folder) for folder in PACKAGES), Counter[str]())
    assert len(found) > 300
    assert twice(found) == []


def test_no_module_name_of_the_core_means_two_things() -> None:
    found = modules(CORE)
    assert len(found) > 200
    assert twice(found) == []


def test_conventions_are_used() -> None:
    """A convention that nobody follows any more leaves the list."""
    found = Counter(it.stem for it in CORE.rglob("*.py"))
    assert all(found[name] > 1 for name in CONVENTIONS)


def test_a_name_that_comes_twice_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "source.py").write_text("class Source: ...\n")
    (tmp_path / "inner" / "source.py").write_text("class Source: ...\n\nclass Other: ...\n")
    assert twice(classes(tmp_path)) == ["Source"]
    assert twice(modules(tmp_path)) == ["source"]
