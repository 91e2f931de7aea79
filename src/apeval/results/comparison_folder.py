"""The folder of a comparison in pairs: what it said, and the pairs that it said it from.

Intervals follow from the pairs, so a stored comparison is judged again without simulating: at
another confidence, and, on reading, against what the file says.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np

from apeval.errors import ApevalError, StorageError
from apeval.estimate.sample import Sample
from apeval.results.files import read_object, regular, write_bytes, write_json
from apeval.run.paired_record import PairedRecord
from apeval.run.pairing import ControlArm, Pairing
from apeval.run.policy_comparison import PolicyComparison
from apeval.version import __version__

ANSWER, PAIRS = "comparison.json", "pairs.npz"
_FORMAT = 1
_LARGEST = 2**31
_COLUMNS = ("component", "log_p", "log_q", "kind", "unresolved", "length", "margin")
_KINDS = {"component": "iu", "log_p": "f", "log_q": "f", "kind": "iu", "unresolved": "b",
          "length": "iu", "margin": "f"}  # fmt: skip


def is_comparison(path: Path) -> bool:
    """Whether a folder holds a comparison."""
    return (path / ANSWER).exists()


def save_comparison(found: PolicyComparison, path: Path | str) -> Path:
    """Keep a comparison in a folder of its own.

    Args:
        found: What `compare_policies` or `compare_anytime` returned.
        path: The folder; it must not hold another comparison or a run.

    Returns:
        The folder.

    Raises:
        ApevalError: The comparison has no pairs, as that of two stored runs, or the folder is in
            use.

    Examples:
        >>> import tempfile
        >>> import apeval
        >>> old, new = (apeval.make("one-step", beta=beta) for beta in (3.0, 3.5))
        >>> found = apeval.compare_policies(old, new, episodes=1_000, seed=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     again = load_comparison(save_comparison(found, folder + "/comparison"))
        >>> again == found
        True
    """
    path = Path(path)
    record = found.record
    if record is None:
        raise ApevalError(
            "this comparison has no pairs to keep: two stored runs are compared again from their "
            "own folders"
        )
    if record.a.genealogy is not None or record.a.log_share is not None:
        raise ApevalError("a comparison is kept where its episodes are pairs of one frozen stage")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ApevalError(f"{path} exists already: choose another folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the folder {path}: {error.strerror or error}") from None
    columns = {
        f"{side}_{name}": getattr(sample, name)
        for side, sample in (("a", record.a), ("b", record.b))
        for name in _COLUMNS
    }
    packed = io.BytesIO()
    np.savez_compressed(packed, **columns)
    data = packed.getvalue()
    write_bytes(path / PAIRS, data)
    answer = {
        "format": _FORMAT,
        "apeval": __version__,
        "pairs_sha256": hashlib.sha256(data).hexdigest(),
        "estimator": record.a.estimator,
        "planned": record.planned,
        "answer": found.as_json(),
    }
    write_json(path / ANSWER, answer)  # last: a folder without it is none
    return path


def load_comparison(path: Path | str) -> PolicyComparison:
    """A comparison from its folder; `judged` asks it again at another confidence.

    Args:
        path: The folder that `save_comparison` or `apeval compare-policies --keep` wrote.

    Returns:
        The comparison, with its pairs.

    Raises:
        ApevalError: There is none, it is damaged, or its answer does not follow from its pairs.
    """
    path = Path(path)
    if not is_comparison(path):
        raise ApevalError(f"{path} holds no comparison that was kept")
    stored = read_object(path / ANSWER)
    if stored.get("format") != _FORMAT:
        raise ApevalError(f"{path / ANSWER} has another format: read it with the apeval it names")
    data = regular(path / PAIRS, _LARGEST).read_bytes()
    if hashlib.sha256(data).hexdigest() != stored.get("pairs_sha256"):
        raise ApevalError(f"{path / PAIRS} is damaged or was changed: its hash is another one")
    try:
        record = _record(data, stored)
        answer = dict(stored["answer"])
        pairing = dict(answer.pop("pairing"))
        pairing["control"] = ControlArm(**pairing["control"])
        for name, value in answer.items():
            answer[name] = tuple(value) if isinstance(value, list) else value
        found = PolicyComparison(**answer, pairing=Pairing(**pairing), record=record)
        again = found.judged(found.confidence)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ApevalError(f"{path / ANSWER} is damaged: {error}") from None
    if again != found:
        raise ApevalError(
            f"the answer in {path / ANSWER} does not follow from its pairs: it was changed, or "
            "another version of apeval made it"
        )
    return found


def _record(data: bytes, stored: dict[str, Any]) -> PairedRecord:
    with np.load(io.BytesIO(data), allow_pickle=False) as columns:
        a, b = (
            Sample(
                **{name: _column(columns[f"{side}_{name}"], name) for name in _COLUMNS},
                estimator=str(stored["estimator"]),
            )
            for side in "ab"
        )
    n, parts = len(a.kind), a.log_q.shape[1:]
    for sample in (a, b):
        lengths = {len(getattr(sample, name)) for name in _COLUMNS}
        if lengths != {n} or sample.log_q.shape[1:] != parts or not n:
            raise ValueError("its columns have different lengths")
    planned = stored["planned"]
    return PairedRecord(a, b, None if planned is None else int(planned))


def _column(values: Any, name: str) -> Any:
    if values.dtype.kind not in _KINDS[name] or values.ndim != (2 if name == "log_q" else 1):
        raise ValueError(f"its column {name} is {values.dtype} of shape {values.shape}")
    return values
