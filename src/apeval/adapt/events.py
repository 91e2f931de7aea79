"""Discrete disturbances: events with probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.adapt.compose import DiscreteDisturbance, DisturbancePart
from apeval.adapt.disturbance_source import (
    DisturbanceSource,
    Moment,
    count_chosen,
    is_box,
    observe_again,
)
from apeval.adapt.observation_parts import ObservationKey, part_of, part_space, with_part
from apeval.errors import ProblemError


@dataclass(frozen=True)
class DropAction(DisturbanceSource):
    """Now and then the policy's action is lost, and the last one is applied again.

    Args:
        probability: Of a loss, at every step.
        instead: The action that is applied instead; None: the last one. Before the first action
            nothing is lost unless this is given.
        hold: Environment steps for which a loss lasts.
    """

    probability: float
    instead: Any = None
    hold: int = 1

    def part(self, env: Any) -> DisturbancePart:
        return _chance("DropAction", self.probability)

    def act(self, action: Any, e: Any, on: Moment) -> Any:
        if not e:
            return action
        other = on.action if self.instead is None else self.instead
        return action if other is None else other


@dataclass(frozen=True)
class BlankSensor(DisturbanceSource):
    """Now and then the policy sees its last observation again.

    Args:
        probability: Of a blank, at every step.
        instead: The number that it sees in every component instead; None: the last observation. At
            the first step there is no last one, and it sees the truth.
        hold: Environment steps for which a blank lasts.
        index: The component, or components, that go blank; None: all.
        key: The part that goes blank, where the observation is a dict or a tuple, as in
            `ObservationNoise`.
    """

    probability: float
    instead: float | None = None
    hold: int = 1
    index: int | Sequence[int] | None = None
    key: ObservationKey | None = None

    def part(self, env: Any) -> DisturbancePart:
        space = part_space("BlankSensor", env.observation_space, self.key)
        if not is_box(space):
            raise ProblemError(
                f"BlankSensor needs an array as observation, the space is {space}: "
                "write an Event with change_observation="
            )
        count_chosen("BlankSensor", self.index, int(np.prod(space.shape)))
        return _chance("BlankSensor", self.probability)

    def sense(self, seen: Any, e: Any, on: Moment) -> Any:
        if not e or (self.instead is None and on.seen is None):
            return seen
        blank = np.array(part_of(seen, self.key))
        if self.instead is not None:
            old = np.full_like(blank, self.instead)
        else:
            old = part_of(on.seen, self.key)
        at = slice(None) if self.index is None else self.index
        blank.reshape(-1)[at] = np.ravel(old)[at]
        return with_part(seen, self.key, blank)


@dataclass(frozen=True)
class Event(DisturbanceSource):
    """One of K outcomes with given probabilities. Say what outcome k does, in one of three ways.

    Args:
        probability: That of outcome 1 (0 is the rest), or a list with one per outcome 0, 1, …
        apply: ``apply(env, k)`` acts on the environment before the step.
        change_action: ``change_action(action, k)`` returns the action that is applied.
        change_observation: ``change_observation(observation, k)`` returns what the policy sees.
        hold: Environment steps for which one outcome stays.
        once: Whether the outcome is drawn when an episode starts; needs `apply`.

    Raises:
        ProblemError: It does nothing, or `once` is given without `apply`.
    """

    probability: float | Sequence[float]
    apply: Callable[[Any, int], None] | None = None
    change_action: Callable[[Any, int], Any] | None = None
    change_observation: Callable[[Any, int], Any] | None = None
    hold: int = 1
    once: bool = False

    def __post_init__(self) -> None:
        if not (self.apply or self.change_action or self.change_observation):
            raise ProblemError(
                "Event: say what it does: apply=, change_action= or change_observation="
            )
        if self.once and not self.apply:
            raise ProblemError("Event: an event at the start needs apply=, which acts on the env")

    @property
    def at_start(self) -> bool:  # type: ignore[override]
        return self.once

    def part(self, env: Any) -> DisturbancePart:
        return _chance("Event", self.probability)

    def sense(self, seen: Any, e: Any, on: Moment) -> Any:
        return seen if self.change_observation is None else self.change_observation(seen, e)

    def act(self, action: Any, e: Any, on: Moment) -> Any:
        return action if self.change_action is None else self.change_action(action, e)

    def push(self, number: int, e: Any, on: Moment) -> None:
        if self.apply is not None:
            self.apply(on.env, e)
            if self.once:
                on.observation = observe_again(on.env, on.observation, None)


def _chance(what: str, probability: float | Sequence[float]) -> DiscreteDisturbance:
    p = np.atleast_1d(np.asarray(probability, np.float64))
    p = np.array([1.0 - p[0], p[0]]) if len(p) == 1 else p
    if not (np.all(p >= 0.0) and abs(float(p.sum()) - 1.0) <= 1e-9):
        raise ProblemError(
            f"{what}: probabilities must lie between 0 and 1 and sum to 1; got {probability!r}"
        )
    return DiscreteDisturbance(p)
