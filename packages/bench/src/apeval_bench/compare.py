"""Do paired comparisons cover, what are pairs worth, and do the intervals that may be looked at any
time hold at the worst of all looks? On problems with known answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from apeval.environments import make
from apeval.errors import unknown
from apeval.estimate.paired import compare_pairs
from apeval.problem.problem import Problem
from apeval.run.completed_run import InMemory
from apeval.run.evaluate import evaluate
from apeval.run.paired_policies import paired_samples
from apeval.run.policy_comparison import compare as compare_runs
from apeval_bench.cells import Cell, run_cells
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_BLOCK = 10  # seeds in a cell
_APART = 100_000  # between the seeds of runs that are set against each other
_SOME = 5  # of so many seeds one has independent runs too: their width varies little
_BAR, _NARROWER = 0.92, 0.7
_CONFIDENCE = 0.95
_FIRST, _GROWTH = 64, 1.1  # pairs at the first look, and from look to look
_SUM = {"steps": 2, "beta": 4.0}
_AR1 = {"steps": 2, "threshold": 5.0, "phi": 0.8}

_CASES: tuple[dict[str, Any], ...] = (
    {"key": "sum-alike", "problem": "gaussian-sum", "a": _SUM, "b": {**_SUM, "beta": 3.95},
     "text": "β = 4 against 3.95", "alike": True},
    {"key": "ar1-alike", "problem": "ar1", "a": _AR1, "b": {**_AR1, "phi": 0.79},
     "text": "φ = 0.8 against 0.79", "alike": True},
    {"key": "sum-unlike", "problem": "gaussian-sum", "a": _SUM, "b": {**_SUM, "beta": 3.6},
     "text": "β = 4 against 3.6", "alike": False},
    {"key": "ar1-unlike", "problem": "ar1", "a": _AR1, "b": {**_AR1, "phi": 0.6},
     "text": "φ = 0.8 against 0.6", "alike": False},
)  # fmt: skip
_EPISODES = {"ape": 1_200, "cem": 6_000}  # of both policies together
ROWS: tuple[dict[str, Any], ...] = tuple(
    {**case, "key": case["key"] + suffix, "method": method, "episodes": _EPISODES[method]}
    for method, suffix in (("ape", ""), ("cem", "-cem"))
    for case in _CASES
)


@experiment("bench", "compare", "paired comparisons of policies: coverage, width, any look",
            seeds=200, selects=True)  # fmt: skip
def compare(request: ExperimentRequest) -> ExperimentReport:
    """Passes if every interval covers in 92 % of the seeds, at the worst look too, and pairs of
    policies that are alike give a ratio at most 0.7 times as wide as two independent runs."""
    rows = chosen(request)
    seeds = request.all_seeds
    blocks = [list(seeds[i : i + _BLOCK]) for i in range(0, len(seeds), _BLOCK)]
    cells = [{"row": r["key"], "seeds": [b[0], b[-1]]} for b in blocks for r in rows]
    outcomes = run_cells("compare", run, cells, request)
    table = []
    for r in rows:
        answers = [
            answer
            for cell, outcome in zip(cells, outcomes, strict=True)
            if cell["row"] == r["key"]
            for answer in outcome["answers"]
        ]
        table.append(_summary(r, answers))
    data = {"seeds": [seeds[0], seeds[-1]], "bar": _BAR, "narrower": _NARROWER, "rows": table}
    return ExperimentReport(data, _as_text(data), all(r["passed"] for r in table))


def chosen(request: ExperimentRequest) -> list[dict[str, Any]]:
    """The rows that are asked for, by key or problem and by method."""
    for name in request.rows:
        if not any(name in (r["key"], r["problem"]) for r in ROWS):
            raise unknown("row", name, [r["key"] for r in ROWS])
    for name in request.methods:
        if name not in _EPISODES:
            raise unknown("method", name, _EPISODES)
    return [
        r
        for r in ROWS
        if (not request.rows or {r["key"], r["problem"]} & set(request.rows))
        and (not request.methods or r["method"] in request.methods)
    ]


def run(cell: Cell) -> dict[str, Any]:
    """A block of seeds of one row."""
    row = next(r for r in ROWS if r["key"] == cell["row"])
    first, last = cell["seeds"]
    return {"answers": [ask(row, seed) for seed in range(first, last + 1)]}


def ask(row: dict[str, Any], seed: int) -> dict[str, Any]:
    """One comparison in pairs, looked at all the time, and one of two independent runs."""
    a, b = (make(row["problem"], **row[side]) for side in "ab")
    truth_a, truth_b = _truth(a), _truth(b)
    ratio, difference = truth_a / truth_b, truth_a - truth_b
    x, y = paired_samples(a, b, row["method"], episodes=row["episodes"], seed=seed)
    paired = compare_pairs(x, y, _CONFIDENCE)
    apart = _apart(row, a, b, seed) if seed % _SOME == 0 else None
    at_any, at_one, n = True, True, _FIRST
    while n <= x.n:
        cut = x.first(n), y.first(n)
        at_any &= _within(compare_pairs(*cut, _CONFIDENCE, planned=x.n).ratio_interval, ratio)
        at_one &= _within(compare_pairs(*cut, _CONFIDENCE).ratio_interval, ratio)
        n = max(n + 1, int(n * _GROWTH))
    sequence = compare_pairs(x, y, _CONFIDENCE, planned=x.n)
    return {
        "ratio": _within(paired.ratio_interval, ratio),
        "difference": _within(paired.difference_interval, difference),
        "width": _width(paired.ratio_interval),
        **({} if apart is None else {"width_apart": _width(apart)}),
        "width_any": _width(sequence.ratio_interval),
        "any": at_any,
        "one": at_one,
        "worth": paired.worth,
    }


def _apart(row: dict[str, Any], a: Problem, b: Problem, seed: int) -> tuple[float, float | None]:
    """The ratio's interval of two independent runs."""
    runs = []
    for k, problem in enumerate((a, b), start=1):
        kept = InMemory(problem)
        half, other = row["episodes"] // 2, seed + k * _APART
        evaluate(problem, row["method"], episodes=half, seed=other, recorder=kept)
        runs.append(kept)
    return compare_runs(runs[0], runs[1]).ratio_interval


def _truth(problem: Problem) -> float:
    return problem.truth().value if problem.truth else float("nan")


def _within(interval: tuple[float, float | None], truth: float) -> bool:
    lo, hi = interval
    return lo <= truth <= (math.inf if hi is None else hi)


def _width(interval: tuple[float, float | None]) -> float | None:
    """Of the logarithm; None where an end is open."""
    lo, hi = interval
    return math.log(hi / lo) if lo > 0.0 and hi is not None and math.isfinite(hi) else None


def _summary(row: dict[str, Any], answers: list[dict[str, Any]]) -> dict[str, Any]:
    def mean(name: str) -> float:
        return float(np.mean([a[name] for a in answers]))

    def median(name: str) -> float:
        return float(np.median([math.inf if a[name] is None else a[name] for a in answers]))

    asked = [a["width_apart"] for a in answers if "width_apart" in a]

    a, b = (_truth(make(row["problem"], **row[side])) for side in "ab")
    independent = float(np.median([math.inf if width is None else width for width in asked]))
    narrower = median("width") / independent
    found = {
        **{k: row[k] for k in ("key", "problem", "text", "alike", "method", "episodes")},
        "truth": a / b,
        "probability": a,
        "seeds": len(answers),
        "ratio": mean("ratio"),
        "difference": mean("difference"),
        "width": median("width"),
        "width_independent": independent,
        "narrower": narrower,
        "width_any": median("width_any"),
        "worst_look": mean("any"),
        "worst_look_of_single": mean("one"),
    }
    covers = min(found[k] for k in ("ratio", "difference", "worst_look")) >= _BAR
    return {**found, "passed": covers and (narrower <= _NARROWER or not row["alike"])}


def _as_text(data: dict[str, Any]) -> str:
    lines = [
        "| problem | policies | method, episodes | true ratio | ratio covered | difference covered "
        "| width of log ratio: pairs | independent | pairs / independent | any time: width "
        "| covered at the worst look | single-look interval at its worst look |",
        "|---" * 12 + "|",
    ]
    for r in data["rows"]:
        lines.append(
            f"| {r['problem']} | {r['text']} | `{r['method']}`, {r['episodes']:,} "
            f"| {r['truth']:.3f} | {r['ratio']:.1%} | {r['difference']:.1%} | {r['width']:.3f} "
            f"| {r['width_independent']:.3f} | {r['narrower']:.2f} | {r['width_any']:.3f} "
            f"| {r['worst_look']:.1%} | {r['worst_look_of_single']:.1%} |"
        )
    lines.append(
        f"\nSeeds {data['seeds'][0]} … {data['seeds'][1]}; 95 % intervals, at least "
        f"{data['bar']:.0%} asked; widths are medians. Pairs have the episodes named, "
        f"learning included; so have two independent runs together (one seed of {_SOME}). The "
        "worst look is a stopping time chosen to hurt: every "
        "10 % more pairs the interval is looked at, and the first look that leaves out the truth "
        "counts."
    )
    return "\n".join(lines)
