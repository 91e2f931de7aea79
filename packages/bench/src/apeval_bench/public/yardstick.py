"""The rows of `bench public`: a problem that others defined, at a budget.

Budgets are the published ones where there are any, and one smaller; elsewhere they were written
down before anything was run. No constant of a method is chosen on these rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from apeval.errors import unknown
from apeval_bench.accuracy.table import TableRow

CLASSES = {
    "model-checking": "Statistical model checking",
    "learned-proposals": "Learned proposals",
    "splitting": "Splitting",
    "reliability": "Structural reliability",
    "policies": "Policies in simulators",
}
"""Kinds of problems, with their headings."""


@dataclass(frozen=True)
class PublicRow:
    """A problem at a budget, and what its authors got."""

    kind: str
    """One of `CLASSES`."""
    table: TableRow
    published: str = ""
    """The published result at this budget, in words."""
    slow: bool = False
    """A simulator of milliseconds per decision: a third of the seeds, and no peers."""

    @property
    def key(self) -> str:
        """The row's name: the problem's, with what differs from its defaults, and the budget."""
        return self.table.key

    @property
    def share(self) -> float:
        """Of the seeds that the row takes."""
        return 1.0 / 3.0 if self.slow else self.table.seed_share

    def shrunk(self, episodes: int) -> PublicRow:
        """The row at a tiny budget, to see that everything runs.

        Args:
            episodes: The budget.

        Returns:
            A copy under a name of its own.
        """
        name = f"{self.key.rpartition('-')[0]}-{episodes}"
        return replace(self, table=replace(self.table, key=name, steps=None, episodes=episodes))


def _rows(
    kind: str,
    problem: str,
    budgets: Sequence[int],
    published: str = "",
    slow: bool = False,
    name: str = "",
    peers: dict[str, Any] | None = None,
    without_peers: bool = False,
    **settings: Any,
) -> list[PublicRow]:
    """A problem at several budgets in episodes; `published` belongs to the last."""
    name = name or problem
    peer_settings = None if slow or without_peers else peers or {}
    return [
        PublicRow(
            kind,
            TableRow(
                f"{name}-{n}", problem, episodes=n, settings=settings, peer_settings=peer_settings
            ),
            published if n == budgets[-1] else "",
            slow,
        )
        for n in budgets
    ]


_CHECKED = (1_000, 10_000)
_MODEL_CHECKING = [
    *_rows("model-checking", "brp", _CHECKED, name="brp-16-2-p1", n=16, retransmissions=2),
    *(
        row
        for size, n, most in (("16-2", 16, 2), ("64-5", 64, 5))
        for p in ("p2", "p4")
        for row in _rows(
            "model-checking", "brp", _CHECKED[1:], name=f"brp-{size}-{p}", n=n,
            retransmissions=most, property=p,
        )
    ),
    *_rows("model-checking", "brp", _CHECKED, name="brp-64-5-p1", n=64, retransmissions=5),
    *_rows(
        "model-checking", "philosophers", _CHECKED,
        "modes, asked for ± 5 %: 45,236,500 runs in 1,147 s, error 0.5 %", name="philosophers-16",
    ),
    *_rows(
        "model-checking", "philosophers", _CHECKED, "modes: no answer within 1,800 s",
        name="philosophers-20", n=20,
    ),
    *_rows("model-checking", "cluster", _CHECKED, without_peers=True),  # its margin is a count
    *_rows("model-checking", "zeroconf", _CHECKED),
]  # fmt: skip
_LEARNED = [
    *_rows("learned-proposals", "nofis-leaf", (7_000, 32_050), "stored run of NOFIS: −66 %"),
    *_rows("learned-proposals", "nofis-cube", (7_000, 197_500), "stored run of NOFIS: +1.3 %"),
    *_rows("learned-proposals", "nofis-levy", (7_000, 48_200), "stored run of NOFIS: −24 %"),
    *_rows("learned-proposals", "nofis-rosen", (7_000,), "stored run of NOFIS: −53 %"),
    *_rows("learned-proposals", "nofis-powell", (7_000,), "stored run of NOFIS: +7 %"),
    *_rows(
        "learned-proposals", "pendulum", (5_000, 50_000),
        "Corso et al.: mean absolute error 10 %", peers={"controlled_start": True},
    ),
    *_rows(
        "learned-proposals", "pendulum-discrete", (5_000, 50_000),
        "Corso et al.: mean absolute error 11 %",
    ),
    PublicRow(
        "learned-proposals",
        TableRow("aa228v-pendulum-10000-steps", "aa228v-pendulum", steps=10_000),
    ),
]  # fmt: skip
_SPLITTING = [
    *_rows(
        "splitting", "ornstein-uhlenbeck", (500, 2_000), "pyTAMS: a figure, 32 trajectories",
        peers={"controlled_start": True},
    ),
    *_rows("splitting", "double-well", (250, 1_000), "pyTAMS: a figure, 50 trajectories"),
    *_rows("splitting", "double-well", (1_000,), name="double-well-rare", epsilon=0.05),
]  # fmt: skip
_RELIABILITY = [
    row
    for name in ("rp25", "rp28", "rp77", "rp107", "rp110", "rp111")
    for row in _rows("reliability", name, (1_000, 10_000))
]
_POLICIES = [
    *_rows("policies", "cartpole", (1_000, 4_000)),
    *_rows("policies", "cartpole", (1_000, 4_000), name="cartpole-rare", std=0.0335),
    *_rows("policies", "double-integrator", (1_000, 4_000)),
    *_rows("policies", "lane-keeper", (1_000, 4_000)),
    *_rows("policies", "inverted-pendulum", (400, 1_600), slow=True),
    *_rows("policies", "highway-cars", (100, 400), slow=True),
]

ROWS = (*_MODEL_CHECKING, *_LEARNED, *_SPLITTING, *_RELIABILITY, *_POLICIES)


def choose_rows(wanted: Sequence[str]) -> list[PublicRow]:
    """Rows by name, problem or class.

    Args:
        wanted: Names; all rows where there are none.

    Returns:
        The rows, in the order of the table.

    Raises:
        UnknownNameError: A name that is none of them.
    """
    known = {name for row in ROWS for name in (row.key, row.table.problem, row.kind)}
    for name in wanted:
        if name not in known:
            raise unknown("row", name, known)
    return [
        row for row in ROWS if not wanted or {row.key, row.table.problem, row.kind} & set(wanted)
    ]
