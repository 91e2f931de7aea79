"""A truth that was counted by Monte Carlo has an error of its own, which is said beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import apeval
from apeval.problem.truth import Truth
from apeval.results.report import write_report

TRUE = 0.00135  # Φ(−3)


def evaluated(folder: Path, seed: int, **truth: Any) -> apeval.Result:
    problem = replace(
        apeval.make("one-step", beta=3.0), truth=lambda: Truth(method="a count", **truth)
    )
    return apeval.evaluate(problem, episodes=400, seed=seed, recorder=apeval.Recorder(folder))


def test_it_is_said_in_results_merges_and_reports(tmp_path: Path) -> None:
    counted = {"value": 2.0 * TRUE, "standard_error": TRUE}
    results = [evaluated(tmp_path / str(seed), seed, **counted) for seed in (1, 2)]
    merged = apeval.merge([apeval.load(tmp_path / "1"), apeval.load(tmp_path / "2")])
    answers: list[Any] = [*results, merged]
    for it in answers:
        assert it.truth_error == TRUE
        away = (2.0 * TRUE - it.interval[1]) / TRUE
        said = f"2.700e-03 ± 1.4e-03, outside the interval by {away:.1f} of its own standard errors"
        assert said in " ".join(str(it).split())
    assert apeval.load(tmp_path / "1").result.truth_error == TRUE
    write_report([tmp_path / "1"], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "of its own standard errors" in page


def test_an_exact_one_is_inside_or_outside(tmp_path: Path) -> None:
    for seed, value, where in ((3, 0.5, "5.000e-01, outside"), (4, TRUE, "1.350e-03, inside")):
        it = evaluated(tmp_path / str(seed), seed, value=value, standard_error=0.0)
        assert it.truth_error == 0.0
        assert f"known truth {where} the interval\n" in " ".join(str(it).split(" ")).replace(
            "known truth          ", "known truth "
        )
