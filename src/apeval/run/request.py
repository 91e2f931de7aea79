"""What is asked of a run: everything that its result depends on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apeval import validate
from apeval.errors import ApevalError
from apeval.estimate.estimator import AUTO, find_estimator
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
    estimator: str = AUTO
    """The interval construction, by name."""

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
            "estimator": self.estimator,
        }

    def as_json(self) -> dict[str, Any]:
        """All inputs as plain data: what `resume` starts from. An estimator that is not named is
        the default one."""
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
        if self.estimator == AUTO:
            del data["estimator"]
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
    estimator: str = AUTO,
) -> Request:
    """Check what the user asks for."""
    if not isinstance(problem, Problem):
        raise ApevalError(
            f"evaluate wants a Problem, got {type(problem).__name__}: apeval.make(name) builds one"
        )
    seed, confidence = validate.seed(seed), validate.confidence(confidence)
    if block is not None:
        problem = dataclasses.replace(problem, chunk=validate.whole("block", block, 1))
    target = None if target_error is None else Target(validate.target_error(target_error))
    if below is not None:
        below = check_bound(below, confidence)
    if target is not None and steps is None and episodes is None:
        steps = LONGEST
    chosen = find_method(method or default_method(problem))
    reason = chosen.suits(problem)
    if reason:
        raise ApevalError(reason)
    return Request(
        problem,
        chosen,
        build(chosen.config, settings or {}),
        Budget(steps, episodes),
        target,
        below,
        seed,
        confidence,
        faults,
        bool(check),
        find_estimator(estimator).name,
    )
