"""What v is worth in steering the adversary: `ape-scalable` with it, and by likelihood alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from apeval.errors import ApevalError, unknown
from apeval_bench.cells import run_cells
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment
from apeval_bench.study import STEPS, cell, code, run, truth_of

LABEL = "ape-scalable steered"
#: What differs between the two; everything else, the start included, is the same.
ARMS: dict[str, dict[str, Any]] = {
    "steered by v": {},
    "likelihood alone": {"policy_update": "likelihood"},
}
MC = "mc"
RESAMPLES, INTERVAL = 2_000, (0.05, 0.95)
#: Asked of the steered one: (least, most) of TD value / v* and of estimate / v* in the median,
#: relative RMSE at the most, and failure rate of the adversary at the least.
BARS: dict[str, dict[str, Any]] = {
    "int-v0": {"value": (0.85, 1.15), "estimate": (0.85, 1.15), "rate": 0.44},
    "int-v1": {"value": (0.5, 2.0), "rmse": 0.25, "rate": 0.6},
    "lunarlander": {"rate": 50.0 * 1.297e-3},
}


@experiment(
    "bench",
    "steering",
    "what v is worth in steering the adversary of ape-scalable, against likelihood alone",
    seeds=20,
    selects=True,
)
def steering(request: ExperimentRequest) -> ExperimentReport:
    """TD value, trajectory-weight estimate and the adversary's own failure rate, at the paper's
    budgets, with 90 % intervals over seeds (bootstrap). `--rows` names problems."""
    if request.methods or request.held_out:
        raise ApevalError("steering compares its own two arms: it takes --rows alone")
    for problem in request.rows:
        if problem not in STEPS:
            raise unknown("problem", problem, STEPS)
    return report(request, {p: n for p, n in STEPS.items() if p in (request.rows or STEPS)})


def report(
    request: ExperimentRequest, steps: dict[str, int], workers: int | None = None
) -> ExperimentReport:
    """A row per problem and arm, with plain Monte Carlo beside them."""
    wanted = [(p, arm) for p in steps for arm in (*ARMS, MC)]
    cells = [one(p, arm, seed, steps[p]) for p, arm in wanted for seed in request.all_seeds]
    outcomes = run_cells("steering", run, cells, request, workers, **code())
    n = request.seeds
    rows = [
        {"problem": p, "arm": arm, **summary(outcomes[k * n : (k + 1) * n], truth_of(p))}
        for k, (p, arm) in enumerate(wanted)
    ]
    data = {
        "seeds": [request.all_seeds[0], request.all_seeds[-1]],
        "steps": steps,
        "rows": rows,
        "checks": checks(rows),
    }
    return ExperimentReport(data, as_text(data))


def one(problem: str, arm: str, seed: int, steps: int) -> dict[str, Any]:
    """A run, as data."""
    if arm == MC:
        return cell(problem, MC, seed, steps)
    plain = cell(problem, LABEL, seed, steps)
    return plain | {"settings": plain["settings"] | ARMS[arm]}


def summary(outcomes: list[dict[str, Any]], truth: float) -> dict[str, Any]:
    """Each figure with its interval over seeds."""
    value = np.array([np.nan if o["value"] is None else o["value"] / truth for o in outcomes])
    estimate = np.array([o["estimate"] / truth for o in outcomes])
    rate = np.array([o["adversary_rate"] for o in outcomes])
    inside = [o["interval"][0] <= truth <= o["interval"][1] for o in outcomes]
    return {
        "value": _with_interval(value, np.nanmedian),
        "estimate": _with_interval(estimate, np.median),
        "relative_rmse": _with_interval(estimate - 1.0, lambda e: np.sqrt(np.mean(e**2))),
        "adversary_rate": _with_interval(rate, np.mean),
        "covered": int(sum(inside)),
        "runs": len(outcomes),
        "seconds": float(np.mean([o["seconds"] for o in outcomes])),
    }


def _with_interval(x: Any, of: Any) -> list[float]:
    """(figure, low, high) by resampling seeds."""
    rng = np.random.default_rng(0)
    drawn = [float(of(x[rng.integers(len(x), size=len(x))])) for _ in range(RESAMPLES)]
    return [float(of(x)), *(float(q) for q in np.quantile(drawn, INTERVAL))]


def checks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is asked of the steered method, each with the figure that decides."""
    found = []

    def ask(text: str, measured: float, low: float, high: float) -> None:
        passed = low <= measured <= high
        found.append({"asked": text, "measured": measured, "bar": [low, high], "passed": passed})

    by = {(r["problem"], r["arm"]): r for r in rows}
    for (problem, arm), row in by.items():
        if arm != "steered by v":
            continue
        bars = BARS[problem]
        if "value" in bars:
            ask(f"{problem}: median TD value / v\\*", row["value"][0], *bars["value"])
        if "estimate" in bars:
            ask(f"{problem}: median estimate / v\\*", row["estimate"][0], *bars["estimate"])
        most = bars.get("rmse", by[problem, MC]["relative_rmse"][0])
        ask(f"{problem}: relative RMSE", row["relative_rmse"][0], 0.0, most)
        ask(f"{problem}: adversary's failure rate", row["adversary_rate"][0], bars["rate"], 1.0)
    return found


def as_text(data: dict[str, Any]) -> str:
    """The tables."""
    lines = [
        "| problem | π_E,θ learned | TD value / v\\*, median | estimate / v\\*, median "
        "| relative RMSE of the estimate | adversary's failure rate | covers | s per run |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in data["rows"]:
        value, estimate, rmse, rate = (
            f"{m:.2g} ({low:.2g} … {high:.2g})"
            for m, low, high in (
                r["value"], r["estimate"], r["relative_rmse"], r["adversary_rate"],
            )
        )  # fmt: skip
        lines.append(
            f"| {r['problem']} | {r['arm']} | {value} | {estimate} | {rmse} | {rate} "
            f"| {r['covered']}/{r['runs']} | {r['seconds']:.0f} |"
        )
    lines += ["", "| asked of the steered method | measured | bar | |", "|---|---|---|---|"]
    for c in data["checks"]:
        low, high = c["bar"]
        bar = f"≥ {low:.3g}" if high == 1.0 else f"{low:.3g} … {high:.3g}"
        bar = f"≤ {high:.3g}" if low == 0.0 else bar
        verdict = "passed" if c["passed"] else "not reached"
        lines.append(f"| {c['asked']} | {c['measured']:.3g} | {bar} | {verdict} |")
    first, last = data["seeds"]
    budgets = ", ".join(f"{n:,} on {p}" for p, n in data["steps"].items())
    lines.append(
        f"\nSeeds {first} … {last}; steps: {budgets}; 90 % intervals over seeds (bootstrap). The "
        "adversary's failure rate is that of the frozen stage without its nominal episodes."
    )
    return "\n".join(lines)
