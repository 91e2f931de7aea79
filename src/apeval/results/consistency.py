"""Do a run's files say the same? Each number stands in more than one of them.

Hashes tell of damage. Whoever changes a file and its hash as well is still found out, as long as
the result has to follow from the sample, the sample from the recorded episodes, and all files have
to name the same inputs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from apeval.errors import ApevalError
from apeval.estimate.interval import bounds, estimate, probability
from apeval.estimate.sample import Sample
from apeval.problem.types import IntArray
from apeval.results.files import read_object
from apeval.results.inputs import INPUTS, check_about
from apeval.results.manifest import PROVENANCE, check_asked
from apeval.results.provenance import ANSWER
from apeval.results.samples import SAMPLE
from apeval.results.store import RESULT
from apeval.run.completed_run import level
from apeval.run.result import Result, plain
from apeval.run.run_options import ALWAYS_STORED, DEFAULTS
from apeval.simulate.adversary import Nominal
from apeval.simulate.episodes import Episodes

if TYPE_CHECKING:
    from apeval.results.folder import Run

_SAME = ("problem", "view", "method", "seed", "settings", "parameters", "budget", "confidence",
         "block", "on_fault", "estimator")  # fmt: skip
_RELATIVE, _ABSOLUTE = 1e-9, 1e-300  # another machine may round otherwise


def check_agreement(run: Run) -> None:
    """Refuse a folder whose inputs, result and sample are not of one run.

    Raises:
        ApevalError: With the first entry that does not fit.
    """
    inputs = run.provenance["inputs"]
    about = read_object(run.path / INPUTS)
    check_about(about, run.path / INPUTS)
    check_asked(run.path, run.manifest, about["inputs"])
    for name in ("inputs", "inputs_sha256", "identity", "source_sha256", "versions", "command"):
        if about.get(name) != run.provenance.get(name):
            raise _damaged(run.path / PROVENANCE, f"{name} is not that of {INPUTS}")
    stored, twice = read_object(run.path / RESULT), run.provenance.get(ANSWER)
    for name in sorted({*stored, *twice} if isinstance(twice, dict) else stored):
        if not isinstance(twice, dict) or stored.get(name) != twice.get(name):
            raise _damaged(run.path / RESULT, f"{name} is not what {PROVENANCE} says")
    said = {**{k: v for k, v in DEFAULTS.items() if k not in ALWAYS_STORED}, **inputs}
    told = plain({name: getattr(run.result, name) for name in _SAME})
    for name in _SAME:
        if told[name] != said.get(name):
            raise _damaged(run.path / RESULT, f"{name} is not what {INPUTS} says")
    asked = run.result.target is not None, run.result.below is not None
    if asked != (inputs.get("target_error") is not None, inputs.get("below") is not None):
        raise _damaged(run.path / RESULT, f"it does not answer what {INPUTS} asks")
    _check_numbers(run.path / RESULT, run.result, run.sample)


def _check_numbers(where: Path, result: Result, sample: Sample) -> None:
    """The estimate once more, from the sample."""
    at = level(result, result.confidence)
    numbers, final = estimate(sample, at), result.final
    failures = int(sample.failed.sum())
    pairs: list[tuple[str, Any, Any]] = [
        ("estimate", result.estimate, numbers.value),
        ("standard_error", result.standard_error, numbers.standard_error),
        ("interval", result.interval, numbers.interval),
        ("final.ess", final.ess, numbers.ess),
        ("final.episodes", final.episodes, sample.n),
        ("final.failures", final.failures, failures),
        ("final.failure_rate", final.failure_rate, failures / sample.n),
        ("final.steps", final.steps, sample.steps),
        ("unresolved.episodes", result.unresolved.get("episodes"), int(sample.unresolved.sum())),
        ("unresolved.probability", result.unresolved.get("probability"), numbers.unresolved_mass),
        ("failure_rate", result.failure_rate, result.failures / max(result.episodes, 1)),
    ]
    for k, (name, kind) in enumerate(result.kinds.items(), start=1):
        hit = np.asarray(sample.kind == k)
        pairs += [
            (f"kinds.{name}", kind.probability, probability(sample, hit)),
            (f"kinds.{name}", kind.interval, bounds(sample, hit, at)),
            (f"kinds.{name}", kind.failures, int(hit.sum())),
        ]
    for name, stored, found in pairs:
        if not _same(stored, found):
            raise _damaged(where, f"{name} does not follow from {SAMPLE}")
    if result.trusted and result.estimate <= 0.0:
        raise _damaged(where, "a run without failures is not to be trusted")


def check_batch(folder: Path, batch: Episodes, sample: Sample, ids: IntArray) -> int:
    """Refuse a sample that is not that of the recorded episodes.

    Args:
        folder: The run folder.
        batch: Some of its episodes.
        sample: The sample that the estimate came from.
        ids: Numbers of the sample's episodes, (n,).

    Returns:
        How many episodes of the batch are in the sample.
    """
    order = np.argsort(ids)
    at = np.minimum(np.searchsorted(ids, batch.ids, sorter=order), len(ids) - 1)
    rows = order[at]
    mine = ids[rows] == batch.ids
    rows = rows[mine]
    pairs = [
        ("log_p", sample.log_p, batch.log_density(Nominal())),
        ("kind", sample.kind, batch.kind),
        ("unresolved", sample.unresolved, batch.unresolved),
        ("length", sample.length, batch.length),
        ("margin", sample.margin, batch.margin),
    ]
    for name, stored, found in pairs:
        if not _same(stored[rows], found[mine]):
            raise _damaged(folder / SAMPLE, f"{name} is not that of the recorded episodes")
    return len(rows)


def _same(stored: Any, found: Any) -> bool:
    try:
        a, b = np.asarray(stored, np.float64), np.asarray(found, np.float64)
    except (TypeError, ValueError):
        return False
    return a.shape == b.shape and bool(
        np.allclose(a, b, rtol=_RELATIVE, atol=_ABSOLUTE, equal_nan=True)
    )


def _damaged(where: Path, why: str) -> ApevalError:
    return ApevalError(f"{where} is damaged: {why}")
