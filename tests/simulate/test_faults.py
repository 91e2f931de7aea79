"""Simulators that raise, hang, die or return NaN, under both policies."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apeval
from apeval.errors import ApevalError, ProblemError, SimulationError
from apeval.estimate.interval import estimate
from apeval.problem.draws import make_key
from apeval.results.fault_log import read_faults
from apeval.run.result import Result
from apeval.simulate import isolation
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.fault_handling import FaultPolicy
from apeval.simulate.task import Task

UNRELIABLE = Path(__file__).parents[1] / "user_problems" / "unreliable.py"
WORKERS: dict[str, Any] = {"backend": "processes", "workers": 2}


def unreliable(**parameters: Any) -> apeval.Problem:
    return apeval.make(f"{UNRELIABLE}:problem", **parameters)


def run(problem: apeval.Problem, n: int = 80, **how: Any) -> Result:
    """Without the check before the run, which meets the faults first."""
    return apeval.evaluate(problem, "mc", episodes=n, seed=0, check=False, **how)


def sound() -> apeval.InMemory:
    """The same episodes from the simulator without its faults."""
    kept = apeval.InMemory(unreliable(above=1e9))
    run(kept.of, recorder=kept)
    return kept


@pytest.mark.parametrize(
    ("what", "says", "how"),
    [
        ("raise", r"raised ValueError: no convergence \(unreliable.py, line \d+\)", {}),
        ("raise", r"raised ValueError: no convergence \(unreliable.py, line \d+\)", WORKERS),
        ("exit", r"raised SystemExit: 3 \(unreliable.py, line \d+\)", {}),
        ("nan", "non-finite state in episode", {}),
        ("die", r"the worker was killed \(kill -9", WORKERS),
    ],
)
def test_by_default_a_fault_stops_the_run_and_is_named(what: str, says: str, how: Any) -> None:
    with pytest.raises(SimulationError, match=says) as stop:
        run(unreliable(what=what), **how)
    text = str(stop.value)
    assert "episode " in text
    assert "3 times" in text  # twice in its block, once alone
    assert '`on_fault="unresolved"`' in text
    assert "\n" not in text


@pytest.mark.parametrize(("what", "how"), [("raise", {}), ("nan", {}), ("raise", WORKERS)])
def test_unresolved_episodes_stay_with_the_decisions_they_made(what: str, how: Any) -> None:
    kept = apeval.InMemory(unreliable(what=what))
    result = run(kept.of, on_fault="unresolved", recorder=kept, **how)
    check_unresolved(kept, result)


def check_unresolved(kept: apeval.InMemory, result: Result) -> None:
    alike, found = sound().episodes, kept.episodes
    above = np.maximum.reduceat(alike.a_E[:, 0], np.arange(0, 4 * alike.n, 4)) > 2.0
    assert 0 < above.sum() < 20
    assert found.ids.tolist() == list(range(80))
    assert found.unresolved.tolist() == above.tolist()
    assert result.unresolved["episodes"] == above.sum()
    assert result.unresolved["probability"] == pytest.approx(above.mean())
    assert result.on_fault == "unresolved"
    assert found.kind[above].sum() == 0
    # decisions are those of the sound simulator, up to and with the one that went wrong
    for i in np.flatnonzero(above):
        mine, whole = found.a_E[found.rows_of(i)], alike.a_E[alike.rows_of(i)]
        assert np.array_equal(mine, whole[: len(mine)])
        assert mine[-1, 0] > 2.0
        assert found.length[i] == len(mine)
    # all others are as they were
    assert np.array_equal(found.s_end[~above], alike.s_end[~above])
    assert len(kept.faults) == above.sum()
    assert {f["outcome"] for f in kept.faults} == {"unresolved"}
    # the upper end counts all of them as failed, the lower end none
    lo, hi = result.interval
    assert lo <= alike.failed[~above].mean() <= alike.failed.mean() <= hi


def test_a_hang_is_cut_by_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("workers.pool", "isolation"):
        monkeypatch.setattr(f"apeval.simulate.{place}.BUILDING", 1.0)
    kept = apeval.InMemory(unreliable(what="hang", above=2.6))
    result = run(kept.of, on_fault="unresolved", time_limit=0.3, recorder=kept, **WORKERS)
    assert result.unresolved["episodes"] == len(kept.faults) > 0
    assert {f["what"] for f in kept.faults} == {"late"}
    assert (kept.episodes.a_E[np.cumsum(kept.episodes.length) - 1, 0] > 2.6).sum() == len(
        kept.faults
    )


def test_a_death_is_known_to_its_last_decision() -> None:
    kept = apeval.InMemory(unreliable(what="die", above=2.3))
    result = run(kept.of, on_fault="unresolved", recorder=kept, **WORKERS)
    assert result.unresolved["episodes"] == len(kept.faults) > 0
    assert {f["what"] for f in kept.faults} == {"died"}
    for fault in kept.faults:
        assert fault["record"]["a_E"][-1][0] > 2.3
        assert fault["decision"] == len(fault["record"]["a_E"])


def test_a_fault_that_goes_away_changes_no_bit(tmp_path: Path) -> None:
    for k, what in enumerate(("raise", "die")):
        how = WORKERS if what == "die" else {}
        kept = apeval.InMemory(unreliable(what=what, once=str(tmp_path / str(k))))
        result = run(kept.of, recorder=kept, **how)
        alike = sound()
        assert result.estimate == alike.result.estimate
        assert np.array_equal(kept.episodes.s_end, alike.episodes.s_end)
        assert [f["outcome"] for f in kept.faults] == ["passed"]


def test_a_time_limit_needs_workers() -> None:
    with pytest.raises(ApevalError, match='`backend="processes"` and `workers=1`'):
        run(unreliable(), time_limit=1.0)


def test_a_simulator_that_nearly_always_fails_stops_early() -> None:
    calls = []

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        calls.append(len(x))
        raise RuntimeError("never")

    broken = apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=step,
        failed=lambda x: x[:, 0] > 1.0,
        horizon=3,
        chunk=8,
    )
    with pytest.raises(SimulationError, match=r"of 8 episodes do not come back .*RuntimeError"):
        run(broken, 10_000, on_fault="unresolved")
    assert len(calls) < 20
    with pytest.raises(SimulationError, match=r"episodes do not come back"):
        run(unreliable(above=0.0), 10_000, on_fault="unresolved")


def test_a_breach_of_contract_is_no_fault() -> None:
    problem = unreliable()
    wrong = apeval.Problem(**{**vars(problem), "failed": lambda x: x})
    for how in ({}, WORKERS):
        with pytest.raises(ProblemError, match="`failed` must return"):
            run(wrong, on_fault="unresolved", **how)


def test_faults_in_the_reset_are_unresolved_without_a_decision() -> None:
    kept = apeval.InMemory(apeval.make(f"{UNRELIABLE}:in_reset"))
    result = apeval.evaluate(kept.of, "mc", episodes=80, on_fault="unresolved", recorder=kept)
    found = kept.episodes
    assert result.unresolved["episodes"] == (found.a_0[:, 0] > 1.5).sum() > 0
    assert set(found.length[found.unresolved]) == {1}  # the initial disturbance is a decision
    assert np.isfinite(kept.sample.log_weights).all()


@pytest.mark.parametrize("method", ["ape", "ape-discrete", "cem"])
def test_learners_live_with_unresolved_episodes(method: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    problem = unreliable(above=3.0)
    result = apeval.evaluate(
        problem, method, episodes=600, seed=1, on_fault="unresolved",
        recorder=apeval.Recorder(folder),
    )  # fmt: skip
    assert result.unresolved["episodes"] > 0
    lo, hi = result.interval
    assert lo <= 0.02275 <= hi  # Φ(−2)
    faults = read_faults(folder)
    assert len(faults) >= result.unresolved["episodes"]
    assert tuple(faults[-1]["record"]["key"]) == tuple(make_key(1).tolist())


def test_the_command_line_replays_a_fault(command: Any, tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    asked = ["run", f"{UNRELIABLE}:problem", "--method", "mc", "--episodes", "80", "--out", folder]
    asked += ["--no-check", "--set", "problem.what=die"]
    workers = ["--backend", "processes", "--workers", "1"]
    code, _, err = command(*asked, *workers)
    assert code == 2
    assert "--on-fault unresolved" in err
    replay = ["replay", folder, "--problem", f"{UNRELIABLE}:problem", "--fault"]
    code, out, _ = command(*replay, "1")  # of a run without a result
    assert code == 0
    assert out.count("the worker was killed") == 2
    code, _, err = command(*replay, "2")
    assert (code, "the fault must be from 1 to 1" in err) == (2, True)


def test_policies_are_checked() -> None:
    for wrong in ({"on_fault": "drop"}, {"retries": -1}, {"time_limit": 0.0}):
        with pytest.raises(ApevalError):
            FaultPolicy(**wrong)  # type: ignore[arg-type]


def test_unresolved_episodes_widen_the_interval_by_little_more_than_their_mass() -> None:
    """5 % of nominal episodes have no outcome, failing ones more often. 10 seeds at 95 %: fewer
    than 7 covering has probability < 0.2 %."""
    level, worst = 5.0, 1.6449  # S_4 > 2.5·√4: Φ(−2.5); Φ(−1.6449) = 0.05

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        lost = (a_E > worst) & (draws.t == 0)
        return np.hstack([np.where(lost, 0.0, x[:, :1] + a_E), lost])

    problem = apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 2)),
        step=step,
        failed=lambda x: x[:, 0] > level,
        done=lambda x: x[:, 1] > 0.0,
        judge_at_end=True,
        margin=lambda x: level - x[:, 0],
        horizon=4,
    )
    sound = replace(problem, step=lambda x, a_A, a_E, draws: x + a_E * [1.0, 0.0])
    covered, widths, without = 0, [], []
    for seed in range(10):
        kept = apeval.InMemory(problem)
        apeval.evaluate(problem, "ape", episodes=1_200, seed=seed, recorder=kept, check=False)
        lost = kept.episodes.s_end[:, 1] > 0.0
        lo, hi = estimate(replace(kept.sample, unresolved=lost), 0.95).interval
        covered += lo <= 0.00621 <= hi
        assert hi >= float((kept.sample.weights * lost).mean())  # all might have failed
        widths.append(hi - lo)
        if seed < 4:  # means of widths need fewer runs than a count of intervals
            plain = apeval.evaluate(sound, "ape", episodes=1_200, seed=seed, check=False)
            without.append(plain.interval[1] - plain.interval[0])
    assert covered >= 7
    assert np.mean(widths) <= np.mean(without) + 1.5 * 0.05


def test_a_worker_that_somebody_kills_makes_no_episode_guilty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed at its start, then at work: the third one answers, with the same bits."""
    started: list[isolation.ProcessWorker] = []

    class Shot(isolation.ProcessWorker):
        def __init__(self) -> None:
            super().__init__()
            started.append(self)
            if len(started) == 1:
                os.kill(self.process.pid, signal.SIGKILL)

        def give(self, task: Task, alone: bool = False) -> None:
            if len(started) == 2:  # stopped, lest it answers before it is killed
                os.kill(self.process.pid, signal.SIGSTOP)
            super().give(task, alone)
            if len(started) == 2:
                os.kill(self.process.pid, signal.SIGKILL)

    monkeypatch.setattr(isolation, "ProcessWorker", Shot)
    problem, key = apeval.make("walk", top=5).blind(), make_key(3)
    cell = isolation.InOwnProcess(problem, key, None)
    task = Task(only(Nominal()), 7, 7, 1, None)
    try:
        found = cell.run(task)
    finally:
        cell.close()
    assert len(started) == 3
    assert isinstance(found, Episodes)
    assert np.array_equal(found.s, task.simulate(problem, key).s)
