"""The appendix's figure: π_E,gt, the target p_E, the flow after training, and its samples; and a
spline flow after the same training."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from apeval.environments import make
from apeval.errors import ApevalError
from apeval.learn.whitened import log_phi
from apeval.problem.types import FloatArray
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

if TYPE_CHECKING:
    from apeval.learn.networks.flow import Flow
    from apeval.simulate.episodes import Episodes
    from apeval_paper.methods.ape_scalable.flow_target import FlowTarget
    from apeval_paper.methods.ape_scalable.learner import ScalableLearner

PROBLEM = "int-v0"
STEPS, UPDATES, GRADIENT_STEPS = 3_000, 4, 400
"""Budget of the run, updates after which it is left, and gradient steps of each: as many as the
file name of the appendix's picture says."""
SIGMA, M, ALPHA_PI = 0.4, 128, 0.01
"""σ, M and α_π of the run; the paper states none of them. With σ = 0.2, the preset's, β is a few
hundredths after the first update: bumps too light to be seen."""
GRID, DEPTH, EDGE, SAMPLES = 51, 31, 3.5, 400
"""Points per axis shown and along the one integrated out, half-width in nominal standard
deviations, and samples shown."""


WEIGHTS = (0.1, 1.0)
"""β that divide light bumps from heavier ones."""


@dataclass(frozen=True)
class Update:
    """One update of π_E,θ at one condition (s, a_A)."""

    number: int
    steps: int
    row: int
    """The decision within the failing episode."""
    target: FlowTarget
    """Of this condition alone."""
    after: Flow

    @property
    def beta(self) -> float:
        """Weight of the bump."""
        return float(self.target.beta[0])


@experiment("reproduce", "multimodal", "the appendix's figure of target and flow, Int-v0", seeds=1)
def multimodal(request: ExperimentRequest) -> ExperimentReport:
    """An early update at the initial state, and a later one at a later decision."""
    return report(request, STEPS, GRADIENT_STEPS)


def report(
    request: ExperimentRequest, steps: int, gradient_steps: int, updates: int = UPDATES
) -> ExperimentReport:
    """The figure, and how far target and flow are apart."""
    made = run(request, steps, gradient_steps, updates)
    half = (len(made) + 1) // 2
    shown = [clearest(part) for part in (made[:half], made[half:] or made)]
    rng = np.random.default_rng(request.first_seed)
    rows = [panels(u, spline(u, gradient_steps, rng), rng) for u in shown]
    data = {
        "seed": request.first_seed,
        "steps": steps,
        "gradient_steps": gradient_steps,
        "sigma": SIGMA,
        "samples": M,
        "alpha_pi": ALPHA_PI,
        "updates": len(made),
        "approach": [approach(u) for update in made for u in update],
        "axes": "whitened a_E, components 1 and 2; component 3 integrated out",
        "edge": EDGE,
        "rows": [
            {k: np.round(v, 5).tolist() if isinstance(v, np.ndarray) else v for k, v in row.items()}
            for row in rows
        ],
    }
    files = {}
    if request.out is not None:
        files["figure"] = picture(rows, request.out / "multimodal.png")
    return ExperimentReport(data, as_text(data), files=files)


def clearest(updates: list[list[Update]]) -> Update:
    """The condition whose bump stands out most, in the plane shown, as a second mode: far from the
    middle, and neither much lower nor much higher than a standard normal, β/(2πσ²) to 1/(2π)."""

    def score(u: Update) -> float:
        height = max(u.beta, 1e-9) / SIGMA**2
        return float(min(height, 1.0 / height) * u.target.center[0, :2].norm())

    return max((u for update in updates for u in update), key=score)


def spline(update: Update, gradient_steps: int, rng: np.random.Generator) -> Flow:
    """A spline flow, from π_E,gt, after the same training towards the same target."""
    from apeval.learn.networks.flow import Flow, one_thread
    from apeval_paper.methods.ape_scalable.updates import Optimiser, reverse_kl

    target, d = update.target, update.after.d_E
    at_gt = (np.zeros(d), np.ones(d))
    flow = Flow(d, target.c.shape[1], "spline", 2, 32, *at_gt, seed=update.number)
    with one_thread():
        optimiser = Optimiser(flow, ALPHA_PI, beta_theta=1.0)
        optimiser.descend(lambda: reverse_kl(flow, target, M, rng), gradient_steps)
    return flow.frozen()


def run(
    request: ExperimentRequest, steps: int, gradient_steps: int, updates: int
) -> list[list[Update]]:
    """The updates of a run of Algorithm 3, each with one entry per decision of its episode."""
    from apeval.problem.draws import make_key
    from apeval.simulate.simulation import Budget, Simulation
    from apeval_paper.methods.ape_scalable.config import ApeScalableConfig
    from apeval_paper.methods.ape_scalable.learner import ScalableLearner

    found: list[list[Update]] = []

    class Watched(ScalableLearner):
        """Keeps what each update aimed at and what it reached."""

        def _approach_target(self, batch: Episodes, rows: slice) -> bool:
            target = aim(self, batch, rows)
            changed = super()._approach_target(batch, rows)
            after, number = self.flow.frozen(), len(found) + 1
            each = range(rows.stop - rows.start)
            found.append(
                [Update(number, simulation.steps, k, alone(target, k), after) for k in each]
            )
            return changed

    problem = make(PROBLEM).seen_as("paper").blind()
    config = ApeScalableConfig(
        preset="printed", flow_steps=gradient_steps, beta_theta=1.0, sigma=SIGMA, samples=M,
        alpha_pi=ALPHA_PI, warm_scale=1.0,
    )  # fmt: skip
    learner = Watched(problem, config)
    simulation = Simulation(problem, make_key(request.first_seed), Budget(steps=steps))
    while learner.advance(simulation) and len(found) < updates:
        request.tick("updates", len(found), updates)
    if not found:
        raise ApevalError(f"no failure in {steps:,} steps, so no update to show: raise the budget")
    return found


def aim(learner: ScalableLearner, batch: Episodes, rows: slice) -> FlowTarget:
    """p_E of Eq. NF_target along one failing episode, before the update towards it."""
    import torch

    from apeval.learn.whitened import to_z
    from apeval_paper.methods.ape_scalable import flow_target

    config, now = learner.config, batch.situation.take(rows)
    z = to_z(now.law, batch.a_E[rows])
    c = torch.from_numpy(learner.context(now.s, now.a_A, now.t))
    old = learner.flow.frozen()
    density = np.exp(old.log_prob(c, torch.from_numpy(z)).numpy())
    v = learner.v(learner.context.state(now.s, now.t), now.t)
    r_hat = flow_target.dense_rewards(now.t, np.full(len(z), len(z)), config.gamma_r)
    wanted = flow_target.point_target(density, r_hat, np.append(v[1:], 0.0), v, config.v_floor)
    beta = flow_target.bump_weight(wanted, density, config.sigma, learner.d_E)
    kept = torch.from_numpy(flow_target.keep_finite(beta, config.beta_limit))
    return flow_target.FlowTarget(old, c, torch.from_numpy(z), kept, config.sigma)


def alone(target: FlowTarget, k: int) -> FlowTarget:
    """The k-th of its conditions."""
    one = slice(k, k + 1)
    return dataclasses.replace(
        target, c=target.c[one], center=target.center[one], beta=target.beta[one]
    )


# -- pictures ----------------------------------------------------------------------------------


def panels(update: Update, splines: Flow, rng: np.random.Generator) -> dict[str, Any]:
    """Densities of the first two whitened components, the third integrated out."""
    import torch

    one = update.target
    found = {
        "nominal": in_plane(lambda z: torch.from_numpy(log_phi(z.numpy()))),
        "target": in_plane(one.log_prob),
        "flow": in_plane(at(update.after, one)),
        "spline": in_plane(at(splines, one)),
    }
    eps = torch.from_numpy(rng.standard_normal((SAMPLES, 3)))
    with torch.no_grad():
        drawn = update.after.generate(one.c.repeat(SAMPLES, 1), eps).numpy()
    return {
        "update": update.number,
        "steps": update.steps,
        "decision": update.row + 1,
        "beta": update.beta,
        "distance_before": _distance(found["nominal"], found["target"]),
        "distance_after": _distance(found["flow"], found["target"]),
        "distance_spline": _distance(found["spline"], found["target"]),
        **found,
        "samples": drawn[:, :2],
    }


def approach(update: Update) -> dict[str, float]:
    """How far the flow was from its target before the update, and after."""
    one = update.target
    target = in_plane(one.log_prob)
    before, after = (_distance(in_plane(at(f, one)), target) for f in (one.flow, update.after))
    return {"beta": update.beta, "before": before, "after": after}


def at(flow: Flow, one: FlowTarget) -> Callable[[Any], Any]:
    """log π_E,θ at the condition of a target."""
    return lambda z: flow.log_prob(one.c.repeat(len(z), 1), z)


def in_plane(log_density: Callable[[Any], Any]) -> FloatArray:
    """A density of three components, the last integrated out, on the grid of the figure."""
    import torch

    axis = np.linspace(-EDGE, EDGE, GRID)
    third = np.linspace(-EDGE - 1.0, EDGE + 1.0, DEPTH)
    x, y, w = np.meshgrid(axis, axis, third, indexing="xy")
    z = torch.from_numpy(np.stack([x, y, w], axis=-1).reshape(-1, 3))
    with torch.no_grad():
        p = np.exp(log_density(z).numpy()).reshape(GRID, GRID, DEPTH)
    shown: FloatArray = p.sum(axis=2) * float(third[1] - third[0])
    return shown


def _distance(p: FloatArray, q: FloatArray) -> float:
    """Total variation distance on the grid."""
    return float(0.5 * np.abs(p - q).sum() * (2.0 * EDGE / (GRID - 1)) ** 2)


def picture(rows: list[dict[str, Any]], path: Path) -> Path:
    """Each row one condition: π_E,gt, target, flow, samples; spline flow."""
    from apeval_bench import style

    titles = ("π_E,gt", "target p_E", "flow after the update", "samples of the flow", "spline flow")
    names = ("nominal", "target", "flow", "samples", "spline")
    figure, axes = style.subplots(len(rows), len(names), 12.5, 2.9 * len(rows))
    for i, row in enumerate(rows):
        for j, name in enumerate(names):
            ax = axes[i, j]
            if name == "samples":
                ax.plot(*row["samples"].T, ".", color=style.BLUE, markersize=2)
                ax.set_aspect("equal")
            else:
                style.density(ax, (-EDGE, EDGE), row[name])
            ax.set_xlim(-EDGE, EDGE)
            ax.set_ylim(-EDGE, EDGE)
            ax.set_title(titles[j] if i == 0 else "")
            if j == 0:
                ax.set_ylabel(
                    f"update {row['update']}, decision {row['decision']}\n"
                    "a_E, 2nd component (nominal std)"
                )
            if i == len(rows) - 1:
                ax.set_xlabel("a_E, 1st component (nominal std)")
    return style.save(figure, path)


def as_text(data: dict[str, Any]) -> str:
    """What the figure shows, in numbers."""
    lines = [
        "| update | decision | β of the bump | distance of π_E,gt to the target "
        "| of the flow (cMAF) | of a spline flow |",
        "|---|---|---|---|---|---|",
    ]
    for r in data["rows"]:
        lines.append(
            f"| {r['update']} of {data['updates']} (step {r['steps']:,}) | {r['decision']} "
            f"| {r['beta']:.3g} | {r['distance_before']:.2f} | {r['distance_after']:.2f} "
            f"| {r['distance_spline']:.2f} |"
        )
    lines += [
        "",
        "| bumps of all updates and decisions | number | distance of the flow to its target before "
        "the update, mean | after it |",
        "|---|---|---|---|",
    ]
    for low, high in itertools.pairwise((-1.0, *WEIGHTS, math.inf)):
        some = [a for a in data["approach"] if low < a["beta"] <= high]
        if some:
            before, after = (float(np.mean([a[k] for a in some])) for k in ("before", "after"))
            upper = "" if high == math.inf else f" ≤ {high:g}"
            what = f"β{upper}" if low < 0.0 else f"{low:g} < β{upper}"
            lines.append(f"| {what} | {len(some)} | {before:.2f} | {after:.2f} |")
    lines.append(
        f"\n`ape-scalable`, printed, on Int-v0, seed {data['seed']}, with "
        f"{data['gradient_steps']} gradient steps per update, σ = {data['sigma']:g}, "
        f"M = {data['samples']} and α_π = {data['alpha_pi']:g}. Distances are total variation over "
        "the plane shown: the first two components of the whitened a_E, the third integrated out."
    )
    return "\n".join(lines)
