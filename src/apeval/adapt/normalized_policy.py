"""A policy on normalised observations, and one on stacked ones: as they were in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from apeval.adapt.batches import kind_of
from apeval.adapt.observation_batches import take
from apeval.adapt.observation_statistics import ObservationStatistics
from apeval.adapt.policies import Answer, Ask, Policy
from apeval.errors import ProblemError
from apeval.problem.types import FloatArray


class _Around(Policy):
    """A policy that sees something else than the environment shows."""

    def __init__(self, inner: Policy) -> None:
        self.inner, self.chance = inner, inner.chance
        self.training, self.has_memory = inner.training, inner.has_memory

    def start(self) -> Any:
        return self.inner.start()


class NormalizedPolicy(_Around):
    """A policy that sees observations normalised by fixed statistics.

    Args:
        inner: The policy of normalised observations.
        statistics: Their mean and variance.
    """

    def __init__(self, inner: Policy, statistics: ObservationStatistics) -> None:
        super().__init__(inner)
        self.statistics = statistics

    def act(self, obs: Any, u: FloatArray) -> Any:
        return self.inner.act(self.statistics.normalized(obs), u)

    def answer(self, ask: Ask) -> Answer:
        return self.inner.answer(replace(ask, observations=self._normalized(ask.observations)))

    def log_prob(self, obs: Any, action: Any) -> float:
        """The log-density log π_A(action | obs), where the policy has one."""
        density: Any = self.inner
        return float(density.log_prob(self.statistics.normalized(obs), action))

    def _normalized(self, observations: Sequence[Any]) -> Sequence[Any]:
        """All at once where they are alike: each number has the same bits either way."""
        first = kind_of(observations[0])
        if any(kind_of(obs) != first for obs in observations[1:]):
            return [self.statistics.normalized(obs) for obs in observations]
        if isinstance(observations[0], Mapping):
            together: Any = {k: np.array([o[k] for o in observations]) for k in observations[0]}
        else:
            together = np.array(observations)
        found = self.statistics.normalized(together)
        return [take(found, row) for row in range(len(observations))]

    def fitted(self, space: Any, seen: Any) -> Policy:
        """Refuses an environment with other observations.

        Raises:
            ProblemError: The statistics, or the policy, are of others.
        """
        why = self.statistics.fits(seen)
        if why is not None:
            raise ProblemError(
                f"the statistics given as normalize= are of other observations: {why}. Give those "
                "of this policy's training, or wrap the environment as in training"
            )
        inner = self.inner.fitted(space, seen)
        return self if inner is self.inner else NormalizedPolicy(inner, self.statistics)


class FrameStackPolicy(_Around):
    """A policy that sees the last few observations side by side, as `VecFrameStack` shows them:
    along the last axis, zeros before the first one. What it remembers are these.

    Args:
        inner: The policy of stacked observations, a model that says their space.
        frames: How many it sees.
    """

    def __init__(self, inner: Policy, frames: int) -> None:
        super().__init__(inner)
        self.frames, self.has_memory = frames, True
        self.empty: Any = None

    def start(self) -> Any:
        return self.empty, self.inner.start()

    def act(self, obs: Any, u: FloatArray) -> Any:
        return self.inner.act(_pushed(self.empty, obs), u)

    def answer(self, ask: Ask) -> Answer:
        rows = zip(ask.memories, ask.observations, strict=True)
        seen = [_pushed(memory[0], obs) for memory, obs in rows]
        inner = replace(ask, observations=seen, memories=[memory[1] for memory in ask.memories])
        actions, kept = self.inner.answer(inner)
        return actions, list(zip(seen, kept, strict=True))

    def fitted(self, space: Any, seen: Any) -> Policy:
        """Refuses observations that cannot be stacked so, or were not in training.

        Raises:
            ProblemError: One of these.
        """
        self.empty = _empty(seen, self.frames)
        inner = self.inner.fitted(space, _stacked_space(seen, self.frames))
        if inner is self.inner:
            return self
        fitting = FrameStackPolicy(inner, self.frames)
        fitting.empty = self.empty
        return fitting


def _pushed(frames: Any, obs: Any) -> Any:
    """The last frames, with a new one at the end."""
    if isinstance(frames, Mapping):
        return {key: _pushed(frames[key], obs[key]) for key in frames}
    obs = np.asarray(obs)
    return np.concatenate([frames[..., obs.shape[-1] :], obs.astype(frames.dtype)], axis=-1)


def _empty(space: Any, frames: int) -> Any:
    if isinstance(getattr(space, "spaces", None), Mapping):
        return {key: _empty(part, frames) for key, part in space.spaces.items()}
    shape = getattr(space, "shape", None)
    if not shape or not hasattr(space, "low") or _is_channels_first(space):
        raise ProblemError(
            f"frames of the observation space {space} are not stacked here, only those of Box "
            "whose last axis has the components or channels: wrap the environment "
            "(gymnasium.wrappers.FrameStackObservation) and load the zip file itself"
        )
    return np.zeros((*shape[:-1], frames * shape[-1]), space.dtype)


def _is_channels_first(space: Any) -> bool:
    """An image whose first axis has the channels, as far as sizes show it."""
    shape = space.shape
    return len(shape) == 3 and space.dtype == np.uint8 and int(np.argmin(shape)) == 0


def _stacked_space(seen: Any, frames: int) -> Any:
    """The space of stacked observations, as VecFrameStack says it."""
    from gymnasium import spaces

    if isinstance(getattr(seen, "spaces", None), Mapping):
        return spaces.Dict({k: _stacked_space(part, frames) for k, part in seen.spaces.items()})
    low, high = (np.repeat(bound, frames, axis=-1) for bound in (seen.low, seen.high))
    return spaces.Box(low, high, dtype=seen.dtype)
