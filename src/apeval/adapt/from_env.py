"""`from_env`: a Gymnasium environment, a policy and disturbances as a `Problem`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apeval.adapt.block import ActsFirst, Block, compare_with_training
from apeval.adapt.decision_layout import DecisionLayout, as_horizon, as_sources
from apeval.adapt.disturbance_source import DisturbanceSource
from apeval.adapt.disturbed import VERDICT, DecisionOutcome, Disturbed, EpisodePlan
from apeval.adapt.given_policy import as_policy
from apeval.adapt.gym_ids import not_made
from apeval.adapt.judges import StepJudge, as_judge
from apeval.adapt.observation_parts import require_small
from apeval.adapt.spaces import check_space
from apeval.adapt.step_signals import FromSteps, SignalPlan, as_signals
from apeval.adapt.views import AskedView
from apeval.errors import ApevalError, ProblemError, blame
from apeval.problem.gym import Running, flat_observation, fleet_problem, over
from apeval.problem.problem import Problem
from apeval.problem.specification.event import FailureEvent
from apeval.problem.types import FloatArray, IntArray


def from_env(
    env: str | Callable[[], Any],
    *,
    policy: Any,
    disturb: DisturbanceSource | Sequence[DisturbanceSource],
    fails: Any = "terminated",
    margin: Any = None,
    horizon: int | None = None,
    kinds: tuple[str, ...] = ("failure",),
    views: Mapping[str, Callable[..., Any]] | None = None,
    env_options: Mapping[str, Any] | None = None,
    name: str = "",
    description: str = "",
    chunk: int = 16,
) -> Problem:
    """How often does the policy fail in this environment under these disturbances?

    A decision of nature lasts for the longest `hold` among the disturbances; where only the start
    is disturbed, one decision is the whole episode. What the disturbances leave out is the
    environment's own chance, which must come from the seed of its reset.

    Args:
        env: Gymnasium's id, or a function that makes an environment: several run side by side.
        policy: A function of the observation, a Stable-Baselines3 model or its zip file, a torch
            module, a random policy with its density (`DiscretePolicy`, `GaussianPolicy`), or an
            object with memory: ``reset() -> state`` and ``act(obs, state) -> (action, state)``.
        disturb: One disturbance or several: `ActionNoise`, `ObservationNoise`, `ParameterNoise`,
            `StartNoise`, `CustomNoise`, `DropAction`, `BlankSensor`, `Event`.
        fails: When an episode fails: ``"terminated"``, ``"info.crashed"``, ``"horizon"`` (it was
            still under way at the end), or a function, called after every step, that asks by the
            names of its parameters for obs, reward, total_reward (the return so far), action (as
            applied), info, terminated, truncated and env. A parameter with a default keeps it. Or
            what `apeval.spec` returns, whose signals are such functions, and whose robustness is
            the margin.
        margin: The distance to failure, ≤ 0 exactly where it fails: a function in the same forms,
            or ``"info.gap"``. It makes rare failures easier to find.
        horizon: Environment steps at the most; by default the environment's own limit.
        kinds: Names of the failure kinds, where `fails` returns 0 (none), 1, 2, …
        views: What a method sees, by name: a function that asks by the names of its parameters for
            obs, info, env and memory (what a policy with memory remembers), and returns a number or
            a vector. By default the numbers of the observation, those of a dict by its sorted keys;
            images need a view.
        env_options: Further arguments of ``gymnasium.make``.
        name: Stands in results and reports.
        description: One line, for lists of problems.
        chunk: Environments that one worker runs side by side.

    Returns:
        The problem.

    Raises:
        ApevalError: Gymnasium is missing, or cannot make the environment.
        ProblemError: An argument, or how they fit together, is wrong; the message has the remedy.

    Examples:
        >>> import apeval
        >>> problem = apeval.from_env(
        ...     "Pendulum-v1",
        ...     policy=lambda obs: [-8.0 * obs[1] - 2.0 * obs[2]],
        ...     disturb=apeval.ActionNoise(std=0.5, hold=5),
        ...     fails=lambda obs: obs[0] < 0.0,
        ...     horizon=50,
        ... )
        >>> problem.horizon, problem.nominal.dim
        (10, 1)
    """
    make = _Maker(env, dict(env_options or {}), as_horizon(horizon))
    sources = as_sources(disturb)
    probe = make()
    try:
        space, seen, limit, parts = _look(probe, sources)
    finally:
        if hasattr(probe, "close"):
            probe.close()
    if not views:
        require_small(seen)
    horizon = limit if horizon is None else horizon
    remembers = any(source.correlation for source in sources)
    fitted = as_policy(policy, space, seen)
    nature = DecisionLayout.of(sources, parts, horizon, fitted.has_memory)
    compare_with_training(fitted, _Maker(env, make.options))
    at_horizon = isinstance(fails, str) and fails == "horizon"
    if at_horizon and horizon is None:
        raise ProblemError("fails='horizon' needs horizon=, the number of steps allowed")
    event = fails if isinstance(fails, FailureEvent) else None
    parts_of_plan = (
        make,
        fitted,
        tuple(sources),
        nature.step_code,
        nature.start_code,
        nature.frames,
        nature.whole,
        horizon,
        STILL_RUNNING if at_horizon or event else as_judge("fails", fails),
        None if margin is None else as_judge("margin", margin),
        kinds,
        nature.acts_first,
    )
    plan = EpisodePlan(*parts_of_plan)
    failed: Kinds | FailureEvent = Kinds()
    if event is not None:
        names, signals = as_signals(event)
        plan = SignalPlan(*parts_of_plan, signals=signals, names=names)
        failed = event.read_by(FromSteps(plan))
    seen_by_default = WithNature() if nature.start_code or remembers else FlatObservations()
    return fleet_problem(
        plan,
        apply=Block(plan, space),
        start=_begin,
        nominal=nature.step_code.law(),
        initial=None if nature.start_code is None else nature.start_code.law(),
        failed=failed,
        done=over,
        margin=None if margin is None else Margins(),
        horizon=nature.horizon,
        horizon_kind=1 if at_horizon else 0,
        agent=ActsFirst(fitted, space) if nature.acts_first else None,
        views={"observation": seen_by_default}
        if not views
        else {name: AskedView.of(name, view) for name, view in views.items()},
        kinds=kinds,
        policy_memory=fitted.has_memory,
        chunk=chunk,
        name=name,
        description=description,
    )


@dataclass(frozen=True)
class _Maker:
    env: str | Callable[[], Any]
    options: dict[str, Any] = field(default_factory=dict)
    horizon: int | None = None

    def __call__(self) -> Any:
        if not isinstance(self.env, str):
            return self._from_function()
        try:
            import gymnasium
        except ImportError:
            raise ApevalError(
                "an environment by its id needs gymnasium: pip install gymnasium"
            ) from None
        limit = {} if self.horizon is None else {"max_episode_steps": self.horizon}
        try:
            return gymnasium.make(self.env, disable_env_checker=True, **limit, **self.options)
        except Exception as error:
            raise ApevalError(
                f"gymnasium cannot make '{self.env}': {not_made(self.env, error)}"
            ) from error

    def _from_function(self) -> Any:
        if hasattr(self.env, "step") and not isinstance(self.env, type):
            raise ProblemError(
                "from_env was given an environment; several run side by side, so give its id or a "
                "function that makes one, such as lambda: gymnasium.make('CartPole-v1')"
            )
        if not callable(self.env):
            raise ProblemError(
                f"from_env was given a {type(self.env).__name__}: give an environment's id, or a "
                "function that makes one"
            )
        try:
            env = self.env()
        except ApevalError:
            raise
        except Exception as error:
            raise ProblemError(
                f"the function that makes the environment raised {blame(error)}"
            ) from error
        if not (hasattr(env, "step") and hasattr(env, "reset")):
            raise ProblemError(
                f"the function that makes the environment returned a {type(env).__name__} without "
                "reset and step: return the environment"
            )
        return env


def _look(probe: Any, sources: list[DisturbanceSource]) -> tuple[Any, Any, int | None, list[Any]]:
    """The spaces of actions and observations, the environment's own limit, and the disturbances'
    laws in it."""
    for part in ("action_space", "observation_space"):
        if not hasattr(probe, part):
            raise ProblemError(
                f"the environment has no {part}: define it as Gymnasium asks, or use "
                "apeval.from_gymnasium, which does not need it"
            )
    check_space(probe.action_space)
    try:
        probe.reset(seed=0)
    except Exception as error:
        raise ProblemError(
            f"the environment's reset(seed=0) raised {blame(error)}. It must accept a seed, and "
            "take all randomness of the episode from it"
        ) from error
    limit = getattr(getattr(probe, "spec", None), "max_episode_steps", None)
    parts = [source.part(probe) for source in sources]
    return probe.action_space, probe.observation_space, limit, parts


def _begin(env: Disturbed, seed: int, a_0: Any) -> Any:
    return env.begin(seed, a_0)


@dataclass(frozen=True)
class Kinds:
    """The failure event: what each decision's verdict says."""

    def __call__(self, x: Running) -> IntArray:
        return np.array([verdict.kind for verdict in _verdicts(x)], np.int64)


@dataclass(frozen=True)
class Margins:
    """The smallest margin in each decision."""

    def __call__(self, x: Running) -> FloatArray:
        return np.array([verdict.margin for verdict in _verdicts(x)])


@dataclass(frozen=True)
class FlatObservations:
    """The observation as a vector."""

    def __call__(self, x: Running) -> FloatArray:
        first = x.observations[0]
        if isinstance(first, np.ndarray) and first.dtype.kind in "biuf":
            return np.array(x.observations, np.float64).reshape(len(x), -1)
        rows = [flat_observation(o, info) for o, info in zip(x.observations, x.infos, strict=True)]
        return np.stack(rows).astype(np.float64)


@dataclass(frozen=True)
class WithNature:
    """The observation, what was drawn at the start and the last values of noise with memory, which
    it may not show."""

    def __call__(self, x: Running) -> FloatArray:
        seen = FlatObservations()(x)
        rows = [
            np.concatenate([s, *([] if v.a_0 is None else [v.a_0]), v.noise])
            for s, v in zip(seen, _verdicts(x), strict=True)
        ]
        return np.stack(rows)


def _verdicts(x: Running) -> list[DecisionOutcome]:
    return [info[VERDICT] for info in x.infos]


def _still_running(terminated: Any, truncated: Any) -> Any:
    return truncated and not terminated


STILL_RUNNING = StepJudge(_still_running, ("terminated", "truncated"))
