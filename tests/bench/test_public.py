"""`bench public`: every row runs tiny, results fit their schema, used seeds are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apeval.errors import ApevalError, UnknownNameError
from apeval.estimate.binomial import clopper_pearson
from apeval_bench.public import public_runs, used_seeds
from apeval_bench.public.public_report import report
from apeval_bench.public.public_text import as_text
from apeval_bench.public.results_file import SCHEMA, merged, read_lines, with_scores
from apeval_bench.public.scores import badness, monte_carlo_width, scored
from apeval_bench.public.yardstick import CLASSES, ROWS, choose_rows
from apeval_bench.registry import REPORTING, ExperimentRequest

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "public"
TINY, SLOW = 40, 3  # episodes


def run(**changes: Any) -> dict[str, Any]:
    plain = {
        "seed": 10_000, "estimate": 1e-3, "low": 5e-4, "high": 2e-3, "trusted": True,
        "episodes": 100, "steps": 1_000, "cpu_seconds": 0.1,
    }  # fmt: skip
    return plain | changes


def line(row: str = "rp25-1000", method: str = "mine", **changes: Any) -> dict[str, Any]:
    runs = [run(**changes)]
    return {"row": row, "method": method, "version": "1", "seeds": [10_000, 10_000], "runs": runs}


def valid(data: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(data, json.loads(SCHEMA.read_text("utf-8")))


# -- rows --------------------------------------------------------------------------------------


def test_rows_have_names_and_classes_of_their_own() -> None:
    keys = [row.key for row in ROWS]
    assert len(set(keys)) == len(keys)
    assert {row.kind for row in ROWS} == set(CLASSES)
    assert choose_rows(["brp-64-5-p1-1000", "reliability"])[0].key == "brp-64-5-p1-1000"
    with pytest.raises(UnknownNameError, match="Did you mean 'cluster'"):
        choose_rows(["clusters"])


def test_every_row_runs_complete_at_a_tiny_size() -> None:
    """One row of each problem, by Monte Carlo."""
    first = {row.table.problem: row for row in reversed(ROWS)}
    tiny = [row.shrunk(SLOW if row.slow else TINY) for row in first.values()]
    whole = report(ExperimentRequest(1, 7, methods=("mc",)), tiny, workers=1)
    valid(whole.data)
    assert len(whole.data["lines"]) + len(whole.data["not_run"]) >= len(tiny)
    assert {it["row"] for it in whole.data["lines"]} == {
        row.key for row in tiny if row.table.make().truth is not None
    }
    assert not any("error" in it for row in whole.data["lines"] for it in row["runs"])


def test_methods_and_peers_stand_side_by_side() -> None:
    row = next(row for row in ROWS if row.key == "rp110-1000").shrunk(300)
    names = ("ape", "mc", "cem")
    found = report(ExperimentRequest(2, 5, methods=names), [row], workers=1)
    valid(found.data)
    assert [it["method"] for it in found.data["lines"]] == list(names)
    assert all(it["seeds"] == [5, 6] for it in found.data["lines"])
    again = report(ExperimentRequest(2, 5, methods=names), [row], workers=1)
    first, second = ([[r["estimate"] for r in it["runs"]] for it in x.data["lines"]]
                     for x in (found, again))  # fmt: skip
    assert first == second
    assert "**Not run yet**" in found.text


def test_a_run_that_raises_an_error_counts_as_without_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stumble(*arguments: Any, **named: Any) -> Any:
        raise ApevalError("no")

    monkeypatch.setattr(public_runs, "evaluate", stumble)
    found = public_runs.measure(public_runs.cell_of(ROWS[0], "mc", 0))
    assert (found["low"], found["high"], found["trusted"]) == (0.0, 1.0, False)
    assert found["error"] == "no"


# -- scores ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "n"), [(0.3, 20), (1e-3, 500)])
def test_the_width_of_monte_carlo_is_a_mean_over_its_runs(p: float, n: int) -> None:
    rng, repeats = np.random.default_rng(0), 4_000
    k, places = np.unique(rng.binomial(n, p, repeats), return_inverse=True)
    widths = np.array([np.diff(clopper_pearson(int(x), n, 0.95))[0] for x in k])[places]
    error = widths.std() / np.sqrt(repeats)
    assert abs(widths.mean() - monte_carlo_width(p, n)) <= 4.0 * error


def test_silent_misses_are_those_that_say_nothing() -> None:
    runs = [
        run(),  # covers
        run(low=2e-3, high=3e-3),  # silent
        run(low=2e-3, high=3e-3, trusted=False),  # says so
    ]
    score = scored(runs, 1e-3, 10.0)
    assert (score["covered"], score["silent_misses"], score["not_trusted"]) == (1, 1, 1)


def test_worse_than_monte_carlo_compares_at_the_same_steps() -> None:
    width = monte_carlo_width(1e-3, 100)
    runs = [run(low=0.0, high=0.99 * width), run(low=0.0, high=1.01 * width)]
    assert scored(runs, 1e-3, 10.0)["worse_than_monte_carlo"] == 1
    twice = [{**it, "steps": 2_000} for it in runs]  # Monte Carlo would do better with these
    assert scored(twice, 1e-3, 10.0)["worse_than_monte_carlo"] == 2


def test_the_worst_come_first() -> None:
    good, wide, silent = (
        {"runs": 2, "silent_misses": s, "worse_than_monte_carlo": w, "relative_rmse": e}
        for s, w, e in ((0, 0, 5.0), (0, 1, 0.1), (1, 0, 0.1))
    )
    assert sorted([good, wide, silent], key=badness) == [silent, wide, good]


# -- the results file --------------------------------------------------------------------------


def test_the_committed_results_fit_the_schema_and_their_own_runs() -> None:
    data = json.loads((RESULTS / "public.json").read_text("utf-8"))
    valid(data)
    assert data["lines"]
    _, lines = with_scores(data["rows"], data["lines"])
    for again, stored in zip(lines, data["lines"], strict=True):
        assert again["score"].keys() == stored["score"].keys()
        for name, value in stored["score"].items():
            assert np.allclose(again["score"][name], value, rtol=1e-6), (stored["row"], name)
    shown = (RESULTS / "public.md").read_text("utf-8")
    assert shown.startswith(as_text(data))
    used = {(use.row, use.method, use.code) for use in used_seeds.read_uses()}
    assert {(it["row"], it["method"], it["code"]) for it in data["lines"] if "code" in it} <= used


@pytest.mark.parametrize(
    "change",
    [{"low": -0.1}, {"trusted": "yes"}, {"steps": None}, {"surprise": 1}],
)
def test_the_schema_refuses(change: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    valid({"format": 1, "lines": [line()]})
    with pytest.raises(jsonschema.ValidationError):
        valid({"format": 1, "lines": [line(**change)]})


def test_others_add_a_line(tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    mine = {"format": 1, "lines": [line(method="theirs")]}
    (tmp_path / "others" / "theirs.json").write_text(json.dumps(mine))
    request = ExperimentRequest(1, 3, out=tmp_path, rows=("rp25-1000",), methods=("mc",))
    found = report(request, workers=1)
    assert [it["method"] for it in found.data["lines"]] == ["theirs", "mc"]
    assert "| rp25-1000 | theirs |" in found.text
    (tmp_path / "others" / "again.json").write_text(json.dumps(mine))
    with pytest.raises(ApevalError, match="second line of theirs for rp25-1000"):
        read_lines(tmp_path)
    (tmp_path / "others" / "again.json").write_text("{}")
    with pytest.raises(ApevalError, match="no results file"):
        read_lines(tmp_path)


def test_new_lines_take_the_place_of_old_ones() -> None:
    old, new = line(estimate=1.0), line(estimate=0.5)
    assert merged([old, line("other")], [new]) == [new, line("other")]


# -- seeds -------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "used.jsonl"
    monkeypatch.setattr(used_seeds, "FILE", file)
    monkeypatch.setattr(used_seeds, "commit_here", lambda: "abc")
    return file


def test_reporting_seeds_are_recorded_once_and_refused_to_other_code(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = next(row for row in ROWS if row.key == "rp25-1000").shrunk(20)
    request = ExperimentRequest(2, REPORTING.start, methods=("mc",))
    report(request, [row], workers=1)
    report(request, [row], workers=1)
    (use,) = used_seeds.read_uses()
    assert (use.row, use.method, use.first, use.last) == ("rp25-20", "mc", 10_000, 10_001)
    assert use.commit == "abc"
    ledger.write_text(json.dumps(vars(replace(use, code="other"))) + "\n")
    with pytest.raises(ApevalError, match=r"rp25-20 with mc: 10000 … 10001 by abc.*--first-seed"):
        report(request, [row], workers=1)
    fresh = replace(request, first_seed=10_100)
    report(fresh, [row], workers=1)
    assert len(used_seeds.read_uses()) == 2


def test_tuning_seeds_are_not_recorded(ledger: Path) -> None:
    row = next(row for row in ROWS if row.key == "rp25-1000").shrunk(20)
    report(ExperimentRequest(1, 0, methods=("mc",)), [row], workers=1)
    assert not ledger.exists()


def test_held_out_rows_do_not_exist(command: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = command("bench", "public", "--held-out", "--tuning")
    assert code == 2
    assert "nobody tunes" in err
