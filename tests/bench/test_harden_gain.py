"""What hardening is worth: the medians that are shown, and the grid whose best policy is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import seeding
from tests.hardening.test_adversarial_env import drift, policy

import apeval
from apeval.hardening.minimax import exact_minimax, policy_values
from apeval.problem.tabular_model import SAFE_END
from apeval_bench.harden_gain import gain_text, grid_planner
from apeval_bench.harden_gain.examples import ARMS, EXAMPLES, begin_with
from apeval_bench.harden_gain.grid_planner import GridMemory, GridPlanner, GridTrainer, believed
from apeval_bench.harden_gain.lander_env import FRAMES, GustyLander, blow
from apeval_bench.harden_gain.lander_policy import reached
from apeval_bench.harden_gain.timed_grid import TURNS, TimedGrid, cells_of, timed_problem
from apeval_bench.harden_gain.turning_ego import MOST, STEPS, TurningEgo
from apeval_paper.environments.intersection.columns import CRASHED, SEPARATION, V, Y
from apeval_paper.environments.intersection.geometry import V1
from apeval_paper.environments.intersection.highway import reset
from apeval_paper.environments.intersection.twin import TwinStep
from apeval_paper.environments.lunarlander.box2d import heuristic
from apeval_paper.environments.minigrid import P_STAY, rules


def row(arm: str, seed: int, ratio: float, high: float | None, change: float = 0.0) -> Any:
    def side(estimate: float) -> dict[str, Any]:
        interval = (0.5 * estimate, 2.0 * estimate)
        return {"estimate": estimate, "interval": interval, "trusted": seed > 0,
                "nominal_return": 100.0}  # fmt: skip

    return {"arm": arm, "seed": seed, "before": side(1e-2), "after": side(1e-2 * ratio),
            "ratio": ratio, "ratio_interval": (0.5 * ratio, high), "return_change": change,
            "verdict": "better" if high is not None and high < 1.0 else "not shown"}  # fmt: skip


def collected(rows: list[Any]) -> dict[str, Any]:
    medians = [gain_text.median_of(arm, rows) for arm in ARMS]
    it = EXAMPLES["cartpole"]
    return {"rows": rows, "medians": medians, "settings": it.settings, "title": it.title,
            "about": it.about}  # fmt: skip


def test_three_times_less_often_in_the_median_is_what_counts() -> None:
    controls = [row(arm, seed, 1.0, 1.5) for arm in ARMS[1:] for seed in range(3)]
    good = [row(ARMS[0], 0, 0.1, 0.2), row(ARMS[0], 1, 0.3, 0.5), row(ARMS[0], 2, 2.0, None)]
    data = collected(good + controls)
    assert gain_text.reached(data)
    assert data["medians"][0]["ratio"] == 0.3
    assert data["medians"][0]["better"] == 2
    text = gain_text.as_text(data)
    assert "| adversary | 2 | 1.00e-02 (5.0e-03 … 2.0e-02) |" in text
    assert "2 (1 … ∞)" in text
    assert "1.00e-02 †" in text
    assert "| adversary beside nominal | same seeds |" in text
    assert "0.3 in the median" in text
    assert "fails less often in 2 of 3" in text
    assert text.endswith("at most: reached.")
    for worse in (row(ARMS[0], 1, 0.4, 0.5), row(ARMS[0], 1, 0.3, 1.2),
                  row(ARMS[0], 1, 0.3, None)):  # fmt: skip
        assert not gain_text.reached(collected([good[0], worse, good[2], *controls]))
    lost = [{**r, "return_change": -0.06} for r in good]
    assert not gain_text.reached(collected(lost + controls))


def test_an_ego_of_constant_speed_is_int_v1_itself() -> None:
    env, rng, step = TurningEgo(), np.random.default_rng(0), TwinStep(V1)
    crashes = 0
    for _ in range(60):
        x, over = reset(1, V1), False
        env.reset()
        while not over and env.t < STEPS * V1.decisions:
            a_E = rng.normal(0.0, 2.0, 2).clip(-V1.box, V1.box)
            env.a_E, x = a_E, step(x, a_E[None])
            for _ in range(STEPS):
                if not over:
                    _, reward, over, _, info = env.step(np.zeros(1))
                    assert reward == 1.0
            assert (env.y, env.v, env.smallest) == (x[0, Y], x[0, V], x[0, SEPARATION])
            assert over == (x[0, CRASHED] > 0.5) == (info["gap"] <= 0.0)
        crashes += over
    assert 0 < crashes < 60


def test_braking_and_haste_move_the_ego_and_cost_something() -> None:
    env = TurningEgo()
    places = {}
    for a in (-1.0, 0.0, 1.0):
        env.reset()
        rewards = [env.step(np.array([a]))[1] for _ in range(STEPS)]
        places[a] = env.place
        seconds = (np.arange(V1.frames) / V1.frames).mean()  # moved before it is faster
        expected = V1.frames * (1.0 + a * MOST / V1.ego_speed * seconds)
        assert env.place == pytest.approx(expected, rel=1e-9)
        assert (sum(rewards) < STEPS) == (a != 0.0)
    assert places[-1.0] < places[0.0] < places[1.0]


def test_the_agent_begins_with_constant_speed() -> None:
    pytest.importorskip("stable_baselines3")
    model = EXAMPLES["turning"].policy(3)
    seen = TurningEgo().reset()[0]
    assert float(model.predict(seen, deterministic=True)[0][0]) == 0.0


def test_still_air_is_gymnasiums_lander_and_a_gust_pushes_until_it_touches_down() -> None:
    env, plain = GustyLander(dispersed=True), gymnasium.make("LunarLander-v3")
    for seed in range(3):
        seen, expected = env.reset(seed=seed)[0], plain.reset(seed=1)[0]
        plain.unwrapped.np_random = seeding.np_random(seed)[0]  # of the dispersion
        over = False
        while not over:
            assert np.array_equal(seen, expected)
            action, total = int(heuristic(plain.unwrapped, expected)), 0.0
            seen, reward, over, *_ = env.step(action)
            for _ in range(FRAMES):
                expected, of_frame, there, *_ = plain.step(action)
                total += float(of_frame)
                if there:
                    break
            assert (reward, over) == (total, there)
    speeds = {}
    for gust in (0.0, 3.0):
        env.reset(seed=0)
        blow(env, np.array([gust]))
        env.step(0)
        it: Any = env.unwrapped
        speeds[gust] = it.lander.linearVelocity.x
    frames = FRAMES / 50.0
    whole = it.lander.mass + sum(leg.mass for leg in it.legs)
    pushed = 3.0 * frames / whole  # the legs hang on the hull by joints
    assert speeds[3.0] - speeds[0.0] == pytest.approx(pushed, rel=0.1)
    it.legs[0].ground_contact = True
    before = it.lander.linearVelocity.x
    env.step(0)
    assert it.lander.linearVelocity.x == pytest.approx(before, abs=0.1 * pushed)
    env.reset(seed=0)
    assert it.gust == 0.0


def test_without_dispersion_gusts_are_all_the_chance_and_the_margin_says_who_fails() -> None:
    env, rng = GustyLander(), np.random.default_rng(0)
    ends = []
    for seed in (1, 2):
        seen, over = env.reset(seed=seed)[0], False
        while not over:
            seen, _, over, *_ = env.step(int(heuristic(env.unwrapped, seen)))
        ends.append(seen)
    assert np.array_equal(*ends)
    kinds = set()
    for gust in rng.normal(0.0, 12.0, 12):
        seen, over = env.reset()[0], False
        while not over:
            blow(env, np.array([gust]))
            seen, reward, terminated, truncated, info = env.step(
                int(heuristic(env.unwrapped, seen))
            )
            over = terminated or truncated
            assert (info["failed"] > 0) == (info["margin"] <= 0.0)
            assert not info["failed"] or (over and reward < -50.0)
        kinds.add(info["failed"])
    assert kinds >= {0, 1}


def test_the_kept_lander_goes_on_from_its_own_weights() -> None:
    pytest.importorskip("stable_baselines3")
    model, other = EXAMPLES["lander"].policy(3), EXAMPLES["lander"].policy(4)
    seen = GustyLander().reset(seed=1)[0]
    assert model.predict(seen, deterministic=True)[0] == other.predict(seen, deterministic=True)[0]
    found = reached(model, episodes=20)
    assert found["mean_return"] > 200.0
    assert found["crashes"] <= 3


def test_all_arms_begin_with_the_same_evaluation(tmp_path: Path) -> None:
    def train(policy: Any, env: Any, steps: int, seed: int) -> Any:
        return policy

    asked: dict[str, Any] = {"steps": 1, "episodes": 300, "return_episodes": 2, "method": "mc"}
    problem = drift(disturb=apeval.ActionNoise(std=1.2))
    first = apeval.harden(problem, policy, tmp_path / "a", train=train, **asked)
    begin_with(tmp_path / "a", tmp_path / "b", "nominal")
    told: list[str] = []
    other = apeval.harden(
        problem, policy, tmp_path / "b", train=train, train_on="nominal", listener=told.append,
        **asked,
    )  # fmt: skip
    assert told[0] == "round 0: done before"
    assert other.rounds[0] == first.rounds[0]
    assert len(other.rounds) == 2


def test_the_timed_grid_moves_as_the_tables_say() -> None:
    env, rng = TimedGrid(), np.random.default_rng(0)
    table = apeval.make("minigrid-s1").table
    assert table is not None
    for s in rng.choice(len(rules.STATES), 200, replace=False):
        for a_A in range(rules.AGENT_ACTIONS):
            for a_E in range(rules.NATURE_ACTIONS):
                env.reset()
                env.agent, env.direction, env.lava = (int(v) for v in rules.STATES[s])
                env.a_E = a_E
                obs, reward, over, _, info = env.step(a_A)
                expected = int(table.successor[s, a_A, a_E])
                assert over == (expected < 0)
                assert info["failed"] == (expected < SAFE_END)
                assert reward == (expected == SAFE_END)
                agent, direction, lava, t = cells_of(obs)
                assert t == 1
                if not over:
                    assert rules.INDEX[agent, direction, lava] == expected


def test_the_frozen_network_fails_there_as_often_as_on_the_tables() -> None:
    problem = apeval.make("minigrid-s1", p_stay=P_STAY)
    assert problem.table is not None
    assert problem.truth is not None
    given = GridPlanner(np.tile(problem.table.agent.argmax(axis=1), (rules.HORIZON, 1)))
    found = apeval.evaluate(timed_problem(given), episodes=1_000, seed=2)
    assert abs(found.estimate - problem.truth().value) < 4.0 * found.standard_error


def test_who_knows_all_steps_and_the_law_plans_the_exact_policy() -> None:
    memory, nature = GridMemory(), rules.nature(P_STAY)
    for cell in range(rules.SIDE**2):
        for direction in range(4):
            for a_A, turn in enumerate(TURNS):
                ahead = int(rules.MOVES[cell, 1 + direction]) if a_A == rules.FORWARD else cell
                memory.steps[cell, direction, a_A] = ahead, (direction + turn) % 4
        for a_E, after in enumerate(rules.MOVES[cell]):
            memory.flows[cell, cell if after == rules.GOAL_CELL else after] += nature[a_E]
    table = apeval.make("minigrid-s1").table
    assert table is not None
    found = believed(memory)
    assert np.array_equal(found.successor, table.successor)
    assert found.nominal == pytest.approx(table.nominal, rel=1e-9)
    value = exact_minimax(found).value
    assert value == pytest.approx(exact_minimax(table).value, rel=1e-9)


def test_weights_bring_the_lavas_law_back_to_the_nominal(monkeypatch: pytest.MonkeyPatch) -> None:
    table = apeval.make("minigrid-s1").table
    assert table is not None
    given = GridPlanner(np.tile(table.agent.argmax(axis=1), (rules.HORIZON, 1)))
    problem = timed_problem(given)
    stays: dict[bool, float] = {}
    for weighted in (True, False):

        def seen(memory: GridMemory, weighted: bool = weighted) -> Any:
            tables = believed(memory)
            stays[weighted] = float(tables.nominal[0, 0, rules.STAY])
            return tables

        monkeypatch.setattr(grid_planner, "believed", seen)
        env = apeval.adversarial_env(problem, apeval.widened(problem, 2.0), share=0.5, seed=1)
        found = GridTrainer(weighted)(given, env, 3_000, seed=1)
        assert policy_values(table, found.table)[0, table.start] >= exact_minimax(table).value
    # √(E w² · p(1 − p) / n) is at most 0.01 with weights of at most 2; twice that for episodes
    # whose steps share a weight, and 3 of it. Twice as wide, the lava stays in a third.
    assert abs(stays[True] - P_STAY) < 0.06
    assert stays[False] < P_STAY - 0.06
