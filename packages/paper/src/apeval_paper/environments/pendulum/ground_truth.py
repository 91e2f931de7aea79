"""Ground truths of the pendulums: data files with their provenance, and how they are checked.

``python -m apeval_paper.environments.pendulum.ground_truth`` recomputes the data files.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from apeval.problem.truth import Truth

NAMES = ("pendulum", "pendulum-discrete")
COMMAND = "python -m apeval_paper.environments.pendulum.ground_truth"
PUBLISHED = {"pendulum": 1.96e-5, "pendulum-discrete": 2.53e-5}
_SEED, _EPISODES, _QUICK, _FULL = 10_000, 400_000, 10_000, 400_000
_GRID = (201, 801)


@cache
def stored(name: str) -> dict[str, Any]:
    """The data file of a problem."""
    text = files(__package__).joinpath("truths", f"{name}.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def truth(name: str) -> Truth:
    """The stored value."""
    data = dict(stored(name))
    return Truth(data.pop("value"), data.pop("standard_error"), data.pop("method"), data)


def sample(name: str, episodes: int, seed: int) -> dict[str, float]:
    """v* by importance sampling: unbiased, whatever the grid's error."""
    from apeval_paper.environments.pendulum.dp import importance_sampling, solve

    solution = solve(name == "pendulum-discrete", *_GRID)
    w = importance_sampling(solution, episodes, seed)
    return {
        "value": float(np.abs(w).mean()),
        "standard_error": float(np.abs(w).std(ddof=1) / np.sqrt(episodes)),
        "left": float(np.maximum(-w, 0.0).mean()),
        "right": float(np.maximum(w, 0.0).mean()),
        "failure_rate": float((w != 0.0).mean()),
        "dynamic_programming": solution.v0(),
    }


def compute(name: str) -> dict[str, Any]:
    """What the data file holds."""
    found = sample(name, _EPISODES, _SEED)
    return {
        "value": found.pop("value"),
        "standard_error": found.pop("standard_error"),
        "method": "importance sampling with the twist of a dynamic programme",
        "episodes": _EPISODES,
        "seed": _SEED,
        **found,
        "grid": list(_GRID),
        "published": PUBLISHED[name],
        "date": datetime.date.today().isoformat(),
        "command": f"{COMMAND} {name}",
    }


def verify_truth(name: str, full: bool, seed: int) -> dict[str, Any]:
    """Sample anew with fresh seeds, and compare at 3 standard errors."""
    stated = truth(name)
    episodes = _FULL if full else _QUICK
    found = sample(name, episodes, seed)
    sigma = (found["standard_error"] ** 2 + stated.standard_error**2) ** 0.5
    distance = abs(found["value"] - stated.value) / sigma
    return {
        "problem": name,
        "stated": stated.value,
        "stated_error": stated.standard_error,
        "method": "importance sampling, fresh seed",
        "value": found["value"],
        "standard_error": found["standard_error"],
        "episodes": episodes,
        "seed": seed,
        "distance_in_standard_errors": distance,
        "agrees": distance <= 3.0,
    }


def main(names: Sequence[str]) -> None:
    """Recompute data files, all of them if none is named."""
    folder = Path(str(files(__package__).joinpath("truths")))
    folder.mkdir(exist_ok=True)
    for name in names or NAMES:
        text = json.dumps(compute(name), indent=2) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
