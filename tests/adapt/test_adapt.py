"""`from_env`: each disturbance enters where it says, with its exact density; policies of every
kind; failures, margins and holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import norm, truncnorm

import apeval
from apeval.adapt.compose import ActionCode, DiscreteDisturbance, GaussianDisturbance
from apeval.adapt.paths import parse, read, write
from apeval.errors import ApevalError, ProblemError, SimulationError
from apeval.problem.draws import make_key
from apeval.problem.laws import Categorical, Normal, TruncatedNormal
from apeval.problem.problem import Problem
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.replay import record, replay
from apeval.simulate.rollout import rollout


class Line(gymnasium.Env[Any, Any]):
    """A point on a line, moved by the action; it keeps a log of what it was given."""

    def __init__(self, discrete: bool = False, own_noise: float = 0.0) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        box = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)
        self.action_space = gymnasium.spaces.Discrete(3) if discrete else box
        self.own_noise, self.gain, self.wind = own_noise, 2.0, np.zeros(2)
        self.state, self.log = np.zeros(2), []  # type: ignore[var-annotated]

    def _get_obs(self) -> Any:
        return self.state.copy()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.state = np.array([0.0, self.own_noise * self.np_random.normal()])
        self.log = []
        return self._get_obs(), {"gain": self.gain}

    def step(self, action: Any) -> Any:
        moved = float(np.ravel(action)[0]) * self.gain + self.wind[1]
        self.state = np.array([self.state[0] + moved, self.state[1]])
        self.log.append(moved)
        info = {"gain": self.gain, "room": 5.0 - self.state[0], "log": list(self.log)}
        return self._get_obs(), 0.0, False, False, info


def line(make: Any = Line, **changes: Any) -> Problem:
    given: dict[str, Any] = {
        "policy": lambda obs: [0.0],
        "disturb": apeval.ActionNoise(std=0.5),
        "fails": lambda obs: obs[0] > 5.0,
        "horizon": 6,
        "views": {"all": lambda obs, info: [*obs, info["gain"], len(info.get("log", ()))]},
    }
    return apeval.from_env(make, **{**given, **changes})


def nominal(problem: Problem, n: int = 50, seed: int = 0) -> Episodes:
    ids = np.arange(n)
    return rollout(problem, only(Nominal()), make_key(seed), ids, ids)


def moves(batch: Episodes) -> Any:
    """How far the point moved in each decision."""
    return np.diff(np.concatenate([[0.0], batch.s[batch.episode == 0][1:, 0], batch.s_end[0, :1]]))


def test_action_noise_is_added_clipped_by_the_space_and_weighed_unclipped() -> None:
    batch = nominal(line(policy=lambda obs: [0.3], disturb=apeval.ActionNoise(std=0.5)))
    for i in range(batch.n):
        rows = batch.rows_of(i)
        positions = np.append(batch.s[rows][:, 0], batch.s_end[i, 0])
        applied = np.clip(0.3 + batch.a_E[rows][:, 0], -1.0, 1.0)
        assert np.allclose(np.diff(positions), 2.0 * applied)
    assert np.abs(batch.a_E).max() > 1.0
    assert np.allclose(batch.law.log_prob(batch.a_E), norm.logpdf(batch.a_E[:, 0], scale=0.5))
    assert np.array_equal(batch.a_A, np.full((batch.steps, 1), 0.3))


def test_holds_and_blocks_of_a_decision() -> None:
    """A decision of 4 steps: one held error of the action, two of the gain, four of a sensor."""
    problem = line(
        policy=lambda obs: [0.1 * obs[0]],
        disturb=[
            apeval.ActionNoise(std=0.1, hold=4),
            apeval.ParameterNoise("gain", std=0.2, hold=2),
            apeval.ObservationNoise(std=0.3, index=0),
        ],
        horizon=10,
        views={"log": lambda obs, info: [*info.get("log", ()), *[0.0] * 10][:10]},
    )
    assert (problem.nominal.dim, problem.horizon) == (7, 3)
    assert isinstance(problem.nominal, Normal)
    batch = nominal(problem, 5)
    for i in range(5):
        e, x, expected = batch.a_E[batch.rows_of(i)], 0.0, []
        for t in range(10):  # the last decision is cut at the horizon
            now, frame = e[t // 4], t % 4
            seen = x + now[3 + frame]
            expected.append((0.1 * seen + now[0]) * (2.0 + now[1 + frame // 2]))
            x += expected[-1]
        assert np.allclose(batch.s_end[i], expected)
    with pytest.raises(ProblemError, match="must divide"):
        line(disturb=[apeval.ActionNoise(std=1.0, hold=4), apeval.DropAction(0.1, hold=3)])


def test_failures_and_margins_inside_a_held_decision_are_seen() -> None:
    """Up and down again within one decision: the event is read after every step."""
    swing = iter([1.0, 1.0, 1.0, -1.0, -1.0, -1.0] * 1000)
    problem = line(
        policy=lambda obs: [next(swing)], horizon=6, margin=lambda obs: 5.0 - obs[0] + 1e-12,
        disturb=apeval.ActionNoise(std=1e-6, hold=6, saturate=False),
    )  # fmt: skip
    batch = nominal(problem, 1)
    assert batch.kind.tolist() == [1]
    assert batch.margin[0] == pytest.approx(-1.0, abs=1e-3)
    assert batch.s_end[0, 3] == 3  # stopped where it failed


def test_parameters_are_restored_and_kicks_stay() -> None:
    problem = line(disturb=apeval.ParameterNoise("gain", std=0.5, once=True, relative=True))
    batch = nominal(problem, 20)
    assert problem.horizon == 1  # only the start is disturbed: one decision is the episode
    assert np.allclose(batch.s_end[:, 2], 2.0 * (1.0 + batch.a_E[:, 0]))
    again = nominal(problem, 20)
    assert np.array_equal(again.s_end, batch.s_end)  # the fleet's gains were put back
    kicked = nominal(line(disturb=apeval.ParameterNoise("state[0]", std=1.0, kick=True)), 5)
    assert np.allclose(kicked.s_end[:, 0], kicked.sum_rows(kicked.a_E[:, 0]))
    blown = nominal(line(disturb=apeval.ParameterNoise("wind", std=[0.1, 0.2])), 5)
    assert np.allclose(blown.s_end[:, 0], blown.sum_rows(blown.a_E[:, 1]))


@pytest.mark.parametrize(
    "disturb",
    [apeval.StartNoise("gain", std=0.5), apeval.ParameterNoise("gain", std=0.5, kick=True)],
)
def test_what_a_reset_leaves_alone_does_not_add_up_over_episodes(disturb: Any) -> None:
    problem = line(disturb=disturb)
    batch = nominal(problem, 20)
    assert np.array_equal(nominal(problem, 20).s_end, batch.s_end)
    assert np.allclose(batch.s_end[:, 2], 2.0 + batch.sum_rows(batch.a_E[:, 0]))


def test_a_model_that_was_trained_elsewhere_is_refused() -> None:
    class Model:
        action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
        observation_space = gymnasium.spaces.Box(-1.0, 1.0, (7,))

        def predict(self, obs: Any, deterministic: bool) -> Any:
            raise AssertionError

    with pytest.raises(ProblemError, match=r"trained with the observation space .*\(7,\)"):
        line(policy=Model())


def test_a_controlled_start_beside_disturbed_steps() -> None:
    problem = line(
        disturb=[apeval.StartNoise("state[0]", std=0.5, mean=1.0), apeval.DropAction(0.25)],
        views=None,
    )
    assert problem.initial is not None
    batch = nominal(problem, 40)
    first = batch.s[batch.t == 0]
    assert np.allclose(first[:, 0], batch.a_0[:, 0])  # the policy sees the new start
    assert np.allclose(first[:, 2], batch.a_0[:, 0])  # and a method what was drawn
    assert abs(batch.a_0.mean() - 1.0) < 4.0 * 0.5 / np.sqrt(40)


def test_a_start_that_cannot_be_observed_again_is_refused() -> None:
    class Hidden(Line):
        _get_obs = property()  # type: ignore[assignment]

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            self.state = np.zeros(3)
            return np.zeros(2), {}

    problem = line(Hidden, disturb=apeval.StartNoise("state[0]", std=1.0), views=None)
    with pytest.raises(ProblemError, match="observe=lambda env"):
        nominal(problem, 1)


def test_forces_and_starts_in_mujoco() -> None:
    pytest.importorskip("mujoco", reason="the extra mujoco is not installed")
    problem = apeval.from_env(
        "Hopper-v5",
        policy=lambda obs: np.zeros(3),
        disturb=[
            apeval.StartNoise("data.qvel[0]", std=0.5, replace=True),
            apeval.ParameterNoise("data.qfrc_applied[0]", std=5.0, hold=2),
            apeval.ParameterNoise("model.opt.gravity[0]", std=0.1, hold=2),
        ],
        horizon=4,
    )
    batch = nominal(problem, 3)
    assert np.allclose(batch.s[batch.t == 0][:, 5], batch.a_0[:, 0])  # the velocity along x
    assert np.array_equal(nominal(problem, 3).s_end, batch.s_end)
    pushed = batch.s[batch.t == 1][:, 5] - batch.a_0[:, 0]
    assert np.all(np.sign(pushed) == np.sign(batch.a_E[batch.t == 0, 0]))


def test_events_are_a_joint_categorical_with_exact_probabilities() -> None:
    problem = line(
        lambda: Line(discrete=True),
        policy=lambda obs: 1,
        disturb=[
            apeval.Event([0.5, 0.3, 0.2], change_action=lambda action, k: k),
            apeval.Event(0.1, apply=lambda env, k: setattr(env, "gain", 2.0 + k)),
        ],
    )
    assert isinstance(problem.nominal, Categorical)
    p = np.outer([0.5, 0.3, 0.2], [0.9, 0.1]).ravel()
    assert np.allclose(problem.nominal.given(None, None).probabilities, p)
    batch = nominal(problem, 30)
    first, second = np.divmod(batch.a_E[:, 0], 2)
    assert np.allclose(batch.sum_rows(first * (2.0 + second)), batch.s_end[:, 0])


def test_events_beside_noise_keep_their_probabilities() -> None:
    """Carried by a normal: the outcome's slice has the outcome's probability, also a tiny one."""
    p = np.array([0.7, 0.3 - 1e-13, 1e-13])
    edges = DiscreteDisturbance(p).edges
    assert np.allclose(np.diff(np.concatenate([[0.0], ndtr(edges), [1.0]])), p, atol=1e-15)
    assert ndtr(-edges[-1]) == pytest.approx(1e-13, rel=1e-6)
    code = ActionCode(
        [GaussianDisturbance.of("", 2, 0.0, 1.0, 3.0), DiscreteDisturbance(p)], [1, 2]
    )
    assert isinstance(code.law(), TruncatedNormal)
    row = np.array([0.4, -0.4, ndtri(0.69), ndtri(0.71)])
    vector, outcomes = code.decode(row)
    assert np.array_equal(vector[0], row[:2])
    assert outcomes == [0, 1]
    inside = truncnorm.logpdf(row[:2], -3.0, 3.0).sum() + norm.logpdf(row[2:]).sum()
    assert code.law().given(None, None).log_prob(row[None])[0] == pytest.approx(inside)


def test_sensors_blank_and_actions_drop() -> None:
    blank = line(
        policy=lambda obs: [0.1 * (obs[0] + 1.0)], disturb=apeval.BlankSensor(0.5), horizon=8,
        views={"log": lambda obs, info: [*info.get("log", ()), *[0.0] * 8][:8]},
    )  # fmt: skip
    batch = nominal(blank, 10)
    for i in range(10):
        x, seen = 0.0, None
        for t, lost in enumerate(batch.a_E[batch.rows_of(i), 0]):
            seen = x if seen is None or not lost else seen
            x += 0.2 * (seen + 1.0)
            assert batch.s_end[i, t] == pytest.approx(0.2 * (seen + 1.0))
    steps = iter([0.1, 0.2, 0.3, 0.4] * 100)
    drop = line(policy=lambda obs: [next(steps)], disturb=apeval.DropAction(1.0), horizon=4)
    assert nominal(drop, 1).s_end[0, 0] == pytest.approx(4 * 0.1 * 2.0)  # the first one, again
    zero = line(policy=lambda obs: [1.0], disturb=apeval.DropAction(1.0, instead=[0.0]), horizon=4)
    assert nominal(zero, 1).s_end[0, 0] == 0.0


def test_a_random_policy_repeats_and_does_not_depend_on_its_company() -> None:
    policy = apeval.GaussianPolicy(lambda obs: [0.0], std=0.4)
    sensed = [apeval.ActionNoise(std=0.1), apeval.ObservationNoise(std=0.1)]
    for disturb in (apeval.ActionNoise(std=0.1), sensed):
        problem = line(lambda: Line(own_noise=1.0), policy=policy, disturb=disturb)
        batch = nominal(problem, 12)
        assert len({*batch.s_end[:, 0].tolist()}) == 12
        one = replay(problem, record(batch, 7, make_key(0)))
        assert np.array_equal(one.s_end[0], batch.s_end[7])
    assert policy.log_prob(None, 0.4) == pytest.approx(norm.logpdf(0.4, scale=0.4))


def test_a_discrete_random_policy_has_its_frequencies() -> None:
    policy = apeval.DiscretePolicy(lambda obs: [0.2, 0.3, 0.5])
    problem = line(
        lambda: Line(discrete=True), policy=policy, disturb=apeval.ParameterNoise("gain", std=0.1)
    )
    batch = nominal(problem, 400)
    share = np.bincount(batch.a_A[:, 0], minlength=3) / batch.steps
    assert np.abs(share - [0.2, 0.3, 0.5]).max() < 4.0 * 0.5 / np.sqrt(batch.steps)
    wrong = apeval.DiscretePolicy(lambda obs: [0.2, 0.3, 0.4])
    bad = line(lambda: Line(discrete=True), policy=wrong, disturb=apeval.DropAction(0.1))
    with pytest.raises(ProblemError, match="sum to 1"):
        nominal(bad, 1)


def test_torch_modules() -> None:
    torch = pytest.importorskip("torch", reason="the extra train is not installed")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    batch = nominal(line(lambda: Line(own_noise=1.0), policy=net), 4)
    with torch.no_grad():
        s = torch.as_tensor(batch.s[:, :2], dtype=torch.float32)
        assert np.allclose(batch.a_A, net(s).numpy(), atol=1e-6)
    scores = torch.nn.Linear(2, 3)
    noise = apeval.ParameterNoise("gain", std=0.1)
    batch = nominal(line(lambda: Line(True, 1.0), policy=scores, disturb=noise), 4)
    with torch.no_grad():
        s = torch.as_tensor(batch.s[:, :2], dtype=torch.float32)
        assert np.array_equal(batch.a_A[:, 0], scores(s).argmax(dim=1).numpy())
    with pytest.raises(ProblemError, match="3 scores"):
        nominal(line(lambda: Line(True), policy=torch.nn.Linear(2, 2), disturb=noise), 1)


@pytest.mark.parametrize(
    ("algorithm", "env"),
    [
        ("PPO", "CartPole-v1"),
        ("SAC", "Pendulum-v1"),
        ("A2C", "Pendulum-v1"),
        ("DQN", "CartPole-v1"),
    ],
)
def test_stable_baselines_models_and_files(algorithm: str, env: str, tmp_path: Path) -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="the extra train is not installed")
    model = getattr(sb3, algorithm)("MlpPolicy", env, seed=0, device="cpu")
    model.save(tmp_path / "model.zip")
    disturb = apeval.ParameterNoise("force_mag" if env == "CartPole-v1" else "g", std=0.5)

    def batch(policy: Any) -> Episodes:
        fails = {"fails": lambda obs: False, "disturb": disturb, "horizon": 5}
        return nominal(apeval.from_env(env, policy=policy, **fails), 3)

    seen = batch(model)
    expected, _ = model.predict(seen.s.astype(np.float32), deterministic=True)
    # matrix products of single precision round by the number of rows
    assert np.allclose(seen.a_A, np.reshape(expected, seen.a_A.shape), atol=1e-5)
    assert np.array_equal(batch(str(tmp_path / "model.zip")).a_A, seen.a_A)
    if algorithm == "DQN":
        with pytest.raises(ProblemError, match="randomness"):
            apeval.load_sb3(tmp_path / "model.zip", deterministic=False)
        return
    random = apeval.load_sb3(tmp_path / "model.zip", deterministic=False)
    one, two = batch(random), batch(random)
    assert np.array_equal(one.a_A, two.a_A)
    assert not np.array_equal(one.a_A, seen.a_A)


def test_a_random_sb3_policy_has_the_models_distribution() -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="the extra train is not installed")
    torch = pytest.importorskip("torch")
    obs = np.array([0.3, 0.2, 0.1], np.float32)
    model = sb3.A2C("MlpPolicy", "Pendulum-v1", seed=0, device="cpu")
    policy: Any = apeval.sb3_stochastic(model)
    with torch.no_grad():
        law = model.policy.get_distribution(torch.as_tensor(obs)[None])
        expected = float(law.log_prob(torch.tensor([[0.7]]))[0])
    assert policy.log_prob(obs, 0.7) == pytest.approx(expected, abs=1e-5)
    squashed: Any = apeval.sb3_stochastic(sb3.SAC("MlpPolicy", "Pendulum-v1", seed=0, device="cpu"))
    assert -2.0 <= float(squashed.act(obs, np.array([1e-9]))[0]) <= 2.0


def test_what_counts_as_a_failure() -> None:
    always = {"policy": lambda obs: [1.0], "disturb": apeval.ActionNoise(std=1e-9)}
    for fails in ("info.over", lambda obs, info: info["room"] < 1.5,
                  lambda obs, terminated, truncated, info: obs[0] > 3.5):  # fmt: skip
        problem = line(_Over, fails=fails, **always)
        assert (nominal(problem, 1).kind[0], nominal(problem, 1).length[0]) == (1, 2)
    late = line(fails="horizon", **always)
    assert nominal(late, 1).kind[0] == 1
    kinds = line(fails=lambda obs: 2 if obs[0] > 5.0 else 0, kinds=("low", "high"), **always)
    assert nominal(kinds, 1).kind[0] == 2
    with pytest.raises(ProblemError, match="2 kinds"):
        nominal(line(fails=lambda obs: 3, kinds=("low", "high"), **always), 1)
    with pytest.raises(ProblemError, match="function of 3 arguments"):
        line(fails=lambda a, b, c: True)


class _Over(Line):
    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, terminated, truncated, {**info, "over": obs[0] > 3.5}


def test_the_estimate_with_noise_and_events_is_right() -> None:
    """x = Σ a_t over 3 steps, each lost with probability 1/4, fails above 3: a binomial mixture of
    normal tails."""
    problem = line(
        policy=lambda obs: [0.0],
        disturb=[apeval.ActionNoise(std=0.5, saturate=False),
                 apeval.Event(0.25, change_action=lambda action, lost: [0.0] if lost else action)],
        fails=lambda obs: obs[0] >= 6.5, margin=lambda obs: 6.5 - obs[0], horizon=3, views=None,
    )  # fmt: skip
    # failure is read after every step, but a later step may undo it: compare with the exact
    # probability that the running sum ever reaches the bound, by recursion on a grid
    truth = _ever(3, std=1.0, lost=0.25, bound=6.5)
    result = apeval.evaluate(problem, episodes=1_500, seed=1, confidence=0.999)
    assert result.interval[0] < truth < result.interval[1]
    assert result.interval[1] < 4.0 * truth


def _ever(steps: int, std: float, lost: float, bound: float) -> float:
    x = np.linspace(-8.0, bound, 2_001)
    v = np.zeros_like(x)
    dx = x[1] - x[0]
    for _ in range(steps):
        kernel = norm.pdf(x[None, :] - x[:, None], scale=std) * dx
        kernel[:, [0, -1]] *= 0.5
        v = (1.0 - lost) * (norm.sf(bound - x, scale=std) + kernel @ v) + lost * v
    return float(np.interp(0.0, x, v))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"disturb": apeval.ParameterNoise("gian", std=1.0)}, "Did you mean 'gain'"),
        ({"disturb": apeval.ParameterNoise("state[7]", std=1.0)}, "no state"),
        ({"disturb": apeval.ParameterNoise("unwrapped", std=1.0)}, "not a number or an array"),
        ({"disturb": apeval.ActionNoise(std=0.0)}, "every std must be positive"),
        ({"disturb": apeval.ActionNoise(std=[1.0, 2.0])}, "must be a number, or 1 numbers"),
        ({"disturb": apeval.ActionNoise(std=1.0, index=4)}, "index must name"),
        ({"disturb": apeval.DropAction(1.5)}, "between 0 and 1"),
        ({"disturb": apeval.ActionNoise(std=1.0, hold=0)}, "hold must be"),
        ({"disturb": []}, "at least one disturbance"),
        ({"disturb": [0.3]}, "disturb holds a float"),
        ({"disturb": [apeval.ParameterNoise("gain", std=1.0)] * 2}, "two disturbances act on"),
        (
            {"disturb": [apeval.StartNoise("wind[0]", 1.0), apeval.ParameterNoise("wind", 1.0)]},
            "two disturbances act on 'wind'",
        ),
        ({"fails": "crashed"}, "fails is 'crashed'"),
        ({"fails": "horizon", "horizon": None}, "needs horizon"),
        ({"horizon": 0}, "at least 1; got 0"),
        ({"policy": 3}, "expected a function of the observation"),
        ({"policy": "nowhere.zip"}, "no policy file"),
        ({"policy": apeval.Stochastic(lambda x: x)}, "DiscretePolicy"),
    ],
)
def test_mistakes_are_refused_at_once(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ApevalError, match=says.replace("[", r"\[")):
        line(**changes)


def test_environments_that_cannot_be_made() -> None:
    noise = {"policy": lambda obs: [0.0], "disturb": apeval.ActionNoise(std=1.0)}
    for env, says in (
        ("NoSuchEnv-v0", "gymnasium cannot make 'NoSuchEnv-v0'.* write its module before the id"),
        ("ALE/NoSuch-v5", "it comes with ale_py.* write 'ale_py:ALE/NoSuch-v5'"),
        ("PandaReach-v0", "it comes with panda_gym.* after pip install panda-gym"),
        ("CartPole-v9", "versioned environments"),
        (Line(), "function that makes one"),
        (lambda: None, "without reset and step"),
        (3, "given a int"),
        (lambda: 1 / 0, "ZeroDivisionError: division by zero (test_adapt.py, line"),
    ):
        with pytest.raises(ApevalError, match=says.replace("(", r"\(")):
            apeval.from_env(env, **noise)  # type: ignore[arg-type]


def test_what_a_step_raises_names_its_place() -> None:
    class Four(Line):
        def step(self, action: Any) -> Any:
            return super().step(action)[:4]

    class Broken(Line):
        def step(self, action: Any) -> Any:
            return self.engine  # type: ignore[attr-defined]

    with pytest.raises(SimulationError, match="returned 4 values, expected five"):
        nominal(line(Four), 1)
    with pytest.raises(SimulationError, match=r"step raised AttributeError.*test_adapt.py, line"):
        nominal(line(Broken), 1)


def test_paths() -> None:
    class Inner:
        def __init__(self) -> None:
            self.opt, self.pair = {"g": 9.8}, (1.0, (2.0, 3.0))
            self.whole, self.count = np.arange(3), np.int64(4)

    class Env:
        inner = Inner()

    for path, value in (("inner.opt['g']", 3.0), ("inner.pair[1][0]", 7.0)):
        write(Env, parse(path), np.array(value))
        assert read(Env, parse(path)) == value
    assert Env.inner.pair == (1.0, (7.0, 3.0))
    write(Env, parse("inner.pair[1]"), np.array([4.0, 5.5]))  # a tuple is replaced as a whole
    assert Env.inner.pair == (1.0, (4.0, 5.5))
    write(Env, parse("inner.count"), np.array(4.5))
    assert Env.inner.count == 4.5
    with pytest.raises(ProblemError, match="round the noise away"):
        write(Env, parse("inner.whole"), np.array([0.0, 1.5, 2.0]))
    for wrong in ("", ".x", "a..b", "a[", "a b"):
        with pytest.raises(ProblemError):
            parse(wrong)
