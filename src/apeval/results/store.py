"""The run folder: plain JSON, nothing that executes when it is loaded."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from apeval.errors import ApevalError
from apeval.run.result import Result

RESULT, RECORDS, CURVE = "result.json", "failures.json", "curve.json"


def prepare(folder: Path) -> Path:
    """Create the run folder, or say why it cannot be; done before anything is simulated."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ApevalError(
            f"cannot write to the folder {folder}: {error.strerror or error}. Choose another --out"
        ) from None
    return folder


def save(result: Result, folder: Path) -> Path:
    """Write a result, its failures' replay records and its curve; returns result.json's path."""
    write_json(folder / RECORDS, list(result.records))
    write_json(folder / CURVE, list(result.curve))
    return write_json(folder / RESULT, result.as_json())


def write_json(path: Path, data: Any) -> Path:
    """Write a file whole or not at all."""
    draft = path.with_name(path.name + ".part")
    try:
        with draft.open("w", encoding="utf-8") as file:
            json.dump(data, file, indent=1, allow_nan=False, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise ApevalError(f"cannot write {path}: {error.strerror or error}") from None
    return path


def read_json(path: Path) -> Any:
    """Read a file that `write_json` wrote."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ApevalError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ApevalError(f"cannot read {path}: it is damaged or not JSON ({error})") from None
