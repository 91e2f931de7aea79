"""The worked examples: a policy, trained on in three ways from the same first evaluation."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apeval.hardening.loop import ADVERSARY, NOMINAL, WIDENED, harden
from apeval.hardening.rounds import STATE, Round
from apeval.problem.problem import Problem
from apeval.run.threads import one_thread
from apeval_bench.cells import Cell
from apeval_bench.harden_gain import cartpole_arms, lander_arms, turning_arms

ARMS = (ADVERSARY, NOMINAL, WIDENED)
_ASKED = ("steps", "rounds", "episodes", "return_episodes", "failure_reward", "share")


@dataclass(frozen=True)
class HardeningExample:
    """A problem with a policy for each seed of training."""

    title: str
    policy: Callable[[int], Any]
    """The Stable-Baselines3 model to begin with."""
    problem: Callable[[Any], Problem]
    """Of a policy."""
    settings: dict[str, Any]
    """Of `harden`, and of the problem."""
    about: str
    """For the table's foot."""
    files: tuple[str, ...]
    """Beside this one, that its outcomes depend on."""


EXAMPLES = {
    "cartpole": HardeningExample(
        "CartPole in gusts",
        cartpole_arms.trained,
        cartpole_arms.in_gusts,
        cartpole_arms.SETTINGS,
        f"PPO, {cartpole_arms.SETTINGS['base_steps']:,} steps undisturbed, in gusts of a standard "
        f"deviation of {cartpole_arms.SETTINGS['gust']:g}, failing within "
        f"{cartpole_arms.SETTINGS['horizon']} steps",
        ("cartpole_arms.py",),
    ),
    "lander": HardeningExample(
        "LunarLander in gusts",
        lander_arms.trained_in_still_air,
        lander_arms.in_gusts,
        lander_arms.SETTINGS,
        "a network that imitated Gymnasium's heuristic and went on by PPO in still air, in "
        f"sideways gusts of a standard deviation of {lander_arms.SETTINGS['gust']:g} N, each for "
        f"{lander_arms.GUST_SECONDS:.2g} s, failing by a crash or by leaving the field",
        ("lander_arms.py", "lander_env.py", "lander_model.py", "lander-ppo.npz"),
    ),
    "turning": HardeningExample(
        "A left turn whose speed the agent chooses",
        turning_arms.constant_speed,
        turning_arms.in_traffic,
        turning_arms.SETTINGS,
        "PPO that begins with constant speed, in Int-v1's scene with disturbances of "
        f"{turning_arms.SETTINGS['std']:g} for 0.5",
        ("turning_arms.py", "turning_ego.py", "turning_kernel.py"),
    ),
}


def hardened(cell: Cell) -> dict[str, Any]:
    """All arms of one seed of training; each starts from the same policy."""
    example, seed = EXAMPLES[cell["problem"]], cell["seed"]
    asked = {key: example.settings[key] for key in _ASKED if key in example.settings}
    with one_thread(), tempfile.TemporaryDirectory() as folder:
        model = example.policy(seed)
        arms: list[dict[str, Any]] = []
        for arm in ARMS:
            here = Path(folder) / arm
            if arms:
                begin_with(Path(folder) / ARMS[0], here, arm)
            found = harden(example.problem(model), model, here, train_on=arm, seed=seed, **asked)
            arms.append(_outcome(arm, found.rounds[0], found.rounds[found.best or -1]))
        return {"arms": arms}


def begin_with(done: Path, folder: Path, arm: str) -> None:
    """The first evaluation of another arm, which is the same for all: nothing was trained yet.

    Args:
        done: A finished hardening.
        folder: Of one that has not begun.
        arm: What that one trains on.
    """
    shutil.copytree(done / "round-0", folder / "round-0")
    state = json.loads((done / STATE).read_text("utf-8"))
    state["settings"]["train_on"] = arm
    first = state["rounds"][0]
    state |= {"rounds": [first], "best": 0, "verdict": first["verdict"], "trained": 0}
    (folder / STATE).write_text(json.dumps(state), "utf-8")


def _outcome(arm: str, before: Round, after: Round) -> dict[str, Any]:
    return {
        "arm": arm,
        "before": _measured(before),
        "after": _measured(after),
        "ratio": after.ratio,
        "ratio_interval": after.ratio_interval,
        "return_change": after.return_change,
        "verdict": after.verdict,
    }


def _measured(it: Round) -> dict[str, Any]:
    return {
        "estimate": it.estimate,
        "interval": it.interval,
        "trusted": it.trusted,
        "nominal_return": it.nominal_return.mean,
    }
