"""The contract that every kind of simulator, observation and policy keeps: an episode has the same
bits whoever runs it, whoever runs beside it, after a resume and when it is replayed alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.run.test_resume import Struck

import apeval
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.simulate import episode_source
from apeval.simulate.adversary import Nominal, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.replay import record, replay
from apeval.simulate.rollout import rollout

KEY = make_key(7)
PARTS = ("length", "kind", "margin", "t", "s", "a_A", "a_E", "s_end", "a_0")


def episodes(problem: Problem, ids: Any = 21) -> Episodes:
    ids = np.arange(ids) if isinstance(ids, int) else np.asarray(ids)
    return rollout(problem, only(Nominal()), KEY, ids, np.arange(len(ids)))


def same(one: Episodes, two: Episodes) -> None:
    for name in PARTS:
        assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True), name


def company_does_not_matter(problem: Problem, n: int = 21) -> Episodes:
    """All at once, again, in blocks of other sizes, and each one replayed alone."""
    batch = episodes(problem, n)
    same(episodes(problem, n), batch)
    for size in (1, 5):
        for first in (0, 7):
            some = np.arange(first, first + size)
            block = episodes(problem, some)
            assert np.array_equal(block.s_end, batch.s_end[some])
            assert np.array_equal(block.margin, batch.margin[some], equal_nan=True)
    for i in (0, n // 2, n - 1):
        alone = replay(problem, record(batch, i, KEY))
        assert np.array_equal(alone.s_end[0], batch.s_end[i])
        assert np.array_equal(alone.s, batch.s[batch.episode == i])
        assert np.array_equal(alone.margin, batch.margin[[i]], equal_nan=True)
    return batch


def runs_agree(
    make: Callable[[], Problem],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    n: int = 60,
    workers: int = 2,
) -> None:
    """A run here, one by worker processes, and one that was struck and resumed."""
    monkeypatch.setattr(episode_source, "_FLUSH_SECONDS", 0.0)
    run: Any = {"method": "mc", "episodes": n, "seed": 5, "check": False}
    result = apeval.evaluate(make(), **run)
    assert 0.0 < result.estimate < 1.0
    recorder = Struck(folder / "run")
    recorder.after = 2
    with pytest.raises(KeyboardInterrupt):
        apeval.evaluate(make(), recorder=recorder, **run)
    others = [apeval.resume(folder / "run", make())]
    if workers:
        others.append(apeval.evaluate(make(), backend="processes", workers=workers, **run))
    for other in others:
        assert (other.estimate, other.interval) == (result.estimate, result.interval)
