"""Compute a truth by Monte Carlo, block by block, and go on where an interrupted one stopped.

    python -m apeval_public.truth.compute cartpole --episodes 1000000 --work cartpole.jsonl
    python -m apeval_public.truth.compute cartpole --set std=0.03 --levels 4000 --replicates 20 …

The work file has a line for each block. Once there are enough, the value goes into the package's
data file, with the command that found it. `--levels` takes multilevel splitting instead, for
probabilities that counting does not reach.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from apeval.environments import make
from apeval.problem.problem import Problem
from apeval_public.truth.levels import split
from apeval_public.truth.monte_carlo import count
from apeval_public.truth.stored import entries

SEED = 900_000
"""Of all stored truths: neither a tuning seed nor one that a benchmark begins at."""


def by_counting(problem: Problem, episodes: int, work: Path) -> dict[str, Any]:
    """The share of failing episodes.

    Args:
        problem: The problem.
        episodes: How many in all.
        work: The file of finished blocks.

    Returns:
        Value, standard error, and how they came about.
    """
    block = 8 * problem.chunk

    def one(k: int) -> list[int]:
        n = min(block, episodes - k * block)
        return [n, *count(problem, SEED, k * block, n).tolist()]

    rows = np.array(_blocks(one, -(-episodes // block), {"seed": SEED, "block": block}, work))
    n, found = int(rows[:, 0].sum()), rows[:, 1:].sum(axis=0)
    p = float(found.sum()) / n
    return {
        "value": p,
        "standard_error": float(np.sqrt(p * (1.0 - p) / n)),
        "method": "Monte Carlo",
        "episodes": n,
        "failures": dict(zip(problem.kinds, found.tolist(), strict=True)),
        "seed": SEED,
    }


def by_levels(problem: Problem, particles: int, replicates: int, work: Path) -> dict[str, Any]:
    """The mean of independent runs of multilevel splitting.

    Args:
        problem: A problem with a margin, whose state is an array.
        particles: Episodes side by side in each run.
        replicates: Independent runs.
        work: The file of finished runs.

    Returns:
        Value, standard error, and how they came about.
    """

    def one(k: int) -> list[float]:
        return list(split(problem, particles, SEED + k))

    rows = np.array(_blocks(one, replicates, {"seed": SEED, "particles": particles}, work))
    values = rows[:, 0]
    return {
        "value": float(values.mean()),
        "standard_error": float(values.std(ddof=1) / np.sqrt(len(values))),
        "method": "adaptive multilevel splitting, mean of independent runs",
        "particles": particles,
        "replicates": replicates,
        "steps": float(rows[:, 1].sum()),
        "seed": SEED,
    }


def _blocks(
    one: Callable[[int], list[Any]], blocks: int, about: dict[str, Any], work: Path
) -> list[list[Any]]:
    """Each block's row, from the file or made now."""
    known: dict[int, list[Any]] = {}
    if work.exists():
        for line in work.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry["about"] == about:
                known[entry["block"]] = entry["row"]
    for k in range(blocks):
        if k not in known:
            started = time.perf_counter()
            known[k] = one(k)
            seconds = round(time.perf_counter() - started, 2)
            with work.open("a", encoding="utf-8") as file:
                made = {"about": about, "block": k, "row": known[k], "seconds": seconds}
                file.write(json.dumps(made) + "\n")
    return [known[k] for k in range(blocks)]


def keep(problem: Problem, found: dict[str, Any], command: str) -> None:
    """Put a value into the package's data file, in place of an older one.

    Args:
        problem: The problem.
        found: Value, standard error, method and more.
        command: What computed it.
    """
    parameters = dict(problem.parameters)
    others = [e for e in entries(problem.name) if e["parameters"] != parameters]
    date = datetime.date.today().isoformat()
    mine = {"parameters": parameters, **found, "date": date, "command": command}
    path = Path(str(files(__package__))) / "values" / f"{problem.name}.json"
    path.write_text(json.dumps([*others, mine], indent=2) + "\n", encoding="utf-8")
    entries.cache_clear()


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute one truth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("problem")
    parser.add_argument("--set", action="append", default=[], help="a parameter, name=value")
    parser.add_argument("--episodes", type=int, default=1_000_000)
    parser.add_argument("--levels", type=int, default=0, help="particles of multilevel splitting")
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--work", type=Path, required=True, help="the file of finished blocks")
    options = parser.parse_args(arguments)
    pairs = [text.partition("=") for text in options.set]
    problem = make(options.problem, **{name: ast.literal_eval(v) for name, _, v in pairs})
    what = f"python -m apeval_public.truth.compute {options.problem}"
    what += "".join(f" --set {text}" for text in options.set)
    if options.levels:
        found = by_levels(problem, options.levels, options.replicates, options.work)
        what += f" --levels {options.levels} --replicates {options.replicates}"
    else:
        found = by_counting(problem, options.episodes, options.work)
        what += f" --episodes {options.episodes}"
    keep(problem, found, what)


if __name__ == "__main__":
    main()
