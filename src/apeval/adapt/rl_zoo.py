"""Folders of rl-zoo3: a model, how it was trained, and its statistics, found by path.

`logs/ppo/CartPole-v1_1` has `CartPole-v1.zip`, `best_model.zip` and, in `CartPole-v1/`, the
hyperparameters `config.yml` and `vecnormalize.pkl`. A model from the hub has all of them in one
folder. Nothing in the YAML files is executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError, ProblemError

_CONFIG = "config.yml"
_STATISTICS = ("vecnormalize.npz", "vec_normalize.npz", "vecnormalize.pkl", "vec_normalize.pkl")


@dataclass(frozen=True)
class ZooRun:
    """What a folder says of a trained model."""

    model: Path
    """The zip file."""
    statistics: Path | None
    """Those of the observations; None where they were taken as they are."""
    frames: int
    """Observations that it sees side by side."""
    wrappers: tuple[str, ...]
    """Of the environment, by their full names."""


def zoo_run(folder: Path) -> ZooRun:
    """Read a folder that rl-zoo3 wrote.

    Args:
        folder: The run's folder, such as ``logs/ppo/CartPole-v1_1``.

    Returns:
        What is needed to evaluate its policy.

    Raises:
        ApevalError: It is no such folder, or PyYAML is missing.
        ProblemError: It was trained in a way that cannot be honoured here.
    """
    inner = _settings_folder(folder)
    model = _model(folder, inner)
    config = _read(inner / _CONFIG)
    if config.get("vec_env_wrapper") is not None:
        names = ", ".join(_names(config["vec_env_wrapper"]))
        raise ProblemError(
            f"'{folder}' was trained in a vector environment wrapped by {names} (config.yml), "
            "which apeval cannot put around its own: do in an environment's wrapper what it does, "
            f"and load the zip file itself, apeval.load_sb3('{model}')"
        )
    statistics = None
    if _normalizes(config.get("normalize", False), inner / _CONFIG):
        statistics = next((inner / name for name in _STATISTICS if (inner / name).exists()), None)
        if statistics is None:
            raise ProblemError(
                f"'{inner / _CONFIG}' says normalize, and there is no vecnormalize.pkl beside it: "
                "without these statistics it is another policy. Put the file there, or give it, "
                f"apeval.load_sb3('{model}', normalize='vecnormalize.pkl')"
            )
    frames = config.get("frame_stack") or 1
    if isinstance(frames, bool) or not isinstance(frames, int) or frames < 1:
        raise ApevalError(f"'{inner / _CONFIG}': frame_stack is {frames!r}, expected a number")
    return ZooRun(model, statistics, frames, tuple(_names(config.get("env_wrapper"))))


def _settings_folder(folder: Path) -> Path:
    """Where the hyperparameters are: in a folder of the environment's name, or beside the model."""
    if (folder / _CONFIG).is_file():
        return folder
    found = sorted(it.parent for it in folder.glob(f"*/{_CONFIG}"))
    if len(found) == 1:
        return found[0]
    runs = [str(it.parent.parent.relative_to(folder)) for it in folder.glob(f"*/*/{_CONFIG}")]
    hint = f"; it holds runs, name one of them: {', '.join(sorted(runs)[:3])}" if runs else ""
    raise ApevalError(
        f"'{folder}' is no folder of rl-zoo3, which has one {_CONFIG} in it or in a folder of the "
        f"environment's name{hint or ': give the zip file that model.save wrote'}"
    )


def _model(folder: Path, inner: Path) -> Path:
    """The last model, as rl-zoo3 loads it; where there is none, the best one."""
    environment = inner.name if inner != folder else re.sub(r"_\d+$", "", folder.resolve().name)
    for name in (f"{environment}.zip", "best_model.zip"):
        if (folder / name).is_file():
            return folder / name
    others = sorted(folder.glob("*.zip"))
    if len(others) == 1:
        return others[0]
    held = ", ".join(it.name for it in others) or "no zip file"
    raise ApevalError(
        f"'{folder}' has neither {environment}.zip nor best_model.zip; it has {held}: give the zip "
        "file itself, and its statistics as normalize="
    )


def _names(given: Any) -> list[str]:
    """Wrappers as the configuration lists them: a name, {name: options}, or several."""
    if given is None:
        return []
    if isinstance(given, list | tuple):
        return [name for one in given for name in _names(one)]
    return [str(key) for key in given] if isinstance(given, Mapping) else [str(given)]


def _normalizes(given: Any, file: Path) -> bool:
    """Whether observations were normalised: True, or what VecNormalize was given, as Python or as
    YAML."""
    if isinstance(given, str):
        given = _keywords(given, file)
    if isinstance(given, Mapping):
        return bool(given.get("norm_obs", True))
    return bool(given)


def _keywords(text: str, file: Path) -> Any:
    """``dict(norm_obs=True)`` or ``{'norm_obs': True}``, read without being executed."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "dict"
        ):
            return {str(it.arg): ast.literal_eval(it.value) for it in node.keywords}
        return ast.literal_eval(node)
    except (SyntaxError, ValueError):
        raise ApevalError(
            f"'{file}': normalize is {text!r}, expected true, false or dict(norm_obs=…): load the "
            "zip file itself, with its statistics as normalize="
        ) from None


def _read(file: Path) -> dict[str, Any]:
    """The hyperparameters. rl-zoo3 writes an OrderedDict, and may name classes; these are taken
    as names."""
    try:
        import yaml
    except ImportError:
        raise ApevalError(
            "reading a folder of rl-zoo3 needs PyYAML: pip install 'apeval[train,zoo]'"
        ) from None

    def build(loader: Any, suffix: str, node: Any) -> Any:
        if suffix == "object/apply:collections.OrderedDict":
            pairs = loader.construct_sequence(node, deep=True)
            return dict(pairs[0]) if pairs else {}
        if suffix == "tuple":
            return tuple(loader.construct_sequence(node, deep=True))
        return suffix.split(":", 1)[-1]

    loader: Any = type("ZooLoader", (yaml.SafeLoader,), {})
    loader.add_multi_constructor("tag:yaml.org,2002:python/", build)
    try:
        held = yaml.load(file.read_text("utf-8"), Loader=loader)
    except (yaml.YAMLError, TypeError, ValueError) as error:
        text = " ".join(str(error).split())
        raise ApevalError(f"'{file}' cannot be read as YAML: {text}") from error
    if not isinstance(held, dict):
        raise ApevalError(f"'{file}' holds no hyperparameters: is it rl-zoo3's {_CONFIG}?")
    return held
