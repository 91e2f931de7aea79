"""`from_vector_env`: a vector environment, a policy and disturbances as a `Problem`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from apeval.adapt.batches import stacked
from apeval.adapt.block import compare_with_training
from apeval.adapt.decision_layout import DecisionLayout, as_horizon, as_sources
from apeval.adapt.disturbance_source import DisturbanceSource
from apeval.adapt.functional_env import FunctionalEnv
from apeval.adapt.judges import StepJudge, as_judge
from apeval.adapt.noises import AtPath
from apeval.adapt.observation_batches import flat, spread, take
from apeval.adapt.observation_parts import require_small
from apeval.adapt.paths import parse
from apeval.adapt.row_paths import first_row
from apeval.adapt.spaces import check_space
from apeval.adapt.user_calls import asked
from apeval.adapt.vector_block import VectorPlan, infos
from apeval.adapt.vector_places import not_addressed
from apeval.adapt.vector_policy import as_vector_policy
from apeval.adapt.vector_sim import VectorMaker, VectorReset, VectorSim
from apeval.adapt.vector_sources import reach
from apeval.adapt.vector_state import Seated, SeatedGroup, VectorFleet
from apeval.adapt.views import wanted
from apeval.errors import ProblemError
from apeval.problem.draws import Draws
from apeval.problem.problem import Problem
from apeval.problem.returned_arrays import as_array
from apeval.problem.types import Array, BoolArray, FloatArray, IntArray

VectorView = Callable[..., Any]
"""``view(obs, info)``: what a method sees of all episodes, a row each."""


def from_vector_env(
    env: str | Callable[..., Any],
    *,
    policy: Any,
    disturb: DisturbanceSource | Sequence[DisturbanceSource],
    fails: Any = "terminated",
    margin: Any = None,
    horizon: int | None = None,
    kinds: tuple[str, ...] = ("failure",),
    views: Mapping[str, VectorView] | None = None,
    env_options: Mapping[str, Any] | None = None,
    num_envs: int = 128,
    reset: VectorReset | None = None,
    name: str = "",
    description: str = "",
) -> Problem:
    """How often does the policy fail in this vector environment under these disturbances?

    The same question as `from_env`'s, for environments that step many episodes at once. Functions
    get arrays with a row per sub-environment. Each episode is reset with its own seed and its bits
    do not depend on those beside it; what a sub-environment does by itself after its episode has
    ended, in any autoreset mode, is not looked at.

    Args:
        env: An id for ``gymnasium.make_vec`` (by default with ``vectorization_mode="sync"``); a
            function of the number of sub-environments that makes a `gymnasium.vector.VectorEnv`;
            or, where seeds are fixed when it is made, as with envpool, a function of ``seeds``,
            one whole number below 2³¹ for each sub-environment.
        policy: A function of all observations that returns a row of actions for each, or anything
            that `from_env` takes.
        disturb: One disturbance or several, as in `from_env`. Those that act on environments reach
            the sub-environments of a `SyncVectorEnv`; of an `AsyncVectorEnv` their attributes
            (`ParameterNoise`). In one made of one piece, `CustomNoise` and `Event` get the vector
            environment itself, and a row per sub-environment.
        fails: As in `from_env`; a function returns a boolean, or a kind, for each row.
        margin: As in `from_env`; a function returns a number for each row.
        horizon: Environment steps at the most; by default the environment's own limit.
        kinds: Names of the failure kinds, where `fails` returns 0 (none), 1, 2, …
        views: What a method sees, by name: ``view(obs, info)`` returns a row for each. By default
            the numbers of the observation, those of a dict by its sorted keys; images need a view.
            Of a policy with memory, a parameter called ``memory`` gets what it remembers.
        env_options: Further arguments of ``gymnasium.make_vec``.
        num_envs: Sub-environments; that many episodes run together in one worker. What apeval adds
            to a step of all of them hardly depends on their number, so that more cost less each;
            fewer are made sooner, and leave less idle at the end of a short run.
        reset: ``reset(env, seeds)`` starts an episode in every sub-environment, each from its own
            seed, and returns observations and info. For environments whose own reset takes one
            seed for all.
        name: Stands in results and reports.
        description: One line, for lists of problems.

    Returns:
        The problem.

    Raises:
        ApevalError: Gymnasium is missing, or cannot make the environment.
        ProblemError: An argument, or how they fit together, is wrong; the message has the remedy.

    Examples:
        >>> import apeval
        >>> problem = apeval.from_vector_env(
        ...     "Pendulum-v1",
        ...     policy=lambda obs: -8.0 * obs[:, 1] - 2.0 * obs[:, 2],
        ...     disturb=apeval.ActionNoise(std=0.5, hold=5),
        ...     fails=lambda obs: obs[:, 0] < 0.0,
        ...     horizon=50,
        ...     num_envs=8,
        ... )
        >>> problem.horizon, problem.chunk
        (10, 8)
    """
    if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
        raise ProblemError(f"num_envs must be a whole number, at least 1; got {num_envs!r}")
    make = VectorMaker(env, dict(env_options or {}), num_envs, as_horizon(horizon), reset)
    sources = as_sources(disturb)
    space, seen, limit, parts = _look(make, sources)
    if not views:
        require_small(seen, env_view=False)
    horizon = limit if horizon is None else horizon
    fitted, one = as_vector_policy(policy, space, seen)
    nature = DecisionLayout.of(sources, parts, horizon, one.has_memory)
    compare_with_training(one, _OneEnvironment(make))
    at_horizon = isinstance(fails, str) and fails == "horizon"
    if at_horizon and horizon is None:
        raise ProblemError("fails='horizon' needs horizon=, the number of steps allowed")
    plan = VectorPlan(
        make=make,
        policy=fitted,
        sources=tuple(sources),
        nature=nature,
        horizon=horizon,
        fails=_STILL_RUNNING if at_horizon else _judge("fails", fails),
        margin=None if margin is None else _judge("margin", margin),
        kinds=kinds,
    )
    fleet = VectorFleet(plan)
    shown: dict[str, Callable[[Seated], Array]] = {"observation": _observed}
    if views:
        asks = {key: wanted(key, view, ("obs", "info", "memory")) for key, view in views.items()}
        shown = {key: _OfAllRows(key, view, asks[key]) for key, view in views.items()}
    return Problem(
        nominal=nature.step_code.law(),
        initial=None if nature.start_code is None else nature.start_code.law(),
        reset=fleet.reset,
        step=fleet.step,
        failed=_kind,
        done=_over,
        margin=None if margin is None else _margin,
        horizon=nature.horizon,
        horizon_kind=1 if at_horizon else 0,
        agent=_ActsFirst(fleet) if nature.acts_first else None,
        views=shown,
        kinds=kinds,
        chunk=num_envs,
        name=name,
        description=description,
        policy_memory=one.has_memory,
    )


def _look(
    make: VectorMaker, sources: list[DisturbanceSource]
) -> tuple[Any, Any, int | None, list[Any]]:
    """One sub-environment's spaces of actions and observations, its limit, and the disturbances'
    laws in it."""
    sim = make()
    try:
        env = sim.env
        check_space(env.single_action_space)
        _require_addresses(make)
        sim.reset(list(range(sim.n)))
        reach(sim, sources)  # refuses what cannot act here
        probe = _one_of(sim, sources)
        parts = [source.part(probe) for source in sources]
        return env.single_action_space, env.single_observation_space, sim.limit, parts
    finally:
        sim.close()


def _require_addresses(make: VectorMaker) -> None:
    try:
        why = not_addressed(make, list(range(1, make.num_envs + 1)))
    except ProblemError:
        raise
    except Exception as error:
        why = str(error)
    if why is None:
        return
    raise ProblemError(
        f"an episode of this vector environment cannot be started from its own seed: {why}. It "
        "must take reset(seed=[one for each sub-environment]) and use nothing else, as those of "
        "gymnasium.make_vec(…, vectorization_mode='sync') do; or give reset=lambda env, seeds: "
        "(observations, info), which sets every sub-environment's state from its own seed"
    )


def _one_of(sim: VectorSim, sources: Sequence[DisturbanceSource]) -> Any:
    """What disturbances look at to know their laws: one sub-environment, as far as it is at
    hand."""
    found = SimpleNamespace(
        action_space=sim.env.single_action_space,
        observation_space=sim.env.single_observation_space,
    )
    if isinstance(sim.env, FunctionalEnv):
        found.state, found.params = first_row(sim.env.state), sim.env.functions.params
    elif sim.sub_environments is not None:
        found.unwrapped = getattr(sim.sub_environments[0], "unwrapped", sim.sub_environments[0])
    elif sim.is_async:
        paths = [source.path for source in sources if isinstance(source, AtPath)]
        for name in {str(parse(path)[0][1]) for path in paths}:
            setattr(found, name, sim.call("get_attr", name)[0])
    return found


@dataclass(frozen=True)
class _OneEnvironment:
    """Makes the first sub-environment, as an environment of its own: to compare a policy with its
    training."""

    make: VectorMaker

    def __call__(self) -> _First:
        return _First(self.make)


class _First:
    def __init__(self, make: VectorMaker) -> None:
        self.make, self.sim = make, make()
        self.action_space = self.sim.env.single_action_space
        inside = self.sim.sub_environments
        self.env = self.sim.env if inside is None else inside[0]

    def reset(self, *, seed: int) -> Any:
        if self.make.by_seeds:
            self.sim.close()
            self.sim = self.make([seed] * self.make.num_envs)
        obs, info = self.sim.reset([seed] * self.make.num_envs)
        return take(obs, 0), infos(info, 0)

    def step(self, action: Any) -> Any:
        answer = self.sim.step(np.repeat(np.asarray(action)[None], self.sim.n, axis=0))
        ends = bool(answer.terminated[0]), bool(answer.truncated[0])
        return take(answer.obs, 0), float(answer.reward[0]), *ends, {}

    def close(self) -> None:
        self.sim.close()


def _judge(what: str, given: Any) -> StepJudge:
    judge = as_judge(what, given)
    if isinstance(given, str) and given.startswith("info."):
        return StepJudge(_FromInfos(what, given.removeprefix("info.")), ("info",))
    return judge


@dataclass(frozen=True)
class _FromInfos:
    """A value of `info` in every row, which every episode must have."""

    what: str
    name: str

    def __call__(self, info: Any) -> Any:
        there = info.get(f"_{self.name}")
        if self.name not in info or (there is not None and not np.all(there)):
            held = ", ".join(sorted(k for k in map(str, info) if not k.startswith("_")))
            some = " of some episodes" if self.name in info else ""
            raise ProblemError(
                f"{self.what}: info{some} has no '{self.name}'; it holds {held or 'nothing'}. Let "
                "the environment always give it, or write a function that looks at "
                f"info['_{self.name}'], which says who has it"
            )
        return info[self.name]


def _still_running(terminated: Any, truncated: Any) -> Any:
    return truncated & ~terminated


_STILL_RUNNING = StepJudge(_still_running, ("terminated", "truncated"))


@dataclass(frozen=True)
class _ActsFirst:
    """The policy as an agent that acts before nature."""

    fleet: VectorFleet

    def act(self, x: Seated, draws: Draws) -> Array:
        """Actions in all episodes."""
        return self.fleet.act(x, draws)


def _kind(x: Seated) -> IntArray:
    return x.each(lambda group: group.outcome.kind)


def _margin(x: Seated) -> FloatArray:
    return x.each(lambda group: group.outcome.margin)


def _over(x: Seated) -> BoolArray:
    def over(group: SeatedGroup) -> BoolArray:
        answer = group.outcome.answer
        return (answer.terminated | answer.truncated)[group.slots]

    return x.each(over)


def _observed(x: Seated) -> Array:
    """The observation, what was drawn at the start and the last values of noise with memory, which
    it may not show."""
    return x.view("", _look_at)


def _look_at(x: Seated) -> Array:
    obs = x.each(lambda group: flat(group.observed(), len(group.slots)))
    noise = x.each(lambda group: group.outcome.noise)
    seen = obs.astype(np.float64)
    nature = x.a_0.shape[1] or noise.shape[1]
    return np.concatenate([seen, x.a_0, noise], axis=1) if nature else seen


@dataclass(frozen=True)
class _OfAllRows:
    """A user's view, asked for all slots at once."""

    name: str
    view: VectorView
    names: tuple[str, ...]

    def __call__(self, x: Seated) -> Array:
        return x.view(self.name, lambda it: it.each(self._of))

    def _of(self, group: SeatedGroup) -> Array:
        answer, n = group.outcome.answer, group.block.n
        rows = spread(group.slots, n)
        every = slice(None) if rows is None else rows
        told = {"obs": take(answer.obs, every), "info": infos(answer.info, every)}
        if "memory" in self.names:
            told["memory"] = _remembered(group.outcome.memory, rows, n)
        seen = asked("view", self.view, *[told[name] for name in self.names])
        found = as_array(f"view '{self.name}'", seen)
        if found.shape[:1] != (n,) or found.ndim > 2:
            raise ProblemError(
                f"view '{self.name}' returned shape {found.shape}, expected one row for each of "
                f"{n} sub-environments"
            )
        return found[group.slots]


def _remembered(memory: Any, rows: IntArray | None, n: int) -> Any:
    """What the policy remembers in every slot, a row for each; None where it has no memory."""
    if memory is None:
        return None
    every = range(n) if rows is None else rows.tolist()
    return stacked([memory[slot] for slot in every], np.arange(n), n)
