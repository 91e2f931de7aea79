"""What a reader must know of a run's learning, in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from apeval.remedies import Note
from apeval_paper.methods.ape_scalable.history import LOG_RHO_MOST

_OFTEN = 0.1


@dataclass
class Alarms:
    """Counts what the guards had to do."""

    beta_asked: int = 0
    beta_moved: int = 0
    beta_low: float = 0.0
    beta_high: float = 0.0
    log_rho: float = 0.0
    """Largest log ρ of a TD target, before it is cut."""

    def beta(self, raw_low: float, raw_high: float, asked: int, moved: int) -> None:
        """Book one target's β before the guard."""
        self.beta_asked += asked
        self.beta_moved += moved
        self.beta_low = min(self.beta_low, raw_low)
        self.beta_high = max(self.beta_high, raw_high)

    def notes(
        self,
        *,
        steps: int,
        failures: int,
        refused: int,
        outside: float,
        log_value: bool,
        v_0: float,
        diverged: str,
        alpha: float,
        peak_rate: float,
        last_rate: float,
    ) -> list[Note]:
        """Warnings, each with a remedy."""
        found: list[Note] = []

        def say(text: str, more: float = 0.0) -> None:
            found.append(Note(text, serious=False, more=more))

        if failures == 0:
            say(
                f"learning saw no failure in {steps:,} decisions, so π_E is still the warm start, "
                "which may be widened or shifted (warm_scale, warm_shift)",
                more=1.0,
            )
            return found
        if diverged:
            say(f"v_ψ diverged and stopped learning: {diverged}. Raise gp_budget or l1")
        if not math.isfinite(v_0):
            say("v_ψ diverged: v(s0) is not finite and is not reported")
        elif not 0.0 <= v_0 <= 1.0:
            say(
                f"v_ψ diverged: its v(s0) = {v_0:.2e} is not a probability and is reported as "
                f"{min(max(v_0, 0.0), 1.0):g}. Go by the estimate"
            )
        if self.log_rho > LOG_RHO_MOST:
            say(
                f"π_E,θ left a region that π_E,gt reaches: a weight ρ = e^{self.log_rho:.0f} of "
                "v_ψ's targets was cut. Lower alpha_pi, or set explore_share"
            )
        if refused:
            say(
                f"π_E,θ diverged {refused} times: its loss was not finite, and θ was put back. "
                "Lower alpha_pi or flow_steps"
            )
        if self.beta_moved > _OFTEN * max(1, self.beta_asked):
            say(
                f"β of Eq. NF_target left its range in {self.beta_moved:,} of "
                f"{self.beta_asked:,} targets (from {self.beta_low:.1e} to {self.beta_high:.1e}) "
                "and was cut: r̂/v(s) diverges for rare events. policy_update=likelihood has no β"
            )
        if outside > _OFTEN:
            say(
                f"{outside:.0%} of the predictions of v_ψ lay outside [0, 1] and were moved to "
                "its ends"
                + ("" if log_value else ": a GP on raw probabilities does so. Use value_space=log"),
                more=1.0 if log_value else 0.0,
            )
        if alpha < 1.0:
            say(
                f"not converged: too few failures counted, so the last update of π_E tempered "
                f"their weights (α = {alpha:.2f} < 1). A larger learning share may help too",
                more=1.0,
            )
        if last_rate < 0.5 * peak_rate and peak_rate > _OFTEN:
            say(
                f"π_E got worse while it learned: its sampled failure rate fell from "
                f"{peak_rate:.2f} to {last_rate:.2f}. Lower alpha_pi, or set stop_rate"
            )
        return found
