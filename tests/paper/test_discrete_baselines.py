"""The discretised baselines: densities on slots are exact, and the rules are the paper's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import chisquare, kstest

import apeval
from apeval.learn.ape_tabular.config import ApeTabularConfig
from apeval.learn.ape_tabular.plain import PlainLearner
from apeval.learn.method import methods
from apeval.problem.draws import make_key
from apeval.problem.laws import CategoricalLaw, Disturbance, Law, NormalLaw, TruncatedNormalLaw
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray
from apeval.simulate.adversary import Nominal, Situation, only
from apeval.simulate.simulation import Budget, Simulation
from apeval_paper.methods.ape_discrete.config import ApeDiscreteConfig
from apeval_paper.methods.ape_discrete.learner import DiscreteLearner
from apeval_paper.methods.cem_discrete.config import CemDiscreteConfig
from apeval_paper.methods.cem_discrete.learner import CrossEntropyLearner
from apeval_paper.methods.slots.config import SlotConfig
from apeval_paper.methods.slots.cut import Cutter
from apeval_paper.methods.slots.policy import SlotAdversary, SlotRow, probability

LAWS: dict[str, NormalLaw | TruncatedNormalLaw] = {
    "box": TruncatedNormalLaw(*np.array([[[0.1, 0.0]], [[0.5, 0.7]], [[-1, -2.0]], [[2.0, 2.0]]])),
    "tails": NormalLaw(np.array([[0.3, -0.2]]), np.array([[1.0, 0.4]])),
}
STATE = (0,)
MISSES = 1e-4  # p-value below which a statistical test says no


def row_with(entries: dict[tuple[int, ...], float], d: int = 2, **fields: Any) -> SlotRow:
    row = SlotRow(d, **fields)
    for joint, value in entries.items():
        row.put(joint, value)
    return row


ROWS = {
    "start": row_with({}),
    "tried": row_with({(2, 2): 0.6, (3, 1): 0.02, (2, 4): 1e-4, (1, 3): 0.2}),
    "optimistic": row_with({(2, 2): 0.6, (3, 3): 1e-6}, rest=7.0),
    "flat": row_with({(3, 3): 0.5, (2, 3): 0.5}, rest=0.01, flat=True),
}


def adversary(row: SlotRow | None, **settings: Any) -> SlotAdversary:
    """π_E with one row, for the state 0; four slots per component between the outer two."""
    cutter = Cutter(SlotConfig(**{"action_slots": 4, **settings}))
    return SlotAdversary({} if row is None else {(STATE, ()): row}, cutter, 1, False)


def situations(n: int, law: Law) -> Situation:
    return Situation(np.zeros((n, 1)), np.zeros((n, 0)), np.zeros(n, np.int64), law)


def uniforms(n: int, d: int = 2, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).random((n, d))


def all_joints(mass: FloatArray) -> Any:
    """Every joint slot of two components that is not empty."""
    K = mass.shape[2]
    return np.array(
        [(i, j) for i in range(K) for j in range(K) if mass[0, 0, i] * mass[0, 1, j] > 0.0]
    )


def learned(learner: Any, problem: Problem, steps: int, seed: int = 0) -> Any:
    simulation = Simulation(problem, make_key(seed), Budget(steps=steps))
    while learner.advance(simulation):
        pass
    return learner


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_samples_have_the_density_that_is_claimed(law: Any, row: SlotRow) -> None:
    """P(slot) sums to 1; samples pass a χ² test over joint slots and a K-S test within the
    fullest one; π_E/π_E,gt is P(slot)/π_E,gt(slot) at every sample."""
    n = 20_000
    pi_E = adversary(row, warm_scale=1.5, warm_shift=0.5)
    cut = pi_E.cutter(law)
    joints = all_joints(cut.mass)
    P = probability(row, cut, joints)
    assert P.sum() == pytest.approx(1.0, rel=1e-12)
    assert cut.joint_slots == len(joints)

    a_E = pi_E.sample(situations(n, law), uniforms(n, seed=1))
    which = (cut.locate(a_E)[:, None, :] == joints).all(axis=2).argmax(axis=1)
    counts = np.bincount(which, minlength=len(joints))
    often = n * P > 5.0
    rare = n * P[~often].sum()
    expected, observed = n * P[often], counts[often]
    if rare > 0.0:
        expected, observed = np.append(expected, rare), np.append(observed, n - observed.sum())
    assert chisquare(observed, expected).pvalue > MISSES

    fullest = counts.argmax()
    for j in range(2):
        edges = cut.edges[0, j, joints[fullest, j] + np.arange(2)]  # type: ignore[attr-defined]
        low, high, F = (
            ndtr((a - law.mean[0, j]) / law.std[0, j]) for a in (*edges, a_E[which == fullest, j])
        )
        assert kstest((F - low) / (high - low), "uniform").pvalue > MISSES

    log_ratio = pi_E.log_prob(situations(n, law), a_E) - law.log_prob(a_E)
    assert np.exp(log_ratio) == pytest.approx((P / cut.nominal(joints))[which], rel=1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_the_density_integrates_to_one(name: str) -> None:
    """By quadrature between the slots' edges, for one component."""
    law = LAWS[name].take(0)
    one = type(law)(*[v[:, :1] for v in vars(law).values()])
    pi_E = adversary(row_with({(2,): 0.7, (4,): 0.05}, d=1))
    edges = np.clip(pi_E.cutter(one).edges[0, 0], -12.0, 12.0)  # type: ignore[attr-defined]

    def density(a: float) -> float:
        return float(np.exp(pi_E.log_prob(situations(1, one), np.array([[a]]))[0]))

    pieces = [quad(density, *edges[k : k + 2])[0] for k in range(len(edges) - 1)]
    assert sum(pieces) == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_without_rows_and_without_warm_start_nature_is_nominal(law: Any) -> None:
    pi_E, now, u = adversary(None), situations(500, law), uniforms(500)
    a_E = pi_E.sample(now, u)
    assert a_E == pytest.approx(law.sample(u), rel=1e-9, abs=1e-9)
    assert pi_E.log_prob(now, a_E) == pytest.approx(Nominal().log_prob(now, a_E), rel=1e-9)


def test_outside_the_box_the_density_is_zero_and_its_corners_belong_to_it() -> None:
    pi_E, law = adversary(ROWS["tried"]), LAWS["box"]
    log_q = pi_E.log_prob(situations(3, law), np.array([[2.0, 2.0], [-1.0, -2.0], [2.1, 0.0]]))
    assert np.isfinite(log_q[:2]).all()
    assert log_q[2] == -np.inf


def test_a_situation_does_not_depend_on_its_batch() -> None:
    """Laws that differ from row to row, in one batch and one by one: the same bits."""
    n = 40
    u = uniforms(n, seed=3)
    law = NormalLaw(u - 0.5, 0.5 + u)
    for row in ROWS.values():
        pi_E = adversary(row, warm_scale=1.3)
        now = situations(n, law)
        a_E = pi_E.sample(now, u)
        log_q = pi_E.log_prob(now, a_E)
        for i in range(n):
            alone = now.take(slice(i, i + 1))
            assert pi_E.sample(alone, u[i : i + 1]).tolist() == a_E[i : i + 1].tolist()
            assert pi_E.log_prob(alone, a_E[i : i + 1])[0] == log_q[i]


def test_far_slots_keep_their_masses() -> None:
    """A box of ±40 std: masses that only exist as logarithms do not turn into NaN."""
    law = TruncatedNormalLaw(*np.array([[[0.0]], [[1.0]], [[20.0]], [[40.0]]]))
    cut = Cutter(SlotConfig(warm_scale=10.0))(law)
    assert cut.mass.sum() == pytest.approx(1.0)
    assert cut.start.sum() == pytest.approx(1.0)
    pi_E = adversary(None, warm_scale=10.0)
    a_E = pi_E.sample(situations(200, law), uniforms(200, 1))
    assert np.isfinite(pi_E.log_prob(situations(200, law), a_E)).all()
    assert a_E.mean() > 21.0  # the nominal's mean is 20.05


def test_the_warm_start_is_wider_and_skewed() -> None:
    cut = Cutter(SlotConfig(action_slots=40, warm_scale=2.0, warm_shift=1.0))(LAWS["tails"])
    inner = cut.edges[:, :, 1:-1]  # type: ignore[attr-defined]
    z = np.clip(0.5 * (inner[..., 1:] + inner[..., :-1]) - np.array([[[0.3], [-0.2]]]), -9, 9)
    z = z / np.array([[[1.0], [0.4]]])
    start = cut.start[:, :, 1:-1]
    mean = (z * start).sum(axis=2) / start.sum(axis=2)
    assert np.all((mean > 0.6) & (mean < 1.1))  # 1, less what the tail slots hold
    widened = Cutter(SlotConfig(warm_scale=2.0))(CategoricalLaw(np.array([[0.01, 0.99]])))
    assert widened.start[0, 0] == pytest.approx(
        np.array([0.01, 0.99]) ** 0.25 / (0.01**0.25 + 0.99**0.25)
    )


@pytest.mark.parametrize("policy_update", ["visited", "row"])
def test_ape_discrete_is_tabular_ape_where_slots_are_states_and_outcomes(
    policy_update: str,
) -> None:
    """Same seed on the walk: v and π_E of the two agree to rounding."""
    problem, steps, delta = apeval.make("walk", top=6), 600, 0.02
    shared: dict[str, Any] = {"policy_update": policy_update, "learn_share": 0.9}
    slots = learned(
        DiscreteLearner(problem, ApeDiscreteConfig(delta=2 * delta, **shared)), problem, steps
    )
    table = learned(
        PlainLearner(problem, ApeTabularConfig(delta=delta, stop_tolerance=0.0, **shared)),
        problem,
        steps,
    )
    assert slots.tables.above == 0
    assert slots.steps == table.steps
    assert slots.tables.v == pytest.approx(table.tables.v, rel=1e-9)
    assert np.array(slots.curve()) == pytest.approx(np.array(table.curve()), rel=1e-9)
    cut = slots.cutter(CategoricalLaw(np.array([[2 / 3, 1 / 3]])))
    for s, rows in table.tables.rows.items():
        pi = probability(slots.rows[(s, (0,))], cut, np.array([[0], [1]]))
        assert pi == pytest.approx(np.array(rows[(0.0,)].pi), rel=1e-9)


def test_cem_follows_the_rules_of_the_appendix() -> None:
    """The first update, recomputed episode by episode from the same random numbers."""
    problem, k, delta = apeval.make("walk", top=4, p_up=0.3), 60, 0.05
    config = CemDiscreteConfig(episodes_per_update=k, delta=2 * delta, warm_scale=1.5)
    learner = CrossEntropyLearner(problem, config)
    start = learner.pi_E
    simulation = Simulation(problem, make_key(0), Budget(steps=20_000))
    while not learner.curve():
        learner.advance(simulation)
    repeat = Simulation(problem, make_key(0), Budget(episodes=k)).run(only(start), k, 0)

    gt = np.array([0.7, 0.3])
    pi = gt ** (1 / 1.5**2) / (gt ** (1 / 1.5**2)).sum()
    v, taken, met = 0.0, np.zeros((3, 2)), np.zeros(3)
    for j in np.flatnonzero(repeat.failed):
        rows = repeat.rows_of(int(j))
        s, a_E = repeat.s[rows, 0], repeat.a_E[rows, 0]
        L_j = float(np.prod(gt[a_E] / pi[a_E]))
        v += L_j / k
        for n in range(len(s)):
            taken[s[n], a_E[n]] += L_j
            met[s[n]] += L_j
    assert learner.value() == pytest.approx(v, rel=1e-12)
    tilde = np.maximum(delta, taken / met[:, None])
    cut = learner.cutter(CategoricalLaw(gt[None, :]))
    for state in range(3):
        row = learner.pi_E.rows[((state,), (0,))]
        new = probability(row, cut, np.array([[0], [1]]))
        assert new == pytest.approx(tilde[state] / tilde[state].sum(), rel=1e-12)


def test_cem_keeps_the_row_of_a_state_that_no_failure_met() -> None:
    problem = apeval.make("walk", top=4, p_up=0.4)
    config = CemDiscreteConfig(episodes_per_update=20, learn_share=0.9, warm_scale=1.0)
    learner = CrossEntropyLearner(problem, config)
    kept = row_with({(1,): 0.9}, d=1)
    learner.pi_E = learner._adversary({((99,), (0,)): kept})
    learned(learner, problem, 2_000)
    assert learner.pi_E.rows[((99,), (0,))] is kept
    assert len(learner.pi_E.rows) > 1


def both_high() -> tuple[Problem, float]:
    """Two components in a box, twice: fails where both lie above 0.8 in either decision."""
    law = LAWS["box"]
    low, high, c = (
        ndtr((a - law.mean) / law.std)[0]
        for a in (law.low, law.high, 0.8)  # type: ignore[union-attr]
    )
    p = float(np.prod((high - c) / (high - low)))
    problem = Problem(
        nominal=apeval.TruncatedNormal([0.1, 0.0], [0.5, 0.7], [-1.0, -2.0], [2.0, 2.0]),
        reset=lambda draws: np.zeros((draws.n, 2)),
        step=lambda x, a_A, a_E, draws: a_E,
        failed=lambda x: (x > 0.8).all(axis=1),
        horizon=2,
    )
    return problem, 1.0 - (1.0 - p) ** 2


@pytest.mark.parametrize("method", ["ape-discrete", "cem-discrete"])
@pytest.mark.parametrize("warm_scale", [1.0, 2.0])
def test_a_learned_adversary_gives_an_unbiased_estimate(method: str, warm_scale: float) -> None:
    """A long frozen stage after a short learning one: within 4 standard errors of the truth, and
    learned to some purpose: failures are at least three times as frequent as nominal."""
    problem, truth = both_high()
    settings = {"learn_share": 0.03, "warm_scale": warm_scale, "action_slots": 6, "state_slots": 4}
    result = apeval.evaluate(problem, method, steps=40_000, seed=7, settings=settings)
    assert abs(result.estimate - truth) < 4.0 * result.standard_error
    assert result.standard_error < 0.1 * truth
    assert result.final.failure_rate > 3.0 * truth


def test_the_frozen_weights_are_bounded_by_the_nominal_share() -> None:
    """Balance weights: p/q ≤ 1/share, whatever was learned."""
    from apeval.run.evaluate import run_frozen_stage

    problem, _ = both_high()
    for learner in (
        DiscreteLearner(problem, ApeDiscreteConfig(delta=1e-9, nominal_share=0.25)),
        CrossEntropyLearner(problem, CemDiscreteConfig(delta=1e-9, nominal_share=0.25)),
    ):
        simulation = Simulation(problem, make_key(2), Budget(steps=2_000))
        while learner.advance(simulation):
            pass
        sample = run_frozen_stage(learner.proposal(), simulation, 0.95).sample
        assert sample.weights.max() <= sample.n / sample.counts[1] * (1.0 + 1e-9)


@pytest.mark.parametrize("method", ["ape-discrete", "cem-discrete"])
def test_learning_without_a_failure_is_said(method: str) -> None:
    problem = Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: np.zeros((draws.n, 1)),
        step=lambda x, a_A, a_E, draws: x + a_E,
        failed=lambda x: x[:, 0] > 50.0,
        horizon=2,
    )
    result = apeval.evaluate(problem, method, steps=400, seed=0)
    assert any("learning saw no failure" in text for text in result.warnings)


def test_targets_above_one_are_cut_and_said() -> None:
    """v_init = 1 and an adversary far from nominal: ρ·(r + v) exceeds 1, v never does."""
    problem, _ = both_high()
    config = ApeDiscreteConfig(v_init=1.0, warm_scale=5.0, warm_shift=3.0)
    learner = learned(DiscreteLearner(problem, config), problem, 600)
    assert max(learner.tables.v.values()) <= 1.0
    assert any("above 1" in note.text for note in learner.warnings())


def test_disturbances_that_cannot_be_cut_are_declined() -> None:
    class Other(apeval.Normal):
        pass

    class Foreign(Disturbance):
        dim = 1

        def given(self, x: Any, a_A: Any) -> Law:
            raise NotImplementedError

    problem, _ = both_high()
    for name in ("ape-discrete", "cem-discrete"):
        suits = methods()[name].suits
        assert suits(replace(problem, nominal=Other(0.0, 1.0))) is None
        assert "cannot cut a Foreign disturbance" in (
            suits(replace(problem, nominal=Foreign())) or ""
        )
    initial = replace(problem, initial=apeval.Normal(0.0, 1.0))
    assert "initial state" in (methods()["ape-discrete"].suits(initial) or "")
