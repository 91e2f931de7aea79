"""`ape`: explore, learn level by level, freeze."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from apeval.learn.ape import batch_sizes, learning_warnings
from apeval.learn.ape.batch_weights import batch_weight
from apeval.learn.ape.complete_episodes import CompleteEpisodes
from apeval.learn.ape.config import ApeConfig
from apeval.learn.ape.decision_rows import DecisionRows
from apeval.learn.ape.episode_features import EpisodeFeatures, find_features
from apeval.learn.ape.episode_memory import EpisodeMemory, tempered
from apeval.learn.ape.failure_groups import by_kind
from apeval.learn.ape.gaussian_part import GaussianPart
from apeval.learn.ape.local_model import fit_model
from apeval.learn.ape.log_value import fit_value
from apeval.learn.ape.missed_modes import ModeSearch, push_ratio
from apeval.learn.ape.mixture_fit import GroupedFit, MixtureFit, effective, fit_groups
from apeval.learn.ape.monte_carlo_fallback import MonteCarloFallback
from apeval.learn.ape.part_learner import PartLearner, find_part_learner
from apeval.learn.ape.probit import explained, fit_probit, push
from apeval.learn.ape.proposal_choice import (
    EpisodeCosts,
    ProposalChoice,
    choose,
    finite_ratio,
    furthest_eta,
)
from apeval.learn.ape.proposal_part import PartAdversary, ProposalPart
from apeval.learn.ape.russian_roulette import RouletteChoice
from apeval.learn.ape.uncontrolled_randomness import RandomnessTest, run_test
from apeval.learn.ape.widened_proposals import (
    Flatter,
    Wider,
    flattened_proposals,
    widened_proposals,
)
from apeval.learn.method import CountedBatch, Exploration, Learner
from apeval.problem.problem import Problem
from apeval.problem.types import Array, BoolArray, FloatArray, IntArray
from apeval.remedies import Note
from apeval.simulate.adversary import Adversary, Mixture, Nominal, mixture, only
from apeval.simulate.episodes import Episodes, join
from apeval.simulate.simulation import Simulation

_NOMINAL, _WIDENED = 0, 1  # numbers of the two fits that are not learned
_LEVEL = 0.2  # quantile of the last batch's margins that becomes the next level
_PATIENCE = 0.75  # of the share set for learning, after which failures must have taught something
_LOOKING = 3.0  # times the defensive share: what explores beside widened proposals, while learning
_ELITES = 10  # episodes that a level is fitted to at least
_FEWEST = 3  # episodes that a fit needs
_CONVERGED = 30.0  # effective failures from which a predicted variance is believed
_TELLS, _SURE = 4.0, 30.0  # effective failures between which their rate says how far to go
_FREQUENT, _PILOT_TELLS = 0.25, 8  # failures in the pilot's episodes: nothing to accelerate
_FEW = 2.5  # effective failures from which a probit model can tell
_WORTH = 2.0  # of an effective failure in a probit model, beside one that is fitted to
_CHANCY = 4.0  # effective failures from which batches are full under uncontrolled randomness
_SLOPES = 3.0  # more than so many slopes are better shared over time, as the fit does
_EXPLAINED = 0.3  # of the deviance, from which a probit model is believed
_NEAR = 0.3  # power of p/q̄: a probit model need not hold where hardly any episode of π_E,gt goes
_NO_PROGRESS = 2  # fits without progress
_LONG = 10.0  # decisions of an episode from which a fit may have to begin later
_VERY_LONG = 50.0  # decisions from which nothing learned means that nothing will be
_LATE = 0.1  # share of a fit's episodes, at least, in which it begins later, while learning
_FAILURES_KEPT = 2_000
_SEARCHES = 3  # for modes that were missed, at the most
_LEFT = 0.5  # of the episodes planned for the frozen stage, that a search has to leave to it


class ApeLearner(Learner):
    """Learns a mixture of sequential adversaries from whole episodes, frozen batch by batch."""

    def __init__(self, problem: Problem, config: ApeConfig) -> None:
        self.problem, self.config = problem, config
        self.memory = EpisodeMemory()
        self.scene = EpisodeFeatures.empty()
        self.level = np.inf
        self.frequent = False
        self.cramped = False
        """Whether the budget holds too few episodes of full length to learn from."""
        self.alpha = 0.0
        self.ess, self._worth = 0.0, 1.0
        self.choice: ProposalChoice | None = None
        self.course = CompleteEpisodes()
        self.judged: RouletteChoice | None = None
        self._question = RandomnessTest()
        self._learner = find_part_learner(config.learner, problem.nominal.discrete)
        self._at_failures: list[int] = []
        self._at_levels: list[int] = []
        self._recent: list[int] = []
        self._next: dict[int, float] = {_WIDENED: 1.0}
        self._costs = EpisodeCosts(1.0, 1.0, 1.0)
        self._watching = _WIDENED
        self._in_steps = False
        self._rate = 0.0
        self._fits_left = 0.0
        self._fit: MixtureFit | None = None
        self._whole: dict[int, ProposalPart | None] = {}
        self._later: int | None = None
        self._decisions = 1.0
        self._predicted: list[float] = []
        self._fallback = MonteCarloFallback()
        self._counted: list[CountedBatch] = []
        self._starts: Array = np.zeros((0, 0))
        self._failures: list[Episodes] = []
        self._last_margin: FloatArray = np.zeros(0)
        self._rng = np.random.default_rng(0)
        self._searches: list[ModeSearch] = []
        self._completed: list[int] = []
        self._fits_since = 0
        self._searched_last = False

    # -- the loop ------------------------------------------------------------------------------

    def advance(self, simulation: Simulation) -> bool:
        """A batch from the proposal as it stands, then a new fit."""
        if not self.memory.sizes:
            explored = self._explore(simulation)
        elif self._searches and not self._searches[-1].over:
            self._look_for_modes(simulation, self._searches[-1])
            return not (self._searches[-1].over and self._searched_last and not self._found)
        else:
            n = batch_sizes.batch_size(
                simulation, bool(self.chance) and self._worth * self.ess < _CHANCY
            )
            explored = n >= 2
            if explored:
                cost = self._costs.watching if self.choice is None else self.choice.cost
                share = self._credit(n, batch_sizes.left(simulation, cost) - n)
                proposal = self._mixture(self._next)
                batch = simulation.run(proposal, n, 0)
                if share > 0.0:
                    self._counted.append(CountedBatch(batch, proposal, share))
                self._remember(batch, self._next, proposal)
        if not explored:
            return False
        self._ask_chance(simulation)
        self._fallback.expect(self.memory.probability() * batch_sizes.total(simulation))
        self._fits_left = batch_sizes.fits_left(simulation, self.config)
        self._fallback.given_up = self._fallback.given_up or self._gives_up(simulation)
        self._learn()
        finished = self._finished(simulation)
        self._fits_since += 1
        if self._can_miss_modes(finished):
            search = ModeSearch.planned(batch_sizes.total(simulation), self._rng)
            frozen = (1.0 - self.config.learn_share) * batch_sizes.total(simulation)
            if simulation.affordable() - search.cost >= _LEFT * frozen:
                self._searches.append(search)
                self._searched_last = finished
                return True
        return not finished

    @property
    def _found(self) -> bool:
        """Whether the last search found a mode."""
        return bool(self._searches) and self._searches[-1].found is not None

    def _can_miss_modes(self, finished: bool) -> bool:
        """Whether it is time to look for failures that nothing learned produces: once weights
        carry a fit, at the latest when learning ends."""
        learned = self.level <= 0.0 and self.choice is not None and bool(self._recent)
        shown = self._counts or self._fallback.shows  # π_E,gt shows every mode by itself
        if self.problem.nominal.discrete or not learned or shown:
            return False
        again = self._found and len(self._searches) < _SEARCHES and self._fits_since > _NO_PROGRESS
        if self._searches and not again:
            return False
        return self.ess >= self.config.target_ess or (finished and self.ess >= _TELLS)

    def _look_for_modes(self, simulation: Simulation, search: ModeSearch) -> None:
        def lost(rows: DecisionRows) -> BoolArray:
            n = batch_sizes.left(simulation, self.choice.cost if self.choice else 1.0)
            worth = float(np.log(max(n * self.memory.probability(), 1e-300)))
            return np.asarray(push_ratio(self._learned(), rows, self._rng) < -worth)

        search.advance(simulation, self.scene, lost)
        self._fits_since = 0
        if search.over and search.found is not None:
            rows, each = search.found, np.arange(search.found.n)
            learner, ones = replace(self._learner, whole=None), np.ones(rows.n)
            fitted = fit_groups(rows, ones, each, ones, learner, self.scene.times, self._rng, {})
            parts = tuple(p.plain() if isinstance(p, GaussianPart) else p for p in fitted.fit.parts)
            self._completed.append(self.memory.add_fit(replace(fitted.fit, parts=parts)))
            self._predicted.clear()
            self._next = self._learning_shares()

    def _learned(self) -> list[tuple[MixtureFit, float]]:
        """What was learned, without what explores, with the shares that it will have."""
        choice = self.choice
        shares = self._shares(min(choice.nominal, 0.5), choice.delayed) if choice else {}
        known = [k for k in (*self._recent, *self._completed) if k in shares]
        return [(self.memory.fits[k], shares[k]) for k in known]

    def _gives_up(self, simulation: Simulation) -> bool:
        """Whether so little was learned of long episodes, late in the time to learn, that
        Monte Carlo tells more with the rest."""
        late = batch_sizes.used(simulation) >= _PATIENCE * self.config.learn_share
        learned = self._counted or self._worth * self.ess >= _TELLS
        return late and self._decisions >= _VERY_LONG and not learned

    def _explore(self, simulation: Simulation) -> bool:
        """The pilot, from π_E,gt; then widened proposals, which the pilot's lengths have scaled."""
        self._in_steps = simulation.budget.steps is not None
        if simulation.affordable() < learning_warnings.FEWEST_WHOLE:
            self.cramped = True
            return False
        self._rng = np.random.default_rng([int(k) for k in simulation.key])
        n = batch_sizes.pilot_size(simulation, self.problem, self.config)
        pilot = simulation.run(only(Nominal()), n, 0)
        self.scene = find_features(self.problem, pilot)
        self._starts = pilot.s[pilot.t == 0]
        if pilot.n >= _PILOT_TELLS and pilot.failed.mean() >= _FREQUENT:
            self.frequent = True
            return False
        discrete = self.problem.nominal.discrete
        itself: ProposalPart = Flatter(1.0, 0.0) if discrete else Wider(1.0)
        self.memory.add_fit(MixtureFit((itself,), np.ones(1)))
        self._decisions = float(pilot.length.mean())
        decisions = float(np.clip(self._decisions, 1.0, 100.0))
        widened = (
            flattened_proposals()
            if discrete
            else widened_proposals(self.problem.nominal.dim, decisions)
        )
        self.memory.add_fit(MixtureFit(tuple(widened[0]), widened[1]))
        n = batch_sizes.exploration_size(simulation, self.config, int(pilot.failed.sum()))
        if n < 1:
            self._remember(pilot, {_NOMINAL: 1.0}, only(Nominal()))
            return False
        explored = simulation.run(self._mixture({_WIDENED: 1.0}), n, 0)
        self.scene = find_features(self.problem, join([pilot, explored]))
        self._remember(pilot, {_NOMINAL: 1.0}, only(Nominal()))
        self._remember(explored, {_WIDENED: 1.0}, self._mixture({_WIDENED: 1.0}))
        if self._beginnings > 1 and self._learner.steer and self.memory.rows is not None:
            self._learner = self._learner.knowing(fit_model(self.memory.rows))
        if self._in_steps:
            self._costs = EpisodeCosts(self.course.length, self.course.length, self.course.length)
        return True

    @property
    def chance(self) -> float | None:
        """How often failures do not fail again with the same disturbances; None: not known yet."""
        return self._question.chance

    def _ask_chance(self, simulation: Simulation) -> None:
        """As soon as there is something to ask with; again only while an answer can be used."""
        late = self._question.asked > 0 and batch_sizes.used(simulation) >= self.config.learn_share
        if not late and run_test(self._question, self.memory, simulation):
            self._predicted.clear()  # what an answer changes compares with nothing before it

    def _remember(self, batch: Episodes, shares: dict[int, float], proposal: Mixture) -> None:
        rows = self.scene.rows(batch)
        self.memory.add(rows, batch.kind, batch.margin, shares)
        self.course.add(rows, batch, proposal)
        if set(shares) == {_NOMINAL}:
            self._fallback.seen += int(batch.failed.sum())
        elif set(shares) & set(self._at_failures):
            self._question.learned_batch(float(batch.failed.mean()))
        self._last_margin = batch.margin
        self._rate = 0.5 * self._rate + 0.5 * float(batch.failed.mean())
        if batch.failed.any():
            self._failures.append(batch.take(batch.failed))

    def _credit(self, n: int, left: int) -> float:
        """The share of the estimate that the next n episodes will have, from what is known now:
        as if those after them, `left` in number, were a little better, or all were counted."""
        worth = float(n)
        if set(self._next) != {_NOMINAL}:
            choice = self.choice
            worth *= batch_weight(choice.variance, self._worth * self.ess) if choice else 0.0
        return (1.0 - sum(c.share for c in self._counted)) * worth / (worth + left)

    def _mixture(self, proposal: dict[int, float]) -> Mixture:
        players: list[Adversary] = []
        shares: list[float] = []
        for k, share in proposal.items():
            fit = self.memory.fits[k]
            for part, s in zip(fit.parts, fit.shares, strict=True):
                player = PartAdversary(part, self.scene, fit.roulette)
                players.append(Nominal() if k == _NOMINAL else player)
                shares.append(share * float(s))
        return mixture(players, shares)

    # -- learning ------------------------------------------------------------------------------

    def _learn(self) -> None:
        memory, config = self.memory, self.config
        if self._fallback.serves and memory.failed.sum() < _FEWEST:  # more will come
            self._next, self._recent = {_NOMINAL: 1.0}, []
            return
        met = float((self._last_margin <= self.level).mean())
        self._lower_level()
        memory.forget(self.level)
        self.ess, self._worth = memory.failure_size(), 1.0
        chosen = self._elites()
        if memory.rows is None or chosen.sum() < _FEWEST:
            self._next, self._recent = {_WIDENED: 1.0}, []
            return
        elite, log_w = memory.rows.take(chosen), memory.log_weights()[chosen]
        learner = self._learner if self._beginnings > 1 else replace(self._learner, whole=None)
        at_failures = bool(memory.failed[chosen].all())
        group = by_kind(memory.kind[chosen]) if at_failures else np.zeros(elite.n, np.int64)
        fitted, w, self.alpha = self._fit_to(elite, log_w, group, learner)
        self._fit, self._whole = fitted.fit, fitted.wholes
        reached = float(np.exp(log_w).sum()) / sum(memory.sizes)
        self._fallback.come_down(met, 0.0 if at_failures else reached)
        if not memory.failed.any():
            self._fallback.fall(self.level, self._fits_left)
        if at_failures:
            self._learn_roulette()
            self._predict(elite, log_w, w, fitted, chosen)
        by_odds = self._by_odds() if at_failures else None
        self._fallback.hear(self.choice, self.ess)
        eta = self.choice.eta if self.choice else 1.0
        roulette = self.judged.roulette if self.judged and at_failures else None
        fit = fitted.fit.relaxed(eta) if by_odds is None else by_odds
        fit = replace(fit, roulette=roulette)
        number = memory.add_fit(fit)
        self._later = None
        if by_odds is None and self._beginnings > 1:
            self._later = memory.add_fit(fit.begun_later(self._beginnings))
        self._at_failures += [number] if at_failures else []
        self._at_levels += [] if at_failures else [number]
        alone = by_odds is not None or not at_failures
        self._recent = [number] if alone else self._at_failures[-config.average :]
        fallback = self._fallback.goes_on(self.choice)
        self._next = {_NOMINAL: 1.0} if fallback else self._learning_shares()

    def _learning_shares(self) -> dict[int, float]:
        """Of the next batch."""
        nominal, delayed = 0.0, _LATE
        if self.choice:
            nominal, delayed = min(self.choice.nominal, 0.5), max(self.choice.delayed, _LATE)
        return self._shares(nominal, delayed, True)

    def _fit_to(
        self, elite: DecisionRows, log_w: FloatArray, group: IntArray, learner: PartLearner
    ) -> tuple[GroupedFit, FloatArray, float]:
        """A fit to each group, the weights that it is for, tempered within the groups, and how far
        they are tempered as a whole."""
        target = self.config.target_ess
        share, alpha = tempered(log_w, min(target, elite.n / 2))
        w = share.copy()
        names = np.unique(group)
        for k in names if len(names) > 1 else ():
            mine = group == k
            w[mine] = tempered(log_w[mine], min(target, mine.sum() / 2))[0]
        times = self.scene.times
        fit = fit_groups(elite, w, group, share, learner, times, self._rng, self._whole)
        return fit, w, alpha

    @property
    def _beginnings(self) -> int:
        """Times at which fits may begin: one where episodes are short."""
        short = self._decisions < _LONG
        return 1 if short else self.scene.times

    def _by_odds(self) -> MixtureFit | None:
        """Where randomness is uncontrolled and a probit model tells who fails: a push along it."""
        course, rows = self.course, self.course.rows
        told_apart = self.problem.horizon is not None and not self.problem.nominal.discrete
        if rows is None or not self.chance or not told_apart:
            return None
        near = course.stands_for * np.exp(_NEAR * np.minimum(self.memory.nearness(rows), 0.0))
        ess = effective(near[course.failed])
        probit = fit_probit(rows, course.failed, near, self.scene.times) if ess >= _FEW else None
        if probit is None or probit.dof > _SLOPES:
            return None
        if explained(probit, rows, course.failed, near) < _EXPLAINED:
            return None
        found = push(probit, self.scene.columns.size, self._costs, self.config.defensive_share)
        if found is None:
            return None
        part, self.choice = found
        self.ess, self._worth = ess, _WORTH
        return MixtureFit((part,), np.ones(1))

    def _learn_roulette(self) -> None:
        """Where decisions are what the budget counts: when to end an episode early."""
        failures = self.course.failures()
        if not (self._in_steps and self.chance and self.course.due()) or failures is None:
            return
        log_w = self.memory.weigh(failures)
        judged = self.course.learn(np.exp(2.0 * (log_w - log_w.max())), self.scene.times)
        length = self.course.length
        if judged is None:
            if self.course.frequent:
                self.judged, self._watching = None, _WIDENED
                self._costs = EpisodeCosts(length, length, length)
            return
        self.judged = judged
        self._costs = EpisodeCosts(length, length * judged.watchful_cost, length * judged.cost)
        watchful = replace(self.memory.fits[_WIDENED], roulette=judged.roulette.watchful())
        self._watching = self.memory.add_fit(watchful)

    def _shares(self, nominal: float, delayed: float, learning: bool = False) -> dict[int, float]:
        """π_E,gt, widened proposals, and the last fits alike, the very last also after a delay."""
        explorers = self._explorers(learning)
        most = 0.5 * (1.0 - nominal) / sum(explorers.values())
        explorers = {k: min(1.0, most) * share for k, share in explorers.items()}
        learned = 1.0 - nominal - sum(explorers.values())
        delayed = 0.0 if self._later is None else delayed
        at_once = dict.fromkeys(self._recent, (1.0 - delayed) * learned / len(self._recent))
        first = {_NOMINAL: nominal} if nominal > 0.0 else {}
        last = {} if self._later is None or delayed == 0.0 else {self._later: delayed * learned}
        return {**first, **explorers, **at_once, **last}

    def _explorers(self, learning: bool) -> dict[int, float]:
        """What goes on looking for failures that the fits do not know of, with shares: widened
        proposals, and the fits of the last levels before failures came."""
        d = self.config.defensive_share
        levels = self._at_levels[-self.config.average :] if self._at_failures else []
        levels = [*levels, *self._completed]
        each = (_LOOKING if learning else 1.0) * d / max(len(levels), 1)
        found = {self._watching: d, **dict.fromkeys(levels, each)}
        most = 0.5 / sum(found.values())
        return {k: min(1.0, most) * share for k, share in found.items()}

    def _lower_level(self) -> None:
        """γ: down to a quantile of the last batch, never up; from a plateau, to the next level."""
        memory = self.memory
        if self.problem.margin is None or memory.failed.sum() >= self._enough:
            self.level = 0.0
            return
        level = max(0.0, float(np.quantile(self._last_margin, _LEVEL, method="lower")))
        if level >= self.level > 0.0:
            below = memory.margin[memory.margin < self.level]
            level = max(0.0, float(below.max())) if len(below) >= _ELITES else self.level
        self.level = min(self.level, level)

    @property
    def _enough(self) -> float:
        """Failures that a fit can rest on: in long episodes as many as the last one has parameters,
        at least."""
        fit = self._fit if self._beginnings > 1 else None
        dof = 0.0 if fit is None else sum(part.dof for part in fit.parts)
        return max(self.config.target_ess, dof)

    def _elites(self) -> BoolArray:
        memory = self.memory
        if self.level <= 0.0 and (self.problem.margin is None or memory.failed.any()):
            return memory.failed.copy()
        chosen = np.asarray(memory.margin <= self.level)
        if chosen.sum() < _ELITES:
            chosen[np.argsort(memory.margin)[:_ELITES]] = True
        return chosen

    def _predict(
        self,
        elite: DecisionRows,
        log_w: FloatArray,
        w: FloatArray,
        fitted: GroupedFit,
        chosen: BoolArray,
    ) -> None:
        """What the estimate's variance would be, from halves that check each other."""
        first = np.arange(elite.n) % 2 == 0
        halves = [
            fitted.refit(elite, w * half, self._learner, self.scene.times)
            for half in (first, ~first)
        ]
        if halves[0] is None or halves[1] is None:
            return
        weight = np.exp(log_w) / sum(self.memory.sizes)
        roulette = self.judged.roulette if self.judged else None
        explorers = self._explorers(False)
        explored = finite_ratio(self.memory.mixed(explorers)[chosen])
        self.choice = choose(
            (replace(halves[0], roulette=roulette), replace(halves[1], roulette=roulette)),
            first, elite, weight, sum(explorers.values()), explored, self._costs,
            furthest_eta(self._rate) if self.chance and _TELLS <= self.ess < _SURE else 1.0,
            self._beginnings,
        )  # fmt: skip

    def _finished(self, simulation: Simulation) -> bool:
        """At the share set for learning, or when learning no longer lowers the price; batches of
        learning count, so that nothing else is lost by going on."""
        if batch_sizes.used(simulation) >= self.config.learn_share:
            return True
        if self._fallback.settles(self.choice, batch_sizes.left(simulation, self._costs.whole)):
            return True
        if self.level > 0.0 or self.choice is None or self.ess < _CONVERGED:
            return False
        self._predicted.append(self.choice.price)
        recent, before = self._predicted[-_NO_PROGRESS:], self._predicted[:-_NO_PROGRESS]
        return len(before) >= 2 and min(recent) >= min(before)

    # -- what comes out ------------------------------------------------------------------------

    def proposal(self) -> Mixture:
        """The last fits, as far from π_E,gt as the predicted variance wants them."""
        if self.frequent or self._counts or not self.memory.fits:
            return only(Nominal())
        if not self._recent:
            return self._mixture({_NOMINAL: 0.5, _WIDENED: 0.5})
        if self.choice is None:  # without any failure, Monte Carlo gives the best upper bound
            nominal = 0.05 if self.memory.failed.any() else 0.5
            return self._mixture(self._shares(nominal, _LATE))
        nominal = 0.5 if self.choice.monte_carlo else self.choice.nominal
        return self._mixture(self._shares(nominal, self.choice.delayed))

    @property
    def _counts(self) -> bool:
        """Whether the estimate is left to Monte Carlo."""
        return self._fallback.prefers(self.choice) or self._fallback.goes_on(self.choice)

    def counted(self) -> list[CountedBatch]:
        return self._counted

    def phase(self) -> str:
        return "learning" if self._recent else "exploring"

    def exploration(self) -> Exploration | None:
        """The failures still remembered, weighted as one sample from all their proposals."""
        if not self._failures:
            return None
        episodes = join(self._failures[-_FAILURES_KEPT:])
        rows = self.scene.rows(episodes)
        return Exploration(episodes, self.memory.weigh(rows), sum(self.memory.drawn))

    def value_function(self, estimate: float) -> dict[str, Any] | None:
        """log v(s, t) along failures: what of p/q is still to come, anchored at the estimate."""
        memory = self.memory
        if memory.rows is None or self._fit is None or not memory.failed.any() or estimate <= 0.0:
            return None
        failures = memory.rows.take(memory.failed)
        value = fit_value(failures, self._fit, self.scene).anchored(self._starts, estimate)
        return value.as_json() if np.isfinite(value.theta).all() else None

    def warnings(self) -> list[Note]:
        if self.frequent:
            return []
        if self.cramped:
            return [learning_warnings.cramped(self.problem.longest, self._in_steps)]
        told = [search for search in self._searches if search.lost or search.complete]
        if told and told[-1].lost and not self._counts:
            return [learning_warnings.missed_modes(told[-1].lost, told[-1].walks)]
        if self._counts:
            moved = self.choice is not None or not (self._fallback.stuck or self._fallback.far)
            gained = moved and not self._fallback.given_up
            return [] if gained else [learning_warnings.unmoved()]
        if not self._recent:
            return [learning_warnings.too_few(self.problem.margin is not None)]
        if self.level > 0.0:
            return [learning_warnings.not_reached(self.level)]
        if self.alpha < 1.0 and self._worth == 1.0:
            return [learning_warnings.not_converged(self.alpha, self.ess)]
        return []
