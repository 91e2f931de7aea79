"""The MiniGrid problems: tables against the package, frozen agents, exact values, picture."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from apeval.environments import make
from apeval.errors import ApevalError, ProblemError
from apeval.problem.draws import Draws, make_key
from apeval.problem.exact import exact_by_kind, exact_values
from apeval.problem.problem import Problem
from apeval.problem.tabular_model import SAFE_END, failure_code
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.rollout import rollout
from apeval_paper.environments.minigrid import P_STAY, policy, rules

STARTS = ("minigrid-s1", "minigrid-s2", "minigrid-s3")
NAMES = (*STARTS, "minigrid-stuck")


def nominal_episodes(problem: Problem, n: int, seed: int = 1) -> Episodes:
    ids = np.arange(n)
    return rollout(problem, only(Nominal()), make_key(seed), ids, ids)


def test_every_transition_of_the_table_is_the_packages() -> None:
    from apeval_paper.environments.minigrid.env import FlowingLavaEnv

    env = FlowingLavaEnv(P_STAY)
    table = make("minigrid-s1").table
    assert table is not None
    assert table.shape == (2208, 3, 5)
    codes = {"": SAFE_END, "lava": failure_code(rules.LAVA)}
    for (s, a_A, a_E), expected in np.ndenumerate(table.successor):
        env.reset(options={"state": s})
        assert env.state() == s
        observation, reward, ended, truncated, info = env.advance(a_A, a_E)
        found = codes[info["kind"]] if ended else env.state()
        assert found == expected, (rules.STATES[s], a_A, a_E)
        assert not truncated
        assert reward == (expected == SAFE_END)
        if not ended:
            assert np.array_equal(observation, rules.one_hot(np.array([found]))[0])


def test_rules_by_hand() -> None:
    def at(agent: tuple[int, int], direction: int, lava: tuple[int, int]) -> int:
        return int(rules.INDEX[rules.cell(*agent), direction, rules.cell(*lava)])

    def after(s: int, a_A: int, a_E: int) -> int:
        return int(rules.successors(np.array(s), np.array(a_A), np.array(a_E)))

    right, down, left, up = 1, 2, 3, 4
    lava = failure_code(rules.LAVA)
    assert after(at((4, 3), 0, (1, 1)), rules.FORWARD, rules.STAY) == SAFE_END
    assert after(at((2, 3), 0, (3, 3)), rules.FORWARD, up) == lava  # the agent moves first
    assert after(at((2, 3), 0, (3, 2)), rules.FORWARD, down) == lava
    assert after(at((2, 3), 0, (3, 3)), rules.LEFT, left) == lava
    assert after(at((2, 3), 0, (4, 3)), rules.RIGHT, right) == at((2, 3), 1, (4, 3))  # goal
    assert after(at((1, 3), 2, (5, 1)), rules.FORWARD, up) == at((1, 3), 2, (5, 1))  # walls
    assert after(at((1, 3), 0, (5, 1)), rules.LEFT, left) == at((1, 3), 3, (4, 1))


@pytest.mark.parametrize("name", NAMES)
def test_package_and_tables_give_the_same_episodes(name: str) -> None:
    # enough episodes, or lava that flows often enough, for every way to end
    n, p_stay = (6_000, P_STAY) if name == "minigrid-stuck" else (300, 0.3)
    tables = nominal_episodes(make(name, p_stay=p_stay), n)
    package = nominal_episodes(make(f"{name}@package", p_stay=p_stay), n)
    for field in ("kind", "length", "episode", "t", "s", "a_A", "a_E", "s_end"):
        assert np.array_equal(getattr(tables, field), getattr(package, field)), field
    a_E = tables.a_E
    assert np.array_equal(tables.law.log_prob(a_E), package.law.log_prob(a_E))
    assert {0, rules.LAVA} <= set(tables.kind)
    if name == "minigrid-stuck":
        assert rules.STUCK in tables.kind


def test_environments_are_used_again_and_never_shared() -> None:
    problem, draws = make("minigrid-s1@package"), Draws(make_key(1), np.arange(3))
    first, second = problem.reset(draws), problem.reset(draws)
    envs, s0 = set(first.envs), rules.start_state((4, 1))
    assert len(envs | set(second.envs)) == 6
    forward, stay = np.full((3, 1), rules.FORWARD), np.zeros((3, 1), np.int64)
    for _ in range(4):
        first = problem.step(first, forward, stay, draws)
    assert problem.observe(first).tolist() == 3 * [[SAFE_END]]
    assert problem.observe(second).tolist() == 3 * [[s0]]
    del first
    assert set(problem.reset(draws).envs) == envs


@pytest.mark.parametrize("name", STARTS)
def test_the_papers_starts_fail_as_often_as_in_the_paper(name: str) -> None:
    truth = make(name).truth
    assert truth is not None
    value = truth().value
    recorded = policy.load("dqn")[1]["failure_probability"][name.removeprefix("minigrid-")]
    assert value == pytest.approx(recorded, rel=1e-12)
    assert 3.8e-3 < value < 4.2e-3


def test_a_fifth_of_the_stuck_agents_failures_are_stuck_ones() -> None:
    problem = make("minigrid-stuck")
    assert problem.table is not None
    assert problem.truth is not None
    kinds = exact_by_kind(problem.table)
    total = sum(kinds.values())
    assert total == pytest.approx(problem.truth().value, rel=1e-12)
    assert kinds == pytest.approx(policy.load("dqn-stuck")[1]["failure_kinds_s1"], rel=1e-12)
    assert 1e-3 < total < 2e-2
    assert 0.15 < kinds["stuck"] / total < 0.25


def test_exact_values_agree_with_monte_carlo_by_kind() -> None:
    problem, n = make("minigrid-stuck"), 60_000
    assert problem.table is not None
    counts = np.bincount(nominal_episodes(problem, n).kind, minlength=3)
    for k, p in enumerate(exact_by_kind(problem.table).values(), start=1):
        # 4.5 standard deviations of a binomial count: about 1 in 100,000
        assert abs(counts[k] - n * p) < 4.5 * np.sqrt(n * p)


def test_the_environments_own_lava_follows_the_nominal_law() -> None:
    from apeval_paper.environments.minigrid.env import FlowingLavaEnv

    p_stay, n = 0.4, 1_500
    greedy = policy.greedy(policy.load("dqn")[0])
    env = FlowingLavaEnv(p_stay, lava=rules.LAVA_STARTS["s2"])
    failures = 0
    env.reset(seed=2)
    for _ in range(n):
        env.reset()
        over, info = False, {"kind": ""}
        while not over:
            _, _, ended, truncated, info = env.step(greedy[env.state()])
            over = ended or truncated
        failures += info["kind"] != ""
    table = make("minigrid-s2", p_stay=p_stay).table
    assert table is not None
    p = float(exact_values(table)[0, table.start])
    assert abs(failures - n * p) < 4.5 * np.sqrt(n * p * (1.0 - p))


def test_gymnasium_accepts_the_environment() -> None:
    from gymnasium.utils.env_checker import check_env

    from apeval_paper.environments.minigrid.env import FlowingLavaEnv

    check_env(FlowingLavaEnv(P_STAY, render_mode="rgb_array"), skip_render_check=True)


@pytest.mark.parametrize("name", ["dqn", "dqn-stuck"])
def test_greedy_actions_do_not_hang_on_rounding(name: str) -> None:
    layers, provenance = policy.load(name)
    q = np.sort(policy.q_values(layers), axis=1)
    assert (q[:, -1] - q[:, -2]).min() > 1e-6
    assert provenance["p_stay"] == P_STAY
    assert {"command", "seed", "checkpoint", "versions"} <= set(provenance)


def test_a_saved_network_comes_back(tmp_path: Path) -> None:
    layers, provenance = policy.load("dqn")
    policy.save(tmp_path / "again.npz", layers, provenance)
    again, told = policy.read(tmp_path / "again.npz")
    assert told == provenance
    assert np.array_equal(policy.q_values(again), policy.q_values(layers))


@pytest.mark.parametrize("start", rules.LAVA_STARTS.values())
def test_picture_shows_agent_goal_and_lava(start: tuple[int, int]) -> None:
    from apeval_paper.environments.minigrid.picture import picture

    tile = 32
    image = picture(start, tile)
    assert image.shape == (7 * tile, 7 * tile, 3)

    def colour(x: int, y: int, down: float = 0.5) -> list[int]:
        return [int(v) for v in image[int((y + down) * tile), x * tile + tile // 2]]

    assert colour(*rules.AGENT_START) == [255, 0, 0]
    assert colour(*rules.GOAL) == [0, 255, 0]
    assert colour(*start, down=0.2) == [255, 128, 0]
    assert colour(3, 3) == [0, 0, 0]


def test_saved_picture_is_a_png(tmp_path: Path) -> None:
    from apeval_paper.environments.minigrid.picture import save_picture

    save_picture(tmp_path / "grid.png")
    assert (tmp_path / "grid.png").read_bytes().startswith(b"\x89PNG")


def test_training_gives_checkpoints() -> None:
    pytest.importorskip("stable_baselines3")
    from apeval_paper.environments.minigrid.train import train

    checkpoints = train(seed=3, steps=500, p_stay=0.83)
    assert list(checkpoints) == [250, 500]
    assert [w.shape for w, _ in checkpoints[500]] == [(64, 24), (64, 64), (3, 64)]
    assert not np.array_equal(checkpoints[250][0][0], checkpoints[500][0][0])


def test_checkpoints_are_chosen_by_exact_values() -> None:
    from apeval_paper.environments.minigrid import train

    dqn, stuck = policy.load("dqn")[0], policy.load("dqn-stuck")[0]
    backwards = [*dqn[:-1], (-dqn[-1][0], -dqn[-1][1])]  # takes the worst action everywhere
    checkpoints = {1: backwards, 2: dqn, 3: stuck}
    assert train.best_checkpoint(checkpoints, 0.83) == 2
    assert train.calibrated_p_stay(dqn) == P_STAY
    assert train.stuck_checkpoint(checkpoints, P_STAY) == 3
    with pytest.raises(ApevalError, match="another seed"):
        train.stuck_checkpoint({1: backwards, 2: dqn}, P_STAY)


def test_p_stay_is_checked() -> None:
    for name in ("minigrid-s1", "minigrid-s1@package"):
        with pytest.raises(ProblemError, match="p_stay"):
            make(name, p_stay=1.5)


def test_tables_do_without_heavy_libraries() -> None:
    code = (
        "import sys\n"
        "from apeval_paper.environments.minigrid import on_tables\n"
        "on_tables().truth()\n"
        "heavy = {'gymnasium', 'minigrid', 'pygame', 'torch', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
