"""Algorithm 1."""

from __future__ import annotations

import time

import numpy as np
import torch
from scipy.special import logsumexp

from apeval.learn.method import Basis, Learner
from apeval.learn.networks.flow import Flow, one_thread
from apeval.learn.whitened import log_phi, to_z
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray, IntArray
from apeval.remedies import Note
from apeval.simulate.adversary import Adversary, Mixture, Nominal, mixture, only
from apeval.simulate.episodes import Episodes
from apeval.simulate.simulation import Simulation
from apeval_paper.methods.ape_scalable import context as contexts
from apeval_paper.methods.ape_scalable.adversaries import FlowAdversary, WarmStart
from apeval_paper.methods.ape_scalable.alarms import Alarms
from apeval_paper.methods.ape_scalable.backward_values import BackwardValues
from apeval_paper.methods.ape_scalable.config import ApeScalableConfig
from apeval_paper.methods.ape_scalable.flow_target import (
    FlowTarget,
    bump_weight,
    dense_rewards,
    keep_finite,
    point_target,
)
from apeval_paper.methods.ape_scalable.history import transitions
from apeval_paper.methods.ape_scalable.learning_curve import Point, mean_and_interval
from apeval_paper.methods.ape_scalable.memory import Memory, Remembered
from apeval_paper.methods.ape_scalable.row_weights import failure_weights, steered_weights
from apeval_paper.methods.ape_scalable.updates import (
    PRETRAIN_STEPS,
    Optimiser,
    likelihood,
    pretrain,
    reverse_kl,
)
from apeval_paper.methods.ape_scalable.value_model import ValueModel
from apeval_paper.methods.widened_start import WidenedStart, find_start

_UPDATES = 10  # of π_E in a learning budget, where the batch is not given
_EXPLORE = 0.2  # of the learning budget before the first of them
_RATE_WINDOW = 40  # episodes of the sampled failure rate
_STARTS = 256  # initial states kept for v(s0)
_CURVE_POINTS = 200
_LOG_LARGEST = 300.0  # of a weight whose square is a number


class ScalableLearner(Learner):
    """Learns v_ψ and π_E,θ from whole episodes: Algorithm 3 changes π_E,θ only where an episode
    has failed, so that episodes between two changes can run in lockstep."""

    def __init__(self, problem: Problem, config: ApeScalableConfig) -> None:
        self.problem, self.d_E = problem, problem.nominal.dim
        self.config = config.resolved(self.d_E)
        self.shift, self.scale = self.config.warm(self.d_E)
        self.trace: list[Point] = []
        self.seconds = {"simulation": 0.0, "value": 0.0, "flow": 0.0}
        self.alarms = Alarms()
        self.pilot: WidenedStart | None = None
        self.ended_early = False
        self._remembers = self.config.policy_update != "reverse-kl"
        self._outcomes: list[bool] = []
        self._weight_sum = self._square_sum = 0.0
        self._steps = 0
        self._alpha = 1.0
        self._learned: Adversary | None = None
        self._fitted = False
        self._s0: tuple[FloatArray, IntArray] | None = None

    # -- one round -----------------------------------------------------------------------------

    def advance(self, simulation: Simulation) -> bool:
        """Roll a batch of episodes, then update v_ψ with every transition and π_E,θ. The first
        batches are the pilot's where the start is left open."""
        if self._episodes_now(simulation) < 1:
            return False
        with one_thread():
            if self._learned is None:
                self._begin(simulation)
                if simulation.episodes:  # the pilot's
                    return self._episodes_now(simulation) > 0
            batch, proposal = self._roll(simulation, self._episodes_now(simulation))
            self._take_in(simulation, batch, proposal)
            self._learn_policy(batch)
            self._note(simulation, batch)
        return self._episodes_now(simulation) > 0

    def _take_in(self, simulation: Simulation, batch: Episodes, proposal: Mixture) -> None:
        """Everything that is learned of a batch before π_E,θ is."""
        if not self._fitted:
            self._first_batch(batch)
        log_rho = self._book(batch, proposal)
        self._learn_value(batch, log_rho)

    def _episodes_now(self, simulation: Simulation) -> int:
        """Episodes of the next batch within the learning budget; one is left for the estimate."""
        share = self.config.learn_share
        if share == 0.0:
            return 0
        budget = simulation.budget.share(share)
        if budget.episodes is not None:
            total, left = budget.episodes, budget.episodes - simulation.episodes
        else:
            length = self._length(simulation)
            total = int((budget.steps or 0) / length)
            left = int(((budget.steps or 0) - simulation.steps) / length)
        left = min(left, simulation.affordable() - 1)
        if self.config.batch:
            return min(self.config.batch, left)
        share_now = _EXPLORE if simulation.episodes == 0 else (1.0 - _EXPLORE) / _UPDATES
        wanted = max(1, round(share_now * total))
        # a remainder too small for a batch of its own joins the last one
        return left if left < 1.5 * wanted else wanted

    def _length(self, simulation: Simulation) -> float:
        """Decisions that an episode takes."""
        if simulation.episodes:
            return max(1.0, simulation.steps / simulation.episodes)
        return float(min(self.problem.longest, 100))

    def _begin(self, simulation: Simulation) -> None:
        words = [int(k) for k in simulation.key]
        self._rng = np.random.default_rng([*words, 1])
        self._seed = words[0] ^ (words[1] << 1)
        if self.config.open_start:
            started = time.perf_counter()
            budget = simulation.budget.share(self.config.learn_share)
            self.pilot = find_start(simulation, budget, self._widened)
            self.scale = np.full(self.d_E, self.pilot.scale)
            self.seconds["simulation"] += time.perf_counter() - started
        self._learned = WarmStart(self.shift, self.scale)
        self.memory = Memory([self._learned])
        self._drawn_by = [0]
        if self.pilot is not None and self.pilot.drawn and self._remembers:
            self._learn_from(self.pilot, simulation)

    def _widened(self, scale: float) -> Adversary:
        return WarmStart(np.zeros(self.d_E), np.full(self.d_E, scale))

    def _learn_from(self, pilot: WidenedStart, simulation: Simulation) -> None:
        """The pilot's episodes are data as any others."""
        for batch, proposal in reversed(pilot.drawn):  # the widest states first, for their scales
            self._drawn_by = []
            for adversary in proposal.components:
                self._drawn_by.append(len(self.memory.counts))
                self.memory.add_adversary(adversary)
            self._take_in(simulation, batch, proposal)
        self._drawn_by = [0]
        self._change_policy(pilot.drawn[-1][0])
        self._note(simulation, pilot.drawn[-1][0])

    def _first_batch(self, batch: Episodes) -> None:
        """What needs the shape of states: inputs, v_ψ and the flow, with its warm start."""
        self._fitted = True
        config, d_s = self.config, batch.s.shape[1]
        horizon = (self.problem.horizon or 0) if config.time_in_state else 0
        if config.scaled_state:
            self.context = contexts.fitted(batch.s, batch.t, horizon)
        else:
            self.context = contexts.plain(d_s, horizon)
        d_x = d_s + int(horizon > 0)
        self.v = ValueModel(config, d_x, horizon, self._seed % 2**31)
        self.backward = BackwardValues(config.gp_budget)
        exact = config.warm_start == "exact"
        one, zero = np.ones(self.d_E), np.zeros(self.d_E)
        self.flow = Flow(
            self.d_E,
            d_x + batch.a_A.shape[1],
            config.flow or "affine",
            config.transforms or 1,
            config.hidden or 16,
            self.shift if exact else zero,
            self.scale if exact else one,
            self._seed % 2**31,
        )
        beta_theta = 1.0 if config.beta_theta is None else config.beta_theta
        self.optimiser = Optimiser(self.flow, config.alpha_pi or 3e-3, beta_theta)
        if not exact:
            started = time.perf_counter()
            warm = Optimiser(self.flow, 3e-3, 1.0)
            losses = pretrain(self.flow, self._contexts(batch), self.shift, self.scale, self._rng)
            warm.descend(lambda: next(losses), PRETRAIN_STEPS)
            self.seconds["flow"] += time.perf_counter() - started
            self._adopt()

    def _roll(self, simulation: Simulation, n: int) -> tuple[Episodes, Mixture]:
        started = time.perf_counter()
        learned = self._present()
        memory = self.memory
        latest = len(memory.counts) - 1 if isinstance(learned, FlowAdversary) else 0
        proposal, self._drawn_by = only(learned), [latest]
        explore = self.config.explore_share or 0.0
        if explore > 0.0 and latest:
            proposal = mixture([learned, memory.adversaries[0]], [1.0 - explore, explore])
            self._drawn_by.append(0)
        batch = simulation.run(proposal, n, simulation.episodes)
        self.seconds["simulation"] += time.perf_counter() - started
        return batch, proposal

    def _book(self, batch: Episodes, proposal: Mixture) -> FloatArray:
        """log ρ row by row under each episode's own component (Eq. scalable_ape_is_weight)."""
        log_p = batch.law.log_prob(batch.a_E)
        log_q = np.column_stack(
            [q.log_prob(batch.situation, batch.a_E) for q in proposal.components]
        )
        counts = np.bincount(batch.component, minlength=len(proposal.components))
        with np.errstate(divide="ignore"):
            share = np.log(counts / batch.n)
        whole = np.column_stack([batch.sum_rows(log_q[:, j]) for j in range(log_q.shape[1])])
        log_w = batch.sum_rows(log_p) - np.asarray(logsumexp(whole + share, axis=1))
        w = np.exp(np.minimum(log_w[batch.failed], _LOG_LARGEST))
        self._weight_sum += float(w.sum())
        self._square_sum += float(w @ w)
        self._outcomes += batch.failed.tolist()
        self._steps += batch.steps
        own = log_q[np.arange(len(log_p)), batch.component[batch.episode]]
        log_rho: FloatArray = log_p - own
        self.alarms.log_rho = max(self.alarms.log_rho, float(log_rho.max(initial=0.0)))
        return log_rho

    # -- v_ψ, Algorithm 2 ----------------------------------------------------------------------

    def _learn_value(self, batch: Episodes, log_rho: FloatArray) -> None:
        started = time.perf_counter()
        if self._remembers:
            self.memory.add(batch, self._drawn_by)
        x = self.context.state(batch.s, batch.t)
        if self.config.value_update == "online":
            self.v.observe(transitions(batch, x, log_rho, self.config.n_step or 0))
        self._note_starts(x[batch.t == 0])
        self.seconds["value"] += time.perf_counter() - started

    def _note_starts(self, x_0: FloatArray) -> None:
        """Remember the first initial states, equal ones once with their number."""
        if self._s0 is not None:
            if self._s0[1].sum() >= _STARTS:
                return
            x_0 = np.concatenate([np.repeat(self._s0[0], self._s0[1], axis=0), x_0])
        self._s0 = np.unique(x_0[:_STARTS], axis=0, return_counts=True)

    # -- π_E,θ, Algorithm 3 --------------------------------------------------------------------

    def _learn_policy(self, batch: Episodes) -> None:
        if self.ended_early:
            return
        self._change_policy(batch)
        stop = self.config.stop_rate
        recent = self._outcomes[-_RATE_WINDOW:]
        self.ended_early = (
            stop is not None
            and stop < 1.0
            and len(recent) == _RATE_WINDOW
            and float(np.mean(recent)) >= stop
        )

    def _change_policy(self, batch: Episodes) -> None:
        started, before = time.perf_counter(), self.seconds["value"]
        changed = False
        if not self._remembers:
            for i in np.flatnonzero(batch.failed):
                changed |= self._approach_target(batch, batch.rows_of(int(i)))
        elif self.memory.failures:
            changed = self._maximise_likelihood()
        if changed:
            self._adopt()
        spent = time.perf_counter() - started
        self.seconds["flow"] += spent - (self.seconds["value"] - before)

    def _maximise_likelihood(self) -> bool:
        """Fit π_E,θ to remembered transitions, weighted by v or by how their episodes ended."""
        config, rows = self.config, self.memory.rows()
        gain = self._backward(rows) if config.value_update == "backward" else None
        wanted = config.target_ess or 1.0
        if config.policy_update == "one-step" and gain is not None:
            data = steered_weights(rows, gain, self.backward.bins(rows.t), wanted)
        else:
            data = failure_weights(rows, wanted)
        self._alpha = data.alpha
        kept = data.weight > 0.0
        c = self.context(rows.s[kept], rows.a_A[kept], rows.t[kept])
        loss = likelihood(
            self.flow, c, rows.z[kept], data.weight[kept], data.ess[kept],
            config.shrinkage or 0.0, self._rng,
        )  # fmt: skip
        return self.optimiser.descend(loss, config.flow_steps or 1)

    def _backward(self, rows: Remembered) -> FloatArray:
        started = time.perf_counter()
        gain = self.backward.fit(self.context.state(rows.s, rows.t), rows)
        self.seconds["value"] += time.perf_counter() - started
        return gain

    def _approach_target(self, batch: Episodes, rows: slice) -> bool:
        """Reverse KL to p_E along one failing episode, with dense rewards."""
        config, now = self.config, batch.situation.take(rows)
        z = to_z(now.law, batch.a_E[rows])
        c = torch.from_numpy(self.context(now.s, now.a_A, now.t))
        old = self.flow.frozen()
        with torch.no_grad():
            density = np.exp(old.log_prob(c, torch.from_numpy(z)).numpy())
        nominal = np.exp(log_phi(z))
        v = self.v(self.context.state(now.s, now.t), now.t)
        v_next = np.append(v[1:], 0.0)
        r_hat = dense_rewards(now.t, np.full(len(z), len(z)), config.gamma_r)
        base = nominal if config.target_density == "nominal" else density
        wanted = point_target(base, r_hat, v_next, v, config.v_floor)
        raw = bump_weight(wanted, density, config.sigma, self.d_E)
        beta = keep_finite(raw, config.beta_limit)
        self.alarms.beta(float(raw.min()), float(raw.max()), len(beta), int((beta != raw).sum()))
        target = FlowTarget(old, c, torch.from_numpy(z), torch.from_numpy(beta), config.sigma)
        return self.optimiser.descend(
            lambda: reverse_kl(self.flow, target, config.samples, self._rng),
            config.flow_steps or 1,
        )

    def _adopt(self) -> None:
        """Sample from the flow as it is now."""
        self._learned = FlowAdversary(self.flow, self.context)
        if self._remembers:
            self.memory.add_adversary(self._learned)

    # -- what comes out ------------------------------------------------------------------------

    def _contexts(self, batch: Episodes) -> FloatArray:
        return self.context(batch.s, batch.a_A, batch.t)

    def _present(self) -> Adversary:
        return Nominal() if self._learned is None else self._learned

    def _note(self, simulation: Simulation, batch: Episodes) -> None:
        whole = simulation.budget.steps or (simulation.budget.episodes or 0) * self.problem.longest
        if self.trace and simulation.steps - self.trace[-1].steps < whole / _CURVE_POINTS:
            return
        recent = self._outcomes[-max(batch.n, _RATE_WINDOW) :]
        value = self.value()
        self.trace.append(
            Point(
                simulation.steps,
                float("nan") if value is None else value,
                *mean_and_interval(self._weight_sum, self._square_sum, len(self._outcomes)),
                float(np.mean(recent)),
            )
        )

    def proposal(self) -> Mixture:
        share = self.config.nominal_share
        return mixture([self._present(), Nominal()], [1.0 - share, share])

    def value(self) -> float | None:
        """v_ψ(s0), averaged over the initial states seen; warned of where it is no probability."""
        v = self._v_0()
        return None if v is None or not np.isfinite(v) else min(max(v, 0.0), 1.0)

    def basis(self) -> Basis | None:
        value = self.value()
        steers = self.config.policy_update != "likelihood"  # p_E of Eq. NF_point_target has v in it
        return Basis("the learned v(s0)", value) if steers and value is not None else None

    def _v_0(self) -> float | None:
        if self._s0 is None:
            return None
        if self.config.value_update == "backward":
            return self.backward.v_0
        x_0, count = self._s0
        with one_thread():
            v = self.v.unclipped(x_0, np.zeros(len(x_0), np.int64))
        return float(np.average(v, weights=count))

    def curve(self) -> list[tuple[int, float]]:
        return [(p.steps, p.value) for p in self.trace if np.isfinite(p.value)]

    def warnings(self) -> list[Note]:
        if not self._outcomes:
            return []
        rates, v_0 = [p.rate for p in self.trace], self._v_0()
        found = [] if self.pilot is None else self.pilot.notes()
        return found + self.alarms.notes(
            steps=self._steps,
            failures=sum(self._outcomes),
            refused=self.optimiser.failed,
            outside=self.v.outside / max(1, self.v.asked),
            log_value=self.v.log,
            v_0=float("nan") if v_0 is None else v_0,
            diverged=self.v.diverged,
            alpha=self._alpha,
            peak_rate=max(rates, default=0.0),
            last_rate=rates[-1] if rates else 0.0,
        )
