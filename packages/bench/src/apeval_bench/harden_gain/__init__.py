"""What hardening is worth: a policy trained against its adversary, beside two controls with the
same number of training steps."""

from __future__ import annotations

from apeval_bench.cells import run_cells
from apeval_bench.harden_gain import gain_text
from apeval_bench.harden_gain.cartpole_arms import ARMS, SETTINGS, hardened
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_DEPENDS_ON = (
    "problem", "adapt", "simulate", "learn", "estimate", "run", "hardening",
    "apeval_bench/harden_gain/cartpole_arms.py",
)  # fmt: skip


@experiment("bench", "harden", "CartPole in gusts: hardening beside two controls", seeds=5)
def harden(request: ExperimentRequest) -> ExperimentReport:
    """Passes if the adversary's arm fails three times less often in the median over seeds of
    training, with the interval of the ratio below 1 and the nominal return down by 5 % at most."""
    cells = [{"problem": "cartpole", "seed": seed} for seed in request.all_seeds]
    found = run_cells("harden", hardened, cells, request, of=_DEPENDS_ON)
    rows = [
        {"seed": cell["seed"], **arm}
        for cell, outcome in zip(cells, found, strict=True)
        for arm in outcome["arms"]
    ]
    data = {
        "seeds": [request.all_seeds[0], request.all_seeds[-1]],
        "settings": SETTINGS,
        "rows": rows,
        "medians": [gain_text.median_of(arm, rows) for arm in ARMS],
    }
    return ExperimentReport(data, gain_text.as_text(data), gain_text.reached(data))
