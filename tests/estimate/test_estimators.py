"""Estimators are found by name; the default is what it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import apeval
from apeval.errors import ApevalError
from apeval.estimate import estimator as registry
from apeval.estimate.binomial import clopper_pearson
from apeval.estimate.estimator import estimator, estimators, find_estimator
from apeval.estimate.interval import bounds, estimate
from apeval.estimate.sample import Sample, combine, join
from apeval.problem.types import BoolArray


def sample(n: int = 400, seed: int = 0, shift: float = 2.0) -> Sample:
    """One Gaussian step beyond 2.5, drawn from N(shift, 1) and, a fifth of it, from N(0, 1)."""
    rng = np.random.default_rng(seed)
    component = (np.arange(n) < n // 5).astype(np.int64)
    a = rng.normal(np.where(component == 0, shift, 0.0))
    log_q = np.stack([-0.5 * (a - shift) ** 2, -0.5 * a**2], axis=1)
    never = np.zeros(n, bool)
    kind, ones = (a > 2.5).astype(np.int64), np.ones(n, np.int64)
    return Sample(component, -0.5 * a**2, log_q, kind, never, ones, 2.5 - a)


def nominal_sample(n: int = 200) -> Sample:
    drawn = sample(n)
    log_q = drawn.log_p[:, None]
    return Sample(
        np.zeros(n, np.int64), drawn.log_p, log_q, drawn.kind, drawn.unresolved, drawn.length,
        drawn.margin,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["auto", "log-t", "weighted-count"])
def test_every_estimator_takes_every_sample(name: str) -> None:
    construct = find_estimator(name).interval
    staged = combine([(0.3, sample(200, 1)), (0.7, sample(300, 2))])
    for drawn in (sample(), nominal_sample(), staged, sample(shift=-2.0)):
        for hit in (drawn.failed, ~drawn.failed, np.zeros(drawn.n, bool), np.ones(drawn.n, bool)):
            low, high = construct(drawn, hit, 0.95)
            mean = estimate(replace(drawn, kind=hit.astype(np.int64)), 0.95).value
            assert 0.0 <= low <= min(mean, 1.0) <= high <= 1.0


def test_the_default_chooses_by_how_episodes_were_drawn() -> None:
    learned, plain = sample(), nominal_sample()
    assert bounds(learned, learned.failed, 0.9) == find_estimator("log-t").interval(
        learned, learned.failed, 0.9
    )
    failures = int(plain.failed.sum())
    assert bounds(plain, plain.failed, 0.9) == clopper_pearson(failures, plain.n, 0.9)


def test_samples_keep_their_estimator() -> None:
    drawn = replace(sample(), estimator="weighted-count")
    for it in (drawn.first(100), join([drawn, drawn]), combine([(0.5, sample()), (0.5, drawn)])):
        assert it.estimator == "weighted-count"


def test_an_estimator_of_ones_own_is_one_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Intervals of the result, its kinds and its modes, the folder and what is asked of it."""
    estimators()
    monkeypatch.setattr(registry, "_ESTIMATORS", dict(registry._ESTIMATORS))

    @estimator("certain", description="the whole unit interval")
    def certain(sample: Sample, hit: BoolArray, confidence: float) -> tuple[float, float]:
        return 0.0, 1.0

    problem = apeval.make("one-step", beta=3.0)
    usual = apeval.evaluate(problem, episodes=600, seed=0)
    found = apeval.evaluate(
        problem, episodes=600, seed=0, estimator="certain", recorder=apeval.Recorder(tmp_path / "r")
    )
    assert (usual.estimator, found.estimator) == ("auto", "certain")
    assert found.estimate == usual.estimate
    assert found.interval == (0.0, 1.0) != usual.interval
    assert {kind.interval for kind in found.kinds.values()} == {(0.0, 1.0)}
    run = apeval.load(tmp_path / "r")
    assert run.result.estimator == run.sample.estimator == "certain"
    answer = apeval.reweight(run, "std*1.05")
    assert answer.interval == (0.0, 1.0)


def test_a_run_goes_on_with_its_estimator(tmp_path: Path) -> None:
    folder, problem = tmp_path / "r", apeval.make("one-step", beta=2.0)
    stop = 300

    def listen(now: object) -> None:
        if getattr(now, "episodes", 0) >= stop:
            raise KeyboardInterrupt

    small = replace(problem, chunk=50)
    done = apeval.evaluate(small, episodes=500, seed=2, estimator="weighted-count")
    with pytest.raises(KeyboardInterrupt):
        apeval.evaluate(
            small, episodes=500, seed=2, estimator="weighted-count", listener=listen,
            recorder=apeval.Recorder(folder),
        )  # fmt: skip
    again = apeval.resume(folder)
    assert (again.estimator, again.interval) == ("weighted-count", done.interval)


def test_an_unknown_estimator_is_refused_before_the_run() -> None:
    with pytest.raises(ApevalError, match="log-t"):
        apeval.evaluate(apeval.make("one-step"), episodes=100, estimator="log_t")
