"""What a Stable-Baselines3 model tells of its training, and whether it fits the environment here.

A policy that was trained on normalised, stacked or otherwise changed observations gives a wrong
number without them, and nothing else would show it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apeval.errors import ProblemError
from apeval.problem.types import FloatArray

_STATISTICS = re.compile(r"vec_?normalize.*\.pkl", re.IGNORECASE)
_DEEPEST = 100  # wrappers around each other
_FEWEST, _TRIES = 20, 5
"""Episodes of the training that a comparison takes at least, and episodes here. Were both alike,
all of the latter would be worse than all of the former in one of C(25, 5) = 53,130 cases."""


@dataclass(frozen=True)
class Training:
    """Of a model: its spaces, and how its last episodes of training went."""

    action_space: Any
    observation_space: Any
    returns: FloatArray
    """(n,); empty where the model does not tell, or is not to be asked."""
    longest: int
    """Steps of the longest of these episodes."""
    wrappers: tuple[str, ...] = ()
    """Wrappers of the training's environment, by their full names, where that is known."""

    @staticmethod
    def of(model: Any, compare: bool = True) -> Training:
        """From a model, or any object with `predict`.

        Args:
            model: The model.
            compare: Whether its returns are to be compared with those here.
        """
        recorded = list(getattr(model, "ep_info_buffer", None) or ()) if compare else []
        fitting = [e for e in recorded if isinstance(e, dict) and {"r", "l"} <= e.keys()]
        return Training(
            getattr(model, "action_space", None),
            getattr(model, "observation_space", None),
            np.array([float(e["r"]) for e in fitting]),
            max((int(e["l"]) for e in fitting), default=0),
        )

    def fit(self, space: Any, seen: Any) -> None:
        """Refuse an environment with other spaces of actions or observations.

        Raises:
            ProblemError: One of them differs from the training's.
        """
        for what, mine, theirs in (
            ("action", self.action_space, space),
            ("observation", self.observation_space, seen),
        ):
            if mine is not None and not _same(mine, theirs):
                raise ProblemError(
                    f"the model was trained with the {what} space {mine}, the environment has "
                    f"{theirs}: wrap the environment as in training (stacked frames, scaled or "
                    "clipped values), give the model that was trained for this environment, or a "
                    "function that fits the two (policy=lambda obs: …)"
                )

    def fit_wrappers(self, env: Any) -> None:
        """Refuse an environment that is not wrapped as in training.

        Args:
            env: The environment, or one of a vector environment's.

        Raises:
            ProblemError: A wrapper is missing.
        """
        here: set[str] = set()
        while env is not None and len(here) < _DEEPEST:
            here.add(type(env).__name__)
            env = getattr(env, "env", None)
        missing = [name for name in self.wrappers if name.rsplit(".", 1)[-1] not in here]
        if missing:
            last = missing[0].rsplit(".", 1)[-1]
            raise ProblemError(
                f"the policy was trained in an environment wrapped by {', '.join(missing)} "
                "(config.yml), and this one is not: wrap it in the same way, "
                f"from_env(lambda: {last}(gymnasium.make(…), …), …); if the difference is meant, "
                "load the zip file with normalize=None"
            )

    @property
    def comparable(self) -> bool:
        """Whether enough is known of the training for `compare`."""
        return len(self.returns) >= _FEWEST

    def compare(self, episode: Callable[[int, int], float | None]) -> None:
        """Refuse an environment in which a few undisturbed episodes all go worse than every one of
        the last episodes of training.

        Args:
            episode: From a seed and a number of steps to the return of an episode; None where it
                is not over by then.

        Raises:
            ProblemError: All of them go worse.
        """
        worst, found = float(self.returns.min()), []
        for seed in range(_TRIES):
            score = episode(seed, self.longest)
            if score is None or not score < worst:
                return
            found.append(score)
        raise ProblemError(
            f"the policy does far worse here than in training: {_TRIES} undisturbed episodes have "
            f"returns of {min(found):.4g} to {max(found):.4g}, the training's last "
            f"{len(self.returns)} had {worst:.4g} to {float(self.returns.max()):.4g}. Likely "
            "causes: statistics of VecNormalize or NormalizeObservation that are missing here, "
            "wrappers of the training that are, or another environment. Give the statistics, "
            "policy=apeval.load_sb3(path, normalize='vecnormalize.pkl'), wrap the environment as "
            "in training, or normalise in a function, policy=lambda obs: …; if the difference is "
            f"meant, {OVERRIDE}"
        )


OVERRIDE = (
    "say so with policy=apeval.load_sb3(path, normalize=None), or for a model in memory with "
    "policy=lambda obs: model.predict(obs, deterministic=True)[0]"
)


def refuse_statistics(model: Any, path: Path | None = None) -> None:
    """Refuse a model that was trained on observations normalised by `VecNormalize`: a zip file
    does not hold their statistics.

    Args:
        model: A Stable-Baselines3 model, or any object with `predict`.
        path: The zip file that it was loaded from.

    Raises:
        ProblemError: It was, or there is a file of such statistics beside the zip file and the
            model does not rule it out.
    """
    normalised, sign = _normalised(model)
    beside = None if path is None or normalised is False else _statistics_beside(path)
    if not normalised and beside is None:
        return
    sign = sign if normalised else f"{beside} lies beside it"
    file = "vecnormalize.pkl" if path is None or beside is None else str(path.parent / beside)
    raise ProblemError(
        f"the policy was trained on observations normalised by VecNormalize ({sign}), and without "
        "these statistics it is another policy. Give them: "
        f"policy=apeval.load_sb3({'model' if path is None else repr(str(path))}, "
        f"normalize={file!r}), the file that VecNormalize.save wrote. If only rewards were "
        f"normalised, {OVERRIDE}"
    )


def _normalised(model: Any) -> tuple[bool | None, str]:
    """Whether VecNormalize changed the observations of the training (None: the model does not
    tell), and what shows it."""
    ask = getattr(model, "get_vec_normalize_env", None)
    wrapper = ask() if callable(ask) else None
    if wrapper is not None:
        return bool(getattr(wrapper, "norm_obs", True)), "its environment is wrapped by it"
    original, last = (getattr(model, f"_last_{k}", None) for k in ("original_obs", "obs"))
    if hasattr(model, "rollout_buffer"):  # on-policy: an original is kept under VecNormalize only
        if original is not None:
            return True, "it keeps an original beside its last observation"
        return (False if getattr(model, "num_timesteps", 0) else None), ""
    if original is None or last is None:
        return None, ""
    if _equal(original, last):
        return False, ""  # rewards only: the two are of the same moment
    # off-policy: without VecNormalize the original is the observation before the last one
    outside = not _inside(model.observation_space, last)
    if outside and _inside(model.observation_space, original):
        return True, "its last observation lies outside of the observation space"
    return None, ""


def _same(mine: Any, theirs: Any) -> bool:
    """Whether two spaces hold the same values; their types of numbers may differ. Images may have
    their channels last, which Stable-Baselines3 puts first in training and in `predict`."""
    if all(hasattr(space, "low") and hasattr(space, "high") for space in (mine, theirs)):
        if _same_image(mine, theirs):
            return True
        return mine.shape == theirs.shape and bool(
            np.allclose(mine.low, theirs.low) and np.allclose(mine.high, theirs.high)
        )
    one, two = getattr(mine, "spaces", None), getattr(theirs, "spaces", None)
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(_same(one[k], two[k]) for k in one)
    return bool(mine == theirs)


def _same_image(mine: Any, theirs: Any) -> bool:
    """Whether an image is channels-first in training and channels-last here: Stable-Baselines3
    turns it around (VecTransposeImage) in training, and in `predict`."""
    if not all(space.dtype == np.uint8 and len(space.shape) == 3 for space in (mine, theirs)):
        return False
    height, width, channels = theirs.shape
    return bool(mine.shape == (channels, height, width) and channels < min(height, width))


def _equal(one: Any, two: Any) -> bool:
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_equal(one[k], two[k]) for k in one)
    return bool(np.array_equal(one, two))


def _inside(space: Any, rows: Any) -> bool:
    """Whether observations of parallel environments lie in their space."""
    if isinstance(rows, dict):
        return all(_inside(space[k], rows[k]) for k in rows)
    return all(bool(space.contains(np.asarray(row, space.dtype))) for row in rows)


def _statistics_beside(path: Path) -> str | None:
    """A file of statistics beside a zip file, or in a folder of its name or of its environment's
    (as rl-baselines3-zoo has it)."""
    home = path.parent
    # the zoo writes Env-v1_3/best_model.zip and Env-v1_3/Env-v1/vecnormalize.pkl
    environment = re.sub(r"_\d+$", "", home.resolve().name)
    for folder in (home, home / path.stem, home / environment):
        if not folder.is_dir():
            continue
        for file in sorted(folder.iterdir()):
            if _STATISTICS.search(file.name) and file.is_file():
                return str(file.relative_to(home))
    return None
