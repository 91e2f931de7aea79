"""The loop of `plain.py` on arrays, compiled; the same floating-point operations in the same
order, so that both give the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from apeval.learn.ape_tabular.implied_adversaries import UNKNOWN
from apeval.problem.draws import AGENT, NATURE, philox, to_unit
from apeval.problem.tabular_model import SAFE_END

#: Layout of the integer counters that the loop keeps.
STEPS, EPISODES, LONGEST, STOPPED, LAST_OUTSIDE, HEAD, FILLED, CURVE = range(8)

_philox = njit(cache=True)(philox)
_to_unit = njit(cache=True)(to_unit)


@njit(cache=True)
def _uniform(key: Any, episode: int, t: int, purpose: int) -> float:
    """The first uniform of the stream that `Draws` addresses by the same numbers."""
    c3 = (np.uint64(episode) >> np.uint64(32)) + (np.uint64(purpose) << np.uint64(24))
    low = np.uint64(episode) & np.uint64(0xFFFFFFFF)
    w0, w1, _, _ = _philox(np.uint64(0), np.uint64(t + 1), low, c3, key[0], key[1])
    return _to_unit(w0, w1)  # type: ignore[no-any-return]


@njit(cache=True)
def _pick(p: Any, u: float) -> int:
    total = 0.0
    for k in range(len(p)):
        total += p[k]
    scaled, cumulated, chosen = u * total, 0.0, 0
    for k in range(len(p) - 1):
        cumulated += p[k]
        if scaled >= cumulated:
            chosen += 1
    return chosen


@njit(cache=True)
def _r_plus_v(code: int, v: Any, offset: int) -> float:
    """r(s, s') + v(s') of a remembered successor."""
    if code >= 0:
        return v[code + offset]  # type: ignore[no-any-return]
    return 1.0 if code < SAFE_END else 0.0


@njit(cache=True)
def _rho_exact(pi_A: Any, gt: Any, pi: Any, memory: Any, code: int) -> float:
    """Weight of the transition s → s', summed over agent actions."""
    p, p_n = 0.0, 0.0
    for a in range(memory.shape[0]):
        for e in range(memory.shape[1]):
            if memory[a, e] == code:
                p += pi_A[a] * gt[a, e]
                p_n += pi_A[a] * pi[a, e]
    return p / p_n


@njit(cache=True)
def normalise(pi: Any, tilde: Any, gt: Any, delta: float, true_floor: bool) -> None:
    """π_E from a row of π̃_E; the unnormalised row stays as it is."""
    total = 0.0
    E = len(pi)
    for e in range(E):
        total += tilde[e]
    for e in range(E):
        p = tilde[e] / total if total > 0.0 else gt[e]
        pi[e] = (1.0 - E * delta) * p + delta if true_floor else p


@njit(cache=True)
def update_row(
    pi: Any, tilde: Any, gt: Any, memory: Any, v: Any, offset: int, v_s: float, v_init: float,
    delta: float, true_floor: bool,
) -> None:  # fmt: skip
    """Eq. MDP_p_update for all remembered successors of (s, a_A)."""
    for e in range(len(pi)):
        if memory[e] == UNKNOWN:
            tilde[e] = gt[e] * max(v_init, v_s) / v_s
        else:
            tilde[e] = gt[e] * _r_plus_v(memory[e], v, offset) / v_s
        if not true_floor:
            tilde[e] = max(delta, tilde[e])
    normalise(pi, tilde, gt, delta, true_floor)


@njit(cache=True)
def _watch(
    n: int, v_0: float, steps: Any, values: Any, count: Any, window: int, tolerance: float
) -> None:
    """`Stagnation.change` on a ring buffer of v(s0)'s changes."""
    size = len(steps)
    newest = (count[HEAD] + count[FILLED] - 1) % size
    if v_0 == values[newest]:
        return
    if steps[newest] == n:
        count[FILLED] -= 1
    if count[FILLED] == size:
        count[HEAD] = (count[HEAD] + 1) % size
        count[FILLED] -= 1
    newest = (count[HEAD] + count[FILLED]) % size
    steps[newest], values[newest] = n, v_0
    count[FILLED] += 1
    while count[FILLED] > 1 and steps[(count[HEAD] + 1) % size] <= n - window:
        count[HEAD] = (count[HEAD] + 1) % size
        count[FILLED] -= 1
    count[LAST_OUTSIDE] = -1
    later = n
    for k in range(count[FILLED] - 1, -1, -1):
        i = (count[HEAD] + k) % size
        if not abs(values[i] - v_0) < tolerance * v_0:
            count[LAST_OUTSIDE] = later - 1
            break
        later = steps[i]


@njit(cache=True)
def learn(
    key: Any,
    agent: Any, nominal: Any, successor: Any, start: int, horizon: int, horizon_kind: int, cap: int,
    v: Any, visits: Any, pi: Any, tilde: Any, memory: Any,
    count: Any, failures: Any, ring_steps: Any, ring_values: Any, curve: Any, curve_every: int,
    limit: int, max_episodes: int, round_ends: int,
    exact: bool, by_row: bool, n_step: int, timed: bool,
    c: float, v_init: float, v_floor: float, delta: float, true_floor: bool,
    window: int, tolerance: float,
) -> None:  # fmt: skip
    """Run episodes until the round ends, the budget is spent, or the stopping rule holds.

    `horizon` is 0 where there is none. With time in the state (`timed`) the tables of decision t
    start at row t·S.
    """
    S = successor.shape[0]
    open_state = np.zeros(n_step, np.int64)
    open_rho = np.zeros(n_step)
    while (
        count[STEPS] < round_ends
        and count[STEPS] < limit
        and count[EPISODES] < max_episodes
        and not count[STOPPED]
    ):
        s, t, waiting, kind = start, 0, 0, 0
        while count[STEPS] < limit:
            here = s + t * S if timed else s
            offset = (t + 1) * S if timed else 0
            a_A = _pick(agent[s], _uniform(key, count[EPISODES], t, AGENT))
            gt, row = nominal[s, a_A], pi[here, a_A]
            a_E = _pick(row, _uniform(key, count[EPISODES], t, NATURE))
            code = successor[s, a_A, a_E]
            t += 1
            count[STEPS] += 1
            kind, ended, remembered = 0, code < 0, code
            if code < SAFE_END:
                kind = SAFE_END - code
            if code >= 0 and horizon > 0 and t >= horizon:
                kind, ended = horizon_kind, True
                if timed:
                    remembered = SAFE_END - horizon_kind
            elif code >= 0 and horizon == 0 and t >= cap:
                ended, remembered = True, SAFE_END
            memory[here, a_A, a_E] = remembered
            if exact:
                rho = _rho_exact(agent[s], nominal[s], pi[here], memory[here], remembered)
            else:
                rho = gt[a_E] / row[a_E]
            r = 1.0 if kind > 0 else 0.0
            tail = r if ended else r + v[code + offset]
            open_state[waiting], open_rho[waiting] = here, rho
            waiting += 1
            while waiting > 0 and (ended or waiting == n_step):
                target = 1.0
                for k in range(waiting):
                    target *= open_rho[k]
                first = open_state[0]
                for k in range(1, waiting):
                    open_state[k - 1], open_rho[k - 1] = open_state[k], open_rho[k]
                waiting -= 1
                visits[first] += 1
                alpha = c / (c + visits[first] - 1)
                v[first] = (1.0 - alpha) * v[first] + alpha * (target * tail)
            v_s = max(v[here], v_floor)
            if by_row:
                update_row(
                    row, tilde[here, a_A], gt, memory[here, a_A], v, offset, v_s, v_init, delta,
                    true_floor,
                )  # fmt: skip
            else:
                raw = gt[a_E] * (r if ended else r + v[code + offset]) / v_s
                tilde[here, a_A, a_E] = raw if true_floor else max(delta, raw)
                normalise(row, tilde[here, a_A], gt, delta, true_floor)
            if kind > 0:
                failures[kind] += 1
            _watch(count[STEPS], v[start], ring_steps, ring_values, count, window, tolerance)
            if (
                tolerance > 0.0
                and failures.sum() > 0
                and count[STEPS] >= window
                and count[STEPS] - count[LAST_OUTSIDE] > window
            ):
                count[STOPPED] = 1
            if count[STEPS] % curve_every == 0 and count[CURVE] < len(curve):
                curve[count[CURVE], 0], curve[count[CURVE], 1] = count[STEPS], v[start]
                count[CURVE] += 1
            if ended or count[STOPPED]:
                break
            s = code
        count[EPISODES] += 1
        count[LONGEST] = max(count[LONGEST], t)
