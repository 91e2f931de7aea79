"""`inverted-pendulum`: a frozen PPO network balances MuJoCo's pole, with noise on every action.

Gymnasium's InvertedPendulum-v5, unchanged but for the length of an episode. Fresh Gaussian noise is
added to every action, which the actuator then limits. An episode fails where Gymnasium ends it: the
pole leaves ±0.2 rad. The random start is nobody's. The network was trained by
`apeval_public.policies.train`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apeval.adapt.from_env import from_env
from apeval.adapt.noises import ActionNoise
from apeval.adapt.policies import BatchPolicy
from apeval.errors import ProblemError
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.types import FloatArray
from apeval_public.policies.network import load
from apeval_public.truth.known import with_stored_truth

LARGEST_ANGLE = 0.2
STD, STEPS = 1.0, 100


def _most_likely(obs: Any) -> FloatArray:
    """The mean action of the frozen policy, for a batch of observations."""
    return load("inverted-pendulum")(obs)


def _upright(obs: Any) -> float:
    """The pole's distance from ±0.2 rad."""
    return float(LARGEST_ANGLE - abs(obs[1]))


@register(
    "inverted-pendulum", description="MuJoCo's InvertedPendulum-v5, a PPO network, action noise"
)
def inverted_pendulum(std: float = STD, steps: int = STEPS) -> Problem:
    """The pole must stay within 0.2 rad; std is that of the noise on every action."""
    if std <= 0.0 or steps < 1:
        raise ProblemError(f"std must be positive and steps at least 1; got {std}, {steps}")
    problem = from_env(
        "InvertedPendulum-v5",
        policy=BatchPolicy(_most_likely),
        disturb=ActionNoise(std=std),
        fails="terminated",
        margin=_upright,
        horizon=steps,
        name="inverted-pendulum",
        description="InvertedPendulum-v5 with a frozen network and noise on every action",
    )
    return with_stored_truth(replace(problem, parameters={"std": std, "steps": steps}))
