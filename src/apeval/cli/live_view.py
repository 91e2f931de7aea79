"""A live view on a terminal: phase, time left, estimate, failures per batch; silence in a pipe."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from apeval.cli.output import is_quiet
from apeval.run.progress import ESTIMATING, Listener, Progress

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

_BARS = "▁▂▃▄▅▆▇█"
_WINDOW = 20  # the speed is that of so many last batches
_NARROW = 72  # columns below which only the essentials are shown


@contextmanager
def live_progress(quiet: bool = False) -> Iterator[Listener | None]:
    """A listener that draws on stderr, or None where nobody watches."""
    if quiet or is_quiet() or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    view = LiveView()
    with Live(view, console=Console(stderr=True), transient=True, refresh_per_second=5):
        yield view.listen


class LiveView:
    """Three lines that fit the terminal, whatever its width."""

    def __init__(self) -> None:
        self.now: Progress | None = None
        self.rates: deque[float] = deque(maxlen=24)
        self.times: deque[tuple[float, int]] = deque(maxlen=_WINDOW)

    def listen(self, now: Progress) -> None:
        """Take over what a run tells."""
        if self.now is None or self.now.phase != now.phase:
            self.times.clear()  # phases differ in speed
        self.times.append((time.monotonic(), now.done))
        if now.batch is not None:
            self.rates.append(now.batch[0] / now.batch[1])
        elif self.now is not None:
            now = _with_batch(now, self.now.batch)
        self.now = now

    def seconds_left(self) -> float | None:
        """At the speed of the last batches; None where that is not known yet."""
        if self.now is None or len(self.times) < 2:
            return None
        (t0, first), (t1, last) = self.times[0], self.times[-1]
        if last <= first or t1 <= t0:
            return None
        predicted = (self.now.total - last) * (t1 - t0) / (last - first)
        return max(0.0, predicted - (time.monotonic() - t1))

    def lines(self, width: int) -> list[str]:
        """What is shown on so many columns, the bar left out."""
        if self.now is None:
            return ["starting"]
        narrow = width < _NARROW
        return [self._where(narrow), _estimate(self.now, narrow), self._failures(narrow)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        first, *rest = self.lines(options.max_width)
        now, room = self.now, options.max_width - len(first) - 14
        row = Table.grid(padding=(0, 1))
        cells = [Text(f"{'' if now is None else now.phase:<11}", style="bold cyan", no_wrap=True)]
        if now is not None and room >= 6:
            cells.append(ProgressBar(now.total, now.done, width=min(room, 30)))  # type: ignore[arg-type]
        row.add_row(*cells, Text(first, no_wrap=True, overflow="ellipsis"))
        yield row
        for line in rest:
            yield Text(line, no_wrap=True, overflow="ellipsis")

    def _where(self, narrow: bool) -> str:
        now, left = self.now, self.seconds_left()
        if now is None:
            return ""
        time_left = "" if left is None else f"{_clock(left)} left"
        part = f"{min(1.0, now.done / max(now.total, 1)):.0%}"
        if narrow:
            return " · ".join(filter(None, (part, time_left)))
        of = f"{now.done:,} of {now.total:,} {now.unit}"
        return " · ".join(filter(None, (of, time_left)))

    def _failures(self, narrow: bool) -> str:
        now = self.now
        if now is None or now.batch is None:
            return "failures    no episode has ended yet"
        failed, n = now.batch
        text = f"failures    {failed:,} of {n:,}" + ("" if narrow else " in the last batch")
        text += f" {_spark(list(self.rates)[-8 if narrow else -24 :])}"
        return text if narrow else f"{text}  {now.failures:,} of {now.episodes:,} in all"


def _spark(rates: list[float]) -> str:
    """Bars, the tallest for the largest rate.

    >>> _spark([0.0, 0.05, 0.1])
    '▁▄█'
    """
    top = max(rates) or 1.0
    return "".join(_BARS[int(7 * (rate / top))] for rate in rates)


def _with_batch(now: Progress, batch: tuple[int, int] | None) -> Progress:
    return Progress(**{**vars(now), "batch": batch})


def _estimate(now: Progress, narrow: bool) -> str:
    if now.phase != ESTIMATING or now.interval is None or now.estimate is None:
        if now.estimate is None or now.phase == ESTIMATING:
            return "estimate    comes when learning has ended"
        return f"estimate    {now.estimate:.2e} learned" + ("" if narrow else ", no interval yet")
    lo, hi = now.interval
    if narrow:
        return f"estimate    {now.estimate:.2e} ({lo:.1e} … {hi:.1e})"
    text = f"estimate    {now.estimate:.3e} ({lo:.2e} … {hi:.2e})"
    if now.estimate <= 0.0:
        return text + ", no failure yet"
    return f"{text}, ± {(hi - lo) / (2.0 * now.estimate):.0%}"


def _clock(seconds: float) -> str:
    """Minutes and seconds, or hours before them.

    >>> _clock(3.4), _clock(75), _clock(7265)
    ('0:03', '1:15', '2:01:05')
    """
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02}:{s:02}" if hours else f"{m}:{s:02}"
