"""A problem of `from_env` with another policy in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from apeval.adapt.block import ActsFirst, Block
from apeval.adapt.disturbed import EpisodePlan
from apeval.adapt.given_policy import as_policy
from apeval.errors import ProblemError
from apeval.problem.argument_copies import WithOwnArguments
from apeval.problem.gym import refitted_problem
from apeval.problem.problem import Problem


@dataclass(frozen=True)
class PlannedProblem:
    """A problem whose episodes follow a plan, so that their policy can be exchanged."""

    problem: Problem
    plan: EpisodePlan
    action_space: Any
    observation_space: Any

    @staticmethod
    def of(problem: Problem) -> PlannedProblem:
        """Look into a problem.

        Args:
            problem: What `from_env` returned.

        Raises:
            ProblemError: It was built otherwise.
        """
        step = problem.step.call if isinstance(problem.step, WithOwnArguments) else problem.step
        plan = getattr(getattr(step, "__self__", None), "make_env", None)
        if not isinstance(plan, EpisodePlan):
            raise ProblemError(
                "only a problem of apeval.from_env, with `fails` given as a function or a name, "
                "lets its policy be exchanged: give a function of the policy that returns the "
                "problem instead, problem=lambda policy: apeval.from_env(…, policy=policy)"
            )
        env = plan.make()
        try:
            return PlannedProblem(problem, plan, env.action_space, env.observation_space)
        finally:
            if hasattr(env, "close"):
                env.close()

    def with_policy(self, policy: Any) -> Problem:
        """The same problem with another policy.

        Args:
            policy: Whatever `from_env` takes as `policy=`.

        Returns:
            A new problem; this one keeps its policy.

        Raises:
            ProblemError: The policy does not fit the environment.
        """
        fitted = as_policy(policy, self.action_space, self.observation_space)
        plan = replace(self.plan, policy=fitted)
        agent = ActsFirst(fitted, self.action_space) if plan.acts_first else None
        return refitted_problem(self.problem, plan, Block(plan, self.action_space), agent)
