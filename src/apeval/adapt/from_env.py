"""`from_env`: a Gymnasium environment, a policy and disturbances as a `Problem`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apeval.adapt.compose import Code
from apeval.adapt.disturbed import (
    VERDICT,
    ActsFirst,
    Disturbed,
    Plan,
    Verdict,
    compare_with_training,
)
from apeval.adapt.events import BlankSensor, Event
from apeval.adapt.given_policy import as_policy
from apeval.adapt.noises import AtPath, ObservationNoise, ParameterNoise
from apeval.adapt.paths import parse
from apeval.adapt.sources import Source
from apeval.adapt.spaces import check_space
from apeval.adapt.verdicts import as_judge
from apeval.errors import ApevalError, ProblemError, blame
from apeval.problem.correlated import check_correlation
from apeval.problem.gym import View, flat_observation, from_gymnasium
from apeval.problem.problem import SAFETY_CAP, Problem
from apeval.problem.types import Array


def from_env(
    env: str | Callable[[], Any],
    *,
    policy: Any,
    disturb: Source | Sequence[Source],
    fails: Any = "terminated",
    margin: Any = None,
    horizon: int | None = None,
    kinds: tuple[str, ...] = ("failure",),
    views: Mapping[str, View] | None = None,
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
            module, or a random policy with its density (`DiscretePolicy`, `GaussianPolicy`).
        disturb: One disturbance or several: `ActionNoise`, `ObservationNoise`, `ParameterNoise`,
            `StartNoise`, `CustomNoise`, `DropAction`, `BlankSensor`, `Event`.
        fails: When an episode fails: ``"terminated"``, ``"info.crashed"``, ``"horizon"`` (it was
            still under way at the end), or a function of (obs), (obs, info) or (obs, terminated,
            truncated, info), read after every step.
        margin: The distance to failure, ≤ 0 exactly where it fails: a function in the same forms,
            or ``"info.gap"``. It makes rare failures easier to find.
        horizon: Environment steps at the most; by default the environment's own limit.
        kinds: Names of the failure kinds, where `fails` returns 0 (none), 1, 2, …
        views: What a method sees, by name: ``view(obs, info)`` returns a number or a vector. By
            default the observation, flattened.
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
    if horizon is not None and (not isinstance(horizon, int) or horizon < 1):
        raise ProblemError(f"horizon must be a whole number of steps, at least 1; got {horizon!r}")
    make = _Maker(env, dict(env_options or {}), horizon)
    sources = _sources(disturb)
    probe = make()
    try:
        space, seen, limit, parts = _look(probe, sources)
    finally:
        if hasattr(probe, "close"):
            probe.close()
    horizon = limit if horizon is None else horizon
    steppers = [k for k, source in enumerate(sources) if not source.at_start]
    starters = [k for k, source in enumerate(sources) if source.at_start]
    whole = not steppers  # then one decision, the start, is all that nature makes
    start_code = None
    if whole:
        frames = SAFETY_CAP if horizon is None else horizon
        step_code = Code(parts, [1] * len(parts))
    else:
        frames = _frames([sources[k] for k in steppers])
        times = [frames // sources[k].hold for k in steppers]
        # a start is only learned where it is continuous, and only beside continuous steps
        step_code = Code([parts[k] for k in steppers], times, latent=bool(starters))
        if starters:
            start_code = Code([parts[k] for k in starters], [1] * len(starters), latent=True)
    remembers = any(source.correlation for source in sources)
    fitted = as_policy(policy, space, seen)
    compare_with_training(fitted, _Maker(env, make.options))
    acts_first = frames == 1 and not whole and not any(_senses(source) for source in sources)
    at_horizon = isinstance(fails, str) and fails == "horizon"
    if at_horizon and horizon is None:
        raise ProblemError("fails='horizon' needs horizon=, the number of steps allowed")
    plan = Plan(
        make,
        fitted,
        tuple(sources),
        step_code,
        start_code,
        frames,
        whole,
        horizon,
        _still_running if at_horizon else as_judge("fails", fails),
        None if margin is None else as_judge("margin", margin),
        kinds,
        acts_first,
    )
    return from_gymnasium(
        plan,
        nominal=step_code.law(),
        initial=None if start_code is None else start_code.law(),
        failed=_kind,
        margin=None if margin is None else _margin,
        horizon=1 if whole else None if horizon is None else -(-horizon // frames),
        horizon_kind=1 if at_horizon else 0,
        agent=ActsFirst(fitted, space) if acts_first else None,
        apply=_decide,
        reset=_begin,
        views=views or {"observation": _with_nature if start_code or remembers else _flat},
        kinds=kinds,
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
                f"gymnasium cannot make '{self.env}': {' '.join(str(error).split())}"
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


def _sources(disturb: Any) -> list[Source]:
    given = [disturb] if isinstance(disturb, Source) else disturb
    if not isinstance(given, Sequence) or not given or isinstance(given, str):
        raise ProblemError(
            f"disturb is {disturb!r}: give at least one disturbance, such as "
            "[apeval.ActionNoise(std=0.1)]"
        )
    for source in given:
        if not isinstance(source, Source):
            raise ProblemError(
                f"disturb holds a {type(source).__name__}, expected ActionNoise, ObservationNoise, "
                "ParameterNoise, StartNoise, DropAction, BlankSensor, Event or CustomNoise"
            )
        if not isinstance(source.hold, int) or source.hold < 1:
            raise ProblemError(f"hold must be a whole number ≥ 1; got {source.hold!r}")
        _check_memory(source)
    _check_paths([source for source in given if isinstance(source, AtPath)])
    return list(given)


def _check_memory(source: Source) -> None:
    """Noise with memory is Gaussian, and comes again and again."""
    what = type(source).__name__
    if check_correlation(source.correlation) and source.at_start:
        raise ProblemError(f"{what}: what is drawn once has no correlation from value to value")
    if source.correlation and getattr(source, "bound", None) is not None:
        raise ProblemError(
            f"{what}: bound and correlation exclude each other, because a bound on innovations is "
            "none on the noise that they add up to"
        )


def _check_paths(sources: list[AtPath]) -> None:
    """A ParameterNoise writes base + noise: what another one did at its place would be lost."""
    for number, one in enumerate(sources):
        if not isinstance(one, ParameterNoise) or one.kick:
            continue
        for other in sources[:number] + sources[number + 1 :]:
            a, b = parse(one.path), parse(other.path)
            if a[: len(b)] == b[: len(a)]:
                raise ProblemError(
                    f"two disturbances act on '{one.path}', and the first would be overwritten: "
                    "give one with both noises' std, or let ParameterNoise add to the current "
                    "value (kick=True)"
                )


def _look(probe: Any, sources: list[Source]) -> tuple[Any, Any, int | None, list[Any]]:
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


def _frames(steppers: list[Source]) -> int:
    """Environment steps in a decision: those of the longest hold."""
    holds = [source.hold for source in steppers]
    frames = max(holds, default=1)
    if any(frames % hold for hold in holds):
        raise ProblemError(
            f"the holds {sorted(set(holds))} do not fit together: a decision lasts as long as the "
            "longest, and every other one must divide it"
        )
    return frames


def _senses(source: Source) -> bool:
    if isinstance(source, Event):
        return source.change_observation is not None
    return isinstance(source, ObservationNoise | BlankSensor)


def _begin(env: Disturbed, seed: int, a_0: Any) -> Any:
    return env.begin(seed, a_0)


def _decide(env: Disturbed, a_A: Any, a_E: Any) -> Any:
    return env.decide(a_A, a_E)


def _verdict(info: dict[str, Any]) -> Verdict:
    verdict: Verdict = info[VERDICT]
    return verdict


def _kind(obs: Any, terminated: bool, truncated: bool, info: dict[str, Any]) -> int:
    return _verdict(info).kind


def _margin(obs: Any, terminated: bool, truncated: bool, info: dict[str, Any]) -> float:
    return _verdict(info).margin


def _still_running(obs: Any, terminated: bool, truncated: bool, info: dict[str, Any]) -> bool:
    return truncated and not terminated


def _flat(obs: Any, info: dict[str, Any]) -> Array:
    return flat_observation(obs, info).astype(np.float64)


def _with_nature(obs: Any, info: dict[str, Any]) -> Array:
    """The observation, what was drawn at the start and the last values of noise with memory, which
    it may not show."""
    verdict = _verdict(info)
    start = np.zeros(0) if verdict.a_0 is None else verdict.a_0
    return np.concatenate([_flat(obs, info), start, verdict.noise])
