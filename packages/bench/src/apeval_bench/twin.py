"""The twin against highway-env, episode by episode."""

from __future__ import annotations

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
    text = "\n".join(f"{key.replace('_', ' ')}: {value}" for key, value in data.items())
    enough = data["episodes"] >= 5_000 and data["crashes"] >= 500
    return ExperimentReport(data, text, passed=enough and data["mismatches"] == 0)
