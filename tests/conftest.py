"""What several test files need."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from hypothesis import settings

from apeval.cli.main import main

settings.register_profile("fixed", derandomize=True)  # a test fails today as it did yesterday
settings.load_profile("fixed")


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run the command line in this process: exit code, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["apeval", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        return int(stop.value.code or 0), out, err

    return run
