"""What the parts of a proposal are fitted to: decisions in whitened coordinates, in flat rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apeval.problem.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class DecisionRows:
    """n episodes with N decisions in all."""

    e: FloatArray
    """Nature's decisions, (N, d): whitened z, N(0, I) under π_E,gt, or the number of an outcome."""
    p: FloatArray
    """π_E,gt of every outcome, (N, K); (N, 0) where decisions are continuous."""
    x: FloatArray
    """The scaled state, (N, f)."""
    t: IntArray
    """The decision's number, clipped to the last time bin, (N,)."""
    episode: IntArray
    n: int
    z_0: FloatArray
    """The whitened initial disturbance, (n, d_0); d_0 = 0 where there is none to learn."""

    def total(self, terms: FloatArray) -> FloatArray:
        """Sum over each episode's decisions, (N,) to (n,)."""
        return np.bincount(self.episode, terms, self.n).astype(np.float64)

    def lengths(self) -> IntArray:
        """Decisions of each episode, (n,)."""
        return np.bincount(self.episode, minlength=self.n)

    def smallest(self, terms: FloatArray) -> FloatArray:
        """Minimum over each episode's decisions, (N,) to (n,); ∞ where there are none."""
        least = np.full(self.n, np.inf)
        np.minimum.at(least, self.episode, terms)
        return least

    def running_smallest(self, terms: FloatArray) -> FloatArray:
        """Minimum over each episode's decisions so far, (N,) to (N,)."""
        # higher episodes are shifted below lower ones, so that one accumulation serves them all
        span = 1.0 + float(terms.max() - terms.min()) if len(terms) else 1.0
        shift = span * self.episode
        least: FloatArray = np.minimum.accumulate(terms - shift) + shift
        return least

    def take(self, keep: BoolArray) -> DecisionRows:
        """The chosen episodes."""
        row = keep[self.episode]
        number = np.cumsum(keep) - 1
        return DecisionRows(
            self.e[row],
            self.p[row],
            self.x[row],
            self.t[row],
            number[self.episode[row]],
            int(keep.sum()),
            self.z_0[keep],
        )


def join(first: DecisionRows, second: DecisionRows) -> DecisionRows:
    """Two sets of episodes as one."""
    both = {
        k: np.concatenate([getattr(first, k), getattr(second, k)])
        for k in ("e", "p", "x", "t", "z_0")
    }
    episode = np.concatenate([first.episode, second.episode + first.n])
    return DecisionRows(episode=episode, n=first.n + second.n, **both)
