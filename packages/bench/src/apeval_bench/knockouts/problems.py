"""Tuning problems: cheap, with known truths, at least one of every class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.special import ndtr

from apeval.environments import make
from apeval.problem.draws import Draws
from apeval.problem.laws import Categorical, Normal
from apeval.problem.problem import Problem
from apeval.problem.truth import Truth
from apeval.problem.types import Array, FloatArray

CONTINUOUS, DISCRETE, LONG, CHANCE, IN_STEPS, MANY, START, MARGIN = (
    "continuous", "discrete", "long", "chance", "in steps", "many", "start", "margin",
)  # fmt: skip
SEQUENCE, MODES, NOT_RARE, PLATEAU, OFTEN, LARGE = (
    "sequence", "modes", "not rare", "plateau", "often", "large",
)  # fmt: skip
"""Traits: what a knock-out needs to have any effect, so that no run is wasted. More decisions than
one; several modes; failures that Monte Carlo would show; a margin that is flat in places; failures
in a quarter of the episodes; a budget of tens of thousands of episodes (no problem here has the
last two)."""


@dataclass(frozen=True)
class Tuning:
    """A problem with a budget, and the class that it stands for."""

    name: str
    kind: str
    """The class."""
    make: Callable[[], Problem]
    traits: frozenset[str]
    steps: int | None = None
    episodes: int | None = None
    margin: bool = True
    towards: Callable[[], FloatArray] | None = None
    """Where the modes are known: means (modes, T, d_E) of standard normal disturbances that lead to
    every one of them."""
    dear: bool = False
    """Runs take seconds: they come after all others, and only for the main knock-outs."""
    lavish: int = 8
    """How many times the budget the learners of the reference have."""

    def problem(self) -> Problem:
        """As a method gets it: without its truth, and without tables."""
        found = _made(self.name)
        return replace(found, truth=None, margin=found.margin if self.margin else None)

    @property
    def truth(self) -> float:
        """The known probability."""
        known = _made(self.name).truth
        if known is None:
            raise ValueError(f"{self.name} has no truth")
        return known().value

    def budget(self, times: int = 1) -> dict[str, int]:
        """So many times the budget, as arguments."""
        if self.steps is not None:
            return {"steps": times * self.steps}
        return {"episodes": times * (self.episodes or 0)}

    @property
    def identity(self) -> dict[str, Any]:
        """What a measured run depends on."""
        return {"problem": self.name, **self.budget(), "margin": self.margin}


@cache
def _made(name: str) -> Problem:
    return PROBLEMS[name].make()


# -- problems of this bench --------------------------------------------------------------------


def passage(phi: float, limit: float, steps: int, nodes: int) -> float:
    """P(|x_t| > limit for some t ≤ steps), x_t = φ x_{t−1} + ε_t from 0, ε_t standard normal.

    As in `apeval.environments.synthetic.ar1`, with both sides: only positive terms are added.

    >>> round(passage(0.0, 1.0, 1, 50), 4)
    0.3173
    """
    u, w = np.polynomial.legendre.leggauss(nodes)
    x, w = limit * u, limit * w
    K = np.exp(-0.5 * (x[:, None] - phi * x[None, :]) ** 2) / np.sqrt(2.0 * np.pi) * w
    passes = (ndtr(phi * x - limit) + ndtr(-phi * x - limit)) * w
    f = np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)
    p = 2.0 * float(ndtr(-limit))
    for _ in range(steps - 1):
        p += float(passes @ f)
        f = K @ f
    return p


def regulator(
    phi: float = 0.9, limit: float = 11.5, steps: int = 200, channels: int = 3
) -> Problem:
    """A regulator that must keep |x| below a limit at all times, with noise on the actuator, on the
    sensor, and in further channels that do not matter: x' = φx + 0.8 z_1 + 0.6 z_2."""
    effect = np.array([0.8, 0.6] + (channels - 2) * [0.0])[:, None]

    def step(x: Array, a_A: Array, a_E: Array, draws: object) -> Array:
        return np.asarray(phi * x + a_E @ effect)

    return Problem(
        nominal=Normal(0.0, 1.0, dim=channels),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=step,
        failed=lambda x: np.where(np.abs(x[:, 0]) > limit, np.where(x[:, 0] > 0.0, 1, 2), 0),
        margin=lambda x: limit - np.abs(x[:, 0]),
        horizon=steps,
        kinds=("high", "low"),
        chunk=2048,
        name="regulator",
        description="a regulator that may fail at any of many decisions, on both sides",
        parameters={"phi": phi, "limit": limit, "steps": steps, "channels": channels},
        truth=lambda: Truth(passage(phi, limit, steps, 400), 0.0, "deterministic quadrature"),
    )


def landing(beta: float = 2.6, control: float = 0.8) -> Problem:
    """What `lunarlander` is, in little: the first decisions settle most of it, chance decides with
    nature, and an episode that has come through them goes on for a while.

    x_T = Σ c_t (ρ z_t + √(1−ρ²) ε_t) > β|c|, with ρ = `control`, hence Φ(−β); a second channel of
    nature's does nothing.
    """
    c = np.array([1.0, 0.5, 0.25, 0.1, 0.1, 0.05])
    limit, rest = beta * float(np.linalg.norm(c)), np.sqrt(1.0 - control**2)

    def step(x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
        pushed = control * a_E[:, :1] + rest * draws.normal(1)
        t = np.minimum(np.round(x[:, 1:]).astype(int), len(c) - 1)
        return np.concatenate([x[:, :1] + c[t] * pushed, x[:, 1:] + 1.0], axis=1)

    return Problem(
        nominal=Normal(0.0, 1.0, dim=2),
        reset=lambda draws: np.zeros((draws.n, 2)),
        step=step,
        failed=lambda x: x[:, 0] > limit,
        margin=lambda x: limit - x[:, 0],
        judge_at_end=True,
        horizon=len(c),
        chunk=4096,
        name="landing",
        description="chance decides with nature, mostly in the first decisions",
        parameters={"beta": beta, "control": control},
        truth=lambda: Truth(float(ndtr(-beta)), 0.0, "closed form, Φ(−β)"),
    )


def in_a_row(q: float, number: int, steps: int) -> float:
    """P(so many losses in a row within so many steps), each with probability q.

    >>> round(in_a_row(0.5, 2, 3), 6)
    0.375
    """
    now, lost = np.zeros(number), 0.0
    now[0] = 1.0
    for _ in range(steps):
        lost += q * now[-1]
        now = np.concatenate([[(1.0 - q) * now.sum()], q * now[:-1]])
    return float(lost)


def dropouts(q: float = 0.02, number: int = 3, steps: int = 40) -> Problem:
    """Messages that get lost: so many in a row, at any time, are a failure."""

    def step(x: Array, a_A: Array, a_E: Array, draws: object) -> Array:
        return np.where(a_E == 1, x + 1.0, 0.0)

    return Problem(
        nominal=Categorical([1.0 - q, q]),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=step,
        failed=lambda x: x[:, 0] >= number,
        margin=lambda x: number - x[:, 0],
        horizon=steps,
        chunk=2048,
        name="dropouts",
        description="several losses in a row, at any time",
        parameters={"q": q, "number": number, "steps": steps},
        truth=lambda: Truth(in_a_row(q, number, steps), 0.0, "exact recursion"),
    )


def _without_table(name: str) -> Problem:
    return replace(make(name), table=None)


def _sums(beta: float, steps: int, two_sided: bool) -> FloatArray:
    """Equal pushes to a sum of β√T."""
    signs = np.array([1.0, -1.0] if two_sided else [1.0])
    return np.asarray(signs[:, None, None] * np.full((1, steps, 1), beta / np.sqrt(steps)))


def _single(beta: float, steps: int, dim: int) -> FloatArray:
    """One disturbance alone beyond β, each in its turn; with more than one step on one side."""
    each = beta * np.eye(steps * dim).reshape(-1, steps, dim)
    return each if steps > 1 else np.concatenate([each, -each])


def _corners(limit: float) -> FloatArray:
    both = np.full((1, 1, 2), np.sqrt(limit))
    return np.concatenate([both, -both])


def _directions(beta: float, beta_second: float, steps: int, dim: int) -> FloatArray:
    """Along (1, 1, …) and (1, −1, …)."""
    along = np.stack([beta * np.ones(dim), beta_second * (-1.0) ** np.arange(dim)])
    return np.asarray(np.repeat(along[:, None, :], steps, axis=1) / np.sqrt(steps * dim))


# -- the set -----------------------------------------------------------------------------------

ONE, TWO, FREQUENT, OUTCOMES, ANY_TIME, LONG_EPISODES, NO_MARGIN, SEVERAL, SETTLED_EARLY = (
    "short, one mode",
    "short, two modes",
    "not rare",
    "discrete",
    "failures at any time",
    "long",
    "no margin",
    "many modes or dimensions",
    "chance decides, budget in steps",
)


def _set(*traits: str) -> frozenset[str]:
    return frozenset(traits)


_ALL = (
    Tuning(
        "int-v1",
        ONE,
        partial(make, "int-v1"),
        _set(PLATEAU, SEQUENCE, CONTINUOUS, MARGIN, IN_STEPS),
        steps=3_000,
    ),
    Tuning(
        "sum",
        ONE,
        partial(make, "gaussian-sum"),
        _set(SEQUENCE, CONTINUOUS, MARGIN, LONG),
        episodes=600,
        dear=True,
        towards=partial(_sums, 4.5, 20, False),
    ),
    Tuning(
        "sum-two",
        TWO,
        partial(make, "gaussian-sum-two", steps=4),
        _set(MODES, SEQUENCE, CONTINUOUS, MARGIN),
        episodes=600,
        towards=partial(_sums, 4.5, 4, True),
    ),
    Tuning(
        "pendulum",
        TWO,
        partial(make, "pendulum", controlled_start=True),
        _set(MODES, SEQUENCE, CONTINUOUS, MARGIN, LONG, START),
        episodes=800,
        dear=True,
    ),
    Tuning(
        "int-v0",
        FREQUENT,
        partial(make, "int-v0"),
        _set(PLATEAU, NOT_RARE, SEQUENCE, CONTINUOUS, MARGIN, IN_STEPS),
        steps=3_000,
    ),
    Tuning(
        "chance-sum",
        FREQUENT,
        partial(make, "chance-sum", beta=1.88079, control=0.6),
        _set(NOT_RARE, SEQUENCE, CONTINUOUS, MARGIN, CHANCE),
        episodes=1_000,
    ),
    Tuning(
        "walk",
        OUTCOMES,
        partial(_without_table, "walk"),
        _set(SEQUENCE, DISCRETE, IN_STEPS),
        steps=10_000,
    ),
    Tuning(
        "pendulum-discrete",
        OUTCOMES,
        partial(make, "pendulum-discrete"),
        _set(MODES, SEQUENCE, DISCRETE, MARGIN, LONG),
        episodes=800,
        dear=True,
    ),
    Tuning(
        "minigrid",
        OUTCOMES,
        partial(_without_table, "minigrid-s1"),
        _set(NOT_RARE, SEQUENCE, DISCRETE, IN_STEPS, CHANCE),
        steps=5_000,
    ),
    Tuning(
        "dropouts",
        ANY_TIME,
        dropouts,
        _set(PLATEAU, SEQUENCE, DISCRETE, MARGIN, LONG),
        episodes=600,
    ),
    Tuning(
        "ar1",
        ANY_TIME,
        partial(make, "ar1", steps=50, threshold=15.0),
        _set(SEQUENCE, CONTINUOUS, MARGIN, LONG),
        episodes=800,
    ),
    Tuning(
        "regulator",
        LONG_EPISODES,
        regulator,
        _set(MODES, SEQUENCE, CONTINUOUS, MARGIN, LONG),
        episodes=300,
        dear=True,
    ),
    Tuning(
        "sensors",
        LONG_EPISODES,
        partial(regulator, steps=100, channels=10),
        _set(MODES, SEQUENCE, CONTINUOUS, MARGIN, LONG, MANY),
        episodes=1_000,
        dear=True,
    ),
    Tuning(
        "int-v1-blind",
        NO_MARGIN,
        partial(make, "int-v1"),
        _set(SEQUENCE, CONTINUOUS, IN_STEPS),
        steps=6_000,
        margin=False,
        lavish=4,
        dear=True,
    ),
    Tuning(
        "many-modes",
        SEVERAL,
        partial(make, "many-modes"),
        _set(MODES, CONTINUOUS, MARGIN, MANY),
        episodes=2_000,
        lavish=15,
        towards=partial(_single, 4.8, 1, 4),
    ),
    Tuning(
        "product",
        SEVERAL,
        partial(make, "product"),
        _set(MODES, CONTINUOUS, MARGIN),
        episodes=2_000,
        towards=partial(_corners, 12.0),
    ),
    Tuning(
        "gust",
        SEVERAL,
        partial(make, "ar1", phi=0.0, threshold=4.7, steps=8),
        _set(MODES, SEQUENCE, CONTINUOUS, MARGIN),
        episodes=2_000,
        lavish=15,
        towards=partial(_single, 4.8, 8, 1),
    ),
    Tuning(
        "many-dimensions",
        SEVERAL,
        partial(make, "many-dimensions", steps=5, dim=6),
        _set(MODES, SEQUENCE, CONTINUOUS, MARGIN, MANY),
        episodes=2_000,
        towards=partial(_directions, 4.5, 4.6, 5, 6),
    ),
    Tuning(
        "landing",
        SETTLED_EARLY,
        landing,
        _set(NOT_RARE, SEQUENCE, CONTINUOUS, MARGIN, CHANCE, IN_STEPS),
        steps=6_000,
    ),
)

PROBLEMS = {tuning.name: tuning for tuning in _ALL}
CLASSES = tuple(dict.fromkeys(tuning.kind for tuning in _ALL))
