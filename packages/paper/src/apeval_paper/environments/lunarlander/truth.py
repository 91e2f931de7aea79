"""The lander's ground truth, twice: by importance sampling, and independently by Monte Carlo.

    python -m apeval_paper.environments.lunarlander.truth importance --episodes 32768 --seed 10002
    python -m apeval_paper.environments.lunarlander.truth monte-carlo --episodes 90112 --seed 10001

Both write what they find into ``truths/lunarlander.json``. Sums per block of episodes are kept
in a folder, so that an interrupted run continues and nothing is simulated twice.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from apeval.environments import make
from apeval.errors import ApevalError
from apeval.problem.draws import make_key
from apeval.problem.truth import Truth
from apeval_paper.environments.lunarlander.proposal import HAND_TUNED
from apeval_paper.environments.lunarlander.sampling import Proposal, roll

FILE = Path(__file__).parent / "truths" / "lunarlander.json"
BLOCK = 512  # episodes per record
PROPOSALS = {"importance": HAND_TUNED, "monte-carlo": Proposal.nominal()}
METHODS = {
    "importance": "importance sampling of disturbance and dispersion, trajectory mixture",
    "monte-carlo": "Monte Carlo",
}
#: Episodes for the stated error and, for `--verify`, for about 5 %.
FULL, QUICK = {"importance": 32_768, "monte-carlo": 90_112}, 6_144


def stored(method: str = "importance") -> Truth:
    """The truth as the package ships it."""
    record = dict(json.loads(FILE.read_text())[method])
    value, error = float(record.pop("value")), float(record.pop("standard_error"))
    return Truth(value, error, str(record.pop("method")), record)


def compute(
    method: str,
    episodes: int,
    seed: int,
    workers: int = 1,
    folder: Path | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """v* from `episodes` episodes (rounded up to whole blocks), with its provenance.

    Blocks found in `folder` are not simulated again. `progress` gets the summary so far.
    """
    folder = folder or Path(tempfile.gettempdir()) / "apeval-truth-lunarlander"
    folder.mkdir(parents=True, exist_ok=True)
    p = PROPOSALS[method]
    parameters = dict(make("lunarlander").parameters)
    settings = {"seed": seed, "block": BLOCK, "parameters": parameters, "proposal": _plain(p)}
    path = folder / f"{method}-{seed}.jsonl"
    blocks = _read(path, settings)
    todo = [b for b in range(math.ceil(episodes / BLOCK)) if b not in blocks]
    jobs = [(method, seed, b) for b in todo]
    with path.open("a") as log, _workers(workers) as results:
        for block in results(_block, jobs):
            blocks[block["block"]] = block
            log.write(json.dumps(block) + "\n")
            log.flush()
            if progress is not None:
                progress(summary(method, seed, list(blocks.values())))
    used = [blocks[b] for b in range(math.ceil(episodes / BLOCK))]
    return summary(method, seed, used)


@contextmanager
def _workers(n: int) -> Iterator[Any]:
    """A `map` over n processes, or in this one."""
    if n == 1:
        yield map
    else:
        with multiprocessing.get_context("spawn").Pool(n) as pool:
            yield pool.imap_unordered


def _plain(p: Proposal) -> list[Any]:
    tilt = None if p.tilt is None else p.tilt.tolist()
    return [p.alpha.tolist(), p.mean.tolist(), p.std.tolist(), tilt]


def _read(path: Path, settings: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """The blocks of an earlier run with the same settings; another run's file is replaced."""
    if path.exists():
        lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
        if lines and lines[0] == settings:
            return {record["block"]: record for record in lines[1:]}
    path.write_text(json.dumps(settings) + "\n")
    return {}


def _block(job: tuple[str, int, int]) -> dict[str, Any]:
    method, seed, block = job
    problem = make("lunarlander")
    sums = np.zeros(4 + len(problem.kinds))
    for first in range(block * BLOCK, (block + 1) * BLOCK, problem.chunk):
        ids = np.arange(first, first + problem.chunk)
        out = roll(problem, make_key(seed), ids, PROPOSALS[method])
        g = out.weight * (out.kind > 0)
        kinds = [out.weight[out.kind == k + 1].sum() for k in range(len(problem.kinds))]
        sums += [g.sum(), (g * g).sum(), out.weight.sum(), (out.kind > 0).sum(), *kinds]
    names = ("sum", "sum2", "weights", "failures", *problem.kinds)
    return {"block": block, **dict(zip(names, sums.tolist(), strict=True))}


def summary(method: str, seed: int, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """The estimate that blocks give: v̂ = mean(1{failure}·p/q)."""
    kinds = ("crash", "away", "timeout")
    total = {
        key: math.fsum(b[key] for b in blocks)
        for key in ("sum", "sum2", "weights", "failures", *kinds)
    }
    n = BLOCK * len(blocks)
    v = total["sum"] / n
    variance = max(total["sum2"] / n - v * v, 0.0)
    command = f"python -m {__spec__.name} {method} --episodes {n} --seed {seed}"
    return {
        "value": v,
        "standard_error": math.sqrt(variance / n),
        "method": METHODS[method],
        "budget": n,
        "unit": "episodes",
        "seed": seed,
        "parameters": dict(make("lunarlander").parameters),
        "date": date.today().isoformat(),
        "command": command,
        "failures_seen": int(total["failures"]),
        "relative_variance_per_episode": variance / (v * v) if v else None,
        "mean_weight": total["weights"] / n,
        "kinds": {kind: total[kind] / n for kind in kinds},
    }


def verify_truth(full: bool, seed: int, workers: int = 2) -> dict[str, Any]:
    """Recompute with fresh seeds and test agreement at 3 standard errors.

    To about 5 % by importance sampling, or, with `full`, both methods to their stated errors.
    """
    if seed in {stored(method).provenance["seed"] for method in METHODS}:
        raise ApevalError(f"seed {seed} made the stored truth; verify with another one")
    checks = []
    for method in ("importance", "monte-carlo") if full else ("importance",):
        truth, budget = stored(method), FULL[method] if full else QUICK
        new = compute(method, budget, seed, workers)
        error = math.hypot(truth.standard_error, new["standard_error"])
        distance = abs(new["value"] - truth.value) / error
        checks.append(
            {
                "method": METHODS[method],
                "stated": truth.value,
                "stated_error": truth.standard_error,
                "value": new["value"],
                "standard_error": new["standard_error"],
                "episodes": new["budget"],
                "seed": seed,
                "distance_in_standard_errors": distance,
                "agrees": distance <= 3.0,
            }
        )
    return {"problem": "lunarlander", "agrees": all(c["agrees"] for c in checks), "checks": checks}


def main() -> None:
    """Compute one of the truths and store it."""
    parser = argparse.ArgumentParser(description="LunarLander's ground truth")
    parser.add_argument("method", choices=sorted(PROPOSALS))
    parser.add_argument("--episodes", type=int)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args()
    episodes = chosen.episodes or FULL[chosen.method]

    def show(now: dict[str, Any]) -> None:
        v, error = now["value"], now["standard_error"]
        share = f"{now['budget']} of {episodes} episodes"
        percent = 100 * error / v if v else math.inf
        sys.stderr.write(f"\r{share}: {v:.4e} ± {percent:.2f} %")
        sys.stderr.flush()

    result = compute(chosen.method, episodes, chosen.seed, chosen.workers, progress=show)
    truths = json.loads(FILE.read_text()) if FILE.exists() else {}
    truths[chosen.method] = result
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(truths, indent=2) + "\n")


if __name__ == "__main__":
    main()
