"""Do the answers to later questions cover? `reweight`, `compare`, `merge` and `run --extend` on
problems with known truths, a run (or two, or three) with `ape` for every seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr

from apeval.environments import make
from apeval.problem.problem import Problem
from apeval.run.completed_run import InMemory
from apeval.run.evaluate import evaluate
from apeval.run.merge import Merged, merge
from apeval.run.policy_comparison import compare
from apeval.run.whatif import WhatIf, reweight
from apeval_bench.cells import Cell, run_cells
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

BETA, STEPS = 4.5, 20
OTHER_BETA = 4.2
SPEED = 9.8  # m/s, of the other ego in int-v1
_EPISODES, _DECISIONS, _WALKED = 2_000, 3_000, 12_000
_PIECE, _WIDE, _LOOKS = 300, 0.15, 5  # a run of pieces that goes on until it is precise enough
_BLOCK = 10  # seeds in a cell
_APART = 100_000  # between the seeds of runs that are set against each other
_BAR = 0.92

Answer = dict[str, Any]


@experiment("bench", "questions", "coverage of reweight, compare, merge and extend", seeds=200)
def questions(request: ExperimentRequest) -> ExperimentReport:
    """Coverage by question; passes if every one reaches 92 %."""
    truths = {name: find(request) for name, find in TRUTHS.items()}
    blocks = [list(request.all_seeds[i : i + _BLOCK]) for i in range(0, request.seeds, _BLOCK)]
    cells: list[Cell] = [
        {"problem": name, "seeds": [seeds[0], seeds[-1]], "truths": truths[name]}
        for name in TRUTHS
        for seeds in blocks
    ]
    outcomes = run_cells("questions", run, cells, request)
    answers = [answer for outcome in outcomes for answer in outcome["answers"]]
    asked = list(dict.fromkeys((a["command"], a["problem"], a["question"]) for a in answers))
    rows = [_row(key, [a for a in answers if _key(a) == key]) for key in asked]
    data = {"seeds": [request.all_seeds[0], request.all_seeds[-1]], "bar": _BAR, "rows": rows}
    passed = all(r["coverage"] is None or r["coverage"] >= _BAR for r in rows)
    return ExperimentReport(data, _as_text(data), passed)


def run(cell: Cell) -> dict[str, Any]:
    """A block of seeds of one problem."""
    first, last = cell["seeds"]
    ask = ASKED[cell["problem"]]
    return {"answers": [a for s in range(first, last + 1) for a in ask(s, dict(cell["truths"]))]}


# -- the questions, problem by problem ---------------------------------------------------------


def _ask_sums(seed: int, truths: dict[str, float]) -> list[Answer]:
    problem, other = make("gaussian-sum"), make("gaussian-sum", beta=OTHER_BETA)
    a = _run(problem, seed, episodes=_EPISODES)
    b = _run(other, seed + _APART, episodes=_EPISODES)
    c = _run(problem, seed + 2 * _APART, episodes=_EPISODES // 2)
    found = [
        _what_if("gaussian-sum", reweight(a, text), truth)
        for text, truth in truths.items()
        if text not in ("itself", "other")
    ]
    own, its = truths["itself"], truths["other"]
    found += _versus("gaussian-sum", f"β = {BETA:g} against {OTHER_BETA:g}", a, b, own, its)
    found += _versus("gaussian-sum", "with itself", a, c, own, own)
    found.append(_merged("merge", "gaussian-sum", "two runs, 2 : 1", merge([a, c]), own))
    return found


def _ask_int(seed: int, truths: dict[str, float]) -> list[Answer]:
    problem, other = make("int-v1"), make("int-v1", ego_speed=SPEED)
    a = _run(problem, seed, steps=_DECISIONS)
    b = _run(other, seed + _APART, steps=_DECISIONS)
    found = []
    for text, truth in truths.items():
        if text.startswith("std="):
            changed = make("int-v1", std=float(text[4:]))
            found.append(_what_if("int-v1", reweight(a, problem=changed), truth))
    own, its = truths["itself"], truths["other"]
    found += _versus("int-v1", f"ego at 10 against {SPEED:g} m/s", a, b, own, its)
    return found


def _ask_walk(seed: int, truths: dict[str, float]) -> list[Answer]:
    a = _run(make("walk"), seed, steps=_WALKED)
    return [
        _what_if("walk", reweight(a, problem=make("walk", p_up=float(text[5:]))), truth)
        for text, truth in truths.items()
    ]


def _ask_counts(seed: int, truths: dict[str, float]) -> list[Answer]:
    """Monte Carlo with few failures, often none."""
    found = []
    for n in (200, 2_000):
        a, b = (
            _run(make("one-step", beta=beta), seed + k * _APART, "mc", episodes=n)
            for k, beta in enumerate((2.0, 2.3))
        )
        text = f"mc, {n:,} episodes each"
        found += _versus("one-step", text, a, b, truths["itself"], truths["other"])
    return found


def _run(problem: Problem, seed: int, method: str | None = None, **budget: int) -> InMemory:
    kept = InMemory(problem)
    evaluate(problem, method, seed=seed, recorder=kept, **budget)  # type: ignore[arg-type]
    return kept


def _ask_one_step(seed: int, truths: dict[str, float]) -> list[Answer]:
    """A user who extends a run until he likes the interval, five runs at the most."""
    problem, truth = make("one-step"), truths["itself"]
    runs = [_run(problem, seed + 3 * _APART, episodes=_PIECE)]
    merged = None
    while len(runs) < _LOOKS:
        now = runs[0].result if merged is None else merged
        lo, hi = now.interval
        if now.estimate > 0.0 and (hi - lo) / (2.0 * now.estimate) <= _WIDE:
            break
        runs.append(_run(problem, seed + (3 + len(runs)) * _APART, episodes=_PIECE))
        merged = merge(runs, extended=True)
    name = f"until ± {_WIDE:.0%}, at most {_LOOKS} runs"
    if merged is None:
        lo, hi = runs[0].result.interval
        return [_answer("extend", "one-step", name, lo, hi, truth, runs[0].result.estimate)]
    return [_merged("extend", "one-step", name, merged, truth)]


# -- truths ------------------------------------------------------------------------------------


def _truth(problem: Problem) -> float:
    return problem.truth().value if problem.truth else float("nan")


def _sums(request: ExperimentRequest) -> dict[str, float]:
    """S_T/√T ~ N(m√T, c²): Φ(−(β − m√T)/c)."""
    changes = {f"std*{c:g}": float(ndtr(-BETA / c)) for c in (0.9, 1.1, 1.2)}
    changes |= {f"mean{m:+g}": float(ndtr(-BETA + m * np.sqrt(STEPS))) for m in (-0.1, 0.1)}
    return {"itself": float(ndtr(-BETA)), "other": float(ndtr(-OTHER_BETA)), **changes}


def _int(request: ExperimentRequest) -> dict[str, float]:
    """By dynamic programming, computed here and now."""
    wanted: dict[str, dict[str, float]] = {"itself": {}, "other": {"ego_speed": SPEED}}
    wanted |= {f"std={c:g}": {"std": c} for c in (0.45, 0.55, 0.6)}
    found = {}
    for k, (name, changes) in enumerate(wanted.items()):
        request.tick(f"truth of int-v1 {name}", k, len(wanted))
        found[name] = _truth(make("int-v1", **changes))
    return found


def _walk(request: ExperimentRequest) -> dict[str, float]:
    return {f"p_up={p:g}": _truth(make("walk", p_up=p)) for p in (0.28, 0.31, 0.36)}


def _one_step(request: ExperimentRequest) -> dict[str, float]:
    return {"itself": float(ndtr(-BETA))}


def _counts(request: ExperimentRequest) -> dict[str, float]:
    return {"itself": float(ndtr(-2.0)), "other": float(ndtr(-2.3))}


TRUTHS: dict[str, Callable[[ExperimentRequest], dict[str, float]]] = {
    "gaussian-sum": _sums,
    "int-v1": _int,
    "walk": _walk,
    "one-step": _one_step,
    "counts": _counts,
}
ASKED: dict[str, Callable[[int, dict[str, float]], list[Answer]]] = {
    "gaussian-sum": _ask_sums,
    "int-v1": _ask_int,
    "walk": _ask_walk,
    "one-step": _ask_one_step,
    "counts": _ask_counts,
}


# -- answers -----------------------------------------------------------------------------------


def _answer(
    command: str, problem: str, question: str, lo: float, hi: float, truth: float, value: float
) -> Answer:
    """One interval against the truth; an infinite end is None in JSON, hence no width."""
    wide = not np.isfinite(hi) or value <= 0.0
    return {
        "command": command,
        "problem": problem,
        "question": question,
        "truth": truth,
        "answered": True,
        "covered": bool(lo <= truth <= hi),
        "above": bool(truth > hi),
        "relative": value / truth if truth else None,
        "half_width": None if wide else float(hi - lo) / (2.0 * abs(truth or value)),
    }


def _what_if(problem: str, it: WhatIf, truth: float) -> Answer:
    if it.interval is None or it.estimate is None:
        empty = _answer("reweight", problem, it.question, 0.0, np.inf, truth, 0.0)
        return {**empty, "answered": False, "relative": None}
    return _answer("reweight", problem, it.question, *it.interval, truth, it.estimate)


def _versus(
    problem: str, text: str, a: InMemory, b: InMemory, own: float, its: float
) -> list[Answer]:
    it = compare(a, b)
    lo, hi = it.ratio_interval
    ratio = _answer(
        "compare",
        problem,
        f"{text}: ratio",
        lo,
        np.inf if hi is None else hi,
        own / its,
        0.0 if it.ratio is None else it.ratio,
    )
    difference = _answer(
        "compare",
        problem,
        f"{text}: difference",
        *it.difference_interval,
        own - its,
        it.difference,
    )
    unknown = {"relative": None} if it.ratio is None else {}
    return [{**ratio, **unknown}, {**difference, "half_width": None}]


def _merged(command: str, problem: str, text: str, it: Merged, truth: float) -> Answer:
    return _answer(command, problem, text, *it.interval, truth, it.estimate)


# -- the table ---------------------------------------------------------------------------------


def _key(answer: Answer) -> tuple[str, str, str]:
    return answer["command"], answer["problem"], answer["question"]


def _row(key: tuple[str, str, str], answers: list[Answer]) -> dict[str, Any]:
    given = [a for a in answers if a["answered"]]
    relative = [a["relative"] for a in given if a["relative"] is not None]
    widths = [a["half_width"] for a in given if a["half_width"] is not None]
    return {
        **dict(zip(("command", "problem", "question"), key, strict=True)),
        "truth": answers[0]["truth"],
        "asked": len(answers),
        "answered": len(given),
        "coverage": float(np.mean([a["covered"] for a in given])) if given else None,
        "too_low": float(np.mean([a["above"] for a in given])) if given else None,
        "mean": float(np.mean(relative)) if relative else None,
        "mean_error": float(np.std(relative, ddof=1) / np.sqrt(len(relative)))
        if len(relative) > 1
        else None,
        "half_width": float(np.median(widths)) if widths else None,
    }


def _as_text(data: dict[str, Any]) -> str:
    lines = [
        "| command | problem | question | truth | answered | coverage | interval too low "
        "| mean estimate / truth | half-width / truth |",
        "|---" * 9 + "|",
    ]
    for r in data["rows"]:
        mean = "–" if r["mean"] is None else f"{r['mean']:.3f}"
        if r["mean"] is not None and r["mean_error"] is not None:
            mean += f" ± {r['mean_error']:.3f}"
        lines.append(
            f"| `{r['command']}` | {r['problem']} | {r['question']} | {r['truth']:.3e} "
            f"| {r['answered']} of {r['asked']} | {_percent(r['coverage'])} "
            f"| {_percent(r['too_low'])} | {mean} "
            f"| {'–' if r['half_width'] is None else format(r['half_width'], '.2f')} |"
        )
    lines.append(
        f"\nSeeds {data['seeds'][0]} … {data['seeds'][1]}; 95 % intervals, at least "
        f"{data['bar']:.0%} asked. Coverage is that of the answers given; `reweight` refuses where "
        "the recorded episodes cannot carry one."
    )
    return "\n".join(lines)


def _percent(x: float | None) -> str:
    return "–" if x is None else f"{x:.1%}"
