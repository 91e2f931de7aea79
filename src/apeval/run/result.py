"""What an evaluation answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class FinalStage:
    """The frozen stage, which the estimate comes from."""

    steps: int
    episodes: int
    failures: int
    failure_rate: float
    ess: float


@dataclass(frozen=True)
class Result:
    """The estimate with its interval, and what it rests on."""

    problem: str
    view: str
    method: str
    seed: int
    settings: Mapping[str, Any]
    parameters: Mapping[str, Any]
    estimate: float
    value: float | None
    standard_error: float
    interval: tuple[float, float]
    confidence: float
    steps: int
    episodes: int
    failures: int
    failure_rate: float
    final: FinalStage
    kinds: Mapping[str, float]
    unresolved: Mapping[str, float]
    detection_limit: float | None
    warnings: tuple[str, ...]
    seconds: float
    truth: float | None
    curve: tuple[tuple[int, float], ...] = field(default=(), repr=False)
    records: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    def as_json(self) -> dict[str, Any]:
        """Plain data; a non-finite number is null."""
        data = {k: v for k, v in vars(self).items() if k not in ("records", "curve")}
        return {"schema_version": SCHEMA_VERSION, **_plain(data)}

    def __str__(self) -> str:
        lo, hi = self.interval
        lines = [
            f"{self.problem or 'problem'} · {self.method} · seed {self.seed}",
            f"  failure probability  {self.estimate:.3e}   "
            f"{self.confidence:.0%} interval [{lo:.3e}, {hi:.3e}]",
            f"  in words             {in_words(self.estimate, hi)}",
        ]
        if self.value is not None:
            lines.append(f"  learned v(s0)        {self.value:.3e}")
        if self.truth is not None:
            lines.append(f"  known truth          {self.truth:.3e}")
        lines.append(
            f"  simulated            {self.steps:,} decisions in {self.episodes:,} episodes, "
            f"{self.failures:,} failures; frozen stage {self.final.episodes:,} episodes, "
            f"{self.final.failures:,} failures (ESS {self.final.ess:.0f})"
        )
        if len(self.kinds) > 1:
            shares = ", ".join(f"{name} {p:.2e}" for name, p in self.kinds.items())
            lines.append(f"  by kind              {shares}")
        if self.detection_limit is not None and self.method != "mc":
            lines.append(
                f"  detection limit      a failure mode unknown to the adversary would have been "
                f"seen only above {self.detection_limit:.1e}"
            )
        lines += [f"  warning: {text}" for text in self.warnings]
        return "\n".join(lines)


def in_words(p: float, upper: float) -> str:
    """A probability as people say it.

    >>> in_words(1.7e-6, 2e-6)
    'about 1 in 590,000 episodes'
    >>> in_words(0.0, 3e-4)
    'no failure seen; at most about 1 in 3,300 episodes'
    """
    if p <= 0.0:
        return f"no failure seen; at most about 1 in {_round(1.0 / upper):,} episodes"
    if p >= 0.5:
        return f"about {p:.0%} of episodes"
    return f"about 1 in {_round(1.0 / p):,} episodes"


def _round(x: float) -> int:
    digits = max(0, math.floor(math.log10(x)) - 1)
    return int(round(x, -digits)) if x < 1e15 else int(x)


def _plain(value: Any) -> Any:
    if isinstance(value, FinalStage):
        return _plain(vars(value))
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | int | bool) or value is None:
        return value
    return str(value)
