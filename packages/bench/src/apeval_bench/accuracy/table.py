"""What is measured: each row a problem with a budget and, where one is set, a figure to reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from apeval.environments import make
from apeval.errors import unknown
from apeval.problem.problem import Problem

OURS = "ape"
BASELINES = ("mc", "cem", "ape-scalable")
SCALABLE_DECISIONS = 10_000
"""`ape-scalable` takes milliseconds per decision: rows with more leave it out."""


@dataclass(frozen=True)
class TableRow:
    """A problem with a budget. Figures are relative RMSEs."""

    key: str
    problem: str
    steps: int | None = None
    episodes: int | None = None
    figure: float | None = None
    goal: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    peer_settings: Mapping[str, Any] | None = field(default_factory=dict)
    """Changes to the settings for peers; None: they do not apply."""
    margin: bool = True
    """Whether methods may see the problem's margin."""
    modes: tuple[str, ...] = ()
    """Kinds of failure that every run must have found."""
    seed_share: float = 1.0
    """Share of the seeds that the row takes in `accuracy` …"""
    coverage_share: float = 1.0
    """… and in `coverage`."""
    target_error: float | None = None
    known: float | None = None
    """The truth, where it was found before and takes long to find again."""

    def make(self, peers: bool = False) -> Problem:
        """The problem as a method, or a peer, gets it."""
        extra = (self.peer_settings or {}) if peers else {}
        problem = _made(self.problem, tuple(sorted({**self.settings, **extra}.items())))
        return problem if self.margin else replace(problem, margin=None)

    @property
    def budget(self) -> str:
        """The budget in words."""
        if self.target_error is not None:
            return f"± {self.target_error:.0%}"
        return f"{self.episodes:,} episodes" if self.steps is None else f"{self.steps:,}"

    def truth(self) -> float:
        """The known probability."""
        if self.known is not None:
            return self.known
        known = self.make().truth
        if known is None:
            raise ValueError(f"row {self.key} has no truth")
        return known().value


@cache
def _made(name: str, settings: tuple[tuple[str, Any], ...]) -> Problem:
    return make(name, **dict(settings))


_PENDULUM: dict[str, Any] = {
    "problem": "pendulum",
    "modes": ("left", "right"),
    "peer_settings": {"controlled_start": True},
}
_LONG: dict[str, Any] = {"episodes": 50_000, "seed_share": 0.2, "coverage_share": 0.25}
_LANDER: dict[str, Any] = {"seed_share": 0.4, "coverage_share": 0.25, "peer_settings": None}

#: The rows with a figure.
FIGURES = (
    TableRow("int-v1-3000", "int-v1", steps=3_000, figure=0.10, goal=0.05),
    TableRow("int-v1-10000", "int-v1", steps=10_000, figure=0.04, goal=0.025),
    TableRow("int-v1-no-margin", "int-v1", steps=10_000, figure=0.06, margin=False),
    TableRow("int-v0-3000", "int-v0", steps=3_000, figure=0.12, goal=0.06),
    TableRow("int-v0-10000", "int-v0", steps=10_000, figure=0.06, goal=0.03),
    TableRow("lunarlander-10000", "lunarlander", steps=10_000, figure=0.22, goal=0.16, **_LANDER),
    *(
        TableRow(f"minigrid-s{k}-9000", f"minigrid-s{k}", steps=9_000, figure=0.05, goal=0.02)
        for k in (1, 2, 3)
    ),
    TableRow("pendulum-50000", figure=0.03, goal=0.01, **_PENDULUM, **_LONG),
    TableRow(
        "pendulum-discrete-50000",
        "pendulum-discrete",
        figure=0.03,
        goal=0.01,
        modes=("left", "right"),
        **_LONG,
    ),
    TableRow("pendulum-5000", episodes=5_000, figure=0.15, goal=0.08, **_PENDULUM),
    TableRow(
        "gaussian-sum-two-5000",
        "gaussian-sum-two",
        episodes=5_000,
        figure=0.10,
        goal=0.05,
        modes=("high", "low"),
    ),
)

_GUST = {"phi": 0.0, "threshold": 4.7, "steps": 8}  # any of eight disturbances alone
_CHANCE: tuple[tuple[str, int, dict[str, Any]], ...] = (  # v* = 0.1, 0.03, 0.01
    ("frequent-1000", 1_000, {"beta": 1.28155}),
    ("1000", 1_000, {"beta": 1.88079}),
    ("rare-2000", 2_000, {"beta": 2.32635}),
    ("shared-1000", 1_000, {"beta": 1.88079, "control": 0.6}),
)
#: Rows without a figure: further limits of a method.
FURTHER = tuple(
    replace(row, coverage_share=0.25)
    for row in (
        TableRow("walk-20000", "walk", steps=20_000),
        TableRow("one-step-2000", "one-step", episodes=2_000),
        TableRow("gaussian-sum-2000", "gaussian-sum", episodes=2_000),
        TableRow("gaussian-sum-100-2000", "gaussian-sum", episodes=2_000, settings={"steps": 100}),
        TableRow(
            "many-dimensions-5000",
            "many-dimensions",
            episodes=5_000,
            modes=("even", "alternating"),
        ),
        TableRow("ar1-2000", "ar1", episodes=2_000),
        TableRow("gust-3000", "ar1", episodes=3_000, settings=_GUST),
        TableRow("product-2000", "product", episodes=2_000, modes=("high", "low")),
        TableRow("many-modes-2000", "many-modes", episodes=2_000),
        TableRow("hidden-mode-5000", "hidden-mode", episodes=5_000, modes=("shown", "hidden")),
        TableRow("discontinuous-5000", "discontinuous", episodes=5_000),
        TableRow("first-step-2000", "first-step", episodes=2_000),
        TableRow("flat-margin-5000", "flat-margin", episodes=5_000),
        TableRow("scaled-2000", "scaled", episodes=2_000),
        *(
            TableRow(f"chance-{name}", "chance-sum", episodes=n, settings=s, peer_settings=None)
            for name, n, s in _CHANCE
        ),
        TableRow("never-2000", "never", episodes=2_000, peer_settings=None),
        TableRow("always-2000", "always", episodes=2_000, peer_settings=None),
    )
)

#: Rows of `coverage` that stop at a target error.
TARGETS = (
    TableRow("int-v1-target", "int-v1", target_error=0.1),
    TableRow("gaussian-sum-target", "gaussian-sum", target_error=0.1),
)

ROWS = FIGURES + FURTHER


def choose(rows: Sequence[TableRow], wanted: Sequence[str]) -> list[TableRow]:
    """The rows whose key or problem is named; all of them where nothing is."""
    known = {row.key for row in rows} | {row.problem for row in rows}
    for name in wanted:
        if name not in known:
            raise unknown("row", name, known)
    return [row for row in rows if not wanted or {row.key, row.problem} & set(wanted)]
