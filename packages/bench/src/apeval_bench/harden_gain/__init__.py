"""What hardening is worth: a policy trained against its adversary, beside two controls with the
same number of training steps."""

from __future__ import annotations

from apeval.errors import unknown
from apeval_bench.cells import run_cells
from apeval_bench.harden_gain import gain_text
from apeval_bench.harden_gain.examples import ARMS, EXAMPLES, hardened
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_DEPENDS_ON = (
    "problem", "adapt", "simulate", "learn", "estimate", "run", "hardening",
    "apeval_bench/harden_gain/examples.py",
)  # fmt: skip
"""Of every example; besides it depends on its own files."""


@experiment("bench", "harden", "hardening beside two controls", seeds=5, selects=True)
def harden(request: ExperimentRequest) -> ExperimentReport:
    """Passes if on every problem the adversary's arm fails three times less often in the median
    over seeds of training, with the interval of the ratio below 1 and the nominal return down by
    5 % at most."""
    for name in request.rows:
        if name not in EXAMPLES:
            raise unknown("row", name, EXAMPLES)
    chosen = request.rows or tuple(EXAMPLES)
    problems = []
    for name in chosen:
        it = EXAMPLES[name]
        cells = [{"problem": name, "seed": seed} for seed in request.all_seeds]
        files = tuple(f"apeval_bench/harden_gain/{file}" for file in it.files)
        found = run_cells("harden", hardened, cells, request, of=(*_DEPENDS_ON, *files))
        rows = [
            {"seed": cell["seed"], **arm}
            for cell, outcome in zip(cells, found, strict=True)
            for arm in outcome["arms"]
        ]
        problems.append(
            {
                "problem": name,
                "title": it.title,
                "about": it.about,
                "settings": it.settings,
                "rows": rows,
                "medians": [gain_text.median_of(arm, rows) for arm in ARMS],
            }
        )
    data = {"seeds": [request.all_seeds[0], request.all_seeds[-1]], "problems": problems}
    text = "\n\n".join(gain_text.as_text(it) for it in problems)
    return ExperimentReport(data, text, all(gain_text.reached(it) for it in problems))
