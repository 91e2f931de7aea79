"""The sample that an estimate came from, as one Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.estimate.genealogy import ALONE, Genealogy
from apeval.estimate.sample import Sample
from apeval.problem.types import Array, IntArray
from apeval.results.columns import read_table, write_table

SAMPLE = "sample.parquet"
SCHEMA_VERSION = 1
_FIELDS = ("component", "log_p", "log_q", "kind", "unresolved", "length", "margin")
_DESCENT = ("population", "family", "root", "log_pairs", "copied")
_WHOLE = ("id", "component", "kind", "length", "population", "family", "copied")
_YES_NO = ("unresolved", "root")


def write_sample(folder: Path, sample: Sample, ids: IntArray) -> None:
    """Write the sample with the numbers of its episodes."""
    arrays: dict[str, Array] = {"id": ids, **{k: getattr(sample, k) for k in _FIELDS}}
    if sample.log_share is not None:
        arrays["log_share"] = sample.log_share
    if sample.genealogy is not None:
        arrays |= vars(sample.genealogy)
    write_table(folder / SAMPLE, arrays, {"schema_version": SCHEMA_VERSION})


def read_sample(folder: Path) -> tuple[Sample, IntArray]:
    """The inverse of `write_sample`, with every bit as it was."""
    path = folder / SAMPLE
    arrays, about = read_table(path)
    if about.get("schema_version") != SCHEMA_VERSION:
        raise ApevalError(
            f"{path} has the schema version {about.get('schema_version')!r}; "
            f"this apeval reads {SCHEMA_VERSION}"
        )
    more = (("log_share",) if "log_share" in arrays else ()) + (
        _DESCENT if "family" in arrays else ()
    )
    for name in ("id", *_FIELDS, *more):
        kind = "iu" if name in _WHOLE else "b" if name in _YES_NO else "f"
        fits = name in arrays and arrays[name].ndim == (2 if name == "log_q" else 1)
        if not fits or arrays[name].dtype.kind not in kind:
            raise ApevalError(f"{path} is damaged: {name} is missing or of the wrong type")
    ids = arrays.pop("id")
    known: dict[str, Any] = {k: arrays[k] for k in _FIELDS}
    genealogy = None
    if "family" in arrays:
        genealogy = Genealogy(**{k: arrays[k] for k in _DESCENT})
        if not _possible(genealogy):
            raise ApevalError(f"{path} is damaged: its populations are impossible")
    sample = Sample(**known, log_share=arrays.get("log_share"), genealogy=genealogy)
    densities = [sample.log_p, sample.log_q, arrays.get("log_share", sample.log_p)]
    densities += [] if genealogy is None else [genealogy.log_pairs]
    if any(bool(np.isnan(values).any()) for values in densities):
        raise ApevalError(f"{path} is damaged: a density is not a number")
    least = [int(v.min()) if len(v) else -1 for v in (sample.component, sample.kind, ids)]
    possible = min(least) >= 0 and int(sample.component.max()) < sample.log_q.shape[1]
    if not possible or int(sample.length.min()) < 0:
        raise ApevalError(f"{path} is damaged: episodes, components or kinds are impossible")
    if bool(np.any(ids[1:] <= ids[:-1])):
        raise ApevalError(f"{path} is damaged: its episodes are not in the order of their numbers")
    return sample, ids


def _possible(it: Genealogy) -> bool:
    """Every population has its roots, and no more decisions were copied than there are."""
    populations = np.unique(it.population[it.population != ALONE])
    rooted = np.unique(it.population[it.root])
    least = min(int(it.population.min(initial=0)), int(it.copied.min(initial=0)))
    finite = bool(np.isfinite(it.log_pairs).all()) and bool(np.all(it.log_pairs >= 0.0))
    return least >= ALONE and finite and np.array_equal(populations, rooted)
