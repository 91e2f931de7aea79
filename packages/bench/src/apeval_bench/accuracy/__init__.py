"""`apeval bench accuracy` and `apeval bench coverage`: problems × methods × budgets × seeds."""

from __future__ import annotations

from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment


@experiment(
    "bench", "accuracy", "error of every method against known truths, beside peers", 100, True
)
def accuracy(request: ExperimentRequest) -> ExperimentReport:
    """Relative errors, and whether the figures that were set hold."""
    from apeval_bench.accuracy.errors import report

    return report(request)


@experiment(
    "bench", "coverage", "how often the interval of the default method covers the truth", 400, True
)
def coverage(request: ExperimentRequest) -> ExperimentReport:
    """Coverage over many seeds, with and without a target error."""
    from apeval_bench.accuracy.covering import report

    return report(request)
