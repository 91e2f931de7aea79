"""LunarLander: the stripped step against gymnasium's, failures, margin, replays, truths."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from apeval.environments import make
from apeval.errors import ApevalError, ProblemError
from apeval.problem.draws import Draws, make_key
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray
from apeval_paper.environments.lunarlander import lander as landers
from apeval_paper.environments.lunarlander import truth as truths
from apeval_paper.environments.lunarlander.proposal import HAND_TUNED
from apeval_paper.environments.lunarlander.render import film, still
from apeval_paper.environments.lunarlander.sampling import Proposal, SampledOutcomes, roll, tilted
from apeval_paper.environments.lunarlander.simulator import Landers

NOMINAL = Proposal.nominal()
#: Too little thrust in decision 1, by 5 σ: a crash whatever the dispersion.
WEAK = [[0.0, 0.0], [-0.5, 0.0], *[[0.0, 0.0]] * 18]


def noises(seed: int, std: float) -> list[list[float]]:
    drawn: list[list[float]] = np.random.default_rng(seed).normal(0.0, std, (20, 2)).tolist()
    return drawn


def trace(lander: landers.Lander, start: int, dispersion: int, w: list[list[float]]) -> FloatArray:
    """Observation, margin, end and kind after every single frame of an episode."""
    lander.launch(start, dispersion)
    rows = []
    while not lander.ended:
        lander.fly(*w[lander.frames // 50], 1)
        rows.append([*lander.observation(), lander.margin, lander.ended, lander.kind])
    return np.array(rows)


def test_stripped_step_equals_gymnasium_frame_by_frame() -> None:
    fast, stock = landers.FastLander(), landers.Lander()
    ends: list[int] = []
    for i in range(36):
        start, std = (1, i)[i % 2], (0.1, 0.3, 0.6)[i % 3]
        a, b = (trace(lander, start, 100 + i, noises(i, std)) for lander in (fast, stock))
        assert a.shape == b.shape  # the crash is in the same frame
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-6)
        ends.append(int(a[-1, -1]))
    a, b = (trace(lander, 1, 7, WEAK) for lander in (fast, stock))
    np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-6)
    assert a[-1, -1] == landers.CRASH
    assert 90 <= len(a) <= 120
    assert {0, landers.CRASH, landers.AWAY} <= set(ends)


def test_stripped_step_equals_plain_gymnasium_without_our_classes() -> None:
    """The stock class is itself only gymnasium's `reset`, `heuristic` and `step`."""
    from gymnasium.envs.box2d.lunar_lander import LunarLander, heuristic

    env, w = LunarLander(continuous=True), noises(3, 0.3)
    s, _ = env.reset(seed=1)
    env.np_random = np.random.default_rng(55)
    seen, terminated = [], False
    while not terminated:
        a = np.clip(heuristic(env, s) + w[len(seen) // 50], -1, 1)
        s, _, terminated, _, _ = env.step(a)
        seen.append(s)
    ours = trace(landers.FastLander(), 1, 55, w)
    np.testing.assert_allclose(ours[:, :8], np.array(seen), rtol=0.0, atol=1e-6)


def test_timeout_is_the_thousandth_frame() -> None:
    """Thrust that holds the lander up until the time is over."""
    lander = landers.FastLander()
    lander.launch(1, 0)
    for _ in range(20):
        assert not lander.ended
        # an excess that exceeds what the heuristic can switch off
        lander.fly(1.1, 0.0, 50)
    assert (lander.frames, lander.kind) == (1000, landers.TIMEOUT)
    assert lander.margin <= 0.0


def episodes(problem: Problem, seed: int, ids: list[int], proposal: Proposal) -> SampledOutcomes:
    return roll(problem, make_key(seed), np.array(ids), proposal)


def test_an_episode_depends_on_neither_its_batch_nor_the_simulator() -> None:
    fast, stock = make("lunarlander", std=0.3), make("lunarlander@gymnasium", std=0.3)
    together = episodes(fast, 5, list(range(12)), NOMINAL)
    for part in (episodes(fast, 5, [8, 3], NOMINAL), episodes(stock, 5, [8, 3], NOMINAL)):
        for field in ("kind", "frames", "margin", "decisions", "z"):
            np.testing.assert_array_equal(
                getattr(part, field), getattr(together, field)[[8, 3]], err_msg=field
            )


def test_dispersion_is_not_frozen() -> None:
    """Equal disturbances from the same start end in different frames."""
    problem = make("lunarlander")
    x = problem.reset(Draws(make_key(1), np.arange(6)))
    still_equal = problem.observe(x)
    assert np.ptp(still_equal, axis=0).max() == 0.0
    for t in range(3):
        x = problem.step(x, problem.act(x, Draws(make_key(1), np.arange(6), t)), np.zeros((6, 2)),
                         Draws(make_key(1), np.arange(6), t))  # fmt: skip
    assert len({row.tobytes() for row in problem.observe(x)}) == 6


def test_random_starts_differ_and_replay() -> None:
    problem = make("lunarlander", random_start=True)
    starts = [problem.observe(problem.reset(Draws(make_key(2), np.arange(5)))) for _ in range(2)]
    np.testing.assert_array_equal(starts[0], starts[1])
    assert len({row.tobytes() for row in starts[0]}) == 5


def test_views_agent_and_pool() -> None:
    problem = make("lunarlander")
    assert problem.view == "markov"
    draws = Draws(make_key(0), np.arange(4))
    x = problem.reset(draws)
    assert isinstance(x, Landers)
    assert len(x[np.array([True, False, True, False])]) == 2
    s = problem.observe(x)
    assert s.shape == (4, 9)
    assert np.all(np.abs(s) <= 1.0)
    assert np.all(s[:, 6:] == -1.0)  # no leg touches, no time has passed
    np.testing.assert_array_equal(problem.seen_as("paper").observe(x), s[:, :8])
    a_A = problem.act(x, draws)
    assert a_A.shape == (4, 2)
    assert np.all(np.abs(a_A) <= 1.0)
    used = {id(lander) for lander in x.landers}
    del x
    again = problem.reset(draws)
    assert {id(lander) for lander in again.landers} == used


def test_a_held_lander_is_not_given_to_another_episode() -> None:
    problem = make("lunarlander")
    x = problem.reset(Draws(make_key(0), np.arange(4)))
    kept = x[np.array([False, True, False, False])]
    del x
    other = problem.reset(Draws(make_key(0), np.arange(4)))
    assert kept.landers[0] not in other.landers


def test_parameters() -> None:
    assert make("lunarlander", frames=30).horizon == 34  # 1,000 frames, the last decision cut
    with pytest.raises(ProblemError, match="frames must be"):
        make("lunarlander", frames=0)
    simulator = make("lunarlander").reset.call.__self__  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(simulator)).frames == 50


def test_margin_is_graded_and_separates_failures() -> None:
    """Under too little thrust in decision 1 the margin falls as the noise grows, long before
    anything fails; in a crash it is small."""
    problem = make("lunarlander")
    means = []
    for z in (0.0, -1.5, -3.0):
        shifted = Proposal(np.ones(1), np.zeros((1, 2, 2)), np.ones((1, 2, 2)))
        shifted.mean[0, 1, 0], shifted.std[0, 1, 0] = z, 0.1
        out = episodes(problem, 3, list(range(24)), shifted)
        means.append(out.margin[out.kind == 0].mean())
        assert np.all(out.margin[out.kind == landers.CRASH] < 0.15)
    assert means[0] > means[1] + 0.05 > means[2] + 0.1


def test_weights_of_the_proposal_are_exact() -> None:
    """The disturbance's part against scipy's densities; the mean weight is 1, and its std at most
    3 (0 ≤ w ≤ 10), so that 20,000 trajectories stay within 0.1 by 4 standard errors."""
    from scipy.stats import norm

    rng = np.random.default_rng(0)
    n, T = 20_000, HAND_TUNED.mean.shape[1]
    draws = Draws(make_key(4), np.arange(n))
    j = HAND_TUNED.choose(draws)
    z = np.stack([HAND_TUNED.sample(j, t, rng.uniform(size=(n, 2))) for t in range(T)], axis=1)
    log_q = sum(HAND_TUNED.log_density(t, z[:, t]) for t in range(T)) + np.log(HAND_TUNED.alpha)
    by_scipy = norm.logpdf(z[:, None], HAND_TUNED.mean, HAND_TUNED.std).sum(axis=(2, 3))
    np.testing.assert_allclose(log_q, by_scipy + np.log(HAND_TUNED.alpha), rtol=1e-12)
    log_p = norm.logpdf(z).sum(axis=(1, 2))
    weight = np.exp(log_p - np.logaddexp.reduce(log_q, axis=1))
    assert weight.max() <= 1.0 / HAND_TUNED.alpha[0] + 1e-9
    assert abs(weight.mean() - 1.0) < 0.1


def test_tilted_dispersion_has_its_density() -> None:
    """Against the CDF (1 + u)/2 + c(u² − 1)/4."""
    r = np.random.default_rng(2).uniform(size=1000)
    for c in (-0.9, -0.3, 0.0, 0.5):
        u = tilted(r, np.full(1000, c))
        np.testing.assert_allclose((1.0 + u) / 2.0 + c * (u * u - 1.0) / 4.0, r, atol=1e-12)


def test_importance_weights_of_real_episodes() -> None:
    """The mean weight is 1. Its std is below 2.9 (0 ≤ w ≤ 10 with mean 1 gives var ≤ 9), so 384
    episodes stay within 0.6 by 4 standard errors; and the proposal fails far more often."""
    out = episodes(make("lunarlander"), 6, list(range(384)), HAND_TUNED)
    assert abs(out.weight.mean() - 1.0) < 0.6
    assert out.weight.max() <= 1.0 / HAND_TUNED.alpha[0] + 1e-9
    assert (out.kind > 0).mean() > 0.2


def test_nominal_density_matches_the_problem() -> None:
    """The truth samples z itself: p must be the problem's nominal, in units of its std."""
    problem, u = make("lunarlander"), np.random.default_rng(1).uniform(size=(5, 2))
    law = problem.nominal.given(None, None)
    np.testing.assert_allclose(0.1 * NOMINAL.sample(np.zeros(5, int), 0, u), law.sample(u))


def test_the_two_truths_agree_and_meet_their_errors() -> None:
    importance, monte_carlo = truths.stored("importance"), truths.stored("monte-carlo")
    assert importance.standard_error <= 0.02 * importance.value
    assert monte_carlo.standard_error <= 0.10 * monte_carlo.value
    error = np.hypot(importance.standard_error, monte_carlo.standard_error)
    assert abs(importance.value - monte_carlo.value) <= 3.0 * error
    assert importance.value == pytest.approx(1.30e-3, rel=0.10)
    problem = make("lunarlander")
    assert problem.truth is not None
    assert problem.truth() == importance
    assert make("lunarlander", std=0.2).truth is None


def test_verification_wants_a_fresh_seed() -> None:
    with pytest.raises(ApevalError, match="verify with another"):
        truths.verify_truth(False, seed=truths.stored().provenance["seed"])


def test_truth_resumes_from_its_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truths, "BLOCK", 32)
    first = truths.compute("importance", 64, 900, folder=tmp_path)
    assert first["budget"] == 64
    monkeypatch.setattr(truths, "_block", lambda job: pytest.fail("simulated twice"))
    again = truths.compute("importance", 64, 900, folder=tmp_path)
    assert again == first


def test_recorded_episode_replays_to_a_gif(tmp_path: Path) -> None:
    problem = make("lunarlander")
    out = episodes(problem, 8, [4], NOMINAL)
    a_E = 0.1 * out.z[0, : out.decisions[0]]
    shown = film(make_key(8), 4, a_E, every=10)
    assert (shown.frames, shown.outcome) == (out.frames[0], "landed")
    assert shown.pictures[0].shape == (400, 600, 3)
    shown.save(tmp_path / "a.gif")
    still(tmp_path / "a.png", frame=20)
    from PIL import Image

    with Image.open(tmp_path / "a.gif") as gif:
        # Pillow joins equal neighbours, as when the lander has come to rest
        assert len(shown.pictures) // 2 < getattr(gif, "n_frames", 1) <= len(shown.pictures)
    with Image.open(tmp_path / "a.png") as png:
        colours = {colour for _, colour in png.getcolors(100_000) or []}
    assert {(204, 204, 0), (128, 102, 230)} <= colours  # the pad's flags and the lander


def test_registration_is_light() -> None:
    code = (
        "import sys; from apeval_paper.environments import lunarlander; "
        "print([m for m in ('gymnasium', 'Box2D', 'numba', 'pygame') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
