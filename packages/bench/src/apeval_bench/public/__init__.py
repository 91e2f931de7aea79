"""`apeval bench public`: other people's problems × budgets × methods and peers × fresh seeds."""

from __future__ import annotations

from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment


@experiment(
    "bench", "public", "all methods and peers on problems that others defined", 10, selects=True
)
def public(request: ExperimentRequest) -> ExperimentReport:
    """Errors, coverage, silent misses and runs worse than Monte Carlo, the bad ones first."""
    from apeval_bench.public.public_report import report

    return report(request)
