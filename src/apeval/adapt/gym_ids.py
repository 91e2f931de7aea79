"""Which module registers an id with Gymnasium, for the message where it is not known."""

from __future__ import annotations

import importlib.util
import re

_MODULES = {
    r"(highway|merge|roundabout|parking|intersection|racetrack|exit)-": "highway_env",
    r"(lane-keeping|two-way|u-turn)-": "highway_env",
    r"(MiniGrid|BabyAI)-": "minigrid",
    r"(Fetch|Hand|AntMaze|PointMaze|AdroitHand|FrankaKitchen)": "gymnasium_robotics",
    r"ALE/|.*(NoFrameskip|Deterministic)-v\d": "ale_py",
    r"MiniWorld-": "miniworld",
    r"Panda(Reach|Push|Slide|PickAndPlace|Stack|Flip)": "panda_gym",
    r"PyFlyt/": "PyFlyt.gym_envs",
    r"FlappyBird": "flappy_bird_gymnasium",
    r"(dm_control|bsuite)/": "shimmy",
    r"mo-": "mo_gymnasium",
    r"Safety\w+-v\d": "safety_gymnasium",
}
"""How ids begin, with the module whose import registers them."""
_PACKAGES = {"PyFlyt.gym_envs": "PyFlyt", "safety_gymnasium": "safety-gymnasium"}


def not_made(id: str, error: Exception) -> str:
    """Why Gymnasium cannot make an environment, with a remedy where it does not know the id.

    Args:
        id: As it was given.
        error: What Gymnasium raised.
    """
    text = " ".join(str(error).split())
    unknown = type(error).__name__ in ("NameNotFound", "NamespaceNotFound")
    if not unknown or ":" in id or "Did you mean" in text:
        return text
    return f"{text.rstrip('.')}: {where_registered(id)}"


def where_registered(id: str) -> str:
    """What to do about an id that Gymnasium does not know.

    Args:
        id: As it was given.

    Returns:
        A remedy: the id with the module that registers it, and the package where that is missing.

    Examples:
        >>> where_registered("highway-fast-v0")[:60]
        'it comes with highway_env, which registers it when imported:'
    """
    module = next((name for start, name in _MODULES.items() if re.match(start, id)), None)
    if module is None:
        return (
            "an environment of another package is known once that is imported: write its module "
            f"before the id, 'module:{id}', or import it in the problem's file"
        )
    package = _PACKAGES.get(module, module.replace("_", "-"))
    text = (
        f"it comes with {module}, which registers it when imported: write '{module}:{id}', or "
        f"import {module} in the problem's file"
    )
    top = module.partition(".")[0]
    return text if importlib.util.find_spec(top) else f"{text}, after pip install {package}"
