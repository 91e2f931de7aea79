"""Gaussian disturbances: of actions, observations, parameters, starts, and of anything else.

With `correlation` ρ a noise has memory: nature decides Gaussian innovations, and each value is ρ
times the last plus √(1 − ρ²) times the innovation (about the mean), so that mean and std are those
of the values too, from the first on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.adapt.compose import DisturbancePart, GaussianDisturbance
from apeval.adapt.disturbance_source import (
    DisturbanceSource,
    Moment,
    count_chosen,
    is_box,
    observe_again,
)
from apeval.adapt.observation_parts import ObservationKey, part_of, part_space, with_part
from apeval.adapt.paths import parse, read, write
from apeval.errors import ProblemError
from apeval.problem.types import Array

Number = float | Sequence[float]


@dataclass(frozen=True)
class ActionNoise(DisturbanceSource):
    """Gaussian noise on a continuous action.

    Args:
        std: Standard deviation: one number, or one per component.
        mean: Mean, in the same forms.
        bound: Conditions the noise on mean ± bound; None: unbounded.
        hold: Environment steps for which one value stays.
        index: The component, or components, that are disturbed; None: all.
        saturate: Whether the disturbed action is clipped to the action space before it is applied,
            as an actuator would; the density stays that of the noise.
        correlation: Of each value with the one before: exp(−Δt/τ) for an Ornstein-Uhlenbeck process
            with relaxation time τ, whose innovations nature decides; 0: fresh noise.
    """

    std: Number
    mean: Number = 0.0
    bound: Number | None = None
    hold: int = 1
    index: int | Sequence[int] | None = None
    saturate: bool = True
    correlation: float = 0.0

    def part(self, env: Any) -> DisturbancePart:
        space = env.action_space
        if not is_box(space):
            raise ProblemError(
                f"ActionNoise needs continuous actions, the action space is {space}: use "
                "DropAction, Event, or ParameterNoise on what the action moves (a force, a gain)"
            )
        width = count_chosen("ActionNoise", self.index, int(np.prod(space.shape)))
        return GaussianDisturbance.of("ActionNoise", width, self.mean, self.std, self.bound)

    def act(self, action: Any, e: Any, on: Moment) -> Any:
        space = on.env.action_space
        noisy = _added(np.asarray(action, np.float64), e, self.index)
        if self.saturate:
            noisy = np.clip(noisy, space.low, space.high)
        return noisy.astype(space.dtype)


@dataclass(frozen=True)
class ObservationNoise(DisturbanceSource):
    """Gaussian noise on what the policy sees; the environment and the failure event see the truth.

    Args:
        std: Standard deviation: one number, or one per component.
        mean: Mean, in the same forms.
        bound: Conditions the noise on mean ± bound; None: unbounded.
        hold: Environment steps for which one value stays.
        index: The component, or components, that are disturbed; None: all.
        correlation: Of each value with the one before: exp(−Δt/τ) for an Ornstein-Uhlenbeck process
            with relaxation time τ, whose innovations nature decides; 0: fresh noise.
        key: The part that is disturbed, where the observation is a dict or a tuple: its name or
            number, or several of these that lead further inside.
    """

    std: Number
    mean: Number = 0.0
    bound: Number | None = None
    hold: int = 1
    index: int | Sequence[int] | None = None
    correlation: float = 0.0
    key: ObservationKey | None = None

    def part(self, env: Any) -> DisturbancePart:
        space = part_space("ObservationNoise", env.observation_space, self.key)
        if not is_box(space) or np.dtype(space.dtype).kind != "f":
            raise ProblemError(
                f"ObservationNoise needs an observation of real numbers, the space is {space}: "
                "write an Event or a CustomNoise with change_observation="
            )
        width = count_chosen("ObservationNoise", self.index, int(np.prod(space.shape)))
        return GaussianDisturbance.of("ObservationNoise", width, self.mean, self.std, self.bound)

    def sense(self, seen: Any, e: Any, on: Moment) -> Any:
        clean = np.asarray(part_of(seen, self.key))
        noisy = _added(clean.astype(np.float64), e, self.index)
        return with_part(seen, self.key, noisy.astype(clean.dtype))


class AtPath(DisturbanceSource):
    """A disturbance of an attribute of ``env.unwrapped``. What it leaves there is undone before
    the next episode, where the environment's reset does not do so."""

    path: str

    def __post_init__(self) -> None:
        parse(self.path)

    def before_reset(self, number: int, on: Moment) -> None:
        if number in on.base:
            write(on.env, parse(self.path), on.base[number])

    def after_reset(self, number: int, on: Moment) -> None:
        on.base[number] = read(on.env, parse(self.path))


@dataclass(frozen=True)
class ParameterNoise(AtPath):
    """Gaussian noise on an attribute of ``env.unwrapped``: a force, a mass, gravity, the state.

    It is added to the value that the attribute has after a reset, unless `relative` or `kick` say
    otherwise, and the value is put back before the next episode.

    Args:
        path: The attribute, such as ``force_mag``, ``g``, ``model.opt.gravity[0]`` or
            ``data.qfrc_applied[2]`` (an external force).
        std: Standard deviation: one number, or one per component.
        mean: Mean, in the same forms.
        bound: Conditions the noise on mean ± bound; None: unbounded.
        hold: Environment steps for which one value stays.
        relative: Whether the noise multiplies the value, as 1 + noise.
        kick: Whether it is added to the current value, as a push on the state is.
        once: Whether it is drawn when an episode starts, and kept to the end.
        correlation: Of each value with the one before: exp(−Δt/τ) for an Ornstein-Uhlenbeck process
            with relaxation time τ, whose innovations nature decides; 0: fresh noise.

    Raises:
        ProblemError: The path cannot be read, or `kick` and `relative` are both given.
    """

    path: str
    std: Number
    mean: Number = 0.0
    bound: Number | None = None
    hold: int = 1
    relative: bool = False
    kick: bool = False
    once: bool = False
    correlation: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kick and self.relative:
            raise ProblemError("ParameterNoise: kick and relative exclude each other")

    @property
    def at_start(self) -> bool:  # type: ignore[override]
        return self.once

    def part(self, env: Any) -> DisturbancePart:
        width = read(env, parse(self.path)).size
        what = f"ParameterNoise('{self.path}')"
        return GaussianDisturbance.of(what, width, self.mean, self.std, self.bound)

    def push(self, number: int, e: Any, on: Moment) -> None:
        base = read(on.env, parse(self.path)) if self.kick else on.base[number]
        write(on.env, parse(self.path), self.changed(base, np.reshape(e, base.shape)))

    def changed(self, base: Array, noise: Array) -> Array:
        """The value with its noise."""
        return base * (1.0 + noise) if self.relative else base + noise


@dataclass(frozen=True)
class StartNoise(AtPath):
    """Gaussian noise on the initial state.

    Args:
        path: An attribute of ``env.unwrapped``, such as ``state[1]`` or ``data.qvel[0]``.
        std: Standard deviation: one number, or one per component.
        mean: Mean, in the same forms.
        bound: Conditions the noise on mean ± bound; None: unbounded.
        replace: Whether the noise takes the place of what the reset gave; else it is added to it.
        observe: ``observe(env)`` gives the first observation anew; by default the environment's
            ``_get_obs`` or ``state`` does.
    """

    path: str
    std: Number
    mean: Number = 0.0
    bound: Number | None = None
    replace: bool = False
    observe: Callable[[Any], Any] | None = None

    at_start = True

    def part(self, env: Any) -> DisturbancePart:
        width = read(env, parse(self.path)).size
        return GaussianDisturbance.of(
            f"StartNoise('{self.path}')", width, self.mean, self.std, self.bound
        )

    def push(self, number: int, e: Any, on: Moment) -> None:
        path = parse(self.path)
        base = read(on.env, path)
        write(on.env, path, self.changed(base, np.reshape(e, base.shape)))
        inner = getattr(on.env, "unwrapped", on.env)
        if path[0] == (".", "data") and hasattr(inner, "set_state"):
            inner.set_state(inner.data.qpos.copy(), inner.data.qvel.copy())  # MuJoCo's forward pass
        on.observation = observe_again(on.env, on.observation, self.observe)

    def changed(self, base: Array, noise: Array) -> Array:
        """The start with its noise."""
        return noise if self.replace else base + noise


@dataclass(frozen=True)
class CustomNoise(DisturbanceSource):
    """Gaussian noise with an effect of your own, on the environment or on what the policy sees.

    Args:
        apply: ``apply(env, e)`` is called before every step, or (`once`) after the reset, with the
            noise e of shape (dim,); None with `change_observation`.
        std: Standard deviation: one number, or one per component.
        dim: The number of components.
        mean: Mean: one number, or one per component.
        bound: Conditions the noise on mean ± bound; None: unbounded.
        hold: Environment steps for which one value stays.
        once: Whether it is drawn when an episode starts.
        observe: With `once`, ``observe(env)`` gives the first observation anew.
        correlation: Of each value with the one before: exp(−Δt/τ) for an Ornstein-Uhlenbeck process
            with relaxation time τ, whose innovations nature decides; 0: fresh noise.
        change_observation: ``change_observation(observation, e)`` returns what the policy sees:
            the brightness of an image, a tilted camera. The observation is one episode's, also in
            a vector environment.

    Raises:
        ProblemError: It does nothing or both, has no std, or `once` goes with
            `change_observation`.
    """

    apply: Callable[[Any, Array], None] | None = None
    std: Number | None = None
    dim: int = 1
    mean: Number = 0.0
    bound: Number | None = None
    hold: int = 1
    once: bool = False
    observe: Callable[[Any], Any] | None = None
    correlation: float = 0.0
    change_observation: Callable[[Any, Array], Any] | None = None

    def __post_init__(self) -> None:
        if (self.apply is None) == (self.change_observation is None):
            raise ProblemError(
                "CustomNoise: say what it does: apply=, which acts on the env, or "
                "change_observation="
            )
        if self.std is None:
            raise ProblemError("CustomNoise: give its standard deviation, std=")
        if self.once and self.apply is None:
            raise ProblemError(
                "CustomNoise: noise at the start needs apply=, which acts on the env"
            )

    @property
    def at_start(self) -> bool:  # type: ignore[override]
        return self.once

    @property
    def senses(self) -> bool:
        """Whether it acts on what the policy sees."""
        return self.change_observation is not None

    def sense(self, seen: Any, e: Any, on: Moment) -> Any:
        return seen if self.change_observation is None else self.change_observation(seen, e)

    def part(self, env: Any) -> DisturbancePart:
        width = max(self.dim, np.size(np.asarray(self.std)), np.size(self.mean))
        return GaussianDisturbance.of("CustomNoise", width, self.mean, self.std, self.bound)

    def push(self, number: int, e: Any, on: Moment) -> None:
        if self.apply is not None:
            self.apply(on.env, e)
        if self.once:
            on.observation = observe_again(on.env, on.observation, self.observe)


def _added(values: Array, e: Any, index: int | Sequence[int] | None) -> Array:
    if index is None:
        return values + np.reshape(e, values.shape)
    noisy = values.copy()
    noisy.reshape(-1)[np.atleast_1d(index)] += e
    return noisy
