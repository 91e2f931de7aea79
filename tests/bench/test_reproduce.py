"""The paper's Table II and figures in small versions, and the formulas behind them on known
numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

import apeval
from apeval.cli.main import app
from apeval.errors import ApevalError
from apeval.learn.method import find_method
from apeval.problem.settings import build
from apeval_bench import (
    ablation,
    convergence,
    curves,
    everything,
    evolution,
    modes,
    multimodal,
    search,
    steering,
    study,
    table2,
)
from apeval_bench.recording import Log
from apeval_bench.registry import Experiment, ExperimentReport, ExperimentRequest, experiments
from apeval_bench.warm import start_rates

pytest.importorskip("torch")
pytest.importorskip("zuko")

SMALL = {"int-v0": 120, "int-v1": 300}


@pytest.fixture(scope="module")
def request_(tmp_path_factory: pytest.TempPathFactory) -> ExperimentRequest:
    return ExperimentRequest(1, 0, tmp_path_factory.mktemp("reproduced"))


@pytest.fixture(scope="module")
def found(request_: ExperimentRequest) -> dict[str, dict[str, list[dict[str, Any]]]]:
    return study.runs(request_, tuple(SMALL), SMALL, workers=1)


# -- formulas ----------------------------------------------------------------------------------


def test_published_mse_is_a_root_except_where_the_paper_contradicts_itself() -> None:
    """Two entries are not √(Bias² + Std²); both are LunarLander's, and stand as printed."""
    odd = {
        (problem, method)
        for problem, rows in table2.PUBLISHED.items()
        for method, (bias, std, mse) in rows.items()
        if abs(math.hypot(bias, std) - mse) > 0.02
    }
    assert odd == {("lunarlander", "APE_discrete"), ("lunarlander", "CEM_discrete")}


def test_errors_are_the_papers() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(2.0, 0.5, 40).tolist()
    e = table2.errors(values, 1.5)
    assert e["bias"] == pytest.approx(np.mean(values) - 1.5)
    assert e["mse"] ** 2 == pytest.approx(np.mean((np.array(values) - 1.5) ** 2))


def test_monte_carlo_of_that_size_has_that_error() -> None:
    """Binomial: the standard deviation of k/n over its mean."""
    n = table2.mc_episodes(1e-3, 0.2)
    assert math.sqrt(1e-3 * (1 - 1e-3) / n) / 1e-3 == pytest.approx(0.2)
    assert table2.mc_episodes(1e-3, 0.0) == math.inf


def test_a_row_counts_coverage_seeds_and_lost_values() -> None:
    outcome = {
        "value": 2.0, "estimate": 1.0, "interval": [0.5, 2.0], "warnings": [], "rate": 0.2,
        "late_rate": 0.4, "adversary_rate": 0.5, "episodes": 10, "seconds": 1.0,
    }  # fmt: skip
    lost = outcome | {"value": None, "estimate": 3.0, "interval": [2.0, 4.0], "late_rate": None}
    row = table2.summary([outcome] * 5 + [lost], 1.0)
    assert (row["covered"], row["all"]["runs"], row["all"]["values_lost"]) == (5, 6, 1)
    assert row["published_seeds"]["estimate"] == {"bias": 0.0, "std": 0.0, "mse": 0.0}
    assert row["all"]["estimate"]["bias"] == pytest.approx(1 / 3)
    assert row["late_rate"] == pytest.approx(2 / 6)
    assert row["median_value"] == 2.0


def test_the_bars_decide_both_ways() -> None:
    def data(median: float, late: float, rmse: float) -> dict[str, Any]:
        ours = {"median_estimate": median, "late_rate": late, "relative_rmse": rmse}
        ours["median_late_rate"] = late
        mc = {"rate": 0.06, "relative_rmse": 0.2}
        p = {"truth": 1.0, "rows": {"ape-scalable steered": ours, "mc": mc}}
        return {"problems": {"int-v0": p, "int-v1": p, "lunarlander": p}}

    assert all(c["passed"] for c in table2.checks(data(1.9, 0.7, 0.1)))
    assert not any(c["passed"] for c in table2.checks(data(2.1, 0.2, 0.3)))


def test_logs_give_rates_and_means() -> None:
    log = Log()
    for failed, weight in ((True, 0.5), (False, 9.0), (True, 0.1)):
        log.add(2, failed, weight)
    log.freeze()
    log.add(4, True, 0.2)
    assert log.estimates().tolist() == pytest.approx([0.5, 0.25, 0.2, 0.2])
    assert log.rate(2, 6) == 0.5
    assert log.rate(6) == 1.0
    assert math.isnan(log.rate(100))


# -- runs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", sorted(study.ENTRIES))
def test_a_recorded_run_is_the_run_itself(
    label: str, found: dict[str, dict[str, list[dict[str, Any]]]]
) -> None:
    outcome = found["int-v1"][label][0]
    cell = study.cell("int-v1", label, 0, SMALL["int-v1"])
    problem = apeval.make("int-v1").seen_as(cell["view"])
    plain = apeval.evaluate(
        problem, cell["method"], steps=cell["steps"], seed=0, settings=cell["settings"]
    )
    assert outcome["estimate"] == plain.estimate
    assert outcome["interval"] == list(plain.interval)
    assert (outcome["steps"], outcome["episodes"]) == (plain.steps, plain.episodes)
    assert outcome["rate"] == plain.failure_rate
    assert outcome["curve"]["estimate"][-1] == pytest.approx(plain.estimate, rel=1e-9)


def test_weights_while_learning_are_unbiased_for_the_slots_too() -> None:
    """E[Π ρ] = 1 under any proposal that covers: here π_E is learned decision by decision. 250
    episodes with light weights; 5 standard errors."""
    problem = apeval.make("int-v0").seen_as("paper").blind()
    method = find_method("ape-discrete")
    config = build(method.config, {"learn_share": 0.99, "delta": 1.0, "action_slots": 5})
    from apeval.problem.draws import make_key
    from apeval.simulate.simulation import Budget
    from apeval_bench.recording import Recording, recorded

    simulation = Recording(problem, make_key(5), Budget(steps=1_500))
    learner = recorded(method, config, simulation)
    while learner.advance(simulation):
        pass
    w = np.array(simulation.log.weight)
    assert len(w) == simulation.episodes > 200
    assert abs(w.mean() - 1.0) < 5.0 * w.std() / math.sqrt(len(w)) + 1e-12
    assert w.std() > 0.0


def test_table2_tells_all_rows(
    found: dict[str, dict[str, list[dict[str, Any]]]], request_: ExperimentRequest
) -> None:
    report = table2.tabulate(found, request_, start_episodes=2_000)
    for label in study.ENTRIES:
        assert report.text.count(f"| {label} |") == 2 * len(SMALL)
    assert "2447.75 / 149.44 / 2452.31" in report.text
    assert len(report.data["checks"]) == 4
    for method, file in report.files.items():
        rows = [e.label for e in study.ENTRIES.values() if e.method == method]
        assert all(file.read_text("utf-8").count(f"| {label}, 1 seeds |") == 2 for label in rows)
    assert report.passed == all(c["passed"] for c in report.data["checks"])
    json.dumps(report.data, allow_nan=False)


def test_curves_are_drawn_with_their_data(
    found: dict[str, dict[str, list[dict[str, Any]]]], request_: ExperimentRequest
) -> None:
    report = curves.draw(found, request_)
    assert report.files["figure"].stat().st_size > 10_000
    band = np.array(report.data["problems"]["int-v1"]["methods"]["mc"]["rate"], np.float64)
    assert band.shape == (study.POINTS, 3)
    assert np.nanmax(band) == 0.0  # 1.7e-6 is not seen in 100 episodes
    json.dumps(report.data, allow_nan=False)


def test_all_learners_start_from_nearly_the_same_distribution() -> None:
    """20,000 episodes: a rate of 0.04 is known to ± 0.0014."""
    rates = start_rates(0, 20_000)["rates"]
    assert set(rates) == set(study.ENTRIES) - {"mc", "ape-scalable steered"}
    assert all(0.001 < r < 0.05 + 0.005 for r in rates.values())


def test_chosen_settings_are_settings_and_say_where_they_come_from() -> None:
    for problem in study.STEPS:
        for entry in study.ENTRIES.values():
            build(find_method(entry.method).config, study.settings(problem, entry))
    assert study.chosen()["provenance"]


# -- search ------------------------------------------------------------------------------------


def test_the_search_finds_the_best_of_a_known_landscape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores fall with the distance from (3, 'b'): the grid stage has to reach it."""
    space: dict[str, list[Any]] = {"x": [0, 1, 2, 3, 4], "kind": ["a", "b"]}
    seen: list[dict[str, Any]] = []

    def judge(
        problem: str, method: str, trials: Any, request: ExperimentRequest
    ) -> list[dict[str, Any]]:
        seen.extend(trials)
        return [
            {
                "settings": t,
                "score": abs(t.get("x", 9) - 3) + float(t.get("kind") != "b"),
                "late_rate": 0.0,
            }
            for t in trials
        ]

    def confirm(problem: str, method: str, finalists: Any, request: ExperimentRequest) -> Any:
        return [f | {"fresh_rmse": f["score"] + 1.0, "fresh_late_rate": 0.0} for f in finalists]

    monkeypatch.setitem(search.SPACES, "mc", space)
    monkeypatch.setattr(search, "judge", judge)
    monkeypatch.setattr(search, "confirm", confirm)
    monkeypatch.setitem(search.EFFORT, "int-v0", search.Effort(1, 1, 4, 5, 2, 1))
    result = search.search_one("int-v0", "mc", ExperimentRequest(1, 0))
    assert result["settings"] == {"x": 3, "kind": "b"}
    assert [f["score"] for f in result["finalists"][1:]] == sorted(
        f["score"] for f in result["finalists"][1:]
    )
    assert len(result["finalists"]) == 3
    assert result["finalists"][0]["settings"] == {}
    assert len(seen) == result["trials"] <= 9
    assert len({json.dumps(t, sort_keys=True) for t in seen[4:]}) == len(seen[4:])


def test_a_choice_that_does_not_hold_on_fresh_seeds_gives_way_to_the_defaults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Estimates on the fresh seeds: the defaults are near the truth, the found settings are not."""
    truth = study.truth_of("int-v0")
    asked: list[int] = []

    def outcomes_of(
        problem: str, method: str, trials: Any, seeds: Any, steps: int, request: ExperimentRequest
    ) -> list[list[dict[str, Any]]]:
        asked.extend(seeds)
        right = [{"estimate": 1.1 * truth, "late_rate": 0.1} for _ in seeds]
        wrong = [{"estimate": 0.0, "late_rate": None} for _ in seeds]
        return [wrong if trial else right for trial in trials]

    monkeypatch.setattr(search, "outcomes_of", outcomes_of)
    finalists = [{"settings": {}, "score": 1.0}, {"settings": {"delta": 0.3}, "score": 0.0}]
    confirmed = search.confirm("int-v0", "cem-discrete", finalists, ExperimentRequest(1, 0))
    assert [f["fresh_rmse"] for f in confirmed] == pytest.approx([0.1, 1.0])
    assert search.kept(confirmed)["settings"] == {}
    assert not set(asked) & set(range(search.EFFORT["int-v0"].seeds))
    alike = [f | {"fresh_rmse": 1.0, "fresh_late_rate": k} for k, f in enumerate(confirmed)]
    assert search.kept(alike)["settings"] == {"delta": 0.3}


def test_equal_errors_are_decided_by_the_rate_and_reporting_seeds_are_refused() -> None:
    rows = [
        {"settings": {"a": k}, "score": s, "late_rate": r}
        for k, (s, r) in enumerate([(0.10, 0.2), (0.12, 0.6), (0.5, 0.9)])
    ]
    assert search.best(rows)["settings"] == {"a": 1}
    with pytest.raises(ApevalError, match="--tuning"):
        search.search(ExperimentRequest(1))


def test_the_search_writes_what_table2_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "EFFORT", {"int-v1": search.Effort(150, 1, 2, 1, 1, 1)})
    monkeypatch.setattr(search, "SPACES", {"cem-discrete": search.SPACES["cem-discrete"]})
    report = search.search(ExperimentRequest(1, 0, tmp_path))
    written = json.loads(report.files["chosen"].read_text("utf-8"))
    assert set(written) == set(study.chosen())
    assert written["settings"] == report.data["settings"]
    assert written["provenance"]["found"][0]["trials"] == 3
    assert report.text.count("| int-v1 | cem-discrete |") == 2 + 1  # finalists, TD values


def test_every_space_holds_valid_settings() -> None:
    for method, space in search.SPACES.items():
        for key, values in space.items():
            for value in values:
                build(find_method(method).config, {key: value})


def test_an_ablation_changes_one_thing_and_measures_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {k: ablation.CHANGES[k] for k in ("as it is", "`n_step=1`")}
    for what, change in ablation.CHANGES.items():
        cell = ablation.changed("int-v1", what, 0, 300)
        build(find_method(cell["method"]).config, cell["settings"])
        assert (cell["view"] == "paper") == ("view" in change)
    monkeypatch.setattr(ablation, "CHANGES", kept)
    report = ablation.report(ExperimentRequest(1, 0), SMALL, workers=1)
    plain, one_step = report.data["rows"][2:]
    assert plain["relative_rmse"] == one_step["relative_rmse"]  # v does not steer π_E
    assert plain["value"] != one_step["value"]
    assert report.text.count("| int-v1 |") == 2


def test_steering_compares_two_arms_and_asks_of_one() -> None:
    report = steering.report(ExperimentRequest(2, 0), {"int-v1": 300}, workers=1)
    arms = [(row["problem"], row["arm"]) for row in report.data["rows"]]
    assert arms == [("int-v1", arm) for arm in (*steering.ARMS, steering.MC)]
    for row in report.data["rows"]:
        middle, low, high = row["relative_rmse"]
        assert low <= middle <= high
    assert {c["bar"][1] for c in report.data["checks"]} == {2.0, 0.25, 1.0}
    assert not all(c["passed"] for c in report.data["checks"])  # 300 steps are too few
    assert report.text.count("| int-v1 |") == 3
    with pytest.raises(ApevalError, match="--rows alone"):
        steering.steering(ExperimentRequest(1, 0, methods=("ape",)))
    with pytest.raises(ApevalError, match="int-v1"):
        steering.steering(ExperimentRequest(1, 0, rows=("int-v9",)))


# -- figures -----------------------------------------------------------------------------------


def test_evolution_shows_an_adversary_that_accelerates(request_: ExperimentRequest) -> None:
    one = ExperimentRequest(1, 0, request_.out)
    report = evolution.report(one, 600, 200)
    exact = report.data["exact"]
    assert exact["failure_rate"] > 0.97
    assert exact["first_step_moves_most"]
    assert exact["accelerates"]
    learned = np.array(report.data["figure"]["learned"])
    assert learned.shape == (3, 4, evolution.GRID, evolution.GRID)
    cell = (2 * evolution.EDGE / (evolution.GRID - 1)) ** 2
    start = learned[:, 0].sum(axis=(1, 2)) * cell
    assert np.all((start > 0.98) & (start < 1.001))  # N(1, 2²) within ± 7 nominal std
    assert report.files["figure"].exists()
    json.dumps(report.data, allow_nan=False)


def test_modes_are_all_reached_by_an_adversary_that_samples_them() -> None:
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]])
    true = np.repeat(centres, 100, axis=0) + rng.normal(0, 0.1, (400, 2))
    mass = np.full(400, 1 / 400)
    assert modes.reached(modes.clusters(true, mass, true)) == pytest.approx(1.0)
    one = modes.reached(modes.clusters(true, mass, true[:100]))
    assert one <= 0.25 + 1e-9


def test_effective_share_is_that_of_the_weights() -> None:
    """p = N(0, 1), failure x > 1, q = N(μ, 1): E w² = exp(μ²) Φ(−1 − μ), so the share is known.
    20,000 true failures, whose weights are bounded by exp(μ²/2 − μ): 3 %."""
    mu, n = 0.5, 20_000
    u = np.random.default_rng(1).uniform(size=n)
    x = norm.isf(u * norm.sf(1.0))
    log_w = norm.logpdf(x) - norm.logpdf(x, mu)
    v, rate = norm.sf(1.0), norm.sf(1.0 - mu)
    second = math.exp(mu**2) * norm.sf(1.0 + mu)
    share = modes.effective_share(np.full(n, 1 / n), log_w, float(rate), float(v))
    assert share == pytest.approx(v**2 / (rate * second), rel=0.03)


def test_multimodal_targets_are_densities(request_: ExperimentRequest) -> None:
    report = multimodal.report(ExperimentRequest(1, 0, request_.out), 1_200, 2, updates=2)
    cell = (2 * multimodal.EDGE / (multimodal.GRID - 1)) ** 2
    for row in report.data["rows"]:
        for name in ("nominal", "target", "flow", "spline"):
            mass = float(np.sum(row[name])) * cell
            assert 0.9 < mass < 1.01, name
        assert len(row["samples"]) == multimodal.SAMPLES
    assert len(report.data["approach"]) >= len(report.data["rows"])
    assert all(0.0 <= a[k] <= 1.0 for a in report.data["approach"] for k in ("before", "after"))
    assert report.files["figure"].exists()


def test_the_appendix_holds_in_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Order one in h and in 1 − γ, and v* itself against a simulation of 200,000 walks."""
    monkeypatch.setattr(convergence, "REPRESENTATIVES", (6, 12))
    report = convergence.convergence(ExperimentRequest(1, 0))
    orders = report.data["orders"]
    assert orders["slots"] == pytest.approx(1.0, abs=0.1)
    assert orders["discounts"] == pytest.approx(1.0, abs=0.1)
    raw, log = (report.data[k][0]["relative_at_s0"] for k in ("gp_raw", "gp_log"))
    assert raw > 10.0 > 0.5 > abs(log)
    json.dumps(report.data, allow_nan=False)

    chain = convergence.Chain(s0=0.5)
    rng, n = np.random.default_rng(8), 200_000
    x, failed = np.full(n, 0.5), 0
    while len(x):
        y = x - chain.drift + chain.std * rng.standard_normal(len(x))
        y = np.where((y < -chain.margin) | (y > 1 + chain.margin), x, y)  # 4 σ: never, in effect
        failed += int((y > 1.0).sum())
        x = y[(y >= 0.0) & (y <= 1.0)]
    v = float(convergence.exact(chain)(np.array([0.5]))[0])
    assert abs(failed / n - v) < 4.5 * math.sqrt(v * (1 - v) / n)


# -- all ---------------------------------------------------------------------------------------


def test_all_runs_each_in_its_folder_and_goes_on_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def good(request: ExperimentRequest) -> ExperimentReport:
        request.tick("half", 1, 2)
        return ExperimentReport({"seeds": request.seeds}, "good")

    def bad(request: ExperimentRequest) -> ExperimentReport:
        raise ApevalError("no such thing")

    fakes = {
        "all": Experiment("all", "", 30, everything.everything),
        "bad": Experiment("bad", "", 3, bad),
        "good": Experiment("good", "", 5, good),
        "table2": Experiment("table2", "", 20, good),
    }
    monkeypatch.setattr(everything, "experiments", lambda command: fakes)
    ticks: list[tuple[str, int, int]] = []
    request = ExperimentRequest(4, 0, tmp_path, tick=lambda *a: ticks.append(a))
    report = everything.everything(request)
    assert [r["what"] for r in report.data["rows"]] == ["table2", "bad", "good"]
    assert [r["seeds"] for r in report.data["rows"]] == [4, 3, 4]
    assert not report.passed
    assert "no such thing" in report.text
    assert "--seeds 4 --tuning" in (tmp_path / "good" / "good.md").read_text()
    assert [done for _, done, _ in ticks] == sorted(done for _, done, _ in ticks)


def test_everything_of_the_paper_is_there() -> None:
    assert {
        "all", "convergence", "curves", "environments", "evolution", "modes", "multimodal",
        "table1", "table2",
    } <= set(experiments("reproduce"))  # fmt: skip
    assert "search" in experiments("bench")


def test_the_help_of_reproduce_names_all_that_it_can_show() -> None:
    said = CliRunner().invoke(app, ["reproduce", "--help"], env={"COLUMNS": "200"}).output
    assert all(name in said for name in experiments("reproduce"))
