"""What is asked of a run: everything that its result depends on."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from apeval.errors import ApevalError
from apeval.estimate.estimator import find_estimator
from apeval.learn.method import Method, find_method
from apeval.problem.problem import Problem
from apeval.problem.settings import build
from apeval.run.result import plain
from apeval.run.run_options import DEFAULTS, RunOptions
from apeval.run.second_opinion import check_second_opinion


def default_method(problem: Problem) -> str:
    """The best method there is for the problem."""
    return "ape" if find_method("ape").suits(problem) is None else "mc"


@dataclass(frozen=True)
class Request:
    """A run's inputs, checked at the door."""

    problem: Problem
    method: Method
    config: Any
    options: RunOptions
    """With the method, its settings and the block that the run has."""

    @property
    def level(self) -> float:
        """The confidence of a single look at the sample."""
        target, wanted = self.options.target, self.options.confidence
        return wanted if target is None else target.confidence(wanted)

    def identity(self) -> dict[str, Any]:
        """What the result says of its inputs."""
        options, problem = self.options, self.problem
        return {
            "problem": problem.name,
            "view": problem.view,
            "method": self.method.name,
            "seed": options.seed,
            "settings": options.settings,
            "parameters": dict(problem.parameters),
            "budget": {"episodes": options.episodes}
            if options.steps is None
            else {"steps": options.steps},
            "block": options.block,
            "on_fault": options.on_fault,
            "estimator": options.estimator,
        }

    def as_json(self) -> dict[str, Any]:
        """All inputs as plain data: what `resume` starts from."""
        kept = self.options.as_json()
        left_out = DEFAULTS.keys() - kept.keys()
        about = {k: v for k, v in self.identity().items() if k not in left_out}
        data: dict[str, Any] = plain({**about, **kept})
        return data


def request(problem: Problem, options: RunOptions) -> Request:
    """Look up what the user asks for by name."""
    if not isinstance(problem, Problem):
        raise ApevalError(
            f"evaluate wants a Problem, got {type(problem).__name__}: apeval.make(name) builds one"
        )
    if options.block is not None:
        problem = dataclasses.replace(problem, chunk=options.block)
    chosen = find_method(options.method or default_method(problem))
    reason = chosen.suits(problem)
    if reason:
        raise ApevalError(reason)
    if options.second_opinion:
        check_second_opinion(problem, chosen.name)
    config = build(chosen.config, options.settings or {})
    resolved = dataclasses.replace(
        options,
        method=chosen.name,
        settings=dataclasses.asdict(config),
        block=problem.chunk,
        estimator=find_estimator(options.estimator).name,
    )
    return Request(problem, chosen, config, resolved)
