"""Problems and laws: samples against densities, controlled starts, how episodes are judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import chisquare, kstest, norm

from apeval.errors import ProblemError, UnknownNameError
from apeval.estimate.interval import stratified
from apeval.problem.draws import NATURE, Draws, make_key
from apeval.problem.laws import (
    Categorical,
    Disturbance,
    Law,
    Normal,
    NormalLaw,
    TruncatedNormal,
    pick,
)
from apeval.problem.problem import Problem
from apeval.problem.types import Array, FloatArray
from apeval.run.evaluate import reduce
from apeval.simulate.adversary import Adversary, Nominal, Situation, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.rollout import rollout

RARE = 1e-5  # a p-value below this, at fixed seeds, is a fault and not bad luck


def uniforms(n: int, d: int = 1, seed: int = 0) -> FloatArray:
    return Draws(make_key(seed), np.arange(n)).stream(NATURE, d)


def nominal(problem: Problem, n: int, seed: int = 0, total: int | None = None) -> Episodes:
    ids = np.arange(n)
    return rollout(problem, only(Nominal()), make_key(seed), ids, ids, total)


# Laws: sampling against density


def test_normal_samples_follow_their_density() -> None:
    law = Normal([1.0, -2.0], [0.5, 3.0]).given(None, None)
    a = law.sample(uniforms(20_000, 2))
    for j, (m, s) in enumerate([(1.0, 0.5), (-2.0, 3.0)]):
        assert kstest(a[:, j], norm(m, s).cdf).pvalue > RARE
    expected = norm(1.0, 0.5).logpdf(a[:, 0]) + norm(-2.0, 3.0).logpdf(a[:, 1])
    assert np.allclose(law.log_prob(a), expected, rtol=1e-13)


# boxes around the mean, on either side of it, far out, narrow, and open
BOXES = [(-1.0, 2.0), (0.5, 0.6), (8.0, 9.0), (-9.0, -8.0), (30.0, 31.0), (-37.0, -36.0),
         (40.0, 41.0), (-1e3, -500.0),
         (8.0, np.inf), (-np.inf, -8.0), (-np.inf, 9.0), (-50.0, 50.0)]  # fmt: skip


@pytest.mark.parametrize(("low", "high"), BOXES)
@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (-3.0, 0.25)])
def test_truncated_normal_in_every_part_of_the_line(
    low: float, high: float, mean: float, std: float
) -> None:
    law = TruncatedNormal(mean, std, mean + std * low, mean + std * high).given(None, None)
    a = law.sample(uniforms(4_000))
    assert np.isfinite(law.log_prob(a)).all()

    def density(z: float) -> float:
        return float(np.exp(law.log_prob(np.array([[mean + std * z]]))[0])) * std

    # almost all mass lies within 10/z of the bound in the tail, within 9 in the middle
    reach = 9.0 if low < 0.0 < high else 36.0 / max(abs(low if low > 0.0 else high), 1.0)
    bottom, top = (max(low, -9.0), min(high, 9.0)) if low < 0.0 < high else (
        (low, min(high, low + reach)) if low > 0.0 else (max(low, high - reach), high)
    )  # fmt: skip
    assert quad(density, bottom, top, limit=200)[0] == pytest.approx(1.0, abs=1e-8)
    z = np.sort((a[:, 0] - mean) / std)
    grid = np.linspace(bottom, top, 20_001)
    middle = 0.5 * (grid[1:] + grid[:-1])
    mass = np.exp(law.log_prob(mean + std * middle[:, None])) * std * np.diff(grid)
    cdf = np.concatenate([[0.0], np.cumsum(mass)])
    assert kstest(z, lambda v: np.interp(v, grid, cdf / cdf[-1])).pvalue > RARE


def test_truncated_normal_never_leaves_its_box() -> None:
    """Also at the outermost uniforms, where mean + std·z may round outside."""
    u = np.array([[2.0**-53], [0.5], [1.0 - 2.0**-53]])
    rng = np.random.default_rng(0)
    for _ in range(300):
        mean, width = rng.normal(0.0, 3.0), rng.exponential(2.0) + 1e-3
        low = rng.normal(0.0, 3.0)
        law = TruncatedNormal(mean, rng.exponential() + 0.1, low, low + width).given(None, None)
        a = law.sample(u)
        assert np.isfinite(law.log_prob(a)).all()
    outside = np.array([[low - 1e-9], [low + width + 1e-9]])
    assert np.isneginf(law.log_prob(outside)).all()


def test_state_dependent_laws_go_row_by_row() -> None:
    x, a_A = np.linspace(-2.0, 2.0, 6_000)[:, None], np.full((6_000, 1), 0.5)
    law = Normal(lambda x, a_A: x * a_A, lambda x, a_A: 1.0 + x[:, 0] ** 2).given(x, a_A)
    a = law.sample(uniforms(6_000))
    mean, std = 0.5 * x[:, 0], 1.0 + x[:, 0] ** 2
    assert kstest((a[:, 0] - mean) / std, "norm").pvalue > RARE
    assert np.allclose(law.log_prob(a), norm(mean, std).logpdf(a[:, 0]), rtol=1e-12)


def test_categorical_samples_follow_their_probabilities() -> None:
    p = np.array([0.05, 0.0, 0.6, 0.35])
    law = Categorical(p).given(None, None)
    a = law.sample(uniforms(20_000))
    assert a.shape == (20_000, 1)
    counts = np.bincount(a[:, 0], minlength=4)
    assert counts[1] == 0
    assert chisquare(counts[p > 0.0], 20_000 * p[p > 0.0]).pvalue > RARE
    log_p = law.log_prob(np.arange(4)[:, None])
    assert np.isneginf(log_p[1])
    assert np.allclose(np.exp(log_p), p)


def test_pick_at_the_edges() -> None:
    first, last = np.array([[2.0**-53]]), np.array([[1.0 - 2.0**-53]])
    for p in ([0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]):
        rows = np.array([p])
        assert pick(rows, first) == pick(rows, last) == int(np.argmax(p))
    tenth = np.full((1, 10), 0.1)  # sums to 1 − 1.1e-16
    assert pick(tenth, last) == 9
    assert pick(np.array([[0.25, 0.75]]), np.array([[0.25]])) == 1  # [0, ¼) is the first's
    assert pick(np.ones((1, 1)), last) == 0


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from([0.0, 1e-300, 1e-9, 0.1, 0.3, 1.0]), min_size=1, max_size=6).filter(
        lambda w: sum(w) > 0.0
    ),
    st.integers(0, 2**52 - 1),
)
def test_pick_never_takes_the_impossible(weights: list[float], k: int) -> None:
    p = np.array([weights]) / sum(weights)
    u = np.array([[(k + 0.5) * 2.0**-52]])
    outcome = int(pick(p, u)[0, 0])
    assert p[0, outcome] > 0.0
    assert p[0, :outcome].sum() <= u[0, 0] + 1e-12
    assert p[0, : outcome + 1].sum() >= u[0, 0] - 1e-12


def test_laws_stack_and_take_rows() -> None:
    moving = Normal(lambda x, a_A: x, 2.0)
    xs = [np.array([[0.0], [1.0]]), np.array([[5.0]])]
    both = Law.stack([moving.given(x, None) for x in xs], [2, 1])
    assert both.mean.ravel().tolist() == [0.0, 1.0, 5.0]
    assert both.take(np.array([2, 0])).mean.ravel().tolist() == [5.0, 0.0]
    fixed = Law.stack([Normal().given(None, None)] * 3, [4, 4, 4])
    assert fixed.mean.shape == (1, 1)  # a law that never changes is kept once
    a = np.array([[0.3], [1.0], [7.0]])
    one_by_one = [moving.given(np.array([[m]]), None).log_prob(v[None])[0]
                  for m, v in zip([0.0, 1.0, 5.0], a, strict=True)]  # fmt: skip
    assert np.array_equal(both.log_prob(a), one_by_one)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Normal(0.0, [1.0, 0.0]), "positive"),
        (lambda: TruncatedNormal(0.0, -1.0, 0.0, 1.0), "positive"),
        (lambda: TruncatedNormal(0.0, 1.0, 1.0, 1.0), "below high"),
        (lambda: Categorical([0.5, 0.6]), "sum to 1.1"),
        (lambda: Categorical([1.5, -0.5]), "≥ 0"),
    ],
)
def test_wrong_parameters_are_refused(build: Any, words: str) -> None:
    with pytest.raises(ProblemError, match=words):
        build()


# Problems: what ends an episode, and how


def line(**changes: Any) -> Problem:
    """The state is the sum of the disturbances."""
    base: dict[str, Any] = {
        "nominal": Normal(),
        "reset": lambda draws: np.zeros((draws.n, 1)),
        "step": lambda x, a_A, a_E, draws: x + a_E,
        "failed": lambda x: x[:, 0] > 2.0,
        "horizon": 5,
    }
    return Problem(**{**base, **changes})


def paths(batch: Episodes) -> list[Array]:
    """Each episode's states after its decisions."""
    return [np.cumsum(batch.a_E[batch.rows_of(i), 0]) for i in range(batch.n)]


def test_an_episode_ends_with_its_first_failure() -> None:
    batch = nominal(line(), 300)
    for i, x in enumerate(paths(batch)):
        assert not (x[:-1] > 2.0).any()
        assert batch.failed[i] == (x[-1] > 2.0)
        assert batch.length[i] == len(x) == (len(x) if batch.failed[i] else 5)
    assert 0 < batch.failed.sum() < 300


def test_reaching_the_horizon_can_be_a_failure() -> None:
    kinds = ("high", "late")
    batch = nominal(line(horizon_kind=2, kinds=kinds, done=lambda x: x[:, 0] < -1.0), 300)
    for i, x in enumerate(paths(batch)):
        expected = 1 if x[-1] > 2.0 else 0 if x[-1] < -1.0 else 2
        assert batch.kind[i] == expected
        assert expected != 2 or len(x) == 5
    assert set(batch.kind) == {0, 1, 2}
    assert not batch.unresolved.any()


def test_failure_at_the_last_decision_is_no_horizon_failure() -> None:
    batch = nominal(line(horizon=1, horizon_kind=2, kinds=("high", "late")), 400)
    assert np.array_equal(batch.kind, np.where(batch.a_E[:, 0] > 2.0, 1, 2))


def test_judged_at_the_end_only() -> None:
    problem = line(judge_at_end=True, done=lambda x: x[:, 0] < -3.0, margin=lambda x: 2.0 - x[:, 0])
    batch = nominal(problem, 400)
    back = 0
    for i, x in enumerate(paths(batch)):
        assert len(x) == 5 or x[-1] < -3.0
        assert batch.failed[i] == (x[-1] > 2.0)
        assert batch.margin[i] == pytest.approx(2.0 - x[-1], abs=1e-12)
        back += bool((x > 2.0).any() and not batch.failed[i])
    assert back > 0  # some were above the threshold, and came back


def test_the_cap_leaves_episodes_unresolved() -> None:
    problem = line(horizon=None, cap=4, failed=lambda x: x[:, 0] > 3.0)
    batch = nominal(problem, 300)
    assert batch.length.max() == 4
    for i, x in enumerate(paths(batch)):
        assert batch.unresolved[i] == (not (x > 3.0).any())
    assert batch.unresolved.any()
    assert batch.failed.any()
    assert not (batch.failed & batch.unresolved).any()


def test_a_spent_allowance_leaves_episodes_unresolved() -> None:
    whole = nominal(line(horizon=9), 100)
    spent = int(np.minimum(whole.length, 3).sum())  # three decisions of everybody
    batch = nominal(line(horizon=9), 100, total=spent)
    assert batch.steps == spent
    assert batch.length.max() == 3
    assert np.array_equal(batch.unresolved, ~batch.failed)


@pytest.mark.parametrize("zero", [1.5, 2.0, 2.5])  # a margin that is late, right, early
def test_the_margin_is_at_most_zero_exactly_for_failures(zero: float) -> None:
    batch = nominal(line(margin=lambda x: zero - x[:, 0]), 300)
    assert np.array_equal(batch.margin <= 0.0, batch.failed)
    for i, x in enumerate(paths(batch)):
        smallest = float((zero - x).min())
        if (smallest <= 0.0) == batch.failed[i]:
            assert batch.margin[i] == pytest.approx(smallest, abs=1e-12)


def test_without_a_margin_there_is_none() -> None:
    assert np.isnan(nominal(line(), 5).margin).all()


def test_chance_that_nobody_controls_is_in_the_streams() -> None:
    problem = line(
        reset=lambda draws: draws.normal(1),
        step=lambda x, a_A, a_E, draws: x + a_E + draws.normal(1),
    )
    one, two = nominal(problem, 50), nominal(problem, 50)
    assert np.array_equal(one.s, two.s)
    assert np.array_equal(one.s_end, two.s_end)
    assert not np.array_equal(one.s_end, nominal(problem, 50, seed=1).s_end)


# A controlled initial state


class Leaning(Adversary):
    """Shifts the initial disturbance only."""

    law = NormalLaw(np.array([[2.5]]), np.array([[1.0]]))

    def sample(self, now: Situation, u: FloatArray) -> Array:
        return now.law.sample(u)

    def log_prob(self, now: Situation, a_E: Array) -> FloatArray:
        return now.law.log_prob(a_E)

    def sample_initial(self, law: Law, u: FloatArray) -> Array:
        return self.law.sample(u)

    def log_prob_initial(self, law: Law, a_0: Array) -> FloatArray:
        return self.law.log_prob(a_0)


def start_matters(initial: Disturbance) -> Problem:
    return line(
        initial=initial,
        reset=lambda draws, a_0: 1.0 * a_0,
        step=lambda x, a_A, a_E, draws: x + 0.5 * a_E,
        failed=lambda x: x[:, 0] > 3.0,
        horizon=1,
    )


def test_a_controlled_start_flows_through() -> None:
    batch = nominal(start_matters(Normal()), 200)
    assert np.array_equal(batch.s, batch.a_0)
    assert np.allclose(batch.s_end, batch.a_0 + 0.5 * batch.a_E)
    assert (batch.length == 2).all()  # disturbance 0, and one decision
    expected = norm.logpdf(batch.a_0[:, 0]) + norm.logpdf(batch.a_E[:, 0])
    assert np.allclose(batch.log_density(Nominal()), expected)
    assert kstest(batch.a_0[:, 0], "norm").pvalue > RARE
    assert abs(np.corrcoef(batch.a_0[:, 0], batch.a_E[:, 0])[0, 1]) < 4.5 / np.sqrt(200)


def test_a_controlled_start_is_weighted() -> None:
    """a_0 + a_E/2 ~ N(0, 5/4) exceeds 3 with a known probability; the proposal leans a_0."""
    problem, proposal, ids = start_matters(Normal()), only(Leaning()), np.arange(20_000)
    sample = reduce(rollout(problem, proposal, make_key(0), ids, ids), proposal)
    assert sample.failed.mean() > 0.2
    mean, error = stratified(sample, sample.weights * sample.failed)
    exact = norm.sf(3.0 / np.sqrt(1.25))
    assert error < 0.05 * exact
    assert abs(mean - exact) < 4.5 * error  # 1 in 150,000
    total, spread = stratified(sample, sample.weights)
    assert abs(total - 1.0) < 6.0 * max(spread, 1e-3)


def test_a_discrete_controlled_start() -> None:
    batch = nominal(start_matters(Categorical([0.2, 0.8])), 100)
    assert batch.a_0.dtype.kind == "i"
    assert set(batch.a_0.ravel()) == {0, 1}
    log_p0 = np.where(batch.a_0[:, 0] == 1, np.log(0.8), np.log(0.2))
    assert np.allclose(batch.log_density(Nominal()), log_p0 + norm.logpdf(batch.a_E[:, 0]))


# The door


def test_contradictions_are_refused() -> None:
    with pytest.raises(ProblemError, match="`horizon` must be a whole number of at least 1"):
        line(horizon=0)
    with pytest.raises(ProblemError, match="names no failure kind"):
        line(horizon_kind=2)
    with pytest.raises(UnknownNameError, match="Did you mean 'state'"):
        line(view="stat")


def test_views_and_blindness() -> None:
    views = {"all": lambda x: np.hstack([x, x**2]), "first": lambda x: x[:, 0]}
    problem = line(views=views, name="mine", parameters={"p": 1})
    x = np.array([[2.0], [3.0]])
    assert problem.observe(x).tolist() == [[2.0, 4.0], [3.0, 9.0]]
    assert problem.seen_as("first").observe(x).tolist() == [[2.0], [3.0]]
    blind = problem.blind()
    assert (blind.name, blind.truth, dict(blind.parameters)) == ("", None, {})
    assert np.array_equal(nominal(problem, 9).s, nominal(blind, 9).s)
