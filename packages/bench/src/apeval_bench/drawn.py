"""Ten problems with several failure modes, drawn from a fixed seed: does `ape` lose modes in
silence?

A mode is a direction of the whole episode's disturbances, orthogonal to the others, along which
they must not add up to more than a threshold. Some modes are the same push at every decision, some
a sequence of pushes in changing directions. Modes are independent, so that the failure probability
is 1 − Π(1 − p_k) exactly. Half of the problems have no margin; half name their modes as kinds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from apeval.problem.laws import Normal
from apeval.problem.problem import Problem
from apeval.problem.truth import Truth
from apeval.problem.types import Array, FloatArray
from apeval.run.evaluate import evaluate
from apeval_bench.cells import Cell, run_cells
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_DRAWN_FROM = 20_261_118
PROBLEMS = 10
_EPISODES = 3_000
_MOST_SILENT, _MOST_SILENT_IN_A_ROW, _LEAST_COVERED = 0.05, 0.08, 0.92


@experiment("bench", "drawn", "modes lost in silence on ten problems drawn at random", seeds=20)
def drawn(request: ExperimentRequest) -> ExperimentReport:
    """Errors, coverage and silent misses of `ape`, problem by problem and together."""
    cells = [
        {"problem": k, "episodes": _EPISODES, "seed": seed}
        for k in range(PROBLEMS)
        for seed in request.all_seeds
    ]
    outcomes = iter(run_cells("drawn", measure, cells, request))
    rows = [_row(k, [next(outcomes) for _ in request.all_seeds]) for k in range(PROBLEMS)]
    runs = len(cells)
    silent = sum(r["silent"] for r in rows)
    trusted = sum(r["trusted"] for r in rows)
    covered = sum(r["trusted_and_covered"] for r in rows)
    passed = (
        silent <= _MOST_SILENT * runs
        and all(r["silent"] <= _MOST_SILENT_IN_A_ROW * r["runs"] for r in rows)
        and covered >= _LEAST_COVERED * trusted
    )
    lines = [
        "| modes | shares | decisions | disturbances | margin | kinds | truth | relative RMSE "
        "| median error | covers | trusted | silent misses |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_line(r) for r in rows]
    lines.append(
        f"\nTogether {silent} silent misses (the interval excludes the truth, without a serious "
        f"warning) in {runs} runs; {covered} of {trusted} trusted intervals cover. `ape` with "
        f"{_EPISODES:,} episodes; seeds {request.all_seeds[0]} to {request.all_seeds[-1]}; the "
        f"problems are drawn from seed {_DRAWN_FROM}."
    )
    return ExperimentReport({"rows": rows}, "\n".join(lines), passed=passed)


def measure(cell: Cell) -> dict[str, Any]:
    """One run."""
    problem = draw_problem(cell["problem"])
    result = evaluate(problem, episodes=cell["episodes"], seed=cell["seed"], check=False)
    low, high = result.interval
    truth = result.truth
    if truth is None:
        raise AssertionError("a drawn problem has a truth")
    return {
        "error": result.estimate / truth - 1.0,
        "covers": bool(low <= truth <= high),
        "trusted": bool(result.trusted),
    }


def _drawing(number: int) -> tuple[np.random.Generator, int, int, int, FloatArray, float]:
    """The generator, decisions, disturbances, modes, their shares and their sum."""
    rng = np.random.default_rng([_DRAWN_FROM, number])
    decisions = int(np.round(np.exp(rng.uniform(0.0, np.log(50.0)))))
    dim = int(rng.integers(1, 5))
    dim = max(dim, 2) if decisions == 1 else dim
    modes = int(rng.integers(2, 1 + min(8, decisions * dim)))
    share = rng.dirichlet(np.ones(modes))
    while share.min() < 0.02 or share.max() > 0.7:
        share = rng.dirichlet(np.ones(modes))
    return rng, decisions, dim, modes, share, float(10.0 ** rng.uniform(-6.0, -4.0))


def draw_problem(number: int) -> Problem:
    """One of the problems: 2 to 8 modes with shares of 2 to 70 %, in 1 to 50 decisions."""
    rng, decisions, dim, modes, share, total = _drawing(number)
    raw = rng.standard_normal((decisions, dim, modes))
    same = rng.standard_normal((dim, modes))
    for k in range(0, modes, 2):  # every other mode is the same push at every decision
        raw[:, :, k] = same[:, k]
    raw += 1e-3 * rng.standard_normal(raw.shape)  # more such modes than disturbances are possible
    Q, _ = np.linalg.qr(raw.reshape(decisions * dim, modes))
    along = Q.reshape(decisions, dim, modes)
    threshold = -ndtri(share * total)
    truth = 1.0 - float(np.prod(ndtr(threshold)))
    named, with_margin = number % 4 < 2, number % 2 == 0

    def step(x: Array, a_A: Array, a_E: Array, draws: Any) -> Array:
        t = x[:, -1].astype(np.int64)
        moved = np.einsum("nd,ndk->nk", a_E, along[np.minimum(t, decisions - 1)])
        return np.column_stack([x[:, :-1] + moved, t + 1])

    def failed(x: Array) -> Array:
        over = x[:, :-1] > threshold
        kind = np.where(over.any(axis=1), 1 + over.argmax(axis=1), 0)
        return kind if named else kind > 0

    def margin(x: Array) -> FloatArray:
        return np.asarray((threshold - x[:, :-1]).min(axis=1))

    return Problem(
        nominal=Normal(0.0, 1.0, dim=dim),
        reset=lambda draws: np.zeros((draws.n, modes + 1)),
        step=step,
        failed=failed,
        margin=margin if with_margin else None,
        judge_at_end=True,
        horizon=decisions,
        kinds=tuple(f"mode {k + 1}" for k in range(modes)) if named else ("failure",),
        name=f"drawn-{number}",
        chunk=1_024,
        truth=lambda: Truth(truth, 0.0, "closed form"),
    )


def _row(number: int, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    _, decisions, dim, modes, share, _ = _drawing(number)
    problem = draw_problem(number)
    if problem.truth is None:
        raise AssertionError("a drawn problem has a truth")
    error = np.array([o["error"] for o in outcomes])
    return {
        "problem": number,
        "modes": modes,
        "shares": [float(s) for s in np.sort(share)[::-1]],
        "decisions": decisions,
        "dim": dim,
        "margin": problem.margin is not None,
        "named": len(problem.kinds) > 1,
        "truth": problem.truth().value,
        "runs": len(outcomes),
        "rmse": float(np.sqrt((error**2).mean())),
        "median": float(np.median(np.abs(error))),
        "covered": sum(o["covers"] for o in outcomes),
        "trusted": sum(o["trusted"] for o in outcomes),
        "trusted_and_covered": sum(o["trusted"] and o["covers"] for o in outcomes),
        "silent": sum(o["trusted"] and not o["covers"] for o in outcomes),
    }


def _line(r: dict[str, Any]) -> str:
    most, least = r["shares"][0], r["shares"][-1]
    return (
        f"| {r['modes']} | {most:.0%} … {least:.0%} | {r['decisions']} | {r['dim']} "
        f"| {'yes' if r['margin'] else 'no'} | {'named' if r['named'] else 'one'} "
        f"| {r['truth']:.2e} | {r['rmse']:.2f} | {r['median']:.2f} "
        f"| {r['covered']} of {r['runs']} | {r['trusted']} | {r['silent']} |"
    )
