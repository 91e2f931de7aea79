"""A usage error names the help of the command that was typed."""

from __future__ import annotations

import sys

import pytest

from apeval.cli.main import main


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (["resume", "runs/x", "--fresh"], "(apeval resume --help)"),
        (["compare"], "(apeval compare --help)"),
        (["--nonsense"], "(apeval --help)"),
    ],
)
def test_the_hint_is_the_help_of_the_command(
    typed: list[str],
    hint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["apeval", *typed])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err
