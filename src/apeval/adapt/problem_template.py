"""A commented problem file to start from."""

from __future__ import annotations

import os
from pathlib import Path

from apeval import validate
from apeval.atomic_files import write_bytes
from apeval.errors import ApevalError, unknown
from apeval.remedies import Option

KINDS = {"gymnasium": "gym_problem.py", "numpy": "numpy_problem.py"}


def write_template(path: Path | str, kind: str = "gymnasium", force: bool = False) -> None:
    """Write the template of a kind of problem; an existing file stays unless `force`."""
    path = validate.output_file("path", path)
    if kind not in KINDS:
        raise unknown("kind of template", kind, KINDS)
    if path.suffix != ".py":
        raise ApevalError(f"'{path}' is no Python file: end its name in .py")
    if not path.stem.isidentifier():
        raise ApevalError(f"'{path.stem}' cannot be imported: use letters, digits and _ only")
    text = (Path(__file__).parent / "templates" / KINDS[kind]).read_text("utf-8")
    text = text.replace("FILE", str(path)).replace("  # noqa: T201", "")
    if os.path.lexists(path) and not force:
        raise ApevalError(
            f"'{path}' exists: choose another name, or overwrite it with {Option('force', True)}"
        )
    write_bytes(path, text.encode())
