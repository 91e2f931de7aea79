"""Noise with memory: an Ornstein-Uhlenbeck (AR(1)) disturbance, driven by what nature decides.

Nature decides innovations e_t, independent with the problem's own law π_E,gt; what acts on the
problem is v_t = m + ρ(v_{t−1} − m) + √(1 − ρ²)(e_t − m), with v_0 = e_0. Innovations and noise
belong together one to one, so the density of an episode is that of its innovations, exactly. The
noise is part of the simulator's state and of every view, because what comes next depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.argument_copies import own
from apeval.problem.draws import Draws
from apeval.problem.laws import Disturbance, Law
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray


def with_correlated_noise(
    problem: Problem, correlation: float, mean: float | Sequence[float] = 0.0
) -> Problem:
    """The same problem under noise that is correlated in time.

    The noise v_t is stationary with the mean m and the variance of the problem's own disturbance,
    and has the autocorrelation ρᵏ at a distance of k decisions. Where that disturbance is Gaussian,
    so is v_t. A process with relaxation time τ that is sampled every Δt has ρ = exp(−Δt/τ).

    Args:
        problem: A problem with a continuous disturbance, whose law becomes that of the
            innovations: v_t takes the place of a_E in its step.
        correlation: ρ, between −1 and 1.
        mean: m, the disturbance's mean, a number or one per component, (d_E,).

    Returns:
        The new problem. Views have d_E more columns, the noise that acted last (m before the first
        decision). It has no truth and no transition tables.

    Raises:
        ProblemError: The disturbance is discrete, or an argument is out of range.

    Examples:
        >>> from apeval.problem.laws import Normal
        >>> steps = Problem(
        ...     nominal=Normal(0.0, 0.5),
        ...     reset=lambda draws: np.zeros((draws.n, 1)),
        ...     step=lambda x, a_A, a_E, draws: x + a_E,
        ...     failed=lambda x: x[:, 0] > 9.0,
        ...     horizon=20,
        ... )
        >>> with_correlated_noise(steps, 0.9).nominal.in_words()
        'Gaussian, 1 component, mean 0, σ 0.5: innovations of noise with correlation 0.9'
    """
    if problem.nominal.discrete:
        raise ProblemError("with_correlated_noise needs a continuous disturbance, not outcomes")
    d = problem.nominal.dim
    try:
        centre = np.broadcast_to(np.asarray(mean, np.float64), (d,)).copy()
    except (TypeError, ValueError):
        raise ProblemError(f"mean must be a number, or {d} of them; got {mean!r}") from None
    if not np.isfinite(centre).all():
        raise ProblemError(f"mean must be finite; got {mean!r}")
    noise = Ar1(check_correlation(correlation))
    views = {name: _View(view) for name, view in problem.views.items()}
    return replace(
        problem,
        nominal=_Innovations(problem.nominal, noise.correlation),
        reset=_Reset(problem.reset, centre),
        step=_Step(problem.step, noise, centre),
        agent=_Agent(problem.agent),
        failed=_OfInner(problem.failed),
        done=None if problem.done is None else _OfInner(problem.done),
        margin=None if problem.margin is None else _OfInner(problem.margin),
        views=views,
        table=None,
        truth=None,
        verify=None,
    )


@dataclass(frozen=True)
class Ar1:
    """The recursion from innovations to noise."""

    correlation: float

    def next(self, e: Array, before: Array | None, mean: Array) -> FloatArray:
        """v_t from e_t and v_{t−1} (None at the first), all of the same shape."""
        if before is None:
            return np.array(e, np.float64)
        rho = self.correlation
        return np.asarray(mean + rho * (before - mean) + math.sqrt(1.0 - rho**2) * (e - mean))


def check_correlation(correlation: Any) -> float:
    """A correlation from one decision to the next, or a `ProblemError`."""
    real = isinstance(correlation, int | float | np.floating) and not isinstance(correlation, bool)
    if not real or not -1.0 < correlation < 1.0:
        raise ProblemError(f"correlation must lie between −1 and 1; got {correlation!r}")
    return float(correlation)


@dataclass(frozen=True)
class Noisy:
    """The simulator's state with the noise's: n episodes in lockstep."""

    x: Any
    """The problem's own state."""
    noise: FloatArray
    """What acted last, (n, d_E)."""
    first: bool
    """Whether nothing has acted yet."""

    def __len__(self) -> int:
        return len(self.noise)

    def __getitem__(self, rows: Any) -> Noisy:
        return Noisy(self.x[rows], self.noise[rows], self.first)


class _Innovations(Disturbance):
    """The problem's own law, asked with the problem's own state."""

    def __init__(self, of: Disturbance, correlation: float) -> None:
        self.of, self.correlation, self.dim = of, correlation, of.dim
        self.learnable = of.learnable

    def given(self, x: Any, a_A: Any) -> Law:
        return self.of.given(own(x.x), a_A)

    def in_words(self) -> str:
        return f"{self.of.in_words()}: innovations of noise with correlation {self.correlation:g}"


@dataclass(frozen=True)
class _Reset:
    of: Callable[..., Any]
    mean: FloatArray

    def __call__(self, draws: Draws, *a_0: Array) -> Noisy:
        return Noisy(self.of(draws, *a_0), np.tile(self.mean, (draws.n, 1)), True)


@dataclass(frozen=True)
class _Step:
    of: Callable[..., Any]
    noise: Ar1
    mean: FloatArray

    def __call__(self, x: Noisy, a_A: Array, a_E: Array, draws: Draws) -> Noisy:
        v = self.noise.next(a_E, None if x.first else x.noise, self.mean)
        return Noisy(self.of(x.x, a_A, v, draws), v, False)


@dataclass(frozen=True)
class _Agent:
    of: Any

    def act(self, x: Noisy, draws: Draws) -> Array:
        """As without noise: the agent does not see it."""
        a_A: Array = self.of.act(own(x.x), draws)
        return a_A


@dataclass(frozen=True)
class _OfInner:
    """A function of the problem's own state."""

    of: Callable[[Any], Any]

    def __call__(self, x: Noisy) -> Any:
        return self.of(x.x)


@dataclass(frozen=True)
class _View:
    of: Callable[[Any], Array]

    def __call__(self, x: Noisy) -> Array:
        s = np.asarray(self.of(own(x.x)))
        return np.column_stack([s, x.noise])
