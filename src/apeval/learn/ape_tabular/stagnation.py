"""The stopping rule of the paper's Table I."""

from __future__ import annotations

from collections import deque


class Stagnation:
    """Stops at the first step n with max |v(n′) − v(n)| < tolerance · v(n) over the last
    `window` steps, after at least one failure. It detects stagnation, not accuracy."""

    def __init__(self, window: int, tolerance: float, v: float) -> None:
        self.window, self.tolerance = window, tolerance
        self.changes: deque[tuple[int, float]] = deque([(0, v)])  # v(s0) from step n on
        self.last_outside = 0  # the last step whose value lies outside the present band

    def change(self, n: int, v: float) -> None:
        """v(s0) is v from step n on."""
        if self.changes[-1][0] == n:
            self.changes.pop()
        self.changes.append((n, v))
        while len(self.changes) > 1 and self.changes[1][0] <= n - self.window:
            self.changes.popleft()
        band = self.tolerance * v
        self.last_outside = -1
        later = n
        for step, value in reversed(self.changes):
            if not abs(value - v) < band:
                self.last_outside = later - 1
                break
            later = step

    def reached(self, n: int, failures: int) -> bool:
        """Whether the rule holds at step n."""
        return failures > 0 and n >= self.window and n - self.last_outside > self.window
