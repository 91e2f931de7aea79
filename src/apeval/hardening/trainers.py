"""What trains: a Stable-Baselines3 model by its own `learn`, anything else by a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

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
        """`learn` on a copy of the model, one thread, seeded."""
        from stable_baselines3.common.monitor import Monitor
        from stable_baselines3.common.vec_env import DummyVecEnv

        copy = self._copied(policy)
        number = int(getattr(policy, "n_envs", 1) or 1)
        envs = DummyVecEnv([lambda k=k: Monitor(make_env(k)) for k in range(number)])  # type: ignore[misc]
        copy.set_env(envs)
        copy.set_random_seed(seed)
        try:
            copy.learn(total_timesteps=steps, callback=self.callback, reset_num_timesteps=False)
        except (ApevalError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise ApevalError(
                f"the training raised {blame(error)}: mend it there. What was evaluated before is "
                "kept, and the same call goes on from there"
            ) from error
        finally:
            envs.close()
        copy.env = None
        return copy

    def save(self, policy: Any, path: Path) -> None:
        """As `model.save` does."""
        policy.save(path.with_suffix(".zip"))

    def load(self, path: Path) -> Any:
        """As `load` of the model's class does."""
        return type(self.model).load(path.with_suffix(".zip"), device="cpu")

    def _copied(self, policy: Any) -> Any:
        import io

        held = io.BytesIO()
        policy.save(held)
        held.seek(0)
        return type(policy).load(held, device="cpu")


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
            raise ApevalError(
                f"the training raised {blame(error)}: mend it there. What was evaluated before is "
                "kept, and the same call goes on from there"
            ) from error
        finally:
            env.close()
        if trained is None:
            raise ApevalError("the training returned None: return the trained policy")
        return trained

    def save(self, policy: Any, path: Path) -> None:
        """By cloudpickle: a function or object of the user's."""
        import cloudpickle

        path.with_suffix(".pkl").write_bytes(cloudpickle.dumps(policy))

    def load(self, path: Path) -> Any:
        """What `save` wrote, in the user's own folder."""
        import pickle

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
        _refuse_statistics(policy)
        return Sb3Trainer(policy, callback)
    raise ApevalError(
        f"a {type(policy).__name__} cannot go on learning by itself: give a Stable-Baselines3 "
        "model, or train=, a function train(policy, env, steps, seed) that returns the new policy"
    )


def _refuse_statistics(model: Any) -> None:
    """A model under `VecNormalize` would go on learning without its statistics."""
    ask = getattr(model, "get_vec_normalize_env", None)
    if callable(ask) and ask() is not None:
        raise ApevalError(
            "a model that was trained under VecNormalize cannot go on learning here: its "
            "statistics would be lost. Train it in an apeval.adversarial_env that you wrap in "
            "VecNormalize yourself, and give that as train="
        )
