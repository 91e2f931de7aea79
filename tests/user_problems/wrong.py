"""A wrong problem of each kind, as a user might write it: `adapt/test_own_problems.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import apeval
from apeval.problem.laws import NormalLaw


def drift(**wrong: Any) -> apeval.Problem:
    """A right problem, but for what is given."""
    right: dict[str, Any] = {
        "nominal": apeval.Normal(0.0, 1.0),
        "reset": lambda draws: np.zeros((draws.n, 1)),
        "step": lambda x, a_A, a_E, draws: 0.9 * x + a_A + a_E,
        "agent": lambda x: -0.1 * x,
        "failed": lambda x: x[:, 0] >= 4.0,
        "margin": lambda x: 4.0 - x[:, 0],
        "horizon": 12,
    }
    return apeval.Problem(**{**right, **wrong})


def cartpole(**wrong: Any) -> apeval.Problem:
    right: dict[str, Any] = {
        "policy": lambda obs: int(obs[2] + 0.5 * obs[3] > 0.0),
        "disturb": apeval.ParameterNoise("force_mag", std=3.0),
        "horizon": 20,
    }
    return apeval.from_env("CartPole-v1", **{**right, **wrong})


def right() -> apeval.Problem:
    return drift()


def shape() -> apeval.Problem:
    return drift(failed=lambda x: x >= 4.0)


def fewer_rows() -> apeval.Problem:
    return drift(step=lambda x, a_A, a_E, draws: (x + a_E)[1:])


@dataclass(frozen=True)
class Wide(NormalLaw):
    def sample(self, u: Any) -> Any:
        return 1.5 * super().sample(u)


class WideNormal(apeval.Normal):
    def given(self, x: Any, a_A: Any) -> Any:
        return Wide(*vars(super().given(x, a_A)).values())


def density() -> apeval.Problem:
    return drift(nominal=WideNormal(0.0, 1.0))


def nan() -> apeval.Problem:
    return drift(step=lambda x, a_A, a_E, draws: np.where(a_E > 1.0, np.nan, x + a_E))


def endless() -> apeval.Problem:
    return drift(horizon=None, failed=lambda x: x[:, 0] > 1e9, margin=None)


def random() -> apeval.Problem:
    rng = np.random.default_rng(0)
    return drift(step=lambda x, a_A, a_E, draws: x + a_E + rng.normal(size=x.shape))


def margin() -> apeval.Problem:
    return drift(margin=lambda x: x[:, 0] - 4.0)


def raises() -> apeval.Problem:
    return drift(step=_missing_key)


def _missing_key(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    return {}["gust"]


def policy() -> apeval.Problem:
    return drift(agent=lambda x: ["left"] * len(x))


def gym_shape() -> apeval.Problem:
    return cartpole(fails=lambda obs: obs > 3.0)


def gym_nan() -> apeval.Problem:
    return cartpole(disturb=apeval.CustomNoise(_spoil, std=1.0))


def _spoil(env: Any, e: Any) -> None:
    env.unwrapped.state = np.full(4, np.nan)


def gym_random() -> apeval.Problem:
    rng = np.random.default_rng(0)
    return cartpole(policy=lambda obs: int(rng.integers(2)))


def gym_margin() -> apeval.Problem:
    return cartpole(margin=lambda obs: abs(obs[2]) - 0.2095)


def gym_raises() -> apeval.Problem:
    return cartpole(disturb=apeval.CustomNoise(lambda env, e: env.unwrapped.blow(e), std=1.0))


def gym_policy_raises() -> apeval.Problem:
    return cartpole(policy=lambda obs: obs[17])


def gym_policy_none() -> apeval.Problem:
    return cartpole(policy=lambda obs: None)


def gym_policy_scores() -> apeval.Problem:
    return cartpole(policy=lambda obs: [0.1, 0.9])


def gym_policy_pair() -> apeval.Problem:
    return cartpole(policy=lambda obs: ("left", None))


def gym_info() -> apeval.Problem:
    return cartpole(fails="info.crashed")


def fails_to_build() -> apeval.Problem:
    raise ValueError("no such weather")


def nothing() -> None:
    drift()


def needs(std: float) -> apeval.Problem:
    return drift(nominal=apeval.Normal(0.0, std))


number = 3
