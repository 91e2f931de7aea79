"""`adversarial_env`: the problem's environment for a trainer, with disturbances drawn as told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from apeval import validate
from apeval.adapt.disturbed import VERDICT, Disturbed
from apeval.adapt.spaces import fit_action
from apeval.adapt.with_policy import PlannedProblem
from apeval.errors import ApevalError
from apeval.hardening.natures import EpisodeWeight, joined
from apeval.problem.gym import Running
from apeval.problem.laws import Law
from apeval.problem.problem import Problem
from apeval.problem.types import Array
from apeval.simulate.adversary import Adversary, Mixture, Situation

NONE, CLIPPED, FULL = "none", "clipped", "full"
WEIGHTS = (NONE, CLIPPED, FULL)
_SEED = 2**52


def adversarial_env(
    problem: Problem,
    adversary: Mixture | Sequence[Mixture] | None = None,
    *,
    share: float = 0.5,
    weights: str = NONE,
    failure_reward: float = 0.0,
    seed: int | None = None,
) -> AdversarialEnv:
    """The environment of a problem, to train a policy in: a part of its episodes is disturbed by
    an adversary, the rest as in the nominal world.

    Its actions are the agent's. Rewards are the environment's own; a failure of the problem ends
    the episode. `info` holds `adversarial` (whether an adversary draws this episode), `failure`
    (0, or the kind) and in an episode's last step `log_weight`, log p/q of its disturbances: the
    mean of exp(log_weight)·x over episodes is the nominal mean of x. Where weights enter the
    rewards, every step has that of the disturbances so far.

    Args:
        problem: What `apeval.from_env` returned; its own policy plays no part.
        adversary: The frozen proposal of a run (`InMemory.proposal`), several, or
            `apeval.widened(problem, 2.0)`; None: all episodes are nominal.
        share: The part of the episodes that adversaries draw, from 0 to below 1.
        weights: How the weight enters the rewards: "none" (robust adversarial training), "full"
            (times p/q of what has happened so far, so that returns are those of the nominal world
            in the mean), "clipped" (the same, at most 1).
        failure_reward: Added to the reward of a step that fails, such as −100.
        seed: Of all random numbers; `reset(seed=…)` sets it anew.

    Returns:
        A Gymnasium environment.

    Raises:
        ApevalError: An argument is wrong.
        ProblemError: The problem is none of `from_env`.
    """
    if adversary is None:
        natures: list[Mixture] = []
    elif isinstance(adversary, Mixture):
        natures = [adversary]
    else:
        natures = list(adversary)
    if not all(isinstance(nature, Mixture) for nature in natures):
        raise ApevalError(
            "adversary must be the frozen proposal of a run, such as recorder.proposal of "
            "an apeval.InMemory, or apeval.widened(problem, 2.0)"
        )
    if not 0.0 <= validate.number("share", share) < 1.0:
        raise ApevalError(f"share must be at least 0 and below 1; got {share}")
    if weights not in WEIGHTS:
        raise ApevalError(f"weights must be one of {', '.join(WEIGHTS)}; got {weights!r}")
    nature = joined(natures, share if natures else 0.0)
    reward = validate.number("failure_reward", failure_reward)
    return AdversarialEnv(PlannedProblem.of(problem), nature, weights, reward, seed)


@dataclass
class _OnlyEnv:
    """Stands where a running problem has its hold on an environment."""

    env: Any


class AdversarialEnv(gymnasium.Env[Any, Any]):
    """One episode at a time, nature's part drawn by a mixture. Made by `adversarial_env`."""

    def __init__(
        self,
        planned: PlannedProblem,
        nature: Mixture,
        weights: str,
        failure_reward: float,
        seed: int | None,
    ) -> None:
        self.problem, self.plan = planned.problem, planned.plan
        self.nature, self.weights, self.failure_reward = nature, weights, failure_reward
        self.action_space = planned.action_space
        self.observation_space = planned.observation_space
        self.render_mode = getattr(planned.plan, "render_mode", None)
        self._world = Disturbed(self.plan)
        self._seed = seed
        self._component: Adversary = nature.components[0]
        self._adversarial = False
        self._weight = EpisodeWeight(nature, np.zeros((1, 0)), None)
        self._whole: Array | None = None
        self._x: Running | None = None
        self._t = self._frame = 0
        self.on_step: Callable[[], None] | None = None
        """Is called after every step: to show how far a training is."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """A new episode, by a component of the mixture."""
        super().reset(seed=self._seed if seed is None else seed)
        self._seed = None
        number = int(
            np.searchsorted(np.cumsum(self.nature.shares), self.np_random.random(), side="right")
        )
        number = min(number, len(self.nature.components) - 1)
        self._component, self._adversarial = self.nature.components[number], number > 0
        law_0: Law | None = None
        a_0 = np.zeros((1, 0))
        if self.problem.initial is not None:
            law_0 = self.problem.initial.given(None, None)
            a_0 = self._component.sample_initial(law_0, self._uniforms(self.problem.initial.dim))
        self._whole = (
            self._uniforms(self.problem.nominal.dim)
            if any(q.persistent for q in self.nature.components)
            else None
        )
        self._weight = EpisodeWeight(self.nature, a_0, law_0)
        episode = int(self.np_random.integers(_SEED))
        obs, info = self._world.begin(episode, None if law_0 is None else a_0[0])
        self._x, self._t = self._running(obs, False, False, info), 0
        return self._next_observation(), self._about(info, 0, False)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step of the environment, disturbed."""
        if self._x is None:
            raise ApevalError("the episode is over: call reset() first")
        action = fit_action(self.action_space, action, "the trainer")
        if self._frame == 0 and self.plan.acts_first:
            self._decide(np.asarray(action, np.float64).reshape(1, -1))
        ended = self._world.step(self._frame, action)
        if self.on_step is not None:
            self.on_step()
        self._frame += 1
        decided = ended or self._frame == self.plan.frames
        answer = self._world.close_decision() if decided else self._world.last
        if answer is None:
            raise ApevalError("a step without an answer of the environment")
        obs, reward, terminated, truncated, info = answer
        kind = self._world.kind if decided else 0
        value = self._weighted(float(reward) + (self.failure_reward if kind else 0.0))
        about = self._about(info, kind, ended or self.weights != NONE)
        if ended:
            self._x = None
            failed = kind > 0 or terminated
            return obs, value, failed, not failed, about
        if decided:
            self._x, self._t = self._running(obs, terminated, truncated, info), self._t + 1
            return self._next_observation(), value, False, False, about
        return self._world.see(self._frame), value, False, False, about

    def render(self) -> Any:
        """The environment's own picture."""
        return self._world.moment.env.render()

    def close(self) -> None:
        """Close the environment."""
        self._world.close()

    def _next_observation(self) -> Any:
        """What the agent sees at the start of a decision; nature has decided before, unless the
        agent acts first."""
        self._frame = 0
        if self.plan.acts_first:
            return self._world.moment.observation
        self._decide(np.zeros((1, 0)))
        return self._world.see(0)

    def _decide(self, a_A: Array) -> None:
        x = self._x
        law = self.problem.law(x, a_A)
        now = Situation(
            self.problem.observe(x), a_A, np.full(1, self._t, np.int64), law, self._whole
        )
        a_E = self._component.sample(now, self._uniforms(self.problem.nominal.dim))
        self._weight.add(now, a_E)
        row = a_E[0]
        whole_number = len(row) == 1 and row.dtype.kind in "iub"
        self._world.open(int(row[0]) if whole_number else row)

    def _uniforms(self, k: int) -> Array:
        return np.clip(self.np_random.random((1, k)), 2.0**-54, 1.0 - 2.0**-53)

    def _running(self, obs: Any, terminated: bool, truncated: bool, info: Any) -> Running:
        hold: Any = _OnlyEnv(self._world)
        return Running([hold], [obs], np.array([terminated]), np.array([truncated]), [info])

    def _weighted(self, reward: float) -> float:
        if self.weights == NONE:
            return reward
        log_weight = self._weight.log_weight()
        return reward * float(
            np.exp(min(log_weight, 0.0) if self.weights == CLIPPED else log_weight)
        )

    def _about(self, info: dict[str, Any], kind: int, weighed: bool) -> dict[str, Any]:
        mine: dict[str, Any] = {"adversarial": self._adversarial, "failure": kind}
        if weighed:
            mine["log_weight"] = self._weight.log_weight()
        return {**{k: v for k, v in info.items() if k != VERDICT}, **mine}
