"""Returns of a policy in the nominal world, on seeds that other policies can be held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.adapt.block import chosen
from apeval.adapt.policies import Ask
from apeval.adapt.with_policy import PlannedProblem
from apeval.hardening.environment import adversarial_env
from apeval.problem.draws import AGENT
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray

_BESIDE = 16  # episodes that run side by side, as policies in batches want them


@dataclass(frozen=True)
class NominalReturn:
    """The mean return under the nominal disturbances."""

    mean: float
    """Over episodes."""
    standard_error: float
    """Of `mean`."""
    episodes: int
    """How many."""

    @staticmethod
    def of(returns: FloatArray) -> NominalReturn:
        """From the returns of single episodes."""
        n = len(returns)
        error = float(returns.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
        return NominalReturn(float(returns.mean()), error, n)


def nominal_returns(problem: Problem, episodes: int, seed: int) -> FloatArray:
    """The return of each of so many nominal episodes, (n,).

    Args:
        problem: A problem of `from_env`, with the policy in question.
        episodes: How many.
        seed: Episode k has the same random numbers for every policy.
    """
    policy = PlannedProblem.of(problem).plan.policy
    returns = np.zeros(episodes)
    envs = [adversarial_env(problem, share=0.0) for _ in range(min(_BESIDE, episodes))]
    try:
        for first in range(0, episodes, _BESIDE):
            numbers = list(range(first, min(first + _BESIDE, episodes)))
            seen = [
                env.reset(seed=_seed(seed, k))[0] for env, k in zip(envs, numbers, strict=False)
            ]
            memories: list[Any] = [policy.start() for _ in numbers]
            rngs = [np.random.default_rng([seed, k, AGENT]) for k in numbers]
            going = list(range(len(numbers)))
            while going:
                u = np.stack([rngs[i].random(policy.chance) for i in going])
                ids = np.array([numbers[i] for i in going])
                ask = Ask([seen[i] for i in going], u, ids, [memories[i] for i in going])
                actions, kept = chosen(policy, ask, envs[0].action_space)
                still = []
                for i, action, memory in zip(going, actions, kept, strict=True):
                    memories[i] = memory
                    seen[i], reward, terminated, truncated, _ = envs[i].step(action)
                    returns[numbers[i]] += reward
                    if not (terminated or truncated):
                        still.append(i)
                going = still
    finally:
        for env in envs:
            env.close()
    return returns


def _seed(seed: int, episode: int) -> int:
    return int(np.random.SeedSequence([seed, episode]).generate_state(1)[0])
