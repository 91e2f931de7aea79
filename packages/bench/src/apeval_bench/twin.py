"""The twin against highway-env, episode by episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_EPISODES_EACH = 800


@experiment("bench", "twin", "the compiled twin against highway-env: outcomes, lengths", seeds=1)
def twin(request: ExperimentRequest) -> ExperimentReport:
    """Nominal, widened, cornered and near-miss disturbances over eight geometries."""
    from apeval_paper.environments.intersection.bench import GEOMETRIES, equivalence

    total = len(GEOMETRIES) * _EPISODES_EACH
    data = equivalence(
        _EPISODES_EACH,
        stock=True,
        seed=request.first_seed,
        progress=lambda done: request.tick("episodes", done, total),
    )
    enough = data["episodes"] >= 5_000 and data["crashes"] >= 500
    return ExperimentReport(data, as_text(data), passed=enough and data["mismatches"] == 0)


def as_text(data: Mapping[str, Any]) -> str:
    """The numbers as a table.

    >>> print(as_text({"episodes": 6400, "largest_state_difference": 0.0}))
    | what | |
    |---|---|
    | episodes | 6,400 |
    | largest state difference | 0.0 |
    """
    lines = ["| what | |", "|---|---|"]
    for key, value in data.items():
        shown = f"{value:,}" if isinstance(value, int) and key != "seed" else value
        lines.append(f"| {key.replace('_', ' ')} | {shown} |")
    return "\n".join(lines)
