"""The command line in a process of its own, started as the installed script starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path

PATIENCE = 120.0
"""Seconds after which a process counts as hanging."""


def program(before: str = "") -> list[str]:
    """Python with what the installed script says; `before`: code that runs before its first
    line."""
    scripts = [it for it in entry_points(group="console_scripts") if it.name == "apeval"]
    module, name = (scripts[0].value if scripts else "apeval.cli.main:main").split(":")
    text = f"import sys\nfrom {module} import {name}\n{before}sys.exit({name}())"
    return [sys.executable, "-c", text]


def environment(**more: str) -> Mapping[str, str]:
    """That of this process, with apeval as it is imported here."""
    import apeval

    here = str(Path(apeval.__file__).parent.parent)
    paths = [here, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    quiet = {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **quiet, "MPLBACKEND": "Agg", **more}


def ran(
    arguments: Sequence[str], folder: Path, patience: float = PATIENCE
) -> subprocess.CompletedProcess[str]:
    """A command that came to its end.

    Args:
        arguments: what follows the program's name.
        folder: where it runs.
        patience: seconds that it may take.

    Returns:
        Its exit code and what it said.

    Raises:
        subprocess.TimeoutExpired: it took longer.
    """
    return subprocess.run(
        [*program(), *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=patience,
    )
