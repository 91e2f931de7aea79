"""Problems whose failure is a violated specification: known answers, and that all of apeval takes
them."""

from __future__ import annotations

from dataclasses import replace
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from tests.curtailed import at_least

import apeval
from apeval.errors import ProblemError

UP, TOP, WALK = (0.3, 0.5, 0.2), 7, 12
LIMIT, TWICE = 2.6, 5
GOAL, CHANCES = 4, 12


def x0(x: Any) -> Any:
    return x[:, 0]


def walk(**rest: Any) -> apeval.Problem:
    """A walk on the whole numbers that must not stay at the top for three moments in a row."""
    return apeval.Problem(
        nominal=apeval.Categorical(UP),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E - 1.0,
        failed=apeval.spec(
            f"always[0,{WALK - 2}] (height >= {TOP} implies eventually[0,2] height < {TOP})",
            height=x0,
        ),
        horizon=WALK,
        **rest,
    )


def walk_truth() -> float:
    """Dynamic programming over the height and the moments in a row at the top."""
    alive, failed = {(0, 0): 1.0}, 0.0
    for _ in range(WALK):
        after: dict[tuple[int, int], float] = {}
        for (x, row), p in alive.items():
            for move, q in zip((-1, 0, 1), UP, strict=True):
                now = (x + move, row + 1 if x + move >= TOP else 0)
                if now[1] == 3:
                    failed += p * q
                else:
                    after[now] = after.get(now, 0.0) + p * q
        alive = after
    return failed


def twice(text: str = f"not eventually (z > {LIMIT} and eventually[1,1] z > {LIMIT})") -> Any:
    """Independent noise that must not exceed a limit at two moments in a row."""
    return apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: a_E,
        failed=apeval.spec(text, z=x0, kind="twice"),
        horizon=TWICE,
    )


def twice_truth() -> float:
    p = float(ndtr(-LIMIT))
    low, high, failed = 1.0, 0.0, 0.0
    for _ in range(TWICE):
        low, high, failed = (low + high) * (1.0 - p), low * p, failed + high * p
    return failed


def late() -> apeval.Problem:
    """So many steps of work must be done in time, each of which succeeds with 0.8."""
    return apeval.Problem(
        nominal=apeval.Categorical([0.2, 0.8]),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=apeval.spec(f"eventually[0,{CHANCES}] done >= {GOAL}", done=x0),
        horizon=CHANCES,
    )


def late_truth() -> float:
    ways = [comb(CHANCES, k) * 0.8**k * 0.2 ** (CHANCES - k) for k in range(GOAL)]
    return float(sum(ways))


@pytest.mark.parametrize(
    ("problem", "truth"),
    [(walk, walk_truth()), (twice, twice_truth()), (late, late_truth())],
    ids=["response", "twice", "in time"],
)
def test_intervals_cover_the_known_answer(problem: Any, truth: float) -> None:
    """10 intervals at 95 %: fewer than 7 hits would be 1 in 900."""
    assert 1e-6 < truth < 1e-3

    def covers(seed: int) -> bool:
        found = apeval.evaluate(problem(), "ape", episodes=2_000, seed=seed, check=seed == 0)
        return bool(found.interval[0] <= truth <= found.interval[1])

    assert at_least(7, range(10), covers)


def test_monte_carlo_counts_what_the_robustness_says() -> None:
    """Every episode again by the recorded signal: the same verdict and the same margin."""
    spec = apeval.spec("always z < 2 or eventually[0,4] z < -1", z=x0, stop=False)
    problem = apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: a_E,
        failed=spec,
        horizon=6,
    )
    run = apeval.InMemory(problem)
    apeval.evaluate(problem, "mc", episodes=500, seed=0, recorder=run)
    z = run.episodes.a_E.reshape(500, 6)
    found = spec.robustness(z=np.column_stack([np.zeros(500), z]))
    assert np.array_equal(run.episodes.margin, found)
    assert np.array_equal(run.episodes.failed, np.asarray(found) < 0.0)
    assert 0 < run.episodes.failed.sum() < 500


def test_a_certain_violation_ends_the_episode() -> None:
    run = apeval.InMemory(twice())
    apeval.evaluate(run.of, "ape", episodes=1_000, seed=0, recorder=run)
    it = run.episodes
    for i in np.flatnonzero(it.failed)[:20]:
        z = it.a_E[it.rows_of(i), 0]
        assert np.all(z[-2:] > LIMIT)
        assert it.margin[i] == pytest.approx(LIMIT - z[-2:].min())
    assert it.length[it.failed].min() < TWICE
    assert np.all(it.length[~it.failed & ~it.ended_by_roulette] == TWICE)


def test_the_adversary_sees_the_memory() -> None:
    problem = walk(views={"all": lambda x: x, "twofold": lambda x: np.column_stack([x, x])})
    draws = apeval.InMemory(problem)
    apeval.evaluate(problem, "mc", episodes=4, seed=0, recorder=draws)
    width = draws.episodes.s.shape[1]
    assert width > 1  # the height, and after it what the monitor keeps
    assert np.isfinite(draws.episodes.s).all()
    assert draws.episodes.s_end.shape[1] == width
    other = apeval.InMemory(problem.seen_as("twofold"))
    apeval.evaluate(other.of, "mc", episodes=4, seed=0, recorder=other)
    assert other.episodes.s.shape[1] == width + 1


def test_check_finds_nothing_to_mend() -> None:
    for problem in (walk(), twice(), late()):
        report = apeval.check_problem(problem, episodes=40)
        assert report.ok, str(report)


def test_runs_are_stored_replayed_and_the_same_with_workers(tmp_path: Path) -> None:
    found = apeval.evaluate(
        twice(), episodes=600, seed=1, recorder=apeval.Recorder(tmp_path / "run")
    )
    again = apeval.evaluate(twice(), episodes=600, seed=1, backend="processes", workers=2)
    assert again.as_json() == {**found.as_json(), "seconds": again.seconds}
    run = apeval.load(tmp_path / "run")
    assert run.identity["nominal"]["words"] == "Gaussian, 1 component, mean 0, σ 1"
    assert found.records
    for record in found.records[:5]:
        assert apeval.replay(twice(), record).kind.tolist() == [1]


def test_a_specification_of_the_same_text_is_the_same_problem(tmp_path: Path) -> None:
    apeval.evaluate(twice(), episodes=300, seed=1, recorder=apeval.Recorder(tmp_path / "one"))
    apeval.evaluate(twice(), episodes=300, seed=2, recorder=apeval.Recorder(tmp_path / "two"))
    other = twice("not eventually (z > 2.5 and eventually[1,1] z > 2.5)")
    apeval.evaluate(other, episodes=300, seed=3, recorder=apeval.Recorder(tmp_path / "other"))
    runs = [apeval.load(tmp_path / name) for name in ("one", "two", "other")]
    assert apeval.merge(runs[:2]).estimate >= 0.0
    with pytest.raises(apeval.ApevalError, match="differs"):
        apeval.merge(runs)


def pair(failed: Any) -> apeval.Problem:
    """Two noises."""
    return apeval.Problem(
        nominal=apeval.Normal(0.0, [1.0, 1.0]),
        reset=lambda draws: np.zeros((draws.n, 2)),
        step=lambda x, a_A, a_E, draws: a_E,
        failed=failed,
        horizon=4,
    )


LEFT = apeval.spec("always left < 1.5", left=lambda x: x[:, 0], kind="left")
RIGHT = apeval.spec("always right < 1", right=lambda x: x[:, 1], kind="right")


def test_events_combine_each_with_its_kind() -> None:
    """Against the same episodes, judged by hand."""
    either, both = apeval.InMemory(pair(LEFT | RIGHT)), apeval.InMemory(pair(LEFT & RIGHT))
    for run in (either, both):
        apeval.evaluate(run.of, "mc", episodes=2_000, seed=0, recorder=run)
    assert either.of.kinds == ("left", "right")
    assert both.of.kinds == ("left and right",)
    all_of_them = apeval.InMemory(pair(replace(LEFT, stop_when_certain=False) & RIGHT))
    apeval.evaluate(all_of_them.of, "mc", episodes=2_000, seed=0, recorder=all_of_them)
    a_E = all_of_them.episodes.a_E.reshape(2_000, 4, 2)
    left, right = a_E[:, :, 0] >= 1.5, a_E[:, :, 1] >= 1.0
    first = np.where(left.any(axis=1), left.argmax(axis=1), 9)
    second = np.where(right.any(axis=1), right.argmax(axis=1), 9)
    kind = np.where(first <= second, 1, 2) * ((first < 9) | (second < 9))
    assert np.array_equal(either.episodes.kind, kind)
    assert np.array_equal(both.episodes.failed, left.any(axis=1) & right.any(axis=1))
    highest = np.maximum(a_E.max(axis=1), 0.0)  # both begin at 0
    margin = np.maximum(1.5 - highest[:, 0], 1.0 - highest[:, 1])
    assert all_of_them.episodes.margin == pytest.approx(margin)
    p, q = 1.0 - ndtr(1.5) ** 4, 1.0 - ndtr(1.0) ** 4
    found = apeval.evaluate(pair(LEFT & RIGHT), "mc", episodes=20_000, seed=1)
    assert abs(found.estimate - p * q) < 4.0 * np.sqrt(p * q / 20_000)


def test_kinds_of_combined_events() -> None:
    third = apeval.spec("always left > -3", left=lambda x: x[:, 0])
    assert third.kinds == ("always left > -3",)
    assert ((LEFT | RIGHT) & third.named("low")).kinds == ("left and low", "right and low")
    assert (LEFT | RIGHT).named("far").kinds == ("far",)
    assert (LEFT | RIGHT.named("left")).kinds == ("left",)
    with pytest.raises(ProblemError, match="joins two specifications"):
        LEFT | (lambda x: x)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"margin": lambda x: x[:, 0]}, "margin"),
        ({"judge_at_end": True}, "judge_at_end"),
        ({"horizon_kind": 1}, "horizon_kind"),
        ({"kinds": ("crash",)}, "kind="),
    ],
)
def test_what_contradicts_a_specification_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ProblemError, match=why):
        walk(**given)


def test_signals_are_looked_at() -> None:
    with pytest.raises(ProblemError, match="signal 'height' is 'x': give a function"):
        pair(apeval.spec("always height > 2", height="x"))
    wrong = pair(apeval.spec("always height > 2", height=lambda x: x))
    with pytest.raises(ProblemError, match="signal 'height' returned"):
        apeval.evaluate(wrong, "mc", episodes=10)
    with pytest.raises(ProblemError, match="cannot be called"):
        LEFT(np.zeros((1, 2)))


def test_the_horizon_may_change_afterwards() -> None:
    """Failure at the end is judged at the end that the problem has, not at the one it had."""
    shorter = replace(late(), horizon=GOAL - 1)
    assert apeval.evaluate(shorter, "mc", episodes=50, seed=0).estimate == 1.0


def test_noise_with_memory_goes_around_it() -> None:
    problem = apeval.with_correlated_noise(twice(), 0.9)
    assert apeval.check_problem(problem, episodes=20).ok
    plain = apeval.evaluate(twice(), "mc", episodes=2_000, seed=0).failures
    assert apeval.evaluate(problem, "mc", episodes=2_000, seed=0).failures > plain
