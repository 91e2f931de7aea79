"""What is asked of a run: everything that its result depends on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.estimate.target import Target
from apeval.estimate.verdict import check_bound
from apeval.learn.method import Method, find_method
from apeval.problem.problem import Problem
from apeval.problem.settings import build
from apeval.run.result import plain
from apeval.simulate.faults import Policy
from apeval.simulate.simulation import Budget

LONGEST = 1_000_000
"""Steps that a run with a target error and no budget may take."""


def default_method(problem: Problem) -> str:
    """The best method there is for the problem."""
    return "ape" if find_method("ape").suits(problem) is None else "mc"


@dataclass(frozen=True)
class Request:
    """A run's inputs, checked at the door."""

    problem: Problem
    method: Method
    config: Any
    budget: Budget
    target: Target | None
    below: float | None
    seed: int
    confidence: float
    faults: Policy
    check: bool = True
    """Whether the problem is looked over before the run, and episodes are repeated after it."""

    @property
    def level(self) -> float:
        """The confidence of a single look at the sample."""
        return self.confidence if self.target is None else self.target.confidence(self.confidence)

    def identity(self) -> dict[str, Any]:
        """What the result says of its inputs."""
        budget, problem = self.budget, self.problem
        return {
            "problem": problem.name,
            "view": problem.view,
            "method": self.method.name,
            "seed": self.seed,
            "settings": dataclasses.asdict(self.config),
            "parameters": dict(problem.parameters),
            "budget": {"episodes": budget.episodes}
            if budget.steps is None
            else {"steps": budget.steps},
            "block": problem.chunk,
            "on_fault": self.faults.on_fault,
        }

    def as_json(self) -> dict[str, Any]:
        """All inputs as plain data: what `resume` starts from."""
        data: dict[str, Any] = plain(
            {
                **self.identity(),
                "target_error": None if self.target is None else self.target.error,
                "below": self.below,
                "confidence": self.confidence,
                "retries": self.faults.retries,
                "time_limit": self.faults.time_limit,
                "check": self.check,
            }
        )
        return data


def request(
    problem: Problem,
    method: str | None,
    *,
    steps: int | None,
    episodes: int | None,
    target_error: float | None,
    below: float | None,
    seed: int,
    confidence: float,
    settings: Mapping[str, Any] | None,
    block: int | None,
    faults: Policy,
    check: bool = True,
) -> Request:
    """Check what the user asks for."""
    if not isinstance(problem, Problem):
        raise ApevalError(
            f"evaluate wants a Problem, got {type(problem).__name__}: apeval.make(name) builds one"
        )
    whole = (("steps", steps), ("episodes", episodes), ("seed", seed), ("block", block))
    for what, number in whole:
        if number is not None and not isinstance(number, int | np.integer):
            raise ApevalError(f"{what} must be a whole number; got {number!r}")
    if seed is None or not isinstance(confidence, float):
        raise ApevalError("seed must be a whole number and confidence a number below 1")
    if not 0.0 < confidence < 1.0:
        raise ApevalError(f"confidence must lie strictly between 0 and 1; got {confidence}")
    if seed < 0:
        raise ApevalError(f"the seed must be a whole number ≥ 0; got {seed}")
    if block is not None and block < 1:
        raise ApevalError(f"a block has at least 1 episode; got {block}")
    target = None if target_error is None else Target(target_error)
    if below is not None:
        check_bound(below, confidence)
    if target is not None and steps is None and episodes is None:
        steps = LONGEST
    chosen = find_method(method or default_method(problem))
    reason = chosen.suits(problem)
    if reason:
        raise ApevalError(reason)
    return Request(
        problem if block is None else dataclasses.replace(problem, chunk=int(block)),
        chosen,
        build(chosen.config, settings or {}),
        Budget(steps, episodes),
        target,
        below,
        int(seed),
        confidence,
        faults,
        bool(check),
    )
