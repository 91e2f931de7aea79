"""What environments, policies and judges give and get is nobody else's: they may write over their
answers and change their arguments, whichever door they come through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from tests.adapt.test_vector import Line, alone, episodes, make, same, together

import apeval
from apeval.adapt.batches import mixed
from apeval.adapt.observation_batches import Precision
from apeval.adapt.vector_sim import VectorMaker
from apeval.errors import ProblemError

LOST = [apeval.DropAction(probability=0.3), apeval.ActionNoise(std=0.5)]
SEEN = apeval.ObservationNoise(std=0.3)


def written_over(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, with one array for all of its answers."""
    kept: dict[Any, Any] = {}

    def call(*given: Any) -> Any:
        answer = np.asarray(function(*given))
        kept.setdefault(answer.shape, np.zeros_like(answer))[...] = answer
        return kept[answer.shape]

    return call


def steered(obs: Any) -> Any:
    return np.array([-0.2 * obs[1]])


def all_steered(obs: Any) -> Any:
    return -0.2 * obs[:, 1:]


class Shown(Line):
    """All of its kind answer with one array and one dict."""

    seen, said = np.zeros(2), {"room": np.zeros(())}

    def _get_obs(self) -> Any:
        self.seen[:] = self.state
        return self.seen

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        obs, info = super().reset(seed=seed)
        self.said["room"][...] = info["room"]
        return obs, self.said

    def step(self, action: Any) -> Any:
        obs, reward, over, late, info = super().step(action)
        self.said["room"][...] = info["room"]
        return obs, reward, over, late, self.said


@pytest.mark.parametrize("disturb", [LOST, SEEN])
def test_a_policy_may_write_over_its_actions(disturb: Any) -> None:
    one = alone(disturb=disturb, policy=written_over(steered))
    same(episodes(one), episodes(alone(disturb=disturb, policy=steered)))
    many = make("sync", AutoresetMode.NEXT_STEP)
    kept = together(many, disturb=disturb, policy=written_over(all_steered))
    same(episodes(kept), episodes(together(many, disturb=disturb, policy=all_steered)))


def test_environments_may_answer_with_one_array() -> None:
    disturb = [SEEN, apeval.ActionNoise(std=0.8, hold=2)]
    views = {"state": lambda obs, info: [*obs, info["room"]]}
    shown = alone(env=Shown, disturb=disturb, views=views)
    same(episodes(shown), episodes(alone(disturb=disturb, views=views)))


def test_views_judges_and_events_may_write_over_their_answers() -> None:
    def seen(obs: Any, info: Any) -> Any:
        return 2.0 * obs

    def flipped(action: Any, k: int) -> Any:
        return -action if k else 1.0 * action

    def blinded(obs: Any, k: int) -> Any:
        return 0.0 * obs if k else 1.0 * obs

    def problem(door: Any, wrap: Any, **rest: Any) -> apeval.Problem:
        events = [
            apeval.Event(probability=0.2, change_action=wrap(flipped)),
            apeval.Event(probability=0.2, change_observation=wrap(blinded)),
            apeval.ActionNoise(std=0.5),
        ]
        return door(disturb=events, views={"state": wrap(seen)}, **rest)  # type: ignore[no-any-return]

    def many(**given: Any) -> apeval.Problem:
        return together(make("sync", AutoresetMode.SAME_STEP), **given)

    for door in (alone, many):
        same(
            episodes(problem(door, written_over)),
            episodes(problem(door, lambda function: function)),
        )


class Scaled(gymnasium.vector.SyncVectorEnv):
    """Works on the actions that it is given."""

    def step(self, actions: Any) -> Any:
        actions *= 0.5
        return super().step(actions)


class ScaledWell(gymnasium.vector.SyncVectorEnv):
    def step(self, actions: Any) -> Any:
        return super().step(0.5 * actions)


def test_a_vector_environment_may_change_its_actions() -> None:
    def of(kind: Any) -> apeval.Problem:
        return together(lambda n: kind([Line] * n), disturb=LOST)

    same(episodes(of(Scaled)), episodes(of(ScaledWell)))


class Short(Line):
    """Every second step is an episode's last one."""

    steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.steps = 0
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        obs, reward, _, late, info = super().step(action)
        self.steps += 1
        return obs, reward, self.steps == 2 or float(np.ravel(action)[0]) > 0.9, late, info


def test_no_reset_is_owed_to_the_next_episodes() -> None:
    """Gymnasium's AsyncVectorEnv by pipes resets at the first step what ended before a reset."""

    def many(n: int) -> Any:
        return AsyncVectorEnv([Short] * n, shared_memory=False)

    sim = VectorMaker(many, {}, 2)()
    try:
        first, _ = sim.reset([1, 2])
        sim.step(np.array([[0.0], [0.95]]))  # the second has ended
        sim.reset([1, 2])  # to catch up takes a step, in which the first one ends
        after = sim.step(np.array([[0.1], [0.1]])).obs
    finally:
        sim.close()
    assert not np.array_equal(after, first)
    for k, seed in enumerate((1, 2)):
        env = Short()
        env.reset(seed=seed)
        assert np.array_equal(after[k], env.step(np.array([0.1]))[0])


class Uneven(Line):
    """Each one that is made is another one."""

    made = 0

    def __init__(self) -> None:
        super().__init__()
        Uneven.made += 1
        self.gain = 1.0 + 0.1 * (Uneven.made % 7)


def test_sub_environments_must_be_alike() -> None:
    with pytest.raises(ProblemError, match="depends on the sub-environment that it runs in"):
        together(make("sync", AutoresetMode.NEXT_STEP, env=Uneven), disturb=SEEN)


def test_an_answer_must_not_depend_on_its_place_in_a_batch() -> None:
    space = gymnasium.spaces.Box(-1.0, 1.0, (3,))

    def placed(obs: Any) -> Any:
        return obs.sum(axis=1) + 0.1 * np.arange(len(obs))

    assert "its place in the batch" in str(mixed(placed, space))
    assert "its place" in str(mixed(lambda obs: np.arange(len(obs)) % 2, space))
    assert mixed(lambda obs: obs.sum(axis=1), space) is None
    centred = written_over(lambda obs: obs - obs.mean())
    assert "others in its batch" in str(mixed(centred, space))


class Rounded(Line):
    """Goes on in single precision after so many steps of all."""

    left = 300

    def step(self, action: Any) -> Any:
        obs, *rest = super().step(action)
        Rounded.left -= 1
        return obs.astype(np.float32) if Rounded.left < 0 else obs, *rest


def test_an_observations_precision_must_not_change() -> None:
    views = {"state": lambda obs, info: [info["room"]]}
    problem = alone(env=Rounded, disturb=SEEN, views=views)
    with pytest.raises(ProblemError, match="float32 after this step, float64 after earlier"):
        episodes(problem, 60)
    kept = Precision()
    for seen in (np.zeros(2), np.zeros(2, int), np.zeros(2)):
        kept.require(seen)
    kept, pair = Precision(), {"a": np.zeros(2), "b": np.zeros(2, int)}
    kept.require(pair)
    with pytest.raises(ProblemError, match="the precision must not change"):
        kept.require({**pair, "a": np.zeros(2, np.float16)})


def test_what_settles_down_while_it_is_looked_at_is_refused() -> None:
    """A signal that is divided by the largest of all that were seen."""
    largest = [1.0]

    def height(x: Any) -> Any:
        largest[0] = max(largest[0], float(np.abs(x).max()))
        return x[:, 0] / largest[0]

    problem = apeval.Problem(
        nominal=apeval.Normal(0.0, 1.0),
        reset=lambda draws: 0.1 * draws.normal(1),
        step=lambda x, a_A, a_E, draws: 0.5 * x + a_E,
        failed=apeval.spec("always height < 0.9", height=height),
        horizon=5,
    )
    with pytest.raises(ProblemError, match="repeatable: the first episode came out otherwise"):
        apeval.evaluate(problem, "mc", episodes=500)
