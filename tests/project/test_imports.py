"""Files import each other in one direction only. `lint-imports` holds this for files and folders
side by side; here it is held for a package and the files within it as well."""

from __future__ import annotations

import grimp
import pytest

PACKAGES = ("apeval", "apeval_bench", "apeval_paper", "apeval_public")


def cycles(graph: grimp.ImportGraph) -> list[list[str]]:
    """Groups of files each of which can be reached from each other one."""
    above = {module: graph.find_upstream_modules(module) for module in graph.modules}
    groups = {
        frozenset({module, *(other for other in above[module] if module in above[other])})
        for module in graph.modules
    }
    return sorted(sorted(group) for group in groups if len(group) > 1)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)


def test_no_file_imports_one_that_imports_it(graph: grimp.ImportGraph) -> None:
    assert len(graph.modules) > 300
    assert cycles(graph) == []


def test_a_cycle_would_be_found() -> None:
    graph = grimp.ImportGraph()
    for importer, imported in ("ab", "bc", "ca", "cd", "xa"):
        graph.add_import(importer=importer, imported=imported)
    assert cycles(graph) == [["a", "b", "c"]]
