"""One run of one method or peer on one row, as plain data."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from apeval.errors import ApevalError
from apeval.learn.method import find_method, methods
from apeval.run.evaluate import evaluate
from apeval_bench.accuracy.runs import episodes_of
from apeval_bench.accuracy.table import SCALABLE_DECISIONS, TableRow
from apeval_bench.cells import Cell, fingerprint
from apeval_bench.peers import PEERS, available, run_peer, why_not
from apeval_bench.public.yardstick import PublicRow

METHODS = ("ape", "mc", "cem", "splitting", "ape-scalable", "ape-tabular")
"""Of the box, in the order of the table; one that is not installed is left out."""
_LARGEST_DIM = {"ot-nais": 100, "ot-ce": 100, "ot-subset": 2_000}
"""Dimensions beyond which a peer is left out: the time of its fits grows with their cube."""
_THIRD = 1.0 / 3.0
_SHARED = ("problem", "adapt", "environments", "simulate", "estimate", "run")
_METHOD_CODE = {
    "ape": ("learn/ape", "learn/whitened.py"),
    "cem": ("learn/cem", "learn/whitened.py"),
    "mc": ("learn/mc.py",),
    "ape-tabular": ("learn/ape_tabular",),
    "ape-scalable": ("learn/networks", "apeval_paper/methods"),
}
_CLASS_CODE = {
    "model-checking": "apeval_public/model_checking",
    "learned-proposals": "apeval_public/learned_proposals",
    "splitting": "apeval_public/diffusions",
    "reliability": "apeval_public/reliability",
    "policies": "apeval_public/policies",
}


def code_of(method: str, kind: str) -> tuple[str, ...]:
    """The code that outcomes depend on, as `cells.fingerprint` takes it.

    Args:
        method: A method or a peer.
        kind: The class of the problems.

    Returns:
        Files and folders.
    """
    if method in PEERS:
        return ("problem", "environments", "simulate", "apeval_bench/peers", _CLASS_CODE[kind])
    return (*_SHARED, *_METHOD_CODE.get(method, ("learn",)), _CLASS_CODE[kind])


def code_id(method: str, kind: str) -> str:
    """Changes whenever the code that outcomes depend on does.

    Args:
        method: A method or a peer.
        kind: The class of the problems.

    Returns:
        A short hash.
    """
    return fingerprint(code_of(method, kind))


def methods_for(row: PublicRow, wanted: Sequence[str] = ()) -> list[str]:
    """Who takes part in a row.

    Args:
        row: The row.
        wanted: Only these, and methods beyond the usual ones.

    Returns:
        Names, in the order of the table.
    """
    extra = [name for name in wanted if name not in METHODS and name not in PEERS]
    chosen = [name for name in (*METHODS, *extra) if not wanted or name in wanted]
    chosen = [name for name in chosen if name in methods() and _takes_part(name, row.table)]
    return chosen + [
        peer for peer in PEERS if (not wanted or peer in wanted) and _applies(peer, row)
    ]


def _takes_part(name: str, table: TableRow) -> bool:
    problem = table.make()
    decisions = table.steps or (table.episodes or 0) * problem.longest
    if name == "ape-scalable" and decisions > SCALABLE_DECISIONS:
        return False
    return find_method(name).suits(problem) is None


def _applies(peer: str, row: PublicRow) -> bool:
    if row.table.peer_settings is None or not available():
        return False
    problem = row.table.make(peers=True)
    if why_not(peer, problem, episodes_of(row.table)) is not None:
        return False
    if peer not in _LARGEST_DIM:
        return True
    from apeval_bench.peers.limit_state import LimitState

    try:
        return LimitState(problem).dim <= _LARGEST_DIM[peer]
    except ApevalError:  # chance of its own
        return False


def cell_of(row: PublicRow, method: str, seed: int) -> Cell:
    """A run, by all that its outcome depends on.

    Args:
        row: The row.
        method: A method or a peer.
        seed: Of everything random.

    Returns:
        The cell.
    """
    table = row.table
    peer = {"peer_settings": dict(table.peer_settings or {})} if method in PEERS else {}
    return {
        "problem": table.problem,
        "settings": dict(table.settings),
        "steps": table.steps,
        "episodes": table.episodes,
        "method": method,
        "seed": seed,
        **peer,
    }


def measure(cell: Cell) -> dict[str, Any]:
    """One run; one that ends in an error answers (0, 1) and says why.

    Args:
        cell: What `cell_of` gave.

    Returns:
        Seed, estimate, interval, whether it is trusted, its cost, and its error if any.
    """
    table = TableRow(
        "", cell["problem"], cell["steps"], cell["episodes"], settings=cell["settings"],
        peer_settings=cell.get("peer_settings", {}),
    )  # fmt: skip
    started = time.process_time()
    try:
        found = _peer(table, cell) if cell["method"] in PEERS else _method(table, cell)
    except ApevalError as error:
        nothing = {"estimate": 0.0, "low": 0.0, "high": 1.0, "trusted": False}
        found = {**nothing, "episodes": 0, "steps": 0, "error": str(error)[:200]}
    return {"seed": cell["seed"], **found, "cpu_seconds": time.process_time() - started}


def _method(table: TableRow, cell: Cell) -> dict[str, Any]:
    result = evaluate(
        replace(table.make(), truth=None),  # which may take longer to find than the run
        cell["method"],
        steps=table.steps,
        episodes=table.episodes,
        seed=cell["seed"],
    )
    low, high = result.interval
    return {
        "estimate": result.estimate,
        "low": low,
        "high": high,
        "trusted": result.trusted,
        "episodes": result.episodes,
        "steps": result.steps,
    }


def _peer(table: TableRow, cell: Cell) -> dict[str, Any]:
    found = run_peer(cell["method"], table.make(peers=True), episodes_of(table), cell["seed"])
    low, high = found.interval
    told = {"error": found.error} if found.error else {}
    return {
        "estimate": found.estimate,
        "low": low,
        "high": high,
        "trusted": not found.error,
        "episodes": found.episodes,
        "steps": found.steps,
        **told,
    }


def seeds_for(row: PublicRow, method: str, seeds: Sequence[int]) -> list[int]:
    """The seeds that a method takes on a row: a share of them, the first ones.

    Args:
        row: The row.
        method: A method or a peer; `ape-scalable`, of milliseconds per decision, takes a third.
        seeds: All seeds of the request.

    Returns:
        At least one.
    """
    share = min(row.share, _THIRD) if method == "ape-scalable" else row.share
    return list(seeds)[: max(1, math.ceil(share * len(seeds) - 1e-9))]
