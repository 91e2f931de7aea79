"""What an episode drawn while learning is worth, beside one drawn when learning is over.

The worth of an episode is the inverse of its variance. That of the proposal as it stands is
predicted (`relax`); a fit to few effective failures hides some more, and learning will take some
away: about `_HIDDEN`/ess² and `_GAINED`/ess where variances are large, and a factor of
(1 + `_DOUBT`/ess)² where they are small (batches of several problems, on tuning seeds).
"""

from __future__ import annotations

_BELIEVED = 4.0  # effective failures from which batches count
_SURE = 10.0  # and from which small variances are taken at their word
_HIDDEN, _GAINED, _DOUBT = 1_000.0, 75.0, 10.0


def batch_weight(variance: float, ess: float) -> float:
    """From 0, not to be counted, to 1, as good as any later one.

    >>> [round(batch_weight(80.0, ess), 2) for ess in (2.0, 5.0, 20.0, 100.0)]
    [0.0, 0.54, 0.92, 0.99]
    >>> [round(batch_weight(5.0, ess), 2) for ess in (2.0, 5.0, 20.0, 100.0)]
    [0.0, 0.0, 0.44, 0.83]
    """
    if ess < _BELIEVED:
        return 0.0
    large = (variance - _GAINED / ess) / (variance + _HIDDEN / ess**2)
    small = (1.0 + _DOUBT / ess) ** -2 if ess >= _SURE else 0.0
    return max(large, small, 0.0)
