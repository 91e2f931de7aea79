"""D: the transitions seen, with their stored one-step weights ρ."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from apeval.problem.types import BoolArray, FloatArray, IntArray
from apeval.simulate.episodes import Episodes

LOG_RHO_MOST = float(np.log(1e9))  # keeps TD targets finite where π_E,θ has left a region


@dataclass(frozen=True)
class Transitions:
    """Rows (s, s', r, ρ) as v_ψ needs them; with n-step targets s' lies n decisions ahead."""

    x: FloatArray
    """Inputs of v_ψ at s, (N, d)."""
    x_next: FloatArray
    """Inputs of v_ψ at s', (N, d)."""
    r: FloatArray
    """r(s, s'), (N,)."""
    rho: FloatArray
    """ρ of Eq. scalable_ape_is_weight; a product for n-step targets, (N,)."""
    open: BoolArray
    """Whether the episode goes on at s'; elsewhere v(s') = 0, (N,)."""
    t: IntArray
    """Decision number of s, (N,)."""
    t_next: IntArray
    """Decision number of s', (N,)."""

    def __len__(self) -> int:
        return len(self.t)

    def take(self, rows: slice | IntArray | BoolArray) -> Transitions:
        """The chosen rows."""
        return Transitions(*[getattr(self, f.name)[rows] for f in fields(self)])


def join(first: Transitions, second: Transitions) -> Transitions:
    """Two sets of rows as one, in order."""
    pairs = [(getattr(first, f.name), getattr(second, f.name)) for f in fields(first)]
    return Transitions(*[np.concatenate(pair) for pair in pairs])


def transitions(batch: Episodes, x: FloatArray, log_rho: FloatArray, n_step: int) -> Transitions:
    """The rows of a batch; unresolved episodes' last transitions teach nothing and are left out.

    Eq. scalable_TD_target over n decisions is (Π ρ)(r + v(s_{t+n})); n_step = 0: to the end.
    """
    N = len(batch.t)
    rows = np.arange(N)
    last = np.searchsorted(batch.episode, batch.episode, side="right") - 1
    end = np.minimum(rows + n_step - 1, last) if n_step else last
    total = np.concatenate([[0.0], np.cumsum(log_rho)])
    rho = log_rho if n_step == 1 else total[end + 1] - total[:-1]
    terminal = end == last
    following = np.minimum(end + 1, N - 1)
    known = ~(terminal & batch.unresolved[batch.episode])
    return Transitions(
        x=x,
        x_next=x[following],
        r=(terminal & batch.failed[batch.episode]).astype(np.float64),
        rho=np.exp(np.minimum(rho, LOG_RHO_MOST)),
        open=~terminal,
        t=batch.t,
        t_next=(batch.t + (end - rows) + 1).astype(np.int64),
    ).take(known)
