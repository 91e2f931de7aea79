"""`apeval` and `python -m apeval`: signals first, then everything else."""

from __future__ import annotations

import signal

from apeval.signals import SIGNALS, leave


def main() -> None:
    """Run the command line as a program of its own."""
    for number in SIGNALS:
        signal.signal(number, leave)  # while modules are loaded there is nothing to put away
    import atexit

    atexit.register(_end)  # the first to be registered is the last to be called
    from apeval.cli.main import main as command_line
    from apeval.cli.output import leave_stdout

    try:
        command_line()
    finally:
        leave_stdout()


def _end() -> None:
    """The exit code is known: Python's own last steps are not disturbed."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    main()
