"""Settings of scalable APE, and the presets that fill in what is left open."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.problem.settings import setting
from apeval.problem.types import FloatArray

#: What each preset chooses where a setting is left at None.
PRESETS: dict[str, dict[str, Any]] = {
    "printed": {
        "batch": 1,
        "time_in_state": False,
        "scaled_state": False,
        "warm_start": "pretrain",
        "policy_update": "reverse-kl",
        "value_update": "online",
        "target_density": "current",
        "transforms": 2,
        "hidden": 32,
        "flow_steps": 5,
        "alpha_pi": 3e-3,
        "beta_theta": 0.5,
        "shrinkage": 5.0,
        "target_ess": 30.0,
        "value_space": "raw",
        "n_step": 1,
        "representatives": "early-stop",
        "stop_rate": 0.75,
        "explore_share": 0.0,
        "flow": "affine",
    },
    "steered": {
        "batch": 0,
        "time_in_state": True,
        "scaled_state": True,
        "warm_start": "exact",
        "policy_update": "one-step",
        "value_update": "backward",
        "target_density": "nominal",
        "transforms": 1,
        "hidden": 16,
        "flow_steps": 60,
        "alpha_pi": 0.01,
        "beta_theta": 1.0,
        "shrinkage": 5.0,
        "target_ess": 20.0,
        "value_space": "log",
        "n_step": 1,
        "representatives": "variance",
        "stop_rate": 1.0,
        "explore_share": 0.1,
    },
    "cross-entropy": {
        "batch": 0,
        "time_in_state": True,
        "scaled_state": True,
        "warm_start": "exact",
        "policy_update": "likelihood",
        "value_update": "online",
        "target_density": "nominal",
        "transforms": 1,
        "hidden": 16,
        "flow_steps": 40,
        "alpha_pi": 3e-3,
        "beta_theta": 1.0,
        "shrinkage": 5.0,
        "target_ess": 30.0,
        "value_space": "log",
        "n_step": 0,
        "representatives": "variance",
        "stop_rate": 1.0,
        "explore_share": 0.1,
    },
}


@dataclass(frozen=True)
class ApeScalableConfig:
    """Scalable APE (the paper's Section V); the paper states none of these values."""

    preset: str = setting(
        "steered",
        "'steered': v_ψ steers π_E,θ, by dynamic programming over all remembered transitions; "
        "'printed': Algorithms 1-3 as in the paper, with the guards that keep them finite; "
        "'cross-entropy': π_E,θ by weighted likelihood of the failing episodes, a cross-entropy "
        "method with a flow. Settings at None follow the preset",
        choices=("steered", "printed", "cross-entropy"),
    )
    batch: int | None = setting(
        None,
        "episodes between two updates of π_E (0: a tenth of the learning budget)",
        low=0,
        high=10**6,
    )
    time_in_state: bool | None = setting(None, "append t to the state of v_ψ and π_E,θ")
    scaled_state: bool | None = setting(
        None, "scale the state by what the first episodes saw, decision by decision"
    )
    warm_scale: float | None = setting(
        None,
        "warm start π̂_E: standard deviation, in nominal ones (None: a pilot finds it, where "
        "warm_shift is 0)",
        low=0.1,
        high=10.0,
    )
    warm_shift: str = setting(
        "0", "warm start π̂_E: mean, in nominal standard deviations; one number, or 'x,y,…'"
    )
    warm_start: str | None = setting(
        None,
        "fit π_E,θ to π̂_E by maximum likelihood ('pretrain', Algorithm 1) or start from a flow "
        "that is π̂_E by construction ('exact')",
        choices=(None, "exact", "pretrain"),
    )
    flow: str | None = setting(
        None,
        "masked autoregressive flow (cMAF) or splines; all presets but 'printed' take splines "
        "where d_E = 1: an affine flow is always Gaussian there",
        choices=(None, "affine", "spline"),
    )
    transforms: int | None = setting(None, "layers of the flow", low=1, high=16)
    hidden: int | None = setting(None, "width of the flow's conditioners", low=1, high=1024)
    policy_update: str | None = setting(
        None,
        "towards π_E,gt·(r + v(s'))/v(s) at all remembered transitions ('one-step'), 'reverse-kl' "
        "to the target of Eq. NF_target (Algorithm 3), or weighted maximum 'likelihood' of the "
        "failing episodes",
        choices=(None, "one-step", "reverse-kl", "likelihood"),
    )
    value_update: str | None = setting(
        None,
        "v_ψ by Algorithm 2 as data come ('online'), or 'backward' over all remembered "
        "transitions, time after time; one-step needs 'backward', reverse-kl 'online'",
        choices=(None, "backward", "online"),
    )
    target_density: str | None = setting(
        None,
        "π_E in Eq. NF_point_target: the 'current' one (as printed) or the 'nominal' (as in "
        "tables)",
        choices=(None, "current", "nominal"),
    )
    sigma: float = setting(
        0.2, "σ of the bump in Eq. NF_target, in nominal standard deviations", low=1e-3, high=10.0
    )
    gamma_r: float = setting(0.9, "γ_r of the dense rewards", low=0.0, high=1.0)
    beta_limit: float = setting(100.0, "β of Eq. NF_target at the most", low=0.0, high=1e9)
    samples: int = setting(64, "M of Eq. NF_sgd, per context", low=1, high=100_000)
    flow_steps: int | None = setting(None, "gradient steps per update of π_E,θ", low=1, high=10_000)
    alpha_pi: float | None = setting(None, "α_π, the step size of π_E,θ (Adam)", low=1e-8, high=1.0)
    beta_theta: float | None = setting(None, "momentum β_θ of Algorithm 3", low=0.0, high=1.0)
    shrinkage: float | None = setting(
        None,
        "one-step and likelihood: data's worth of belief that π_E,θ is the warm start",
        low=0.0,
        high=1e6,
    )
    target_ess: float | None = setting(
        None,
        "one-step and likelihood: weights are tempered until so many data, or failures, count",
        low=1.0,
        high=1e6,
    )
    value: str = setting(
        "gp", "v_ψ: Gaussian process, or a neural network", choices=("gp", "network")
    )
    value_space: str | None = setting(
        None, "regress TD targets ('raw', as printed) or their logarithms", choices=(
            None, "raw", "log"
        )
    )  # fmt: skip
    n_psi: int = setting(50, "n_ψ: steps between two updates of ψ", low=1, high=10**6)
    gp_steps: int = setting(5, "gradient steps per update of ψ", low=0, high=10_000)
    alpha_v: float = setting(0.1, "α_v, the step size of ψ (in log ψ)", low=1e-8, high=10.0)
    l1: float = setting(1e-3, "λ, the L1 penalty of the inverse length scales", low=0.0, high=1e6)
    gp_budget: int = setting(300, "representative data kept in D_GP", low=2, high=5_000)
    representatives: str | None = setting(
        None,
        "keep the first data ('early-stop', as printed) or those of largest predictive "
        "'variance', with averaged targets",
        choices=(None, "early-stop", "variance"),
    )
    uncertainty: bool = setting(
        False, "add the predictive variance of v_ψ(s') to the noise of its TD target"
    )
    n_step: int | None = setting(
        None,
        "decisions per TD target (1: as printed; 0: to the end of the episode)",
        low=0,
        high=10_000,
    )
    v_floor: float = setting(1e-12, "smallest v(s) that is divided by", low=1e-300, high=1.0)
    stop_rate: float | None = setting(
        None, "π_E stops learning at this sampled failure rate (1: never)", low=0.0, high=1.0
    )
    explore_share: float | None = setting(
        None, "share of the learning episodes that stay with the warm start", low=0.0, high=0.9
    )
    learn_share: float = setting(
        0.5, "share of the budget for learning; the rest estimates", low=0.0, high=0.99
    )
    nominal_share: float = setting(
        0.15, "share of the frozen stage's episodes drawn from π_E,gt", low=0.01, high=1.0
    )

    def resolved(self, d_E: int) -> ApeScalableConfig:
        """With the preset's choices where a setting is None."""
        preset = {"flow": "spline" if d_E == 1 else "affine", **PRESETS[self.preset]}
        full = dataclasses.replace(
            self, **{k: v for k, v in preset.items() if getattr(self, k) is None}
        )
        needed = {"one-step": "backward", "reverse-kl": "online"}.get(full.policy_update or "")
        if needed is not None and full.value_update != needed:
            raise ApevalError(
                f"setting policy_update={full.policy_update} needs value_update={needed}: "
                f"set it, or leave both to a preset"
            )
        return full

    @staticmethod
    def none_stands_for() -> dict[str, Any]:
        """What settings at None mean in the default preset, for `apeval list`."""
        flow = {"flow": "by d_E"}
        return {"warm_scale": "by a pilot"} | flow | PRESETS[ApeScalableConfig().preset]

    @property
    def open_start(self) -> bool:
        """Whether a pilot finds the start."""
        return self.warm_scale is None and self.warm_shift.strip() == "0"

    def warm(self, d_E: int) -> tuple[FloatArray, FloatArray]:
        """(shift, scale) of π̂_E in whitened coordinates, (d_E,) each.

        >>> ApeScalableConfig(warm_scale=2.0, warm_shift="1,0").warm(2)[0].tolist()
        [1.0, 0.0]
        """
        try:
            shift = np.array([float(x) for x in self.warm_shift.split(",")])
        except ValueError:
            raise ApevalError(
                f"setting warm_shift must be numbers, by commas; got {self.warm_shift!r}"
            ) from None
        if len(shift) not in (1, d_E):
            raise ApevalError(
                f"setting warm_shift has {len(shift)} numbers; the disturbance has {d_E} "
                f"components: give 1 or {d_E}"
            )
        return np.broadcast_to(shift, (d_E,)).copy(), np.full(
            d_E, 1.0 if self.warm_scale is None else self.warm_scale
        )
