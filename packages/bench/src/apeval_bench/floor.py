"""The floor: how well any method can do on the intersections."""

from __future__ import annotations

from typing import Any

from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_EPISODES, _BAR = 100_000, 0.03


@experiment("bench", "floor", "spread of the zero-variance adversary on int-v0 and int-v1", seeds=1)
def floor(request: ExperimentRequest) -> ExperimentReport:
    """Per-episode variation under the adversary that dynamic programming gives, on the twin."""
    from apeval_paper.environments.intersection.bench import floor as measure

    rows: list[dict[str, Any]] = []
    names = ("int-v0", "int-v1")
    for name in names:
        for seed in request.all_seeds:
            request.tick(name, len(rows), len(names) * request.seeds)
            rows.append(measure(name, _EPISODES, seed))
    worst = max(r["relative_error_at_1000_episodes"] for r in rows if r["problem"] == "int-v1")
    lines = [
        "| problem | episodes | estimate | failure rate | variation per episode "
        "| relative error at 1,000 episodes |",
        "|---|---|---|---|---|---|",
    ]
    for r in rows:
        lines.append(
            f"| {r['problem']} | {r['episodes']:,} | {r['value']:.4e} ± {r['standard_error']:.1e} "
            f"| {r['failure_rate']:.4f} | {r['variation_per_episode']:.3f} "
            f"| {r['relative_error_at_1000_episodes']:.2%} |"
        )
    data = {"seeds": [request.all_seeds[0], request.all_seeds[-1]], "rows": rows}
    return ExperimentReport(data, "\n".join(lines), passed=worst <= _BAR)
