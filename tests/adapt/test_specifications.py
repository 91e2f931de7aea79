"""`from_env(fails=apeval.spec(…))`: judged over environment steps, its memory part of the state."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import apeval
from apeval.adapt.entrance import entrance
from apeval.errors import ApevalError
from apeval.problem.problem import Problem

TEXT = "always[0,5] (x > 2 implies eventually[0,2] x < 1.5) and always[2,9] x < 4"
HORIZON = 9


class Drift(gymnasium.Env[Any, Any]):
    """x is the sum of the actions."""

    action_space = gymnasium.spaces.Box(-9.0, 9.0, (1,), np.float64)
    observation_space = gymnasium.spaces.Box(-99.0, 99.0, (1,), np.float64)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.x = np.zeros(1)
        return self.x.copy(), {}

    def step(self, action: Any) -> Any:
        self.x = self.x + action
        return self.x.copy(), 0.0, False, False, {"speed": float(action[0])}


def drift(fails: Any = None, hold: int = 2, **more: Any) -> Problem:
    return apeval.from_env(
        Drift,
        policy=lambda obs: [0.0],
        disturb=apeval.ActionNoise(std=0.8, hold=hold),
        fails=apeval.spec(TEXT, x=lambda obs: obs[0], stop=False) if fails is None else fails,
        horizon=HORIZON,
        **more,
    )


@pytest.mark.parametrize("hold", [1, 2, 4])
def test_the_margin_is_the_robustness_over_environment_steps(hold: int) -> None:
    run = apeval.InMemory(drift(hold=hold))
    apeval.evaluate(run.of, "mc", episodes=60, seed=1, recorder=run)
    spec, it = apeval.spec(TEXT, x=None), run.episodes
    failed = 0
    for i in range(it.n):
        pushes = np.repeat(it.a_E[it.rows_of(i), 0], hold)[:HORIZON]
        x = np.concatenate([[0.0], np.cumsum(pushes)])
        robustness = float(spec.robustness(x=x))
        assert it.margin[i] == pytest.approx(robustness)
        assert it.failed[i] == (robustness < 0.0)
        failed += robustness < 0.0
    assert 0 < failed < 60


def test_a_specification_says_what_a_function_says_of_single_states() -> None:
    spec = apeval.spec("always (x < 3 and speed < 2)", x=lambda obs: obs[0], speed="info.speed")
    one, other = (
        apeval.evaluate(drift(fails), "mc", episodes=300, seed=3, check=False)
        for fails in (spec, lambda obs, info: bool(obs[0] >= 3 or info["speed"] >= 2))
    )
    assert one.estimate == other.estimate > 0.0
    assert one.kinds.keys() == {"always (x < 3 and speed < 2)"}


def test_it_passes_the_check_and_is_the_same_everywhere() -> None:
    problem = drift()
    assert apeval.check_problem(problem, episodes=20).ok
    assert entrance(problem).call == "from_env"
    alone, workers = (
        apeval.evaluate(problem, "splitting", episodes=300, seed=2, backend=backend)
        for backend in ("serial", "processes")
    )
    assert alone.interval == workers.interval
    assert alone.trusted or alone.final.failures


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"margin": lambda obs: obs[0]}, "`margin` does not go with a specification"),
        ({"fails": apeval.spec("always x < 3", x=None)}, "signal 'x' is None: give"),
        (
            {"fails": apeval.spec("always x < 3", x=lambda a, b, c: a)},
            "signal 'x' is a function of 3",
        ),
        ({"margin": apeval.spec("always x < 3", x=None), "fails": "terminated"}, "from_env takes"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ApevalError, match=says):
        drift(**arguments)
