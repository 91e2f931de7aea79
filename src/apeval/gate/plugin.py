"""The pytest plugin: the fixture `apeval_gate`, and what a session says of its gates.

pytest loads this file in every session of an environment that has apeval, so it imports nothing
else before a gate is used.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from apeval.gate.gate import Gate
    from apeval.gate.outcomes import GateRecord

_PROPERTY = "apeval gate"
_UNDECIDED = "apeval_undecided"
_FOLDER = "runs/gates"
_LONGEST = 100


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where runs are kept, and whether stored ones are judged again."""
    group = parser.getgroup("apeval", "failure probabilities")
    group.addoption(
        "--apeval-rejudge",
        action="store_true",
        help="judge the stored runs of apeval_gate against the bounds of today, without simulating",
    )
    group.addoption(
        "--apeval-runs",
        metavar="DIR",
        help=f"where apeval_gate keeps its runs (by default the ini value apeval_runs, {_FOLDER})",
    )
    parser.addini("apeval_runs", "where apeval_gate keeps its runs", default=_FOLDER)


@pytest.fixture
def apeval_gate(request: pytest.FixtureRequest) -> Gate:
    """Fails where a failure probability is not shown to be below a bound.

    apeval_gate(problem, below=1e-4, target_error=0.2, budget=20_000) raises GateRefutedError where
    it is shown to be above, and GateUndecidedError where nothing is shown yet.
    """
    from apeval.gate.gate import Gate

    config = request.config
    runs = Path(config.getoption("apeval_runs") or config.getini("apeval_runs"))
    runs = runs if runs.is_absolute() else config.rootpath / runs
    item = request.node

    def tell(found: GateRecord) -> None:
        item.user_properties.append((_PROPERTY, found.as_json()))

    return Gate(runs / _as_folder(item.nodeid), bool(config.getoption("apeval_rejudge")), tell)


def _as_folder(node: str) -> str:
    """A test's name as that of a folder; with parameters, or where it is long, a number tells it
    from others."""
    name = re.sub(r"[^\w.\-]+", "-", node.replace(".py::", "-")).strip("-")
    plain = "[" not in node and len(name) <= _LONGEST
    return name if plain else f"{name[:_LONGEST]}-{zlib.crc32(node.encode()):08x}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, None]:
    """Marks a test that failed because its gate is undecided."""
    outcome = yield
    if call.excinfo is not None and call.excinfo.typename == "GateUndecidedError":
        setattr(outcome.get_result(), _UNDECIDED, True)


def pytest_report_teststatus(report: Any) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """An undecided gate has a letter and a count of its own; the session fails all the same."""
    if report.failed and getattr(report, _UNDECIDED, False):
        return "undecided", "U", ("UNDECIDED", {"yellow": True})
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What every gate found, undecided ones last and with what would decide them."""
    found = [
        (report.nodeid, data)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, data in report.user_properties
        if name == _PROPERTY
    ]
    if not found:
        return
    from apeval.gate.outcomes import REFUTED, SHOWN, UNDECIDED, GateRecord

    terminalreporter.section("apeval gates")
    for verdict, colour in ((SHOWN, "green"), (REFUTED, "red"), (UNDECIDED, "yellow")):
        for node, data in found:
            if data["verdict"] == verdict:
                terminalreporter.write_line(f"{node}\n  {GateRecord(**data)}", **{colour: True})
