"""Problems that keep something between episodes: refused before a run, or doubted after it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.problem.test_ownership import walk

import apeval
from apeval.errors import ProblemError
from apeval.simulate.audit import difference
from apeval.simulate.identity import identity

Hidden = Callable[[], apeval.Problem]


def remembering() -> apeval.Problem:
    last: dict[str, Any] = {}

    def agent(x: Any) -> Any:
        before = last.get("x")
        last["x"] = x
        return np.zeros((len(x), 1)) if before is None or len(before) != len(x) else 0.5 * before

    return walk(agent=agent)


def global_noise() -> apeval.Problem:
    return walk(step=lambda x, a_A, a_E, draws: x + a_E + np.random.normal(size=x.shape))  # noqa: NPY002


def counting_view() -> apeval.Problem:
    calls = [0]

    def view(x: Any) -> Any:
        calls[0] += 1
        return x + calls[0]

    return walk(views={"state": view})


def clock() -> apeval.Problem:
    return walk(step=lambda x, a_A, a_E, draws: x + a_E + 1e-3 * (time.perf_counter() % 1.0))


def mixing() -> apeval.Problem:
    return walk(step=lambda x, a_A, a_E, draws: x + a_E + 0.1 * x.mean())


@pytest.mark.parametrize("hidden", [remembering, global_noise, counting_view, clock, mixing])
@pytest.mark.parametrize("method", ["mc", "ape"])
def test_python_is_checked_like_the_command_line(hidden: Hidden, method: str) -> None:
    with pytest.raises(ProblemError, match=r"repeatable|batching"):
        apeval.evaluate(hidden(), method, episodes=800)
    trusted = apeval.evaluate(walk(), method, episodes=3_000)
    assert trusted.checked
    assert not any("not checked" in text for text in trusted.warnings)


@pytest.mark.parametrize("period", [2, 3, 4, 6])
def test_what_counts_its_calls_is_found_although_episodes_fit_its_period(period: int) -> None:
    calls = [0]

    def agent(x: Any) -> Any:
        calls[0] += 1
        return np.full((len(x), 1), 0.1 * (calls[0] % period))

    with pytest.raises(ProblemError, match="repeatable"):
        apeval.evaluate(walk(agent=agent, horizon=12), "mc", episodes=800)


def test_who_turns_the_check_off_is_told_so() -> None:
    result = apeval.evaluate(walk(), "mc", episodes=300, check=False)
    assert not result.checked
    assert any("not checked" in text for text in result.warnings)
    assert '"checked": false' in str(result.as_json()).lower().replace("'", '"')


def after_calls(n: int, change: Callable[[Any], Any]) -> Callable[..., Any]:
    """f_E that is right for n calls, which is longer than any check before the run."""
    calls = [0]

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        calls[0] += 1
        return x + (a_E if calls[0] < n else change(a_E))

    return step


@pytest.mark.parametrize("method", ["mc", "ape"])
@pytest.mark.parametrize("calls", [90, 130])
def test_what_changes_during_the_run_is_doubted_after_it(method: str, calls: int) -> None:
    problem = walk(step=after_calls(calls, lambda a_E: 1.2 * a_E), chunk=64)
    result = apeval.evaluate(problem, method, episodes=3_000)
    assert not result.trusted
    assert "does not repeat itself" in result.warnings[0]
    proper = apeval.evaluate(walk(chunk=64), method, episodes=3_000, seed=1)
    assert not any("repeat itself" in text for text in proper.warnings)


def test_workers_are_asked_as_well() -> None:
    problem = walk(step=after_calls(100, lambda a_E: 1.2 * a_E), chunk=64)
    result = apeval.evaluate(problem, "mc", episodes=3_000, backend="processes", workers=2)
    assert not result.trusted


def test_what_changes_by_itself_is_refused_with_workers() -> None:
    """Each worker would get a copy of the state as it happens to be, and repeat itself with it."""
    state, over = [0.0], threading.Event()

    def work() -> None:
        while not over.wait(0.0005):
            state[0] = (state[0] + 0.01) % 0.3

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    problem = walk(step=lambda x, a_A, a_E, draws: x + a_E + state[0])
    try:
        with pytest.raises(ProblemError, match="changes while nobody asks it anything"):
            apeval.evaluate(problem, "mc", episodes=100, backend="processes", workers=2)
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("on_fault", ["stop", "unresolved"])
def test_what_changes_once_during_a_run_with_workers_is_doubted_after_it(on_fault: str) -> None:
    """The workers' copies all repeat themselves; the problem is another one by then."""
    state = [0.0]

    def tell(progress: Any) -> None:
        if progress.steps > 0:
            state[0] = 0.5

    problem = walk(step=lambda x, a_A, a_E, draws: x + a_E + state[0])
    given: dict[str, Any] = {"backend": "processes", "workers": 1, "on_fault": on_fault}
    result = apeval.evaluate(problem, "mc", episodes=2_000, listener=tell, **given)
    assert not result.trusted
    assert "changed during the run while nobody asked it" in result.warnings[0]


def test_a_cache_that_fills_during_a_run_with_workers_is_no_change() -> None:
    seen: list[float] = []
    problem = walk(step=lambda x, a_A, a_E, draws: x + a_E + 0.0 * len(seen))
    result = apeval.evaluate(
        problem, "mc", episodes=2_000, backend="processes", workers=1,
        listener=lambda _: seen.append(1.0),
    )  # fmt: skip
    assert not any("changed during the run" in text for text in result.warnings)


def test_what_goes_to_and_fro_in_step_with_the_looks_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A state that changes twice from one look to the next, if they came at equal times."""
    now, state = [0.0], [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        state[0] = 0.3 * (round(now[0] / 0.0005) % 2)

    monkeypatch.setattr(identity.time, "sleep", sleep)
    monkeypatch.setattr(identity.time, "monotonic", lambda: now[0])
    assert identity.changes_by_itself(walk(step=lambda x, a_A, a_E, draws: x + a_E + state[0]))
    assert not identity.changes_by_itself(walk())


def one_number(answer: Any) -> Any:
    return float(answer[0, 0])


def a_row_more(answer: Any) -> Any:
    return np.concatenate([answer, answer[:1]])


@pytest.mark.parametrize("backend", ["serial", "processes"])
@pytest.mark.parametrize("change", [one_number, a_row_more])
def test_a_mean_that_is_answered_otherwise_late_is_one_clear_error(
    backend: str, change: Callable[[Any], Any]
) -> None:
    """In a worker as well, where the run's own copy of the problem is still as it was."""
    calls = [0]

    def mean(x: Any, a_A: Any) -> Any:
        calls[0] += 1
        return 0.0 * x if calls[0] < 100 else change(0.0 * x)

    problem = walk(nominal=apeval.Normal(mean, 1.0, dim=1), chunk=64)
    with pytest.raises(ProblemError, match=r"nominal"):
        apeval.evaluate(problem, "mc", episodes=3_000, backend=backend, workers=1)


def test_rounding_by_batch_size_is_no_difference() -> None:
    run = apeval.InMemory(walk())
    apeval.evaluate(run.of, "mc", episodes=50, recorder=run)
    one = run.episodes.take(np.arange(50) == 7)
    near = one.take(np.ones(1, bool))
    near.s[1] *= 1.0 + 1e-9
    assert difference(one, near) is None
    near.s[1] += 0.01
    assert difference(one, near) == "the state at decision 2 is another"
    assert difference(one, one) is None


def test_a_small_component_beside_a_large_one_is_compared_by_its_own_size() -> None:
    calls = [0]

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        calls[0] += 1
        gain = 1.0 if calls[0] < 130 else 1.2
        return np.stack([x[:, 0] + gain * a_E[:, 0], x[:, 1] + 1.0], axis=1)

    high = walk(
        reset=lambda draws: np.tile([0.0, 1e6], (draws.n, 1)),
        step=step,
        chunk=64,
    )
    result = apeval.evaluate(high, "mc", episodes=3_000)
    assert "does not repeat itself" in result.warnings[0]


def test_rounding_of_an_action_near_zero_is_no_difference() -> None:
    run = apeval.InMemory(walk(agent=lambda x: x - 0.0))
    apeval.evaluate(run.of, "mc", episodes=50, recorder=run)
    one = run.episodes.take(np.arange(50) == 7)
    one.a_A[0], one.a_A[1] = 1.0, 1e-3
    near = one.take(np.ones(1, bool))
    near.a_A[1] += 6e-8  # what single precision leaves of a sum of numbers near one
    assert difference(one, near) is None


def test_what_only_other_episodes_show_is_doubted() -> None:
    """`done` ends more and more episodes that do not fail; failures stay as they are."""
    calls = [0]

    def done(x: Any) -> Any:
        calls[0] += 1
        return x[:, 0] < -8.0 + 0.03 * calls[0]

    problem = walk(done=done, chunk=64, views={"state": lambda x: x})
    result = apeval.evaluate(problem, "ape", episodes=3_000)
    assert not result.trusted
    assert "does not repeat itself" in result.warnings[0]


def test_what_changes_between_the_check_and_the_run_is_doubted() -> None:
    """As a thread or a file may: the whole run is consistent, and of another problem."""
    checked = [True]

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        return x + (a_E if checked[0] else 1.3 * a_E)

    class Listens(apeval.InMemory):
        def begin(self, inputs: Any) -> None:
            checked[0] = False
            super().begin(inputs)

    problem = walk(step=step)
    result = apeval.evaluate(problem, "mc", episodes=2_000, recorder=Listens(problem))
    assert not result.trusted
    assert "does not repeat itself" in result.warnings[0]


def test_rows_that_come_or_go_late_are_named() -> None:
    calls = [0]

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        calls[0] += 1
        return x + a_E if calls[0] < 150 else np.concatenate([x + a_E, x[:1]])

    with pytest.raises(ProblemError, match=r"`step` answered for 65 episodes where there were 64"):
        apeval.evaluate(walk(step=step, chunk=64), "mc", episodes=3_000)


@pytest.mark.parametrize("backend", ["serial", "processes"])
@pytest.mark.parametrize("calls", [5, 40])
def test_a_precision_that_changes_is_refused(backend: str, calls: int) -> None:
    """Within a block, and from one block to the next."""
    seen = [0]

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        seen[0] += 1
        return (x + a_E).astype(np.float64 if seen[0] < calls else np.float32)

    with pytest.raises(apeval.ApevalError, match=r"precision|repeatable|float32"):
        apeval.evaluate(
            walk(step=step, horizon=7, chunk=64), "mc", episodes=1_000, backend=backend, check=False
        )


def test_what_only_pushed_episodes_show_is_doubted_on_a_busy_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where hardly any time is left for repeating: failures that begin to be judged otherwise."""
    monkeypatch.setattr("apeval.run.evaluate.SECONDS", 0.0)
    seen = [0]

    def failed(x: Any) -> Any:
        seen[0] += len(x)
        return x[:, 0] > (6.0 if seen[0] < 2_000 else 4.0)

    problem = walk(failed=failed, margin=None, judge_at_end=False)
    assert not apeval.evaluate(problem, "mc", episodes=3_000).trusted
