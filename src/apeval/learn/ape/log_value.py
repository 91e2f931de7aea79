"""v(s, t) as far as failures tell: log-quadratic in the state, anchored at the estimate.

Under the zero-variance adversary the weight still to come, ∏ p/q from t on, is v(s_t) itself on
every failing trajectory (the paper's optimal π_E). Under one that was learned it scatters around
it, and a regression of its logarithm on the state gives log v up to a constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.episode_features import MOST_TIMES, EpisodeFeatures
from apeval.learn.ape.mixture_fit import MixtureFit
from apeval.problem.types import FloatArray, IntArray

_RIDGE = 1.0


@dataclass(frozen=True)
class LogValue:
    """log v(s, t) = θ · [1, τ, τ², x, x_i x_j, τ x], x the scaled state, τ the scaled time."""

    theta: FloatArray
    scene: EpisodeFeatures

    def __call__(self, s: FloatArray, t: IntArray) -> FloatArray:
        """log v at states (n, d_s) and decision numbers (n,)."""
        log_v: FloatArray = (
            _design(self.scene.features(np.asarray(s)), self.scene.time(t), self.scene.times)
            @ self.theta
        )
        return np.minimum(log_v, 0.0)

    def anchored(self, s_0: FloatArray, estimate: float) -> LogValue:
        """Shifted so that the mean of v over the initial states is the estimate."""
        log_v = self(s_0, np.zeros(len(s_0), np.int64))
        theta = self.theta.copy()
        theta[0] += np.log(estimate) - np.log(np.mean(np.exp(log_v - log_v.max()))) - log_v.max()
        return LogValue(theta, self.scene)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> LogValue:
        """From a result's `value_function`.

        Raises:
            ValueError: It is not what `as_json` gives.
        """
        mean, scale, columns, theta = (
            _list(data.get(name), name) for name in ("mean", "scale", "columns", "theta")
        )
        times, f = data.get("times"), len(columns)
        if isinstance(times, bool) or not isinstance(times, int) or not 1 <= times <= MOST_TIMES:
            raise ValueError(f"times is not a whole number from 1 to {MOST_TIMES}")
        whole = columns.astype(np.int64)
        if not np.array_equal(whole, columns) or len(set(whole.tolist())) != f or any(whole < 0):
            raise ValueError("columns are not numbers of components")
        size = _design(np.zeros((1, f)), np.zeros(1, np.int64), times).shape[1] if f < 99 else -1
        if (len(mean), len(scale), len(theta)) != (f, f, size) or not np.all(scale > 0.0):
            raise ValueError("mean, scale and theta do not fit the columns")
        return LogValue(theta, EpisodeFeatures(mean, scale, whole, times, False))

    def as_json(self) -> dict[str, Any]:
        """What a reader needs to evaluate it."""
        return {
            "columns": self.scene.columns.tolist(),
            "mean": self.scene.mean.tolist(),
            "scale": self.scene.scale.tolist(),
            "times": self.scene.times,
            "theta": self.theta.tolist(),
        }


def _list(values: Any, name: str) -> FloatArray:
    """A list of finite numbers."""
    if not isinstance(values, list | tuple) or not all(
        isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < np.inf for v in values
    ):
        raise ValueError(f"{name} is not a list of numbers")
    try:
        return np.array(values, np.float64)
    except OverflowError:
        raise ValueError(f"{name} holds a number that is too large") from None


def fit_value(failures: DecisionRows, fit: MixtureFit, scene: EpisodeFeatures) -> LogValue:
    """Regress the weight still to come, under the part that each failure fits best."""
    parts = [part for part in fit.parts if not part.persistent]
    ratios = np.stack([part.log_ratio(failures) for part in parts], axis=1)
    ratios += np.log(fit.shares[[not part.persistent for part in fit.parts]])
    best = np.argmax(ratios, axis=1)[failures.episode]
    rows = np.stack([part.row_ratio(failures) for part in parts], axis=1)
    own = rows[np.arange(len(rows)), best]
    ends = np.cumsum(own)
    through = ends[np.searchsorted(failures.episode, np.arange(failures.n), side="right") - 1]
    to_come = through[failures.episode] - ends + own
    X = _design(failures.x, failures.t, scene.times)
    G = X.T @ X + _RIDGE * np.diag(np.r_[0.0, np.ones(X.shape[1] - 1)])
    theta: FloatArray = np.linalg.lstsq(G, X.T @ -to_come, rcond=None)[0]
    return LogValue(theta, scene)


def _design(x: FloatArray, t: IntArray, times: int) -> FloatArray:
    tau = (t / max(1, times - 1))[:, None]
    f = x.shape[1]
    products = [x[:, i] * x[:, j] for i in range(f) for j in range(i, f)]
    squares = np.stack(products, axis=1) if products else np.zeros((len(x), 0))
    return np.concatenate([np.ones_like(tau), tau, tau**2, x, squares, tau * x], axis=1)
