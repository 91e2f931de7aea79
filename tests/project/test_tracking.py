"""The listener of the how-to page, against MLflow's local file store."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import apeval

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "notebooks.md"
BLOCK = re.compile(r'^```python title="tracking.py"\n(.*?)^```$', re.DOTALL | re.MULTILINE)


def test_a_run_is_tracked_in_mlflows_file_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # as the page says
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    found = BLOCK.search(PAGE.read_text("utf-8"))
    assert found is not None
    (tmp_path / "tracking.py").write_text(found[1], encoding="utf-8")
    names = runpy.run_path(str(tmp_path / "tracking.py"))
    result = names["evaluated"](apeval.make("one-step", beta=3.0), episodes=500, seed=1)
    (kept,) = mlflow.search_runs(output_format="list")
    assert kept.data.params["seed"] == "1"
    assert kept.data.metrics["failure_probability"] == pytest.approx(result.estimate)
    assert kept.data.metrics["interval_low"] == pytest.approx(result.interval[0])


def test_the_listener_hears_what_a_tracker_needs() -> None:
    """The page's listener with a stand-in that keeps what it is told: for where MLflow is not
    installed."""
    told: dict[str, list[tuple[int, float]]] = {}

    def log_metric(name: str, value: float, step: int) -> None:
        told.setdefault(name, []).append((step, value))

    found = BLOCK.search(PAGE.read_text("utf-8"))
    assert found is not None
    listener = found[1].partition("def evaluated")[0].replace("import mlflow\n", "")
    names = {"mlflow": type("Stand", (), {"log_metric": staticmethod(log_metric)})}
    exec(compile(listener, PAGE.name, "exec"), names)
    result = apeval.evaluate(
        apeval.make("one-step", beta=3.0),
        episodes=500,
        seed=1,
        listener=names["track"],  # type: ignore[arg-type]
    )
    assert told["failures"][-1] == (result.steps, result.failures)
    assert told["failure_probability"][-1][1] == pytest.approx(result.estimate, rel=0.5)
    steps = [step for step, _ in told["failures"]]
    assert steps == sorted(steps)
