"""The parts of ape-scalable, each against a reference."""

from __future__ import annotations

import copy
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import kstest, norm

from apeval.errors import ApevalError
from apeval.learn.whitened import log_density, log_phi, to_action, to_z
from apeval.problem.laws import Law, Normal, TruncatedNormal
from apeval.simulate.adversary import Nominal, Situation
from apeval_bench import scalable_speed
from apeval_bench.divergence import kl_to_nominal
from apeval_bench.driving import driving_of
from apeval_bench.registry import ExperimentRequest
from apeval_paper.methods.ape_scalable.config import ApeScalableConfig
from apeval_paper.methods.ape_scalable.context import fitted, plain
from apeval_paper.methods.ape_scalable.gp import GaussianProcess
from apeval_paper.methods.ape_scalable.representatives import average, choose

torch = pytest.importorskip("torch")
pytest.importorskip("zuko")

from apeval.learn.networks.flow import Flow  # noqa: E402
from apeval_paper.methods.ape_scalable.adversaries import FlowAdversary, WarmStart  # noqa: E402
from apeval_paper.methods.ape_scalable.flow_target import (  # noqa: E402
    FlowTarget,
    bump_weight,
    dense_rewards,
    keep_finite,
    point_target,
)
from apeval_paper.methods.ape_scalable.updates import Optimiser, likelihood, reverse_kl  # noqa: E402

rng = np.random.default_rng


def some_data(n: int, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    r = rng(0)
    X = r.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + 0.1 * r.standard_normal(n)


def grown(n: int, first: int) -> GaussianProcess:
    """A GP that got its data in three ways: at once, one by one, and as a block."""
    X, y = some_data(n)
    gp = GaussianProcess(np.array([0.5, 1.0, 2.0]), w=1.3, sigma=0.2)
    gp.set_data(X[:first], y[:first])
    for i in range(first, n - 20):
        gp.append(X[i : i + 1], y[i : i + 1])
    gp.append(X[n - 20 :], y[n - 20 :])
    return gp


def test_the_grown_posterior_equals_gpytorch() -> None:
    gpytorch = pytest.importorskip("gpytorch")
    gp = grown(120, 40)
    X, y = some_data(120)

    class Reference(gpytorch.models.ExactGP):  # type: ignore[misc, name-defined]
        def __init__(self, x, y, likelihood):  # type: ignore[no-untyped-def]
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.RBFKernel(ard_num_dims=3)
            )

        def forward(self, x):  # type: ignore[no-untyped-def]
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    noise = gpytorch.likelihoods.GaussianLikelihood().double()
    model = Reference(torch.from_numpy(X), torch.from_numpy(y), noise).double()
    model.covar_module.outputscale = gp.w2
    model.covar_module.base_kernel.lengthscale = torch.from_numpy(gp.inverse_scales**-0.5)
    noise.noise = gp.sigma2
    where = rng(1).standard_normal((50, 3))
    model.train(), noise.train()
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(noise, model)
    nll = -marginal(model(torch.from_numpy(X)), torch.from_numpy(y)) * len(y)
    assert gp.loss(0.0) == pytest.approx(nll.item(), rel=1e-6)
    model.eval(), noise.eval()
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        reference = model(torch.from_numpy(where))
        np.testing.assert_allclose(gp.mean(where), reference.mean, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(gp.variance(where), reference.variance, rtol=1e-5, atol=1e-7)


def test_the_gradient_of_psi_is_that_of_the_loss() -> None:
    gp = grown(60, 30)
    slope = gp.gradient(0.3)
    for j in range(len(gp.psi)):
        values = []
        for h in (-1e-5, 1e-5):
            moved = GaussianProcess(np.ones(3))
            moved.psi = gp.psi.copy()
            moved.psi[j] += h
            moved.set_data(gp.X, gp.y)
            values.append(moved.loss(0.3))
        assert slope[j] == pytest.approx((values[1] - values[0]) / 2e-5, rel=1e-4, abs=1e-4)
    before = gp.loss(0.3)
    gp.descend(5, 0.5, 0.3)
    assert gp.loss(0.3) < before


def test_equal_data_are_one_datum_with_a_count() -> None:
    X, y = some_data(6)
    many = GaussianProcess(np.ones(3))
    many.set_data(np.concatenate([X, X[:1], X[:1]]), np.concatenate([y, [1.0, 2.0]]))
    few = GaussianProcess(np.ones(3))
    mean, count = average(np.array([0, 1, 2, 3, 4, 5, 0, 0]), np.append(y, [1.0, 2.0]), 6)
    few.set_data(X, mean, count)
    where = rng(1).standard_normal((9, 3))
    np.testing.assert_allclose(many.mean(where), few.mean(where), rtol=1e-6)
    np.testing.assert_allclose(many.variance(where), few.variance(where), rtol=1e-6)


def test_new_targets_need_no_new_factor() -> None:
    gp, fresh = grown(60, 30), GaussianProcess(np.array([0.5, 1.0, 2.0]), w=1.3, sigma=0.2)
    y = rng(2).standard_normal(60)
    gp.set_targets(y)
    fresh.set_data(gp.X, y)
    np.testing.assert_allclose(gp.mean(gp.X), fresh.mean(gp.X), rtol=1e-8, atol=1e-10)


def test_representatives_are_far_apart() -> None:
    gp = GaussianProcess(np.ones(1))
    X = np.array([[0.0], [0.01], [5.0], [5.01], [10.0]])
    chosen = X[choose(gp.kernel(X, X), 3), 0]
    assert np.round(chosen).tolist() == [0.0, 5.0, 10.0]


LAWS = {
    "normal": Normal([1.0, -2.0], [0.5, 3.0]),
    "int-v1": TruncatedNormal([0.0, 0.0], 0.5, -5.0, 5.0),
    "int-v0": TruncatedNormal([0.0, 0.0], 0.5, -2.0, 2.0),
    "one-sided": TruncatedNormal([3.0, 0.0], 0.5, [-2.0, 0.0], 2.0),
    "flat": TruncatedNormal([0.3, 0.3], 2.0, -1.0, 1.0),
}


def law_of(name: str) -> Law:
    return LAWS[name].given(None, None)


@pytest.mark.parametrize("name", LAWS)
def test_whitening_is_a_bijection_and_makes_the_nominal_standard(name: str) -> None:
    law = law_of(name)
    z = rng(0).standard_normal((2_000, 2))
    np.testing.assert_allclose(to_z(law, to_action(law, z)), z, rtol=1e-6, atol=1e-8)
    a = law.sample(rng(1).random((4_000, 2)))
    white = to_z(law, a)
    for j in range(2):
        assert kstest(white[:, j], "norm").pvalue > 1e-4
    np.testing.assert_allclose(
        log_density(law, a, white, log_phi(white)), law.log_prob(a), rtol=1e-12
    )


@pytest.mark.parametrize("name", ["int-v0", "flat", "one-sided"])
def test_far_out_actions_stay_in_the_box_with_finite_densities(name: str) -> None:
    law = law_of(name)
    a = to_action(law, np.array([[40.0, -40.0], [9.0, -9.0]]))
    assert np.all(a >= law.low)
    assert np.all(a <= law.high)
    assert np.isfinite(to_z(law, a)).all()
    warm = WarmStart(np.array([2.0, 2.0]), np.array([3.0, 3.0]))
    now = Situation(np.zeros((2, 1)), np.zeros((2, 0)), np.zeros(2, np.int64), law)
    assert np.isfinite(warm.log_prob(now, a)).all()


def trained_flow(kind: str, d: int = 1) -> Flow:
    """A flow that is far from its start, by random last layers."""
    flow = Flow(d, 2, kind, 2, 16, np.full(d, 0.2), np.full(d, 0.5), seed=3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        with torch.no_grad():
            for p in flow.parameters():
                p += 0.3 * torch.randn_like(p)
    return flow


@pytest.mark.parametrize("kind", ["affine", "spline"])
@pytest.mark.parametrize("name", ["int-v0", "flat"])
def test_the_density_is_exact_on_the_box(kind: str, name: str) -> None:
    box = TruncatedNormal(0.1, 0.5 if name == "int-v0" else 2.0, -2.0, 2.0, dim=1)
    q = FlowAdversary(trained_flow(kind), plain(2, 0))
    edge = 2.0 * np.tanh(np.linspace(-9.0, 9.0, 40_001))  # dense near the ends of the box
    a = edge[:, None]
    n = len(a)
    now = Situation(
        np.tile([0.3, -0.7], (n, 1)), np.zeros((n, 0)), np.zeros(n, np.int64), box.given(None, None)
    )
    density = np.exp(q.log_prob(now, a))
    assert np.trapezoid(density, edge) == pytest.approx(1.0, abs=2e-3)
    u = rng(0).random((3_000, 1))
    drawn = q.sample(now.take(slice(0, 3_000)), u)[:, 0]
    cdf = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(edge))])
    assert kstest(drawn, lambda x: np.interp(x, edge, cdf)).pvalue > 1e-4


def test_an_untrained_flow_is_the_warm_start_to_rounding() -> None:
    shift, scale = np.array([0.5, -1.0]), np.array([2.0, 2.0])
    law = law_of("int-v1")
    now = Situation(rng(1).standard_normal((9, 3)), np.zeros((9, 0)), np.zeros(9, np.int64), law)
    u = rng(2).random((9, 2))
    warm = WarmStart(shift, scale)
    for kind in ("affine", "spline"):
        q = FlowAdversary(Flow(2, 3, kind, 2, 8, shift, scale, 0), plain(3, 0))
        a = q.sample(now, u)
        np.testing.assert_allclose(a, warm.sample(now, u), atol=1e-9)
        np.testing.assert_allclose(q.log_prob(now, a), warm.log_prob(now, a), atol=1e-6)


def test_a_frozen_adversary_does_not_follow_its_flow() -> None:
    flow = trained_flow("affine")
    q = FlowAdversary(flow, plain(2, 0))
    now = Situation(np.ones((1, 2)), np.zeros((1, 0)), np.zeros(1, np.int64), law_of("int-v0"))
    before = q.sample(now, np.array([[0.3]]))
    with torch.no_grad():
        for p in flow.parameters():
            p += 1.0
    assert np.array_equal(before, q.sample(now, np.array([[0.3]])))


def test_dense_rewards_and_the_point_target_as_printed() -> None:
    assert dense_rewards(np.array([0, 1]), np.array([2, 2]), 0.9).tolist() == [0.9, 1.0]
    target = point_target(np.array([0.2]), np.array([1.0]), np.array([0.5]), np.array([0.3]), 1e-12)
    assert target[0] == pytest.approx(0.2 * 1.5 / 0.3)


def test_the_bump_lifts_the_density_at_its_center_to_the_point_target() -> None:
    """(1 + β) p_E(a_n) = π̃_E(a_n), which holds in d dimensions only with the power d."""
    flow = trained_flow("affine", d=2).frozen()
    c, z, sigma = torch.ones(1, 2).double(), torch.tensor([[0.2, 0.4]]).double(), 0.2
    density = flow.log_prob(c, z).exp().numpy()
    wanted = 3.0 * density
    beta = bump_weight(wanted, density, sigma, 2)
    p_E = FlowTarget(flow, c, z, torch.from_numpy(beta), sigma).log_prob(z).exp().numpy()
    np.testing.assert_allclose((1.0 + beta) * p_E, wanted, rtol=1e-9)


def test_beta_stays_above_minus_one_and_below_its_limit() -> None:
    kept = keep_finite(np.array([-2e6, np.nan, 6e4, np.inf, 0.5]), 100.0)
    assert kept[0] > -1.0
    assert kept[1:].tolist() == [0.0, 100.0, 100.0, 0.5]


def test_reverse_kl_approaches_its_target_and_leaves_it_alone() -> None:
    flow = Flow(1, 1, "affine", 1, 8, np.zeros(1), np.ones(1), 0)
    c = torch.zeros(1, 1).double()
    target = FlowTarget(
        flow.frozen(), c, torch.tensor([[1.0]]).double(), torch.ones(1).double(), 0.5
    )
    fixed = [p.clone() for p in target.flow.parameters()]
    noise = rng(0)
    before = reverse_kl(flow, target, 4_000, noise).item()
    optimiser = Optimiser(flow, 1e-2, 1.0)
    optimiser.descend(lambda: reverse_kl(flow, target, 64, noise), 100)
    after = reverse_kl(flow, target, 4_000, noise).item()
    assert after < 0.5 * before
    assert all(torch.equal(p, q) for p, q in zip(target.flow.parameters(), fixed, strict=True))
    assert all(not p.requires_grad for p in target.flow.parameters())


def test_momentum_mixes_old_and_new_parameters() -> None:
    flow = trained_flow("affine")
    whole, half = copy.deepcopy(flow), copy.deepcopy(flow)
    c, z = torch.zeros(8, 2).double(), torch.ones(8, 1).double()
    Optimiser(whole, 1e-2, 1.0).descend(lambda: -whole.log_prob(c, z).mean(), 1)
    Optimiser(half, 1e-2, 0.25).descend(lambda: -half.log_prob(c, z).mean(), 1)
    for old, new, mixed in zip(
        flow.parameters(), whole.parameters(), half.parameters(), strict=True
    ):
        assert torch.allclose(mixed, 0.25 * new + 0.75 * old)


def test_a_loss_that_is_not_finite_leaves_the_flow_as_it_was() -> None:
    flow = trained_flow("affine")
    before = [p.detach().clone() for p in flow.parameters()]
    optimiser = Optimiser(flow, 1e-2, 1.0)
    assert not optimiser.descend(lambda: next(flow.parameters()).sum() * float("nan"), 3)
    assert optimiser.failed == 1
    assert all(torch.equal(p, q) for p, q in zip(flow.parameters(), before, strict=True))


def test_likelihood_finds_a_shift_and_shrinks_it_by_the_stated_factor() -> None:
    """Mean ess·z̄/(ess + κ): with z̄ = 2 and κ = ess the flow stops half way."""
    z = 2.0 + rng(0).standard_normal((1_500, 1))
    c, w = np.zeros((len(z), 1)), np.full(len(z), 1.0 / len(z))
    for shrinkage, wanted in ((0.0, 2.0), (1_500.0, 1.0)):
        flow = Flow(1, 1, "affine", 1, 8, np.zeros(1), np.ones(1), 0)
        loss = likelihood(flow, c, z, w, np.full(1_500, 1_500.0), shrinkage, rng(1))
        Optimiser(flow, 2e-2, 1.0).descend(loss, 300)
        with torch.no_grad():
            drawn = flow.generate(torch.zeros(1, 1).double(), torch.zeros(1, 1).double())
        assert float(drawn) == pytest.approx(wanted, abs=0.2)


def test_states_are_scaled_within_their_decision() -> None:
    t = np.repeat([0, 1], 500)
    s = np.where(t == 0, 10.0, 20.0)[:, None] + 0.01 * rng(0).standard_normal((1_000, 1))
    x = fitted(s, t, 2).state(s, t)
    assert x[:, 0].std() == pytest.approx(1.0, abs=1e-6)
    assert x[:, 1].tolist() == (t / 2).tolist()
    assert np.isfinite(fitted(np.ones((4, 1)), np.zeros(4, np.int64), 1).state(s, t)).all()


def test_a_warm_shift_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ApevalError, match="components"):
        ApeScalableConfig(warm_shift="1,2,3").warm(2)
    with pytest.raises(ApevalError, match="commas"):
        ApeScalableConfig(warm_shift="left").warm(2)


def test_listing_the_methods_loads_no_torch() -> None:
    code = (
        "import sys; from apeval.learn.method import methods; methods(); "
        "sys.exit('torch' in sys.modules or 'zuko' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture
def gauss() -> object:
    import apeval

    return apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=lambda x: x[:, 0] > -2.0 * norm.ppf(0.03),  # S_4 > 1.88 · √4
        judge_at_end=True,
        horizon=4,
    )


def test_the_nominal_is_the_nominal() -> None:
    """A warm start of scale 1 and shift 0 has π_E,gt's density to the last digits."""
    law = law_of("int-v0")
    now = Situation(np.zeros((50, 1)), np.zeros((50, 0)), np.zeros(50, np.int64), law)
    a = Nominal().sample(now, rng(0).random((50, 2)))
    warm = WarmStart(np.zeros(2), np.ones(2))
    np.testing.assert_allclose(warm.log_prob(now, a), law.log_prob(a), rtol=1e-10)


def test_kl_to_the_nominal_is_the_closed_form() -> None:
    """KL(N(m, s²)‖N(0, 1)) = ½(s² + m² − 1) − log s per component."""
    law = law_of("int-v0")
    now = Situation(np.zeros((3, 1)), np.zeros((3, 0)), np.zeros(3, np.int64), law)
    kl = kl_to_nominal(WarmStart(np.array([1.0, 0.0]), np.full(2, 2.0)), now, 2, 4_000)
    exact = 0.5 * (4.0 + 1.0 - 1.0) - np.log(2.0) + 0.5 * (4.0 - 1.0) - np.log(2.0)
    np.testing.assert_allclose(kl, exact, rtol=0.05)


def test_driving_is_told_decision_by_decision() -> None:
    """Int-v1's warm start: the same KL at every decision; its own failure rate is at most 0.05."""
    import apeval

    warm = WarmStart(np.ones(2), np.full(2, 2.0))
    found = driving_of(apeval.make("int-v1"), warm, 2_000, 0)
    exact = 2.0 * (0.5 * (4.0 + 1.0 - 1.0) - np.log(2.0))
    np.testing.assert_allclose(found.kl, exact, rtol=0.1)
    assert len(found.acceleration) == 3
    assert 0.0 < found.failure_rate <= 0.05


def test_without_torch_or_zuko_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import apeval
    from apeval.learn.method import find_method
    from apeval_paper.methods import ape_scalable

    method = find_method("ape-scalable")
    monkeypatch.setattr(ape_scalable, "find_spec", lambda name: None)
    problem = apeval.make("int-v1")
    assert "apeval[scalable]" in (method.suits(problem) or "")
    with pytest.raises(ApevalError, match="torch and zuko"):
        method.start(problem, ApeScalableConfig())


def test_speed_rows_are_skipped_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scalable_speed, "find_spec", lambda name: None)
    found = scalable_speed.measure(ExperimentRequest(1))
    assert found["passed"]
    assert "skipped" in scalable_speed.as_text(found)
