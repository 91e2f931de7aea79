"""Episodes in the sub-environments of one vector environment, decision by decision.

An episode sits in the slot of its number modulo the number of slots, whoever sits beside it, and
every function of the user's is always asked for all slots at once. So an episode's bits are the
same alone, in company and when it is replayed, also where arithmetic rounds by the size of a batch
and by the place in it. Slots without an episode that still runs repeat the row of the first one
that does.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.adapt.compose import ActionCode
from apeval.adapt.decision_layout import DecisionLayout
from apeval.adapt.disturbance_source import DisturbanceSource
from apeval.adapt.failure_rules import as_distances, as_kinds
from apeval.adapt.judges import StepJudge, StepRecord
from apeval.adapt.observation_batches import spread, take
from apeval.adapt.spaces import fit_rows
from apeval.adapt.user_calls import asked
from apeval.adapt.vector_policy import VectorPolicy
from apeval.adapt.vector_sim import VectorAnswer, VectorMaker, VectorSim, merged
from apeval.adapt.vector_sources import VectorMoment, act_rows, acts, reach, sense_rows, senses
from apeval.errors import SimulationError
from apeval.problem.correlated import Ar1
from apeval.problem.types import Array, BoolArray, FloatArray, IntArray

Uniforms = Callable[[], FloatArray]
"""The random numbers of the next action for every row, (n, chance)."""


@dataclass(frozen=True)
class VectorPlan:
    """Everything that episodes are run by."""

    make: VectorMaker
    policy: VectorPolicy
    sources: tuple[DisturbanceSource, ...]
    nature: DecisionLayout
    """How a_E and a_0 are read, and how long a decision lasts."""
    horizon: int | None
    """Environment steps in an episode."""
    fails: StepJudge
    margin: StepJudge | None
    kinds: tuple[str, ...]

    @property
    def sums_rewards(self) -> bool:
        """Whether somebody wants to know the return so far."""
        return any(it is not None and it.asks("total_reward") for it in (self.fails, self.margin))


class Seats:
    """Episodes in slots.

    Args:
        slots: Where each of k episodes sits, (k,).
        n: The number of slots.
    """

    __slots__ = ("_in_order", "_pick", "k", "slots", "spread")

    def __init__(self, slots: IntArray, n: int) -> None:
        self.slots, self.k = slots, len(slots)
        self.spread = spread(slots, n)
        """The slot whose row stands in each slot; None: its own everywhere."""
        self._pick = np.zeros(n, np.int64)
        self._pick[slots] = np.arange(self.k)
        self._in_order = self.k == n and bool((slots == np.arange(n)).all())

    def everywhere(self, values: Array) -> Array:
        """One row for every slot, from one for each episode."""
        return values if self._in_order else values[self._pick]

    def own(self, values: Array) -> Array:
        """One row for each episode, from one for every slot."""
        return values if self._in_order else values[self.slots]

    def own_rows(self, batch: Any) -> Any:
        """The same of a batch of observations."""
        return batch if self._in_order else take(batch, self.slots)

    def filled(self, batch: Any) -> Any:
        """Rows of every slot, with those of episodes in the others as well."""
        return batch if self.spread is None else take(batch, self.spread)


@dataclass
class VectorOutcome:
    """What became of a decision, a row per episode."""

    kind: IntArray
    margin: FloatArray
    answer: VectorAnswer
    noise: FloatArray
    """The last values of noise with memory, one after the other."""
    memory: Any = None
    """What the policy remembers, in every slot."""


class VectorBlock:
    """One vector environment with its disturbances and its policy, for as long as its episodes
    run."""

    def __init__(self, plan: VectorPlan, sim: VectorSim) -> None:
        self.plan, self.sim, self.n = plan, sim, sim.n
        self.on = VectorMoment(sim)
        self.reach = reach(sim, plan.sources)
        self.info: dict[str, Any] = {}
        self.taken = 0
        self.total_reward: FloatArray = np.zeros(self.n)
        self.noise: dict[int, FloatArray] = {}
        self.memory: Any = None
        """What the policy remembers."""
        numbered = list(enumerate(plan.sources))
        self.starters = [(k, source) for k, source in numbered if source.at_start]
        self.steppers = [(k, source) for k, source in numbered if not source.at_start]
        self.sensing, self.acting = (
            [(j, source) for j, (_, source) in enumerate(self.steppers) if does(source)]
            for does in (senses, acts)
        )
        reached = [k for k, _ in self.reach.acting]
        self.pushing = [(j, k) for j, (k, _) in enumerate(self.steppers) if k in reached]
        self._sums_rewards = plan.sums_rewards
        self._remembers = any(source.correlation for _, source in self.steppers)
        self._seats = Seats(np.arange(self.n), self.n)

    def seats(self, slots: IntArray) -> Seats:
        """Who sits where; remembered, because it seldom changes."""
        if slots is not self._seats.slots:
            self._seats = Seats(slots, self.n)
        return self._seats

    def begin(self, slots: IntArray, seeds: list[int], a_0: Array | None) -> None:
        """Start episodes in these slots, each from its own seed."""
        everywhere = [seeds[0]] * self.n
        for slot, seed in zip(slots.tolist(), seeds, strict=True):
            everywhere[slot] = seed
        self.reach.before_reset()
        self.on.observation, self.info = self.sim.reset(everywhere)
        self.on.seen = self.on.action = None
        self.taken, self.noise = 0, {}
        self.total_reward = np.zeros(self.n)
        self.memory = self.plan.policy.start(self.n)
        self.reach.after_reset(slots)
        if self.plan.nature.start_code is not None and a_0 is not None:
            self._place(self.plan.nature.start_code, a_0, self.seats(slots))

    def _place(self, code: ActionCode, a: Array, at: Seats) -> None:
        """Disturb the starts."""
        for (number, _), said in zip(self.starters, code.decode_all(a), strict=True):
            self.reach.push(number, at.everywhere(said[0]), at.slots, self.on)

    def act(self, slots: IntArray, u: FloatArray | None) -> Array:
        """The policy's actions in the episodes of these slots, from what their environments
        said."""
        at = self.seats(slots)
        return at.own(self._chosen(self.on.observation, at, u))

    def _chosen(self, seen: Any, at: Seats, u: FloatArray | None) -> Array:
        act, memory = self.plan.policy.act, self.memory
        u = np.empty((self.n, 0)) if u is None else at.everywhere(u)
        if memory is not None and at.spread is not None:  # in the place of those that have ended
            memory = [
                memory[source] if source == slot else copy.deepcopy(memory[source])
                for slot, source in enumerate(at.spread.tolist())
            ]
        actions, kept = asked("policy", act, at.filled(seen), u, memory)
        self.memory = kept if at.spread is None else _kept_memory(self.memory, kept, at)
        return fit_rows(self.on.spaces.action_space, actions, self.n)

    def decide(self, slots: IntArray, a_A: Array, a_E: Array, uniforms: Uniforms) -> VectorOutcome:
        """One decision of nature in the episodes of these slots: one environment step or
        several."""
        plan, nature, at = self.plan, self.plan.nature, self.seats(slots)
        kind: IntArray = np.empty(0, np.int64)
        closest: FloatArray = np.full(at.k, np.inf)
        said: list[list[Array]] = []
        if nature.whole:
            self._place(nature.step_code, a_E, at)
        else:
            said = nature.step_code.decode_all(at.everywhere(a_E))
            said = self._with_memory(said) if self._remembers else said
        last: VectorAnswer | None = None
        going = np.arange(at.k)
        for frame in range(nature.frames):
            now = [v[frame // s.hold] for (_, s), v in zip(self.steppers, said, strict=True)]
            if nature.acts_first:
                action = fit_rows(self.on.spaces.action_space, at.everywhere(a_A), self.n)
            else:
                action = self._act(now, at, uniforms()[going] if plan.policy.chance else None)
            answer = self._step(action, now, at)
            kinds, margins = self._judged(answer, at)
            if frame == 0:
                kind, closest = kinds, closest if margins is None else margins
            else:
                kind[going] = kinds
                if margins is not None:
                    closest[going] = np.minimum(closest[going], margins)
            last = _kept(last, answer, at, len(slots))
            if frame + 1 == nature.frames and not nature.whole:
                break  # whether it is over is read from the answer
            over = at.own(answer.terminated | answer.truncated) | (self.taken == plan.horizon)
            ended = (kinds > 0) | over
            if ended.any():
                going = going[~ended]
                if not len(going):
                    break
                at = Seats(slots[going], self.n)
        if last is None or (nature.whole and len(going)):
            raise SimulationError(
                f"an episode did not end within {nature.frames:,} steps: give horizon=, or let "
                "the environment terminate"
            )
        return VectorOutcome(kind, closest, last, self.last_noise(slots), self.memory)

    def _act(self, now: list[Array], at: Seats, u: FloatArray | None) -> Array:
        """The policy's actions, from what it sees in this frame."""
        seen = self.on.observation
        for j, source in self.sensing:
            seen = sense_rows(source, seen, now[j], self.on)
        self.on.seen = seen
        return self._chosen(seen, at, u)

    def _step(self, action: Array, now: list[Array], at: Seats) -> VectorAnswer:
        disturbed: Any = action
        for j, source in self.acting:
            disturbed = act_rows(source, np.asarray(disturbed), now[j], self.on)
        if disturbed is not action:
            space = self.on.spaces.action_space
            action = fit_rows(space, disturbed, self.n, "a disturbance of the action")
        action = at.filled(action)
        for j, number in self.pushing:
            self.reach.push(number, now[j], at.slots, self.on)
        answer = self.sim.step(action)
        self.on.observation, self.on.action, self.info = answer.obs, action, answer.info
        self.taken += 1
        return answer

    def _judged(self, answer: VectorAnswer, at: Seats) -> tuple[IntArray, FloatArray | None]:
        """Kinds of failure and margins of the episodes that run."""
        plan = self.plan
        if self._sums_rewards:
            self.total_reward = self.total_reward + answer.reward
        step = StepRecord(
            answer.obs, answer.reward, self.total_reward, self.on.action, answer.info,
            answer.terminated, answer.truncated, self.sim.env,
        )  # fmt: skip
        if at.spread is not None:
            step = rearranged(step, at.spread)
        kinds = at.own(as_kinds(asked("fails", plan.fails, step), plan.kinds, self.n))
        if plan.margin is None:
            return kinds, None
        return kinds, at.own(as_distances(asked("margin", plan.margin, step), self.n))

    def _with_memory(self, said: list[list[Array]]) -> list[list[Array]]:
        """Innovations turned into noise, for the disturbances that have memory."""
        for (number, source), part, each in zip(
            self.steppers, self.plan.nature.step_code.parts, said, strict=True
        ):
            if source.correlation:
                recursion, mean = Ar1(source.correlation), getattr(part, "mean")  # noqa: B009
                for k, e in enumerate(each):
                    each[k] = recursion.next(e, self.noise.get(number), mean)
                    self.noise[number] = each[k]
        return said

    def last_noise(self, slots: IntArray) -> FloatArray:
        """The noise that acted last, (k, d); its mean before the first decision."""
        if not self._remembers:
            return np.empty((len(slots), 0))
        parts = self.plan.nature.step_code.parts
        columns = [
            self.noise[number][slots] if number in self.noise
            else np.tile(getattr(part, "mean"), (len(slots), 1))  # noqa: B009
            for (number, source), part in zip(self.steppers, parts, strict=False)
            if source.correlation
        ]  # fmt: skip
        return np.concatenate(columns, axis=1) if columns else np.empty((len(slots), 0))


def _kept_memory(before: Any, now: Any, at: Seats) -> Any:
    """What is remembered in every slot: the new where an episode runs, as it was elsewhere."""
    if now is None:
        return None
    found = list(before)
    for slot in at.slots.tolist():
        found[slot] = now[slot]
    return found


def rearranged(step: StepRecord, rows: IntArray) -> StepRecord:
    """A step whose rows stand in another order."""
    return StepRecord(
        take(step.obs, rows), step.reward[rows], step.total_reward[rows], step.action[rows],
        infos(step.info, rows), step.terminated[rows], step.truncated[rows], step.env,
    )  # fmt: skip


def infos(info: dict[str, Any], rows: Any) -> dict[str, Any]:
    """Infos of chosen rows; what has no rows stays as it is."""
    found: dict[str, Any] = {}
    for key, value in info.items():
        if isinstance(value, dict):
            found[key] = infos(value, rows)
        else:
            found[key] = value[rows] if isinstance(value, np.ndarray) and value.ndim else value
    return found


def _kept(last: VectorAnswer | None, new: VectorAnswer, at: Seats, k: int) -> VectorAnswer:
    """The last answer of each of k episodes: the new one where it was still running."""
    if last is None or at.k == k:
        return new
    fresh: BoolArray = np.zeros(len(new.terminated), bool)
    fresh[at.slots] = True
    return VectorAnswer(
        _choose(fresh, new.obs, last.obs),
        np.where(fresh, new.reward, last.reward),
        np.where(fresh, new.terminated, last.terminated),
        np.where(fresh, new.truncated, last.truncated),
        merged(last.info, new.info, fresh),
    )


def _choose(fresh: BoolArray, new: Any, old: Any) -> Any:
    if isinstance(new, dict):
        return {key: _choose(fresh, new[key], old[key]) for key in new}
    if isinstance(new, tuple):
        return tuple(_choose(fresh, a, b) for a, b in zip(new, old, strict=True))
    return np.where(fresh.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
