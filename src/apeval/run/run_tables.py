"""A run as Arrow tables, for notebooks: `run.tables.episodes.to_pandas()`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from apeval.estimate.sample import Sample
from apeval.problem.types import Array
from apeval.simulate.episodes import Episodes

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class RunTables:
    """The episodes that a run's estimate rests on, as Arrow tables. Each has a method `to_pandas`,
    which gives a DataFrame where pandas is installed."""

    sample: Sample
    """What the estimate was computed from."""
    of: Episodes
    """The sample's episodes, in its order."""
    kinds: tuple[str, ...]
    """Names of the failure kinds."""

    @property
    def episodes(self) -> pyarrow.Table:
        """One row per episode: id, component, kind (empty: no failure), unresolved,
        ended_by_roulette, length, margin, log_weight, weight, and the start's disturbance a_0."""
        it, sample = self.of, self.sample
        names = np.array(["", *self.kinds])
        return _table(
            {
                "id": it.ids,
                "component": it.component,
                "kind": names[it.kind],
                "unresolved": it.unresolved,
                "ended_by_roulette": it.ended_by_roulette,
                "length": it.length,
                "margin": it.margin,
                "log_weight": sample.log_weights,
                "weight": sample.weights,
                **_columns("a_0", it.a_0),
            }
        )

    @property
    def decisions(self) -> pyarrow.Table:
        """One row per decision: the episode's id, t, and the columns of s, a_A and a_E."""
        it = self.of
        return _table(
            {
                "id": it.ids[it.episode],
                "t": it.t,
                **_columns("s", it.s),
                **_columns("a_A", it.a_A),
                **_columns("a_E", it.a_E),
            }
        )

    @property
    def failures(self) -> pyarrow.Table:
        """The failing episodes, those that count most first, with their `share` of the estimate."""
        table = self.episodes
        failing = np.flatnonzero(self.sample.failed)
        w = self.sample.weights[failing]
        order = np.argsort(-w, kind="stable")
        share = w[order] / w.sum() if w.sum() > 0.0 else w[order]
        return table.take(failing[order]).append_column("share", [share])


def _columns(name: str, values: Array) -> dict[str, Array]:
    """A matrix column by column, such as s_0, s_1."""
    return {f"{name}_{j}": values[:, j] for j in range(values.shape[1])}


def _table(columns: dict[str, Any]) -> pyarrow.Table:
    import pyarrow

    return pyarrow.table({name: np.ascontiguousarray(it) for name, it in columns.items()})
