"""Independent runs of one problem as one sample.

Every run's estimate has the expectation v, given all that was known before it was drawn. So has
Σ λ_b v̂_b with Σ λ_b = 1, if each λ_b is fixed before run b is drawn:
E[Σ λ_b v̂_b] = Σ λ_b E[v̂_b] = v, and, with λ_b a function of the earlier runs,
E[λ_b v̂_b | earlier] = λ_b v. Budgets are fixed before; effective sizes and standard errors are
not. A sample that lacks its heavy failures has a small mean and a small standard error at once,
so weights 1/error² favour the runs that lie too low: such a mean is biased downwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from apeval.errors import ApevalError
from apeval.estimate.sample import Sample, combine, join


def pool(samples: Sequence[Sample], budgets: Sequence[float]) -> tuple[Sample, tuple[float, ...]]:
    """One sample with the estimate Σ λ_b v̂_b, λ_b ∝ budget b, and the λ_b.

    Monte Carlo runs are put together as they are: their counts add up, and so the exact interval
    stays. Each of their episodes counts alike, which is λ_b ∝ episodes.
    """
    if len(samples) != len(budgets) or not samples or min(budgets) <= 0:
        raise ApevalError("every run that is merged needs a budget above 0")
    if all(sample.unweighted for sample in samples):
        whole = join(samples)
        return whole, tuple(sample.n / whole.n for sample in samples)
    total = float(sum(budgets))
    shares = tuple(budget / total for budget in budgets)
    return combine(list(zip(shares, samples, strict=True))), shares
