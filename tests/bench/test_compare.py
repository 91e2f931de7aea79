"""The benchmark of paired comparisons, small."""

from __future__ import annotations

import pytest

import apeval
from apeval_bench.compare import ROWS, ask, chosen, compare
from apeval_bench.registry import ExperimentRequest


def test_a_few_seeds_make_a_row_with_its_verdict() -> None:
    request = ExperimentRequest(seeds=2, first_seed=10, rows=("ar1-alike",), methods=())
    assert [r["key"] for r in chosen(request)] == ["ar1-alike"]
    answers = [ask({**ROWS[1], "method": "cem", "episodes": 2_000}, seed) for seed in (10, 11)]
    assert ["width_apart" in answer for answer in answers] == [True, False]
    assert all(answer["width_any"] > answer["width"] for answer in answers)


def test_the_report_has_every_row_that_was_asked_for() -> None:
    report = compare(ExperimentRequest(seeds=1, first_seed=10, rows=("ar1-unlike-cem",)))
    (row,) = report.data["rows"]
    assert row["method"] == "cem"
    assert "| φ = 0.8 against 0.6 |" in report.text
    assert report.passed == row["passed"]


def test_unknown_rows_are_refused() -> None:
    with pytest.raises(apeval.ApevalError, match="ar1-alike"):
        chosen(ExperimentRequest(seeds=1, rows=("ar1-alik",)))
