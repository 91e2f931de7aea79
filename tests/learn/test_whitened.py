from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import truncnorm

from apeval.learn.whitened import can_whiten, log_phi, to_action, to_z
from apeval.problem.laws import Categorical, CategoricalLaw, Normal, NormalLaw, TruncatedNormal
from apeval.problem.laws import TruncatedNormalLaw as BoxLaw


def box(mean: float, std: float, low: float, high: float) -> BoxLaw:
    return BoxLaw(*[np.array([[v]]) for v in (mean, std, low, high)])


WIDE = box(0.3, 0.5, -30.0, 30.0)
NARROW = box(0.0, 0.5, -2.0, 2.0)
ONE_SIDED = box(1.0, 0.5, 0.0, 9.0)
FAR_ABOVE = box(0.0, 1.0, 20.0, 25.0)
FAR_BELOW = box(0.0, 1.0, -60.0, -45.0)


def test_a_gaussian_is_standardised() -> None:
    law = NormalLaw(np.array([[1.0, -2.0]]), np.array([[0.5, 3.0]]))
    z = np.array([[-30.0, 30.0], [0.0, 1.5]])
    assert to_z(law, to_action(law, z)) == pytest.approx(z, rel=1e-14)
    assert to_action(law, z)[0].tolist() == [-14.0, 88.0]


@pytest.mark.parametrize(
    ("law", "reach"),
    [(WIDE, 30.0), (NARROW, 4.0), (ONE_SIDED, 4.0), (FAR_ABOVE, 4.0), (FAR_BELOW, 4.0)],
)
def test_there_and_back(law: BoxLaw, reach: float) -> None:
    z = np.linspace(-reach, reach, 241)[:, None]
    a = to_action(law, z)
    assert np.all((a >= law.low) & (a <= law.high))
    assert np.all(np.diff(a[:, 0]) > 0.0)
    assert to_z(law, a) == pytest.approx(z, abs=2e-6)


@pytest.mark.parametrize("law", [NARROW, ONE_SIDED])
def test_z_has_the_nominal_cdf(law: BoxLaw) -> None:
    mean, std, low, high = (float(v[0, 0]) for v in vars(law).values())
    a = np.linspace(low, high, 50)[1:-1, None]
    F = truncnorm.cdf(a, (low - mean) / std, (high - mean) / std, mean, std)
    assert ndtr(to_z(law, a)) == pytest.approx(F, rel=1e-10)


def test_a_wide_box_is_no_box_even_far_out() -> None:
    z = np.array([[-30.0], [-1.0], [0.0], [30.0]])
    assert to_z(WIDE, 0.3 + 0.5 * z) == pytest.approx(z, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("law", [NARROW, ONE_SIDED, FAR_ABOVE, FAR_BELOW])
def test_beyond_the_last_double_inside_z_stays_finite(law: BoxLaw) -> None:
    a = to_action(law, np.array([[-300.0], [-30.0], [30.0], [300.0]]))
    assert np.all((a >= law.low) & (a <= law.high))
    assert a[0, 0] == pytest.approx(law.low[0, 0], rel=1e-15)
    assert np.isfinite(to_z(law, a)).all()
    assert np.isfinite(to_z(law, np.concatenate([law.low, law.high]))).all()


@pytest.mark.parametrize("law", [NARROW, ONE_SIDED])
def test_the_density_ratio_is_that_of_z(law: BoxLaw) -> None:
    """q(a) = q(z)·|dz/da|, with q(z) = N(1, 1) and dz/da by differences."""
    z = np.linspace(-2.5, 2.5, 21)[:, None]
    h = 1e-5
    dz_da = 2 * h / (to_action(law, z + h) - to_action(law, z - h))[:, 0]
    log_q_a = log_phi(z - 1.0) + np.log(dz_da)
    log_ratio = log_q_a - law.log_prob(to_action(law, z))
    assert log_ratio == pytest.approx(log_phi(z - 1.0) - log_phi(z), abs=1e-6)


def test_what_can_be_whitened() -> None:
    assert can_whiten(Normal())
    assert can_whiten(TruncatedNormal(0.0, 1.0, -1.0, 1.0))
    assert can_whiten(None)
    assert not can_whiten(Categorical([0.5, 0.5]))
    with pytest.raises(TypeError, match="CategoricalLaw"):
        to_z(CategoricalLaw(np.array([[0.5, 0.5]])), np.zeros((1, 1)))
