"""How far from π_E,gt towards a fit a proposal may go, before its failures can tell by themselves.

The best q is proportional to p·√P(failure | disturbances). Where failures become the rule under
the fit, P is 1 there and q is their distribution; where they stay rare, chance decides with nature,
and the root takes about half of the way back. Few failures cannot tell: those that a proposal that
goes too far misses are just the heavy ones. So the first proposals go all the way, to see.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from apeval.problem.types import BoolArray, IntArray

_ETAS = (0.5, 0.7, 0.85, 1.0)
_TELLS = 40  # episodes from whole fits that tell the rate of failures
_RULE = 0.3  # the rate from which failures are the rule
_FEW, _BELIEVED = 8.0, 50.0  # effective failures: too few to choose; enough to choose freely
_HALF_WAY, _PROOF = 0.7, 2.0


@dataclass
class Reach:
    """Counts the failures among the episodes that whole fits have sent."""

    furthest: float = 1.0
    """η of a whole fit."""
    drawn: int = 0
    failed: int = 0
    _whole: list[int] = field(default_factory=list)

    def sent(self, fit: int, eta: float) -> None:
        """A fit will sample."""
        if eta >= self.furthest:
            self._whole.append(fit)

    def watch(self, fit: IntArray, failed: BoolArray) -> None:
        """Episodes with the fit that each came from."""
        far = np.isin(fit, self._whole)
        self.drawn += int(far.sum())
        self.failed += int((far & failed).sum())

    def etas(self, ess: float) -> dict[float, float]:
        """The η to choose from, with so many effective failures; and the factor by which each must
        look better than those that need no proof."""
        etas = [eta for eta in _ETAS if eta <= self.furthest]
        if self.drawn < _TELLS and ess < _BELIEVED:
            return {etas[-1]: 1.0}
        if self.failed >= _RULE * self.drawn or ess >= _BELIEVED:
            return dict.fromkeys(etas, 1.0)
        if ess < _FEW:
            return {etas[0]: 1.0}
        return {eta: 1.0 if eta <= _HALF_WAY else _PROOF for eta in etas}
