"""Disturbances of a whole vector environment: the same as of one environment, for all rows at once.

What acts on actions and observations is arithmetic on rows. What acts on the environments
themselves has to reach them: sub-environments at hand are reached one by one, those in other
processes through their attributes, and a vector environment made of one piece through a function
of the user's that acts on all of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import singledispatch
from types import SimpleNamespace
from typing import Any

import numpy as np

from apeval.adapt.disturbance_source import DisturbanceSource, Moment, observe_again
from apeval.adapt.events import BlankSensor, DropAction, Event
from apeval.adapt.functional_env import FunctionalEnv
from apeval.adapt.noises import (
    ActionNoise,
    AtPath,
    CustomNoise,
    ObservationNoise,
    ParameterNoise,
    StartNoise,
)
from apeval.adapt.observation_batches import as_batch, put, take
from apeval.adapt.observation_parts import part_of, with_part
from apeval.adapt.paths import parse, put_rows
from apeval.adapt.row_paths import read_rows, write_rows
from apeval.adapt.user_calls import asked, told
from apeval.adapt.vector_sim import VectorSim
from apeval.errors import ProblemError
from apeval.problem.types import Array, IntArray


class VectorMoment:
    """All sub-environments in the middle of their episodes, as disturbances meet them."""

    def __init__(self, sim: VectorSim) -> None:
        self.sim = sim
        self.spaces = SimpleNamespace(
            action_space=sim.env.single_action_space,
            observation_space=sim.env.single_observation_space,
        )
        self.observation: Any = None
        """What the environments said last."""
        self.seen: Any = None
        """What the policy saw last; None before the first step."""
        self.action: Any = None
        """The last actions that were applied; None before the first step."""

    def moment(self, row: int) -> Moment:
        """One of them."""
        return Moment(
            self.spaces,
            take(self.observation, row),
            None if self.seen is None else take(self.seen, row),
            None if self.action is None else self.action[row],
        )


@singledispatch
def sense_rows(source: DisturbanceSource, seen: Any, e: Array, on: VectorMoment) -> Any:
    """What the policy sees: row by row, where nothing faster is known."""
    noisy = take(seen, slice(None))
    for row in range(on.sim.n):
        put(noisy, row, asked("disturbance", source.sense, take(seen, row), e[row], on.moment(row)))
    return noisy


@sense_rows.register
def _(source: ObservationNoise, seen: Any, e: Array, on: VectorMoment) -> Any:
    clean = part_of(seen, source.key)
    noisy = _added(clean.astype(np.float64), e, source.index).astype(clean.dtype)
    return with_part(seen, source.key, noisy)


@sense_rows.register
def _(source: BlankSensor, seen: Any, e: Array, on: VectorMoment) -> Any:
    lost = np.asarray(e).astype(bool)
    if not lost.any() or (source.instead is None and on.seen is None):
        return seen
    blank = part_of(seen, source.key).copy()
    if source.instead is None:
        old = part_of(on.seen, source.key)
    else:
        old = np.full_like(blank, source.instead)
    at = slice(None) if source.index is None else np.atleast_1d(source.index)
    new, old = blank.reshape(len(blank), -1), old.reshape(len(blank), -1)
    new[:, at] = np.where(lost[:, None], old[:, at], new[:, at])
    return with_part(seen, source.key, blank)


@singledispatch
def act_rows(source: DisturbanceSource, action: Array, e: Array, on: VectorMoment) -> Any:
    """The actions that are applied: row by row, where nothing faster is known."""
    rows = range(on.sim.n)
    return [asked("disturbance", source.act, action[k], e[k], on.moment(k)) for k in rows]


@act_rows.register
def _(source: ActionNoise, action: Array, e: Array, on: VectorMoment) -> Any:
    space = on.spaces.action_space
    noisy = _added(np.asarray(action, np.float64), e, source.index)
    if source.saturate:
        noisy = np.clip(noisy, space.low, space.high)
    return noisy.astype(space.dtype)


@act_rows.register
def _(source: DropAction, action: Array, e: Array, on: VectorMoment) -> Any:
    lost = np.asarray(e).astype(bool)
    if not lost.any() or (source.instead is None and on.action is None):
        return action
    other = on.action if source.instead is None else np.asarray(source.instead)
    shape = (len(lost), *(1,) * (action.ndim - 1))
    return np.where(lost.reshape(shape), other, action)


def _added(values: Array, e: Array, index: int | Sequence[int] | None) -> Array:
    if index is None:
        return np.asarray(values + np.reshape(e, values.shape))
    noisy = values.copy()
    noisy.reshape(len(noisy), -1)[:, np.atleast_1d(index)] += e
    return noisy


def senses(source: DisturbanceSource) -> bool:
    """Whether a disturbance acts on what the policy sees."""
    if isinstance(source, Event):
        return source.change_observation is not None
    if isinstance(source, CustomNoise):
        return source.senses
    return type(source).sense is not DisturbanceSource.sense


def acts(source: DisturbanceSource) -> bool:
    """Whether a disturbance acts on actions."""
    if isinstance(source, Event):
        return source.change_action is not None
    return type(source).act is not DisturbanceSource.act


def pushes(source: DisturbanceSource) -> bool:
    """Whether a disturbance acts on the environments themselves."""
    if isinstance(source, Event):
        return source.apply is not None
    if isinstance(source, CustomNoise):
        return not source.senses
    return type(source).push is not DisturbanceSource.push


class DisturbanceReach(ABC):
    """How disturbances reach the sub-environments.

    Args:
        sim: The vector environment.
        sources: All disturbances; those that act on environments are refused where they cannot.
    """

    def __init__(self, sim: VectorSim, sources: Sequence[DisturbanceSource]) -> None:
        self.sim, self.sources = sim, tuple(sources)
        self.acting = [(k, source) for k, source in enumerate(sources) if pushes(source)]
        for _, source in self.acting:
            self.require(source)

    def require(self, source: DisturbanceSource) -> None:  # noqa: B027
        """Refuse a disturbance that cannot act here."""

    def before_reset(self) -> None:  # noqa: B027
        """Undo what the last episodes left."""

    def after_reset(self, slots: IntArray) -> None:  # noqa: B027
        """Read what later effects need."""

    @abstractmethod
    def push(self, number: int, e: Array, slots: IntArray, on: VectorMoment) -> None:
        """What one disturbance does to the environments in these slots, with its values for all
        rows."""


class OneByOne(DisturbanceReach):
    """Sub-environments that are at hand, as in `gymnasium.vector.SyncVectorEnv`."""

    def __init__(self, sim: VectorSim, sources: Sequence[DisturbanceSource]) -> None:
        super().__init__(sim, sources)
        self.moments = [Moment(env) for env in sim.sub_environments or ()]
        self._base: dict[int, Array] = {}
        """Undisturbed values of attributes in all slots, by the disturbance's number."""
        self._owners: list[Any] = []
        if any(source.at_start for _, source in self.acting):
            _refuse_wrapped(sim)

    def before_reset(self) -> None:
        for moment in self.moments:
            for number, source in self.acting:
                source.before_reset(number, moment)

    def after_reset(self, slots: IntArray) -> None:
        for slot in slots.tolist():
            for number, source in self.acting:
                source.after_reset(number, self.moments[slot])
        self._base = {}
        self._owners = [getattr(it.env, "unwrapped", it.env) for it in self.moments]
        for number, source in self.acting:
            if type(source) is ParameterNoise and not source.kick and not source.at_start:
                found = [self.moments[slot].base[number] for slot in slots.tolist()]
                if all(value.shape == found[0].shape for value in found):
                    self._base[number] = np.zeros((len(self.moments), *found[0].shape))
                    self._base[number][slots] = found

    def push(self, number: int, e: Array, slots: IntArray, on: VectorMoment) -> None:
        source = self.sources[number]
        if isinstance(source, ParameterNoise) and number in self._base:
            told("disturbance", self._write, number, source, e, slots)
            return
        what = "start" if source.at_start else "disturbance"
        for slot in slots.tolist():
            moment = self.moments[slot]
            if source.at_start:
                moment.observation = take(on.observation, slot)
            asked(what, source.push, number, e[slot], moment)
            if source.at_start:
                put(on.observation, slot, moment.observation)

    def _write(self, number: int, source: ParameterNoise, e: Array, slots: IntArray) -> None:
        """Undisturbed values with their noise, computed for all episodes at once."""
        base = self._base[number]
        values = source.changed(base, np.reshape(e, base.shape))
        owners = [self._owners[slot] for slot in slots.tolist()]
        put_rows(owners, parse(source.path), values[slots])


class ByAttribute(DisturbanceReach):
    """Sub-environments in other processes, as in `gymnasium.vector.AsyncVectorEnv`: attributes are
    fetched, changed here and sent back."""

    def __init__(self, sim: VectorSim, sources: Sequence[DisturbanceSource]) -> None:
        super().__init__(sim, sources)
        self.moments = [Moment(SimpleNamespace()) for _ in range(sim.n)]

    def require(self, source: DisturbanceSource) -> None:
        if isinstance(source, ParameterNoise):
            if all(kind == "[" for kind, _ in parse(source.path)[1:]):
                return
            raise ProblemError(
                f"ParameterNoise('{source.path}') cannot reach into sub-environments in other "
                "processes: there it changes an attribute itself, or an entry of it (force_mag, "
                "state[3]). Use vectorization_mode='sync', or apeval.from_env, whose episodes "
                "the backend 'processes' spreads over all cores"
            )
        raise ProblemError(
            f"{type(source).__name__} acts on environments, and those of an asynchronous vector "
            "environment live in other processes: use vectorization_mode='sync', or "
            "apeval.from_env, whose episodes the backend 'processes' spreads over all cores"
        )

    def before_reset(self) -> None:
        for number, source in self.acting:
            if all(number in moment.base for moment in self.moments):
                self._fetch(source)
                for moment in self.moments:
                    source.before_reset(number, moment)
                self._send(source)

    def after_reset(self, slots: IntArray) -> None:
        for number, source in self.acting:
            self._fetch(source)
            for moment in self.moments:
                source.after_reset(number, moment)

    def push(self, number: int, e: Array, slots: IntArray, on: VectorMoment) -> None:
        source = self.sources[number]
        self._fetch(source)
        for slot in slots.tolist():
            asked("disturbance", source.push, number, e[slot], self.moments[slot])
        self._send(source)

    def _fetch(self, source: DisturbanceSource) -> None:
        name = self._name(source)
        values = self.sim.call("get_attr", name)
        for moment, value in zip(self.moments, values, strict=True):
            setattr(moment.env, name, value)

    def _send(self, source: DisturbanceSource) -> None:
        name = self._name(source)
        values = [getattr(moment.env, name) for moment in self.moments]
        self.sim.call("set_attr", name, values)

    def _name(self, source: DisturbanceSource) -> str:
        path: str = source.path  # type: ignore[attr-defined]
        return str(parse(path)[0][1])


class AllAtOnce(DisturbanceReach):
    """A vector environment made of one piece: functions of the user's act on all of it."""

    def require(self, source: DisturbanceSource) -> None:
        if isinstance(source, CustomNoise | Event):
            if getattr(source, "once", False) and getattr(source, "observe", None) is None:
                raise ProblemError(
                    f"{type(source).__name__} at the start changes what is observed first: use "
                    "CustomNoise with observe=lambda env: the first observations, a row for each"
                )
            return
        raise ProblemError(
            f"{type(source).__name__} acts on single environments, and this vector environment is "
            "made of one piece: use CustomNoise(lambda env, e: …, std=…) (or Event), which gets "
            "the vector environment and a row of e for each sub-environment; or make it with "
            "vectorization_mode='sync'"
        )

    def push(self, number: int, e: Array, slots: IntArray, on: VectorMoment) -> None:
        source: Any = self.sources[number]
        asked("disturbance", source.apply, self.sim.env, e)
        if source.at_start:
            seen = asked("start", observe_again, self.sim.env, None, source.observe)
            for slot in slots.tolist():
                put(on.observation, slot, take(seen, slot))


class InState(AllAtOnce):
    """Functions of state in and state out: what a path names in `state` or `params` is changed
    for all episodes at once."""

    def __init__(self, sim: VectorSim, sources: Sequence[DisturbanceSource]) -> None:
        super().__init__(sim, sources)
        self.base: dict[int, Array] = {}

    def require(self, source: DisturbanceSource) -> None:
        if not isinstance(source, AtPath):
            super().require(source)
        elif (first := parse(source.path)[0][1]) not in ("state", "params"):
            raise ProblemError(
                f"{type(source).__name__}('{source.path}'): a simulator made of functions has "
                f"'state' and 'params', not '{first}': name a part of these, such as state[1], "
                "state.speed or params.gravity"
            )

    def after_reset(self, slots: IntArray) -> None:
        for number, source in self.acting:
            if isinstance(source, AtPath):
                if parse(source.path)[0][1] == "params":
                    self.sim.env.spread_params()
                self.base[number] = self._read(source)

    def push(self, number: int, e: Array, slots: IntArray, on: VectorMoment) -> None:
        source = self.sources[number]
        if not isinstance(source, ParameterNoise | StartNoise):
            return super().push(number, e, slots, on)
        adds = isinstance(source, StartNoise) or source.kick
        base = self._read(source) if adds else self.base[number]
        write_rows(
            self.sim.env, parse(source.path), source.changed(base, np.reshape(e, base.shape))
        )
        if isinstance(source, StartNoise):
            seen = asked("start", observe_again, self.sim.env, on.observation, source.observe)
            on.observation = as_batch(seen, self.sim.n, "observation")
        return None

    def _read(self, source: AtPath) -> Array:
        return read_rows(self.sim.env, parse(source.path), self.sim.n)


def reach(sim: VectorSim, sources: Sequence[DisturbanceSource]) -> DisturbanceReach:
    """The way to the sub-environments of this vector environment."""
    if isinstance(sim.env, FunctionalEnv):
        return InState(sim, sources)
    if sim.sub_environments is not None:
        return OneByOne(sim, sources)
    return ByAttribute(sim, sources) if sim.is_async else AllAtOnce(sim, sources)


def _refuse_wrapped(sim: VectorSim) -> None:
    """A wrapper around all sub-environments does not see a start that is changed inside them."""
    wrapper = sim.env
    while wrapper is not sim.inner:
        if hasattr(wrapper, "observations"):
            raise ProblemError(
                f"a disturbed start would not pass through {type(wrapper).__name__}, which wraps "
                "the vector environment: wrap the sub-environments instead "
                "(gymnasium.make_vec(…, wrappers=[…]))"
            )
        wrapper = wrapper.env
