"""Disturbances composed into decisions of nature: how long one lasts, and how a_E and a_0 hold
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apeval.adapt.compose import ActionCode, DisturbancePart
from apeval.adapt.disturbance_source import DisturbanceSource
from apeval.adapt.events import BlankSensor, Event
from apeval.adapt.noises import AtPath, CustomNoise, ObservationNoise, ParameterNoise
from apeval.adapt.paths import parse
from apeval.errors import ProblemError
from apeval.problem.correlated import check_correlation
from apeval.problem.problem import SAFETY_CAP


@dataclass(frozen=True)
class DecisionLayout:
    """How nature decides."""

    step_code: ActionCode
    """How a_E is read."""
    start_code: ActionCode | None
    """How a_0 is read; None where no start is controlled, or where it is all that is."""
    frames: int
    """Environment steps in a decision."""
    whole: bool
    """Whether one decision is the whole episode: only its start is disturbed, and a_E says how."""
    acts_first: bool
    """Whether the policy acts at the decision's start, before nature: where it sees the truth, and
    has no memory that would change outside of a step."""
    horizon: int | None
    """DecisionLayout in an episode."""

    @staticmethod
    def of(
        sources: Sequence[DisturbanceSource],
        parts: Sequence[DisturbancePart],
        horizon: int | None,
        policy_memory: bool = False,
    ) -> DecisionLayout:
        """From disturbances, their laws, the environment steps of an episode, and whether the
        policy has memory."""
        steppers = [k for k, source in enumerate(sources) if not source.at_start]
        starters = [k for k, source in enumerate(sources) if source.at_start]
        if not steppers:  # then one decision, the start, is all that nature makes
            frames = SAFETY_CAP if horizon is None else horizon
            return DecisionLayout(ActionCode(parts, [1] * len(parts)), None, frames, True, False, 1)
        frames = _frames([sources[k] for k in steppers])
        times = [frames // sources[k].hold for k in steppers]
        # a start is only learned where it is continuous, and only beside continuous steps
        step_code = ActionCode([parts[k] for k in steppers], times, latent=bool(starters))
        start_code = None
        if starters:
            start_code = ActionCode([parts[k] for k in starters], [1] * len(starters), latent=True)
        acts_first = frames == 1 and not any(_senses(source) for source in sources)
        acts_first = acts_first and not policy_memory
        decisions = None if horizon is None else -(-horizon // frames)
        return DecisionLayout(step_code, start_code, frames, False, acts_first, decisions)


def as_horizon(horizon: Any) -> int | None:
    """Environment steps of an episode, or None; anything else is refused."""
    if horizon is not None and (not isinstance(horizon, int) or horizon < 1):
        raise ProblemError(f"horizon must be a whole number of steps, at least 1; got {horizon!r}")
    return horizon


def as_sources(disturb: Any) -> list[DisturbanceSource]:
    """What a user may give as `disturb=`, checked."""
    given = [disturb] if isinstance(disturb, DisturbanceSource) else disturb
    if not isinstance(given, Sequence) or not given or isinstance(given, str):
        raise ProblemError(
            f"disturb is {disturb!r}: give at least one disturbance, such as "
            "[apeval.ActionNoise(std=0.1)]"
        )
    for source in given:
        if not isinstance(source, DisturbanceSource):
            raise ProblemError(
                f"disturb holds a {type(source).__name__}, expected ActionNoise, ObservationNoise, "
                "ParameterNoise, StartNoise, DropAction, BlankSensor, Event or CustomNoise"
            )
        if not isinstance(source.hold, int) or source.hold < 1:
            raise ProblemError(f"hold must be a whole number ≥ 1; got {source.hold!r}")
        _check_memory(source)
    _check_paths([source for source in given if isinstance(source, AtPath)])
    return list(given)


def _check_memory(source: DisturbanceSource) -> None:
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


def _frames(steppers: list[DisturbanceSource]) -> int:
    """Environment steps in a decision: those of the longest hold."""
    holds = [source.hold for source in steppers]
    frames = max(holds, default=1)
    if any(frames % hold for hold in holds):
        raise ProblemError(
            f"the holds {sorted(set(holds))} do not fit together: a decision lasts as long as the "
            "longest, and every other one must divide it"
        )
    return frames


def _senses(source: DisturbanceSource) -> bool:
    if isinstance(source, Event):
        return source.change_observation is not None
    if isinstance(source, CustomNoise):
        return source.senses
    return isinstance(source, ObservationNoise | BlankSensor)
