"""Episodes side by side: environments one by one, the policy once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from apeval.adapt.disturbed import Disturbed, EpisodePlan
from apeval.adapt.policies import Ask, Policy
from apeval.adapt.spaces import fit_action, fit_actions
from apeval.adapt.user_calls import Answer, asked, stepped, told
from apeval.errors import SimulationError
from apeval.problem.draws import AGENT, Draws
from apeval.problem.gym import Running
from apeval.problem.types import Array, FloatArray, IntArray

_OPEN = 2.0**-54  # uniforms of a policy stay inside (0, 1)


class Block:
    """Decisions of many environments, frame by frame, so that the policy is asked for all that
    still run at once."""

    def __init__(self, plan: EpisodePlan, space: Any) -> None:
        self.plan, self.space = plan, space

    def __call__(
        self, envs: Sequence[Disturbed], a_A: Sequence[Any], a_E: Sequence[Any], draws: Draws
    ) -> list[Answer]:
        """One decision of nature in each environment."""
        for env, e in zip(envs, a_E, strict=True):
            env.open(e)
        going = list(range(len(envs)))
        for frame in range(self.plan.frames):
            if frame == 0 and self.plan.acts_first:
                actions: Sequence[Any] = [fit_action(self.space, a) for a in a_A]
            else:
                actions = self._act([envs[i] for i in going], frame, draws.ids[going])
            running = zip(going, actions, strict=True)
            going = [i for i, action in running if not envs[i].step(frame, action)]
            if not going:
                break
        return [env.close_decision() for env in envs]

    def _act(self, envs: Sequence[Disturbed], frame: int, ids: IntArray) -> Sequence[Any]:
        seen = [env.see(frame) for env in envs]
        policy = self.plan.policy
        u = np.empty((len(envs), policy.chance))
        if policy.chance:
            u[:] = [_uniforms(policy, env.rng) for env in envs]
        memories: Sequence[Any] = [env.memory for env in envs]
        actions, memories = chosen(policy, Ask(seen, u, ids, memories), self.space)
        for env, memory in zip(envs, memories, strict=True):
            env.memory = memory
        return actions


class ActsFirst:
    """The policy as an agent that acts before nature, from what the environments said."""

    def __init__(self, policy: Policy, space: Any) -> None:
        self.policy, self.space = policy, space

    def act(self, x: Running, draws: Draws) -> Array:
        """Actions in all episodes."""
        chance = self.policy.chance
        u = draws.stream(AGENT, chance) if chance else np.empty((draws.n, 0))
        ask = Ask(x.observations, u, draws.ids, [None] * draws.n)
        actions, _ = chosen(self.policy, ask, self.space)
        return np.array(actions).reshape(draws.n, -1)


def chosen(policy: Policy, ask: Ask, space: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """The policy's actions, checked, and what it then remembers."""
    actions, memories = told("policy", policy.answer, ask)
    return fit_actions(space, actions), memories


def compare_with_training(policy: Policy, make: Callable[[], Any]) -> None:
    """Refuse an environment that lacks a wrapper of the training's, and a trained policy that does
    far worse in the undisturbed environment than it did in training. An environment that fails
    here is left to the run, which reports it."""
    if policy.training is None:
        return
    if not policy.training.comparable and not policy.training.wrappers:
        return
    env, first = make(), np.zeros(1, np.int64)

    def episode(seed: int, steps: int) -> float | None:
        rng, total = np.random.default_rng([seed, AGENT]), 0.0
        try:
            obs, _ = asked("reset", partial(env.reset, seed=seed))
            memories: Sequence[Any] = [told("policy", policy.start)]
            for _ in range(steps):
                ask = Ask([obs], _uniforms(policy, rng)[None], first, memories)
                actions, memories = chosen(policy, ask, env.action_space)
                obs, reward, terminated, truncated, _ = stepped(env, actions[0])
                total += asked("reward", float, reward)
                if terminated or truncated:
                    return float(total)
        except SimulationError:
            return None
        return None

    try:
        policy.training.fit_wrappers(env)
        if policy.training.comparable:
            policy.training.compare(episode)
    finally:
        if hasattr(env, "close"):
            env.close()


def _uniforms(policy: Policy, rng: np.random.Generator) -> FloatArray:
    """The random numbers of an action, inside (0, 1)."""
    if not policy.chance:
        return _NONE
    return np.clip(rng.random(policy.chance), _OPEN, 1.0 - _OPEN)


_NONE: FloatArray = np.empty(0)
