"""What `python -m build` makes, once for all files that look at it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with both archives. The wheel is built from the source archive."""
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT],
        capture_output=True, text=True, check=False, cwd=out,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return out
