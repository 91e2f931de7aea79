"""Speed of ape-scalable: learner time per step with its shares, and the growing GP against
gpytorch, which starts over for every datum."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

import numpy as np

from apeval.environments import make
from apeval.learn.method import find_method
from apeval.problem.draws import make_key
from apeval.problem.types import FloatArray
from apeval.simulate.simulation import Budget, Simulation
from apeval_bench.registry import ExperimentRequest

_STEPS, _MS_BAR = 3_000, 3.0
_N, _TURNS, _GP_BAR = 2_000, 5, 10.0
_WARM = {"warm_scale": 2.0, "warm_shift": "1"}  # int-v1's start of all learners


def measure(request: ExperimentRequest) -> dict[str, Any]:
    """Both measurements; parts that need what is not installed say so."""
    missing = [name for name in ("torch", "zuko") if find_spec(name) is None]
    if missing:
        text = f"ape-scalable: skipped, {' and '.join(missing)} missing (apeval[scalable])"
        return {"skipped": text, "passed": True}
    request.tick("ape-scalable on int-v1", 0, 2)
    _learn(request.first_seed)  # import and compile before the clock starts
    learner = [_learn(seed) for seed in request.all_seeds]
    best = min(learner, key=lambda row: float(row["ms_per_step"]))
    request.tick("growing GP against gpytorch", 1, 2)
    gp = _growing_gp() if find_spec("gpytorch") else None
    passed = best["ms_per_step"] <= _MS_BAR and (gp is None or gp["ratio"] >= _GP_BAR)
    return {"learner": best, "gp": gp, "passed": passed}


def as_text(data: dict[str, Any]) -> str:
    """The measurements as tables."""
    if "skipped" in data:
        return str(data["skipped"])
    row, gp = data["learner"], data["gp"]
    lines = [
        "| ape-scalable on int-v1 | ms per step | wall clock | simulation | GP | flow | other |",
        "|---|---|---|---|---|---|---|",
        f"| {_STEPS:,} steps, {row['learning_steps']:,} of them learning "
        f"| {row['ms_per_step']:.2f} (bar {_MS_BAR:g}) "
        f"| {row['wall_ms_per_step']:.2f} | {row['simulation']:.0%} "
        f"| {row['value']:.0%} | {row['flow']:.0%} | {row['other']:.0%} |",
        "",
    ]
    if gp is None:
        lines.append("Growing GP against gpytorch: skipped, gpytorch is not installed.")
    else:
        lines.append(
            f"One datum more at n = {_N:,}, then a prediction: growing Cholesky "
            f"{gp['ours_ms']:.1f} ms, gpytorch refit {gp['gpytorch_ms']:.0f} ms, "
            f"{gp['ratio']:.0f} times (bar {_GP_BAR:g}); predictions differ by "
            f"{gp['difference']:.0e}."
        )
    return "\n".join(lines)


def _learn(seed: int) -> dict[str, Any]:
    """Processor time of the learner (all but simulation) per learning step, and the shares of
    wall-clock time. Wall-clock time per step is given too: it counts what else the machine does."""
    problem, method = make("int-v1").blind(), find_method("ape-scalable")
    simulation = Simulation(problem, make_key(seed), Budget(steps=_STEPS))
    learner: Any = method.start(problem, method.config(**_WARM))
    started, busy = time.perf_counter(), time.process_time()
    while learner.advance(simulation):
        pass
    total, busy = time.perf_counter() - started, time.process_time() - busy
    parts = {name: seconds / total for name, seconds in learner.seconds.items()}
    learning = 1e3 * (1.0 - parts["simulation"]) / simulation.steps
    return {
        "learning_steps": simulation.steps,
        "ms_per_step": learning * busy,
        "wall_ms_per_step": learning * total,
        **parts,
        "other": 1.0 - sum(parts.values()),
    }


def _growing_gp() -> dict[str, float]:
    """Append one datum to 2,000 and predict at another: ours and gpytorch, taking turns."""
    from apeval_paper.methods.ape_scalable.gp import GaussianProcess

    rng = np.random.default_rng(0)
    X = rng.standard_normal((_N + _TURNS, 4))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(len(X))
    where = rng.standard_normal((1, 4))
    ours = GaussianProcess(np.ones(4), w=1.0, sigma=0.1)
    ours.set_data(X[:_N], y[:_N])
    seconds: dict[str, list[float]] = {"ours": [], "gpytorch": []}
    difference = 0.0
    for n in range(_N, _N + _TURNS):
        started = time.perf_counter()
        ours.append(X[n : n + 1], y[n : n + 1])
        mean = ours.mean(where)
        seconds["ours"].append(time.perf_counter() - started)
        started = time.perf_counter()
        reference = _refit(X[: n + 1], y[: n + 1], where)
        seconds["gpytorch"].append(time.perf_counter() - started)
        difference = max(difference, float(np.abs(mean - reference).max()))
    fast, slow = (1e3 * float(np.median(seconds[k])) for k in ("ours", "gpytorch"))
    return {
        "ours_ms": fast, "gpytorch_ms": slow, "ratio": slow / fast, "difference": difference
    }  # fmt: skip


def _refit(X: FloatArray, y: FloatArray, where: FloatArray) -> FloatArray:
    """gpytorch's exact GP with the same ψ, from scratch."""
    import gpytorch
    import torch

    class ExactGP(gpytorch.models.ExactGP):  # type: ignore[misc]
        def __init__(self, likelihood: Any) -> None:
            super().__init__(torch.from_numpy(X), torch.from_numpy(y), likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1])
            )

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    model = ExactGP(likelihood).double()
    model.covar_module.outputscale = 1.0
    model.covar_module.base_kernel.lengthscale = 1.0
    likelihood.noise = 0.01
    model.eval()
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        return np.asarray(model(torch.from_numpy(where)).mean.numpy())
