"""One environment with its disturbances and its policy, decision by decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from apeval.adapt.compose import Code
from apeval.adapt.policies import Policy
from apeval.adapt.sources import Moment, Source
from apeval.adapt.spaces import fit_action
from apeval.adapt.verdicts import as_distance, as_kind
from apeval.errors import ApevalError, SimulationError, blame
from apeval.problem.correlated import Ar1
from apeval.problem.draws import AGENT, Draws
from apeval.problem.gym import Judge, Running
from apeval.problem.own import own
from apeval.problem.types import Array, FloatArray

VERDICT = "apeval"
"""Where `info` holds the decision's `Verdict`."""
_OPEN = 2.0**-54  # uniforms of a policy stay inside (0, 1)
_NONE: FloatArray = np.empty(0)
Answer = tuple[Any, float, bool, bool, dict[str, Any]]


@dataclass(frozen=True)
class Verdict:
    """What became of a decision, and what the episode was started with."""

    kind: int
    margin: float
    a_0: Array | None
    noise: FloatArray
    """The last values of noise with memory, one after the other."""


@dataclass(frozen=True)
class Plan:
    """Everything that an episode is run by."""

    make: Callable[[], Any]
    policy: Policy
    sources: tuple[Source, ...]
    step_code: Code
    """How a_E is read."""
    start_code: Code | None
    """How a_0 is read; None where no start is controlled, or where it is all that is."""
    frames: int
    """Environment steps in a decision."""
    whole: bool
    """Whether one decision is the whole episode: only its start is disturbed, and a_E says how."""
    horizon: int | None
    """Environment steps in an episode."""
    fails: Judge
    margin: Judge | None
    kinds: tuple[str, ...]
    acts_first: bool
    """Whether the policy acts at the decision's start, before nature: where it sees the truth."""

    def __call__(self) -> Disturbed:
        """A new environment under this plan."""
        return Disturbed(self)


class Disturbed:
    """An environment under way."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.moment = Moment(plan.make())
        self.rng = np.random.default_rng()
        self.taken = 0
        self.a_0: Array | None = None
        self.noise: dict[int, FloatArray] = {}
        numbered = list(enumerate(plan.sources))
        self.starters = [(k, source) for k, source in numbered if source.at_start]
        self.steppers = [(k, source) for k, source in numbered if not source.at_start]

    def begin(self, seed: int, a_0: Any) -> tuple[Any, dict[str, Any]]:
        """Start an episode; its seed covers the environment and the policy."""
        on, code = self.moment, self.plan.start_code
        for number, source in enumerate(self.plan.sources):
            source.before_reset(number, on)
        on.observation, info = asked("reset", partial(on.env.reset, seed=seed))
        on.seen, on.action, self.taken = None, None, 0
        self.noise = {}
        self.rng = np.random.default_rng([seed, AGENT])
        for number, source in enumerate(self.plan.sources):
            source.after_reset(number, on)
        if code is not None:
            self._place(code, a_0)
            self.a_0 = np.atleast_1d(np.asarray(a_0, np.float64))
        return on.observation, {**info, VERDICT: Verdict(0, np.inf, self.a_0, self._memory())}

    def _place(self, code: Code, a: Any) -> None:
        """Disturb the start."""
        for (number, source), said in zip(self.starters, code.decode(a), strict=True):
            asked("start", source.push, number, said[0], self.moment)

    def decide(self, a_A: Any, a_E: Any) -> Answer:
        """One decision of nature: one environment step or several."""
        plan, closest = self.plan, np.inf
        if plan.whole:
            self._place(plan.step_code, a_E)
        said = [] if plan.whole else self._with_memory(plan.step_code.decode(a_E))
        for frame in range(plan.frames):
            now = [
                (k, s, v[frame // s.hold]) for (k, s), v in zip(self.steppers, said, strict=True)
            ]
            given = frame == 0 and plan.acts_first
            action = fit_action(self.moment.env.action_space, a_A) if given else self._act(now)
            obs, reward, terminated, truncated, info = self._step(action, now)
            said_so = asked("fails", plan.fails, obs, terminated, truncated, info)
            kind = as_kind(said_so, plan.kinds)
            if plan.margin is not None:
                m = asked("margin", plan.margin, obs, terminated, truncated, info)
                closest = min(closest, as_distance(m))
            over = terminated or truncated or self.taken == plan.horizon
            if kind or over:
                break
        if plan.whole and not (kind or over):
            raise SimulationError(
                f"an episode did not end within {plan.frames:,} steps: give horizon=, or let the "
                "environment terminate"
            )
        verdict = Verdict(kind, closest, self.a_0, self._memory())
        return obs, reward, terminated, truncated, {**info, VERDICT: verdict}

    def _with_memory(self, said: list[list[Any]]) -> list[list[Any]]:
        """Innovations turned into noise, for the disturbances that have memory."""
        values = []
        for (number, source), mean, each in zip(self.steppers, self._means, said, strict=True):
            if source.correlation:
                recursion = Ar1(source.correlation)
                for k, e in enumerate(each):
                    each[k] = recursion.next(e, self.noise.get(number), mean)
                    self.noise[number] = each[k]
            values.append(each)
        return values

    @property
    def _means(self) -> list[FloatArray]:
        """Means of the disturbances that act at every step; those of outcomes are not looked at."""
        return [getattr(part, "mean", _NONE) for part in self.plan.step_code.parts]

    def _memory(self) -> FloatArray:
        """The noise that acted last; its mean before the first decision."""
        last = [
            self.noise.get(number, mean)
            for (number, source), mean in zip(self.steppers, self._means, strict=False)
            if source.correlation
        ]
        return np.concatenate(last) if last else _NONE

    def _act(self, now: list[tuple[int, Source, Any]]) -> Any:
        on, policy = self.moment, self.plan.policy
        seen = on.observation
        for _, source, e in now:
            seen = asked("disturbance", source.sense, seen, e, on)
        on.seen = seen.copy() if isinstance(seen, np.ndarray) else seen
        return chosen(policy, seen, _uniforms(policy, self.rng), on.env.action_space)

    def _step(self, action: Any, now: list[tuple[int, Source, Any]]) -> Answer:
        on = self.moment
        for _, source, e in now:
            action = asked("disturbance", source.act, action, e, on)
        action = fit_action(on.env.action_space, action, "a disturbance of the action")
        for number, source, e in now:
            asked("disturbance", source.push, number, e, on)
        answer = _stepped(on.env, action)
        on.observation, on.action = answer[0], action
        self.taken += 1
        return answer

    def close(self) -> None:
        """Close the environment."""
        close = getattr(self.moment.env, "close", None)
        if close is not None:
            close()


class ActsFirst:
    """The policy as an agent that acts before nature, from what the environments said."""

    def __init__(self, policy: Policy, space: Any) -> None:
        self.policy, self.space = policy, space

    def act(self, x: Running, draws: Draws) -> Array:
        """Row by row: a network's answer must not depend on its company, not even by rounding."""
        u = (
            draws.stream(AGENT, self.policy.chance)
            if self.policy.chance
            else np.empty((draws.n, 0))
        )
        rows = zip(x.observations, u, strict=True)
        return np.stack([np.ravel(chosen(self.policy, obs, one, self.space)) for obs, one in rows])


def compare_with_training(policy: Policy, make: Callable[[], Any]) -> None:
    """Refuse a trained policy that does far worse in the undisturbed environment than it did in
    training. An environment that fails here is left to the run, which reports it."""
    if policy.training is None or not policy.training.comparable:
        return
    env = make()

    def episode(seed: int, steps: int) -> float | None:
        rng, total = np.random.default_rng([seed, AGENT]), 0.0
        try:
            obs, _ = asked("reset", partial(env.reset, seed=seed))
            for _ in range(steps):
                action = chosen(policy, obs, _uniforms(policy, rng), env.action_space)
                obs, reward, terminated, truncated, _ = _stepped(env, action)
                total += asked("reward", float, reward)
                if terminated or truncated:
                    return float(total)
        except SimulationError:
            return None
        return None

    try:
        policy.training.compare(episode)
    finally:
        if hasattr(env, "close"):
            env.close()


def _uniforms(policy: Policy, rng: np.random.Generator) -> FloatArray:
    """The random numbers of an action, inside (0, 1)."""
    return np.clip(rng.random(policy.chance), _OPEN, 1.0 - _OPEN) if policy.chance else _NONE


def _stepped(env: Any, action: Any) -> Answer:
    """A step of the environment, its answer checked."""
    answer = asked("step", env.step, action)
    if not isinstance(answer, tuple) or len(answer) != 5:
        raise SimulationError(
            f"the environment's step returned {_size(answer)}, expected five: obs, reward, "
            "terminated, truncated, info (Gymnasium's interface)"
        )
    obs, reward, terminated, truncated, info = answer
    return obs, reward, bool(terminated), bool(truncated), info


def chosen(policy: Policy, obs: Any, u: FloatArray, space: Any) -> Any:
    """The policy's action, checked."""
    return fit_action(space, asked("policy", policy.act, obs, u))


def asked(what: str, call: Callable[..., Any], *given: Any) -> Any:
    """Call the user's code with arrays of its own; its exception gets the place where it
    happened."""
    try:
        return call(*[own(value) for value in given])
    except ApevalError:
        raise
    except Exception as error:
        raise SimulationError(
            f"{_WHO.get(what, what)} raised {blame(error)}: mend it there"
        ) from error


_WHO = {
    "reset": "the environment's reset",
    "step": "the environment's step",
    "reward": "the environment's reward as a number",
    "policy": "the policy",
    "start": "a disturbance of the start",
    "disturbance": "a disturbance",
    "fails": "`fails`",
    "margin": "`margin`",
}


def _size(answer: Any) -> str:
    if isinstance(answer, tuple):
        return f"{len(answer)} values"
    return f"a {type(answer).__name__}"
