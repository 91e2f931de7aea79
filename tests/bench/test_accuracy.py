"""The accuracy and coverage benchmarks: table, statistics, runs, peers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apeval.errors import ApevalError
from apeval_bench import cells, peers
from apeval_bench.accuracy import covering, errors, held_out, runs, statistics, table
from apeval_bench.accuracy.runs import RunOutcome
from apeval_bench.registry import ExperimentRequest


def outcome(estimate: float, warned: bool = False, **kinds: int) -> RunOutcome:
    return RunOutcome(estimate, 0.9 * estimate, 1.1 * estimate, 100, 0.5, 0.1, warned, kinds)


def test_rows_are_complete_and_their_keys_are_unique() -> None:
    rows = table.FIGURES + table.FURTHER + table.TARGETS
    assert len({row.key for row in rows}) == len(rows)
    for row in rows:
        if row.problem != "lunarlander":
            assert 0.0 <= row.truth() <= 1.0
        given = [row.steps, row.episodes, row.target_error]
        assert sum(value is not None for value in given) == 1
        assert set(row.modes) <= set(row.make().kinds)
        assert row.goal is None or row.figure is not None
        assert row.goal is None or row.goal < (row.figure or 0.0)


def test_rows_are_chosen_by_key_or_problem() -> None:
    keys = [row.key for row in table.choose(table.ROWS, ("int-v1", "pendulum-5000"))]
    assert keys == ["int-v1-3000", "int-v1-10000", "int-v1-no-margin", "pendulum-5000"]
    assert table.choose(table.ROWS, ()) == list(table.ROWS)
    with pytest.raises(ApevalError, match="Did you mean 'pendulum'"):
        table.choose(table.ROWS, ("pendlum",))


def test_a_row_without_margin_hides_it() -> None:
    row = table.choose(table.ROWS, ("int-v1-no-margin",))[0]
    assert row.make().margin is None
    assert replace(row, margin=True).make().margin is not None


def test_statistics_of_known_errors() -> None:
    outcomes = [outcome(v) for v in (0.8, 1.0, 1.2, 1.2)]
    found = statistics.summary(outcomes, 1.0)
    assert found["relative_rmse"] == pytest.approx(np.sqrt(0.03))
    assert found["bias"] == pytest.approx(0.05)
    assert found["mean_error"] == pytest.approx(0.15)
    assert found["coverage"] == 0.25
    assert found["relative_width"] == pytest.approx(0.22)
    low, high = found["rmse_interval"]
    assert 0.0 < low < found["relative_rmse"] < high <= 0.2 + 1e-12


def test_a_bootstrap_interval_covers_the_rmse_it_estimates() -> None:
    """200 samples of 50 Gaussian errors: 90 % ± 5 % would be perfect, the bootstrap is a little
    short; below 78 % has probability < 1e-3 for a coverage of 86 %."""
    rng = np.random.default_rng(1)
    hits = 0
    for k in range(200):
        low, high = statistics.interval_90(statistics.resampled_rmse(rng.normal(size=50), k))
        hits += low <= 1.0 <= high
    assert hits >= 156


def test_a_ratio_says_who_is_worse() -> None:
    rng = np.random.default_rng(2)
    small, large = rng.normal(size=60) * 0.1, rng.normal(size=60)
    better, worse = statistics.ratio(small, large), statistics.ratio(large, small)
    assert better["interval"][0] <= better["ratio"] <= better["interval"][1] < 1.0
    assert better["not_worse"]
    assert worse["interval"][0] > 1.0
    assert not worse["not_worse"]
    nothing = np.zeros(5)
    assert statistics.ratio(nothing, nothing) == {
        "ratio": None,
        "interval": None,
        "not_worse": True,
    }
    assert not statistics.ratio(small, nothing)["not_worse"]


def test_where_nothing_fails_bounds_are_compared() -> None:
    row = replace(table.choose(table.ROWS, ("never",))[0], known=0.0)
    loose, tight = (3 * [replace(outcome(0.0), high=high)] for high in (0.02, 0.002))
    for ours, other, not_worse in ((loose, tight, False), (tight, loose, True)):
        found = {(row.key, "ape"): ours, (row.key, "mc"): other}
        against = errors._measured(row, found)["against"]["mc"]
        assert against["not_worse"] == not_worse
        assert against["ratio"] == pytest.approx(0.1 if not_worse else 10.0)


@pytest.mark.parametrize(
    ("far", "warned", "holds"), [(1.05, False, True), (1.5, False, False), (1.5, True, True)]
)
def test_a_figure_holds_unless_a_far_run_is_silent(far: float, warned: bool, holds: bool) -> None:
    outcomes = [outcome(1.05)] * 19 + [outcome(far, warned)]
    assert statistics.judge(outcomes, 1.0, 0.1)["holds"] == holds


def test_a_figure_fails_by_the_quantile() -> None:
    outcomes = [outcome(1.0)] * 8 + [outcome(1.2, True)] * 4
    assert not statistics.judge(outcomes, 1.0, 0.1)["holds"]
    assert statistics.judge(outcomes, 1.0, 0.13)["holds"]


def test_both_modes_must_be_found() -> None:
    runs_ = [outcome(1.0, left=9, right=5), outcome(1.0, left=40, right=4), outcome(1.0, left=9)]
    assert statistics.modes_found(runs_, ("left", "right")) == pytest.approx(1 / 3)


def test_the_default_method_is_judged_against_the_others() -> None:
    row = table.choose(table.ROWS, ("gaussian-sum-two",))[0]
    p = row.truth()
    found: dict[tuple[str, str], Any] = {
        (row.key, "ape"): [outcome(p * (1 + e), high=9, low=9) for e in (0.05, -0.05, 0.02)],
        (row.key, "mc"): [outcome(p * (1 + e)) for e in (1.0, -1.0, 2.0)],
        ("another", "mc"): [outcome(1.0)],
    }
    measured = errors._measured(row, found)
    assert set(measured["methods"]) == {"ape", "mc"}
    assert measured["ours"]["holds"]
    assert measured["ours"]["goal_holds"]
    assert measured["ours"]["modes_found"] == 1.0
    assert measured["against"]["mc"]["interval"][1] < 1.0
    text = errors._as_text({"seeds": [0, 2], "rows": [measured]})
    assert "| gaussian-sum-two-5000 | 5,000 episodes | 6.795e-06 | 10.0% |" in text


def test_seeds_shrink_where_a_row_is_long() -> None:
    request = ExperimentRequest(100)
    assert len(runs.seeds_of(request, 0.2)) == 20
    assert len(runs.seeds_of(request, 1.0)) == 100
    assert runs.seeds_of(ExperimentRequest(2, first_seed=0), 0.2) == [0]


def test_who_takes_part() -> None:
    named = {row.key: runs.methods_of(row) for row in table.ROWS if row.problem != "lunarlander"}
    assert {"mc", "cem"} <= set(named["int-v1-3000"])
    assert "ape-scalable" not in named["pendulum-5000"]
    assert not set(peers.PEERS) & set(named["int-v1-no-margin"])
    assert not set(peers.PEERS) & set(named["minigrid-s1-9000"])
    if peers.available():
        assert set(peers.PEERS) <= set(named["pendulum-5000"])
        assert "ot-nais" not in named["pendulum-50000"]


def test_a_missing_openturns_is_said_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "available", lambda: False)
    monkeypatch.setattr(errors, "available", lambda: False)
    row = table.choose(table.ROWS, ("int-v1-3000",))[0]
    assert not set(peers.PEERS) & set(runs.methods_of(row))
    assert "pip install 'apeval-bench[peers]'" in errors._as_text({"seeds": [0, 0], "rows": []})


def test_accuracy_and_coverage_in_small_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # no other processes
    request = ExperimentRequest(
        2, first_seed=0, cache=tmp_path, rows=("never-2000",), methods=("mc",)
    )
    report = errors.report(request)
    assert report.data["rows"][0]["methods"]["mc"]["coverage"] == 1.0
    json.dumps(report.data, allow_nan=False)

    def refuse(cell: Any) -> dict[str, Any]:
        raise AssertionError("run again")

    with monkeypatch.context() as patch:
        patch.setattr(runs, "measure", refuse)
        assert errors.report(request).data == report.data
    covered = covering.report(replace(request, seeds=8))  # a quarter of them, for such a row
    assert covered.data["rows"][0]["covered"] == 2
    assert "2/2 = 100.0%" in covered.text


def test_the_baselines_outcomes_outlive_changes_of_the_default_method() -> None:
    everything, without = cells.fingerprint(), cells.fingerprint((), ("learn/ape_tabular",))
    assert everything != without
    assert cells.fingerprint(("learn/whitened.py",)) != cells.fingerprint(("learn/mc.py",))


def test_held_out_geometries_are_fixed_and_valid() -> None:
    assert held_out.candidate(3) == held_out.candidate(3) != held_out.candidate(4)
    measured = [
        {"budget": b, "methods": {"ape": {"relative_rmse": e}}}
        for b, e in (("3,000", 0.1), ("3,000", 0.9), ("3,000", 0.14), ("10,000", 0.2))
    ]
    at_3000, at_10000 = held_out.verdict(measured)
    assert at_3000["median_rmse"] == 0.14
    assert at_3000["allowed"] == pytest.approx(0.15)
    assert at_3000["holds"]
    assert not at_10000["holds"]


def test_other_benchmarks_refuse_a_selection(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from apeval.cli.main import main

    monkeypatch.setattr("sys.argv", ["apeval", "bench", "twin", "--rows", "int-v1", "--held-out"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert "leave out --rows int-v1 --held-out" in capsys.readouterr().err


def test_held_out_rows_are_neither_chosen_nor_part_of_coverage() -> None:
    with pytest.raises(ApevalError, match="leave out --rows"):
        errors.report(ExperimentRequest(1, rows=("ar1",), held_out=True))
    with pytest.raises(ApevalError, match="bench accuracy --held-out"):
        covering.report(ExperimentRequest(1, held_out=True))
