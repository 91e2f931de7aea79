"""Int-v0/v1: the twin against highway-env, the views, the margin, and the problems' contract."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from apeval.environments import make
from apeval.errors import ApevalError, ProblemError
from apeval.problem.draws import Draws, make_key
from apeval_paper.environments.intersection.columns import CRASHED, PENDING, SEPARATION, K, V, Y
from apeval_paper.environments.intersection.geometry import PRESETS, V0, V1

LIGHT = """
import sys
import apeval_paper.environments.intersection
heavy = {"numba", "highway_env", "gymnasium", "pygame", "torch", "matplotlib"} & set(sys.modules)
sys.exit(f"heavy imports: {heavy}" if heavy else 0)
"""


def test_registration_imports_nothing_heavy() -> None:
    assert subprocess.run([sys.executable, "-c", LIGHT], check=False).returncode == 0


def test_twin_equals_stock_highway_env_through_gymnasium() -> None:
    from apeval_paper.environments.intersection.bench import GEOMETRIES, equivalence

    assert len(GEOMETRIES) >= 5
    found = equivalence(16, stock=False, seed=3)
    assert found["mismatches"] == 0
    assert found["crashes"] >= 30
    assert found["impacts_pending_at_horizon"] >= 3
    assert found["largest_state_difference"] <= 1e-12
    stock = equivalence(3, stock=True, seed=4)
    assert stock["mismatches"] == 0
    assert stock["largest_state_difference"] <= 1e-12


@pytest.mark.parametrize("preset", ["int-v0", "int-v1"])
def test_both_backends_give_the_same_states(preset: str) -> None:
    """Also after crashes: separation, sub-steps and flags, with the pushed positions left out."""
    twin, highway = make(f"{preset}@twin"), make(f"{preset}@highway")
    draws = Draws(make_key(5), np.arange(40))
    x = y = twin.reset(draws)
    assert np.array_equal(x, highway.reset(draws))
    g = PRESETS[preset]
    rng = np.random.default_rng(6)
    for t in range(twin.longest):
        a_E = rng.uniform(-g.box, g.box, (len(x), g.d_E)) * 0.6
        a_A = twin.act(x, draws.at(t))
        x, y = twin.step(x, a_A, a_E, draws.at(t)), highway.step(y, a_A, a_E, draws.at(t))
        columns = [K, PENDING, CRASHED, SEPARATION]
        alive = ~twin.failed(x)
        np.testing.assert_allclose(x[:, columns], y[:, columns], atol=1e-12)
        np.testing.assert_allclose(x[alive], y[alive], atol=1e-12)
        for view in twin.views:
            s = twin.seen_as(view).observe(x[alive])
            assert np.all(np.abs(s) <= 1.0)
            np.testing.assert_allclose(s, highway.seen_as(view).observe(y[alive]), atol=1e-12)
        x, y = x[alive], y[alive]


def test_a_step_does_not_change_its_argument_and_ignores_the_batch() -> None:
    for name in ("int-v1@twin", "int-v1@highway"):
        problem = make(name)
        draws = Draws(make_key(1), np.arange(3))
        x = problem.reset(draws)
        before, a_E = x.copy(), np.array([[1.0, 0.0], [-1.0, 2.0], [0.5, 0.5]])
        after = problem.step(x, np.zeros((3, 0)), a_E, draws)
        assert np.array_equal(x, before)
        alone = problem.step(x[1:2], np.zeros((1, 0)), a_E[1:2], Draws(draws.key, draws.ids[1:2]))
        assert np.array_equal(after[1:2], alone)


def test_views_have_the_papers_widths_and_the_markov_view_is_the_default() -> None:
    for preset, widths in (("int-v0", (4, 12, 13)), ("int-v1", (4, 2, 3))):
        problem = make(preset)
        x = problem.reset(Draws(make_key(0), np.arange(2)))
        assert problem.view == "markov"
        for view, width in zip(("markov", "paper", "paper+time"), widths, strict=True):
            assert problem.seen_as(view).observe(x).shape == (2, width)


def test_the_papers_state_at_the_start_is_what_the_geometry_says() -> None:
    """Ego on x = 2 heading north (−y) at 10 m/s, challenger on x = −2 heading south at 8 m/s."""
    s = (
        make("int-v0")
        .seen_as("paper")
        .observe(make("int-v0").reset(Draws(make_key(0), np.arange(1))))
    )
    ahead = (111.0 - V0.ego_start) + (111.0 - V0.challenger_start)
    expected = [
        2 / 120, (111 - 55) / 120, 0, -10 / 50, 0, -1,
        ahead / 120, -4 / 60, -18 / 50, 0, -1, 0,
    ]  # fmt: skip
    np.testing.assert_allclose(s[0], expected, atol=1e-12)


def test_the_challenger_stops_at_zero_and_obeys_the_acceleration_limit() -> None:
    problem = make("int-v0")
    draws = Draws(make_key(0), np.arange(1))
    x = problem.reset(draws)
    for t in range(3):
        previous = x
        x = problem.step(x, np.zeros((1, 0)), np.array([[-2.0, 0.0, -2.0]]), draws.at(t))
        assert previous[0, V] - x[0, V] <= V0.acc_limit + 1e-12
    assert x[0, V] == pytest.approx(0.0, abs=1e-12)
    assert x[0, Y] >= previous[0, Y] - 1e-12


def test_an_impact_pending_at_the_horizon_is_no_failure() -> None:
    from apeval_paper.environments.intersection.bench import CUT_SHORT, hard_actions, twin_episode
    from apeval_paper.environments.intersection.twin import episodes

    actions, held = hard_actions(CUT_SHORT, 200, np.random.default_rng(2))
    x = twin_episode(CUT_SHORT, actions)
    outcome, length = episodes(CUT_SHORT, actions)
    pending = (x[:, PENDING] > 0.5) & (x[:, CRASHED] < 0.5)
    assert held >= 3
    assert pending.sum() >= held
    assert not outcome[pending].any()
    assert np.all(length[pending] == CUT_SHORT.decisions)


def test_separation_agrees_with_overlap() -> None:
    """Signed separation ≤ 0 exactly where highway-env says that the polygons intersect."""
    from highway_env.utils import are_polygons_intersecting
    from highway_env.vehicle.kinematics import Vehicle

    from apeval_paper.environments.intersection.highway import rectangle_gap

    rng = np.random.default_rng(0)
    overlaps = 0
    for _ in range(300):
        a = Vehicle(None, [0.0, 0.0], rng.uniform(-3, 3), 0.0)
        b = Vehicle(None, rng.uniform(-5, 5, 2), rng.uniform(-3, 3), 0.0)
        now, _, _ = are_polygons_intersecting(a.polygon(), b.polygon(), np.zeros(2), np.zeros(2))
        overlaps += now
        assert (rectangle_gap(a, b) <= 0.0) == now
        assert rectangle_gap(a, b, below=100.0) == rectangle_gap(a, b)
    assert 50 < overlaps < 250


def test_impossible_geometries_are_refused_with_the_remedy() -> None:
    with pytest.raises(ProblemError, match="challenger_start must lie in"):
        make("int-v1", challenger_start=300.0)
    with pytest.raises(ProblemError, match="Lower decisions"):
        make("int-v0", decisions=15, ego_start=90.0)
    with pytest.raises(ApevalError, match="challenger_start"):
        make("int-v1", challenger_strat=78.0)


def test_gymnasium_ids_work_and_a_replay_is_deterministic() -> None:
    import gymnasium

    from apeval_paper.environments.intersection import register_gymnasium

    register_gymnasium()
    register_gymnasium()
    for gym_id, d_E in (("apeval/IntersectionA-v0", 3), ("apeval/IntersectionB-v0", 2)):
        env = gymnasium.make(gym_id)
        assert env.action_space.shape == (d_E,)
        ends = []
        for _ in range(2):
            first, _ = env.reset(seed=0)
            assert env.observation_space.contains(first)
            over = False
            while not over:
                observation, reward, crashed, truncated, info = env.step(np.full(d_E, 0.7))
                over = crashed or truncated
            assert reward == float(info["crashed"])
            ends.append(observation)
        assert np.array_equal(ends[0], ends[1])
        env.close()


def test_pictures_show_a_green_and_a_yellow_car_and_red_ones_after_a_crash() -> None:
    from apeval_paper.environments.intersection import render
    from apeval_paper.environments.intersection.highway import GREEN, RED, YELLOW

    def shows(image: np.ndarray, colour: tuple[int, int, int]) -> bool:
        return int((image == np.array(colour)).all(axis=2).sum()) > 20

    still = render.picture(V1)
    assert still.shape == (600, 600, 3)
    assert shows(still, GREEN)
    assert shows(still, YELLOW)
    assert not shows(still, RED)
    crash = list(render.frames(V1, np.tile([1.9, 0.0], (3, 1))))
    assert shows(crash[0], GREEN)
    assert shows(crash[-1], RED)


def test_a_replay_is_written_as_an_animation(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from PIL import Image

    from apeval_paper.environments.intersection import render

    file = render.replay(V1.changed(decisions=1), [[0.0, 0.0]], tmp_path / "episode.gif")
    with Image.open(file) as gif:
        assert gif.n_frames > 10
