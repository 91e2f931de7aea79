"""The notebook among the examples, cell by cell, and what a notebook shows of answers."""

from __future__ import annotations

import ast
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apeval
from apeval.notebook_cards import card_of_text

NOTEBOOK = Path(__file__).parents[2] / "examples" / "steering.ipynb"


def executed(notebook: Path) -> list[Any]:
    """What each code cell ends with, as a kernel would show it."""
    shown, names = [], {"__name__": "__main__"}
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body[-1]
        value = None
        if isinstance(last, ast.Expr):
            tree.body.pop()
            exec(compile(tree, notebook.name, "exec"), names)
            value = eval(compile(ast.Expression(last.value), notebook.name, "eval"), names)
        else:
            exec(compile(tree, notebook.name, "exec"), names)
        shown.append(value)
    return shown


def test_the_notebook_runs_and_shows_what_it_says() -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    _, check, result, picture, failures, decisions, what_if, found, compared = executed(NOTEBOOK)
    assert check.ok
    assert result.trusted
    assert len(failures) == 5
    assert list(failures.columns[:3]) == ["id", "component", "kind"]
    assert (decisions.id == failures.id[0]).all()
    assert what_if.estimate > result.estimate
    assert found.pairing.pairs > 200
    for it in (check, result, what_if, found):
        html = it._repr_html_()
        assert len(html) < 20_000
        assert "<table" in html
        assert not any(word in html for word in ("http", "<script", "src=", "url("))
    for figure in (picture, compared):
        file = io.BytesIO()
        figure.savefig(file, format="png")
        assert len(file.getvalue()) > 5_000


def test_stored_runs_are_shown_and_read_as_tables(tmp_path: Path) -> None:
    problem = apeval.make("one-step", beta=2.0)
    apeval.evaluate(problem, "mc", episodes=300, recorder=apeval.Recorder(tmp_path / "run"))
    run = apeval.load(tmp_path / "run")
    assert run._repr_html_() == run.result._repr_html_()
    tables = run.tables
    assert tables.episodes.num_rows == 300
    assert tables.decisions.num_rows == run.episodes.steps
    assert tables.failures.num_rows == run.result.failures
    assert sum(tables.failures["share"].to_pylist()) == pytest.approx(1.0)
    mean = np.mean(
        tables.episodes["weight"].to_numpy() * (tables.episodes["kind"].to_numpy() != "")
    )
    assert mean == pytest.approx(run.result.estimate)


def test_names_in_a_card_are_text() -> None:
    html = card_of_text(
        "<b>x</b>\n  warning              <script>alert(1)</script>\n" + " " * 23 + "more"
    )
    assert "<script" not in html
    assert "<b>" not in html
    assert "alert(1)&lt;/script&gt; more" in html


def test_a_list_in_a_card_keeps_its_lines() -> None:
    indent = " " * 23
    modes = ["  failure modes        1. low, at", f"{indent}decision 3", f"{indent}2. high"]
    html = card_of_text("\n".join(["walk", *modes, "  rest                 on"]))
    for part in ("1. low, at decision 3", "2. high", "on"):
        assert f">{part}</td>" in html


def test_a_comparison_without_failures_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    problem = apeval.make("one-step", beta=7.0)
    found = apeval.compare_policies(problem, problem, "mc", episodes=100)
    assert found.ratio is None
    assert len(found.plot().axes) == 2
