"""One environment with its disturbances, frame by frame. `block` runs many of them together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from apeval.adapt.compose import ActionCode
from apeval.adapt.disturbance_source import DisturbanceSource, Moment
from apeval.adapt.events import BlankSensor
from apeval.adapt.failure_rules import as_distance, as_kind
from apeval.adapt.judges import StepJudge, StepRecord
from apeval.adapt.noises import CustomNoise
from apeval.adapt.observation_batches import Precision
from apeval.adapt.policies import Policy
from apeval.adapt.spaces import fit_action
from apeval.adapt.user_calls import Answer, asked, stepped, told
from apeval.errors import SimulationError
from apeval.problem.argument_copies import own
from apeval.problem.correlated import Ar1
from apeval.problem.draws import AGENT
from apeval.problem.types import Array, FloatArray

VERDICT = "apeval"
"""Where `info` holds the decision's `DecisionOutcome`."""
_NONE: FloatArray = np.empty(0)


@dataclass(slots=True)  # not frozen, which costs a microsecond each time
class DecisionOutcome:
    """What became of a decision, and what the episode was started with."""

    kind: int
    margin: float
    a_0: Array | None
    noise: FloatArray
    """The last values of noise with memory, one after the other."""
    memory: Any = None
    """What the policy remembers."""


@dataclass(frozen=True)
class EpisodePlan:
    """Everything that an episode is run by."""

    make: Callable[[], Any]
    policy: Policy
    sources: tuple[DisturbanceSource, ...]
    step_code: ActionCode
    """How a_E is read."""
    start_code: ActionCode | None
    """How a_0 is read; None where no start is controlled, or where it is all that is."""
    frames: int
    """Environment steps in a decision."""
    whole: bool
    """Whether one decision is the whole episode: only its start is disturbed, and a_E says how."""
    horizon: int | None
    """Environment steps in an episode."""
    fails: StepJudge
    margin: StepJudge | None
    kinds: tuple[str, ...]
    acts_first: bool
    """Whether the policy acts at the decision's start, before nature: where it sees the truth."""

    def __call__(self) -> Disturbed:
        """A new environment under this plan."""
        return Disturbed(self)

    @property
    def sums_rewards(self) -> bool:
        """Whether somebody wants to know the return so far."""
        return any(it is not None and it.asks("total_reward") for it in (self.fails, self.margin))


class Disturbed:
    """An environment under way."""

    def __init__(self, plan: EpisodePlan) -> None:
        self.plan = plan
        self.moment = Moment(plan.make())
        self.rng = np.random.default_rng()
        self.taken = 0
        self.sums_rewards, self.total_reward = plan.sums_rewards, 0.0
        self.a_0: Array | None = None
        self.noise: dict[int, FloatArray] = {}
        self.memory: Any = None
        """What the policy remembers."""
        self.said: list[list[Any]] = []
        """The decision's disturbances, for each source that acts at every step."""
        self.closest, self.kind, self.over = np.inf, 0, False
        self.last: Answer | None = None
        self.precision = Precision()
        numbered = list(enumerate(plan.sources))
        self.starters = [(k, source) for k, source in numbered if source.at_start]
        self.steppers = [(k, source) for k, source in numbered if not source.at_start]
        self.correlated = any(source.correlation for source in plan.sources)
        self.keeps_seen = any(isinstance(source, BlankSensor) for source in plan.sources)
        self.sensing, self.acting, self.pushing = (
            [(j, k, source) for j, (k, source) in enumerate(self.steppers) if _has(source, what)]
            for what in ("sense", "act", "push")
        )

    def begin(self, seed: int, a_0: Any) -> tuple[Any, dict[str, Any]]:
        """Start an episode; its seed covers the environment and the policy."""
        on, code = self.moment, self.plan.start_code
        for number, source in enumerate(self.plan.sources):
            source.before_reset(number, on)
        on.observation, info = asked("reset", partial(on.env.reset, seed=seed))
        on.seen, on.action, self.taken, self.total_reward = None, None, 0, 0.0
        self.noise = {}
        self.rng = np.random.default_rng([seed, AGENT])
        self.memory = told("policy", self.plan.policy.start)
        for number, source in enumerate(self.plan.sources):
            source.after_reset(number, on)
        if code is not None:
            self._place(code, a_0)
            self.a_0 = np.atleast_1d(np.asarray(a_0, np.float64))
        return on.observation, {
            **info,
            VERDICT: DecisionOutcome(0, np.inf, self.a_0, self._last_noise(), self.memory),
        }

    def _place(self, code: ActionCode, a: Any) -> None:
        """Disturb the start."""
        for (number, source), said in zip(self.starters, code.decode(a), strict=True):
            asked("start", source.push, number, said[0], self.moment)

    def open(self, a_E: Any) -> None:
        """Begin a decision of nature: one environment step or several."""
        self.closest, self.kind, self.over = np.inf, 0, False
        if self.plan.whole:
            self._place(self.plan.step_code, a_E)
        else:
            self.said = self._with_memory(self.plan.step_code.decode(a_E))

    def _with_memory(self, said: list[list[Any]]) -> list[list[Any]]:
        """Innovations turned into noise, for the disturbances that have memory."""
        if not self.correlated:
            return said
        for (number, source), part, each in zip(
            self.steppers, self.plan.step_code.parts, said, strict=True
        ):
            if source.correlation:
                recursion, mean = Ar1(source.correlation), part.mean  # type: ignore[union-attr]
                for k, e in enumerate(each):
                    each[k] = recursion.next(e, self.noise.get(number), mean)
                    self.noise[number] = each[k]
        return said

    def _last_noise(self) -> FloatArray:
        """The noise that acted last; its mean before the first decision."""
        if not self.correlated:
            return _NONE
        last = [
            self.noise.get(number, getattr(part, "mean", _NONE))
            for (number, source), part in zip(
                self.steppers, self.plan.step_code.parts, strict=False
            )
            if source.correlation
        ]
        return np.concatenate(last)

    def see(self, frame: int) -> Any:
        """What the policy sees in this frame of the decision."""
        on = self.moment
        seen = on.observation
        for j, _, source in self.sensing:
            seen = asked("disturbance", source.sense, seen, self._e(j, frame), on)
        on.seen = own(seen) if self.keeps_seen else None
        return seen

    def step(self, frame: int, action: Any) -> bool:
        """One environment step with the policy's action; whether it was the decision's last."""
        on, plan = self.moment, self.plan
        for j, _, source in self.acting:
            action = asked("disturbance", source.act, action, self._e(j, frame), on)
        if self.acting:
            action = fit_action(on.env.action_space, action, "a disturbance of the action")
        for j, number, source in self.pushing:
            asked("disturbance", source.push, number, self._e(j, frame), on)
        obs, reward, terminated, truncated, info = stepped(on.env, action)
        self.precision.require(obs)
        on.observation, on.action = obs, action
        self.taken += 1
        self.last = obs, reward, terminated, truncated, info
        if self.sums_rewards:
            self.total_reward += asked("reward", float, reward)
        step = StepRecord(
            obs, reward, self.total_reward, action, info, terminated, truncated, on.env
        )
        self.judge(step)
        self.over = terminated or truncated or self.taken == plan.horizon
        return bool(self.kind or self.over)

    def judge(self, step: StepRecord) -> None:
        """What the step was: a failure, and how near to one."""
        plan = self.plan
        self.kind = as_kind(told("fails", plan.fails, step), plan.kinds)
        if plan.margin is not None:
            self.closest = min(self.closest, as_distance(told("margin", plan.margin, step)))

    def close_decision(self) -> Answer:
        """What the environment said last, with the decision's verdict."""
        if self.last is None:
            raise SimulationError("a decision without an environment step")
        if self.plan.whole and not (self.kind or self.over):
            raise SimulationError(
                f"an episode did not end within {self.plan.frames:,} steps: give horizon=, or let "
                "the environment terminate"
            )
        obs, reward, terminated, truncated, info = self.last
        noise = self._last_noise()
        verdict = DecisionOutcome(self.kind, self.closest, self.a_0, noise, self.memory)
        return obs, reward, terminated, truncated, {**info, VERDICT: verdict}

    def _e(self, j: int, frame: int) -> Any:
        """What the j-th disturbance of every step is in this frame."""
        return self.said[j][frame // self.steppers[j][1].hold]

    def close(self) -> None:
        """Close the environment."""
        close = getattr(self.moment.env, "close", None)
        if close is not None:
            close()


def _has(source: DisturbanceSource, what: str) -> bool:
    """Whether a disturbance does anything there."""
    if isinstance(source, CustomNoise):
        return what == ("sense" if source.senses else "push")
    return getattr(type(source), what) is not getattr(DisturbanceSource, what)
