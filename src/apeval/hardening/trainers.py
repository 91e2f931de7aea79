"""What trains: a Stable-Baselines3 model by its own `learn`, anything else by a function."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from apeval.atomic_files import write_bytes
from apeval.errors import ApevalError, blame
from apeval.hardening.environment import AdversarialEnv

MakeEnv = Callable[[int], AdversarialEnv]
"""From a number to an environment: another number, other random numbers."""


class Trainer(Protocol):
    """Makes a policy better, and keeps it."""

    @property
    def repeats(self) -> bool:
        """Whether the same seed gives the same policy."""
        ...

    def train(self, policy: Any, make_env: MakeEnv, steps: int, seed: int) -> Any:
        """A new policy from an old one, which stays as it is."""
        ...

    def save(self, policy: Any, path: Path) -> None:
        """Write the policy; `path` has no ending yet."""
        ...

    def load(self, path: Path) -> Any:
        """What `save` wrote."""
        ...


@dataclass(frozen=True)
class Sb3Trainer:
    """A Stable-Baselines3 model goes on learning, with its own settings, callbacks and logger."""

    model: Any
    callback: Any = None
    repeats: bool = True

    def train(self, policy: Any, make_env: MakeEnv, steps: int, seed: int) -> Any:
        """`learn` on a copy of the model, one thread, seeded. Statistics of `VecNormalize` go on
        from where they are, and are frozen when the training ends."""
        from stable_baselines3.common.monitor import Monitor
        from stable_baselines3.common.vec_env import DummyVecEnv

        copy = self._copied(policy)
        number = int(getattr(policy, "n_envs", 1) or 1)
        envs: Any = DummyVecEnv([lambda k=k: Monitor(make_env(k)) for k in range(number)])  # type: ignore[misc]
        statistics = statistics_of(policy)
        if statistics is not None:
            statistics = _detached(statistics)
            statistics.set_venv(envs)
            statistics.training, envs = True, statistics
        copy.set_env(envs)
        copy.set_random_seed(seed)
        try:
            copy.learn(total_timesteps=steps, callback=self.callback, reset_num_timesteps=False)
        except (ApevalError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise _raised(error) from error
        finally:
            envs.close()
        copy.env = None
        return copy if statistics is None else with_statistics(copy, _detached(statistics))

    def save(self, policy: Any, path: Path) -> None:
        """As `model.save` does, statistics of `VecNormalize` beside it."""
        held = io.BytesIO()
        policy.save(held)
        statistics = statistics_of(policy)
        if statistics is not None:
            write_bytes(statistics_file(path), pickle.dumps(statistics))
        write_bytes(path.with_suffix(".zip"), held.getvalue())

    def load(self, path: Path) -> Any:
        """As `load` of the model's class does."""
        model = type(self.model).load(path.with_suffix(".zip"), device="cpu")
        statistics = statistics_file(path)
        if not statistics.exists():
            return model
        return with_statistics(model, read_vecnormalize(statistics))

    def _copied(self, policy: Any) -> Any:
        held = io.BytesIO()
        policy.save(held)
        held.seek(0)
        return type(policy).load(held, device="cpu")


def statistics_of(model: Any) -> Any:
    """The `VecNormalize` that a model was trained under; None where there is none."""
    ask = getattr(model, "get_vec_normalize_env", None)
    return ask() if callable(ask) else None


def with_statistics(model: Any, statistics: Any) -> Any:
    """The model, which sees its observations through these statistics, frozen.

    Args:
        model: A Stable-Baselines3 model.
        statistics: A `VecNormalize` object; it needs no environment.

    Raises:
        ApevalError: It is something else.
    """
    if not all(hasattr(statistics, name) for name in ("obs_rms", "set_venv", "training")):
        raise ApevalError(
            f"the statistics are a {type(statistics).__name__}: give the file that "
            "VecNormalize.save wrote"
        )
    statistics.training = False
    model._vec_normalize_env = statistics
    return model


def read_vecnormalize(path: Path) -> Any:
    """What `VecNormalize.save` wrote. Reading such a file executes code that it holds.

    Raises:
        ApevalError: The file is missing, or no pickle.
    """
    if not path.exists():
        raise ApevalError(f"no file '{path}': give the one that VecNormalize.save wrote")
    try:
        return _restored(path.read_bytes())
    except Exception as error:
        raise ApevalError(
            f"'{path}' is not what VecNormalize.save wrote ({type(error).__name__}: {error})"
        ) from error


def _detached(statistics: Any) -> Any:
    """A copy without its environment, which pickling leaves behind."""
    return _restored(pickle.dumps(statistics))


def _restored(pickled: bytes) -> Any:
    """What was pickled, so that it can be pickled again: pickling asks for two attributes that
    unpickling does not bring back."""
    statistics = pickle.loads(pickled)
    for name in ("class_attributes", "returns"):
        vars(statistics).setdefault(name, {})
    return statistics


def statistics_file(path: Path) -> Path:
    """Where the statistics of a policy's file are."""
    return path.with_name(f"{path.name}-vecnormalize.pkl")


def _raised(error: Exception) -> ApevalError:
    return ApevalError(
        f"the training raised {blame(error)}: mend it there. What was evaluated before is kept, "
        "and the same call goes on from there"
    )


@dataclass(frozen=True)
class OwnTrainer:
    """A user's function ``train(policy, env, steps, seed) -> policy``."""

    function: Callable[[Any, AdversarialEnv, int, int], Any]
    repeats: bool = False

    def train(self, policy: Any, make_env: MakeEnv, steps: int, seed: int) -> Any:
        """Call it with one environment."""
        env = make_env(0)
        try:
            trained = self.function(policy, env, steps, seed)
        except (ApevalError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise _raised(error) from error
        finally:
            env.close()
        if trained is None:
            raise ApevalError("the training returned None: return the trained policy")
        return trained

    def save(self, policy: Any, path: Path) -> None:
        """By cloudpickle: a function or object of the user's."""
        import cloudpickle

        write_bytes(path.with_suffix(".pkl"), cloudpickle.dumps(policy))

    def load(self, path: Path) -> Any:
        """What `save` wrote, in the user's own folder."""
        return pickle.loads(path.with_suffix(".pkl").read_bytes())


def as_trainer(policy: Any, train: Any, callback: Any = None) -> Trainer:
    """The trainer for a policy: the user's function, or the model's own `learn`."""
    if train is not None:
        if not callable(train):
            raise ApevalError("train must be a function: train(policy, env, steps, seed) -> policy")
        return OwnTrainer(train)
    if all(
        callable(getattr(policy, name, None)) for name in ("learn", "set_env", "save", "predict")
    ):
        return Sb3Trainer(policy, callback)
    raise ApevalError(
        f"a {type(policy).__name__} cannot go on learning by itself: give a Stable-Baselines3 "
        "model, or train=, a function train(policy, env, steps, seed) that returns the new policy"
    )
