"""A score for failures that are judged in the last state: the margin that will be there, predicted
from the one that is here.

The further the end, the more a small margin can still change. Nominal episodes tell how much: the
change Δ of the margin from decision t to the end has a mean, a standard deviation σ_t and a slope
against the margin itself. The score is −(predicted last margin)/σ_t: of a sum of Gaussian
disturbances it is Φ⁻¹ of the failure probability itself. Wrong predictions cost precision, not
the estimate's expectation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.problem.types import FloatArray, IntArray
from apeval.simulate.episodes import Episodes

_SLOPE = 0.3  # how far from 0 the slope of Δ is expected to lie, a normal prior's deviation
_FEWEST = 5  # episodes that a prediction is made from
_NARROWEST = 1e-9  # σ_t, relative to the largest


@dataclass(frozen=True)
class Lookahead:
    """−(margin + E[Δ | margin])/σ_t after decision t, for t up to the last but one."""

    change: FloatArray
    """Mean of Δ after decision t, (T,)."""
    slope: FloatArray
    """Of Δ against the margin after decision t, (T,)."""
    centre: FloatArray
    """Mean margin after decision t, (T,)."""
    spread: FloatArray
    """σ_t, (T,); 0 where nothing can be said."""
    top: float = np.inf

    @staticmethod
    def of(roots: Episodes) -> Lookahead:
        """From nominal episodes with their margins along the way."""
        if roots.trace is None:
            raise AssertionError("episodes that branch have a trace")
        T = int(roots.t.max()) + 1
        m = np.full((roots.n, T), np.nan)
        m[roots.episode, roots.t] = roots.trace.margin
        last = m[np.arange(roots.n), np.maximum(_decisions(roots) - 1, 0)]
        change, slope, centre, spread = np.zeros((4, T))
        for t in range(T):
            going = (_decisions(roots) > t + 1) & np.isfinite(m[:, t]) & np.isfinite(last)
            if int(going.sum()) < _FEWEST:
                continue
            here, delta = m[going, t], (last - m[:, t])[going]
            x, y = here - here.mean(), delta - delta.mean()
            variance = float(y @ y) / len(y)
            if variance <= 0.0:
                continue
            slope[t] = float(x @ y) / (float(x @ x) + variance / _SLOPE**2)
            rest = y - slope[t] * x
            change[t], centre[t] = delta.mean(), here.mean()
            spread[t] = np.sqrt(float(rest @ rest) / len(rest))
        return Lookahead(change, slope, centre, spread)

    def __call__(self, t: IntArray, margin: FloatArray) -> FloatArray:
        at = np.minimum(t, len(self.spread) - 1)
        sigma = self.spread[at]
        known = (sigma > _NARROWEST * self.spread.max(initial=0.0)) & (t < len(self.spread))
        predicted = margin + self.change[at] + self.slope[at] * (margin - self.centre[at])
        score: FloatArray = np.full(len(t), -np.inf)
        score[known] = -predicted[known] / sigma[known]
        return score


def _decisions(it: Episodes) -> IntArray:
    return it.length - int(it.law_0 is not None)
