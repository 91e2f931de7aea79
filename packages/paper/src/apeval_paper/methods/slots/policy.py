"""π_E over slots, in dictionaries: a row per state slot, with an entry per joint slot of a_E.

A joint slot names one slot in each component of a_E. Only those that were tried have an entry; the
others share a rule, so that d_E components with K slots need no K^d_E numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np

from apeval.problem.types import Array, FloatArray, IntArray
from apeval.simulate.adversary import Adversary, Situation
from apeval_paper.methods.slots.cut import Cut, Cutter
from apeval_paper.methods.slots.state import Action, agent_keys, state_keys

_BELOW_ONE = float(np.nextafter(1.0, 0.0))
_ABOVE_ZERO = 2.0**-53

Joint = tuple[int, ...]
Key = tuple[Hashable, Action]
"""The slot of s, and the agent's action where it is discrete."""


@dataclass
class SlotRow:
    """π̃_E(· | s, a_A), not normalised: `tilde` where there is an entry, elsewhere `rest` times
    the start's probability, or `rest` alone in a flat row."""

    d: int
    rest: float = 1.0
    flat: bool = False
    number: dict[Joint, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._slots, self._tilde = np.zeros((0, self.d), np.int64), np.zeros(0)

    @property
    def slots(self) -> IntArray:
        """Joint slots with an entry, (m, d_E)."""
        return self._slots[: len(self.number)]

    @property
    def tilde(self) -> FloatArray:
        """Their π̃_E, (m,)."""
        return self._tilde[: len(self.number)]

    def put(self, joint: Joint, value: float) -> None:
        """Set an entry."""
        i = self.number.setdefault(joint, len(self.number))
        if i == len(self._tilde):
            room = max(8, 2 * i)
            slots, tilde = np.zeros((room, self.d), np.int64), np.zeros(room)
            slots[:i], tilde[:i] = self._slots[:i], self._tilde[:i]
            self._slots, self._tilde = slots, tilde
        self._slots[i] = joint
        self._tilde[i] = value

    def base(self, cut: Cut) -> FloatArray:
        """What `rest` multiplies, per component: (1 or n, d_E, K)."""
        return (cut.mass > 0.0).astype(np.float64) if self.flat else cut.start


class _Masses:
    """A row's π̃_E in n situations, summed over what is not decided yet.

    Sums run in a fixed order, so that no situation's numbers depend on the others'."""

    def __init__(self, row: SlotRow, cut: Cut, n: int) -> None:
        self.row, self.n = row, n
        self.base = row.base(cut)
        self.rows = np.zeros(n, np.int64) if len(self.base) == 1 else np.arange(n)
        self.K = self.base.shape[2]
        self.rule = np.full(n, row.rest)
        """The rule's π̃_E, as far as it is decided."""
        self.live = np.ones((n, len(row.tilde)), bool)
        """Which entries agree with what is decided."""
        self.excess = row.tilde - row.rest * _product(self.base, row.slots)
        """Of an entry over the rule that it replaces, (1 or n, m)."""

    def along(self, j: int) -> FloatArray:
        """Cumulated π̃_E over the slots of component j: (n, K)."""
        mass = self.rule[:, None] * self.base[self.rows, j]
        if self.row.flat:  # else the components to come sum to 1
            for later in range(j + 1, self.row.d):
                mass *= self.base[self.rows, later].sum(axis=1, keepdims=True)
        if self.live.size:
            i, e = np.nonzero(self.live)
            place = i * self.K + self.row.slots[e, j]
            extra = np.bincount(place, self.excess[self.rows[i], e], self.n * self.K)
            mass += extra.reshape(self.n, self.K)
        return np.cumsum(np.maximum(mass, 0.0), axis=1)  # below 0 by rounding only

    def decide(self, j: int, slot: IntArray) -> None:
        """Component j takes these slots, (n,)."""
        self.rule *= self.base[self.rows, j, slot]
        self.live &= self.row.slots[:, j] == slot[:, None]

    def decided(self) -> FloatArray:
        """π̃_E of the joint slots, once all components are decided."""
        p = self.rule.copy()
        i, e = np.nonzero(self.live)
        p[i] = self.row.tilde[e]
        return p


def _product(base: FloatArray, slots: IntArray) -> FloatArray:
    """Π_j base_j of joint slots (m, d_E), in each situation: (1 or n, m)."""
    p = np.ones((len(base), len(slots)))
    for j in range(slots.shape[1]):
        p *= base[:, j, slots[:, j]]
    return p


def draw(row: SlotRow, cut: Cut, u: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Joint slots from uniforms (n, d_E), component after component; what is left of each
    uniform, again uniform within its slot; and π_E(slot | s, a_A), (n,). From the nominal's masses
    the first two give the nominal's own inverse-CDF sample."""
    n, d = u.shape
    masses, rows = _Masses(row, cut, n), np.arange(n)
    slot, left, total = np.zeros((n, d), np.int64), np.zeros((n, d)), np.ones(n)
    for j in range(d):
        high = masses.along(j)
        all_of_it = high[:, -1]
        total = all_of_it if j == 0 else total
        target = np.minimum(u[:, j] * all_of_it, np.nextafter(all_of_it, 0.0))
        k = (target[:, None] >= high[:, :-1]).sum(axis=1)
        low = np.where(k > 0, high[rows, k - 1], 0.0)
        left[:, j] = (target - low) / (high[rows, k] - low)
        slot[:, j] = k
        masses.decide(j, k)
    left = np.minimum(np.maximum(left, _ABOVE_ZERO), _BELOW_ONE)
    return slot, left, masses.decided() / total


def probability(row: SlotRow, cut: Cut, slot: IntArray) -> FloatArray:
    """π_E(slot | s, a_A), (n,)."""
    masses = _Masses(row, cut, len(slot))
    total = masses.along(0)[:, -1]
    for j in range(slot.shape[1]):
        masses.decide(j, slot[:, j])
    p: FloatArray = masses.decided() / total
    return p


class SlotAdversary(Adversary):
    """π_E as a dictionary of rows; where a state has none, π_E is its start."""

    def __init__(
        self, rows: Mapping[Key, SlotRow], cutter: Cutter, state_slots: int, time_in_state: bool
    ) -> None:
        self.rows, self.cutter = rows, cutter
        self.state_slots, self.time_in_state = state_slots, time_in_state

    def keys(self, now: Situation) -> list[Key]:
        """The dictionary's key of each situation."""
        t = now.t if self.time_in_state else None
        states = state_keys(now.s, t, self.state_slots)
        return list(zip(states, agent_keys(now.a_A), strict=True))

    def sample(self, now: Situation, u: FloatArray) -> Array:
        cut = self.cutter(now.law)
        slot, left = np.zeros(u.shape, np.int64), np.zeros(u.shape)
        for row, mine in self._groups(now, u.shape[1]):
            slot[mine], left[mine], _ = draw(row, cut.take(mine), u[mine])
        return cut.place(slot, left)

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        cut = self.cutter(now.law)
        slot = cut.locate(a_E)
        p = np.zeros(len(slot))
        for row, mine in self._groups(now, slot.shape[1]):
            p[mine] = probability(row, cut.take(mine), slot[mine])
        with np.errstate(divide="ignore"):
            log_q: FloatArray = np.log(p) + cut.log_prob_within(slot, a_E)
        return log_q

    def _groups(self, now: Situation, d: int) -> list[tuple[SlotRow, IntArray]]:
        """The situations of each row of the dictionary, and those without one."""
        groups: dict[Key | None, list[int]] = {}
        for i, key in enumerate(self.keys(now)):
            groups.setdefault(key if key in self.rows else None, []).append(i)
        start = SlotRow(d)
        return [
            (start if key is None else self.rows[key], np.array(mine))
            for key, mine in groups.items()
        ]
