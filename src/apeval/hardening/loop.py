"""`harden`: evaluate, train against what was learned, evaluate anew, and say what was shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apeval import validate
from apeval.adapt.with_policy import PlannedProblem
from apeval.atomic_files import write_bytes
from apeval.errors import ApevalError, number_of
from apeval.hardening.environment import NONE, WEIGHTS, AdversarialEnv, adversarial_env
from apeval.hardening.natures import widened
from apeval.hardening.returns import NominalReturn, nominal_returns
from apeval.hardening.rounds import (
    BETTER,
    NOT_SHOWN,
    STATE,
    Hardening,
    Round,
    described,
    detection_limit,
    judged,
)
from apeval.hardening.trainers import Trainer, as_trainer
from apeval.problem.problem import Problem
from apeval.results.folder import load
from apeval.results.recorder import Recorder
from apeval.run.completed_run import InMemory
from apeval.run.evaluate import evaluate
from apeval.run.policy_comparison import compare
from apeval.run.result import Result
from apeval.run.run_recorder import FinishedRun, RunRecorder
from apeval.run.threads import one_thread
from apeval.simulate.adversary import Mixture

ADVERSARY, NOMINAL, WIDENED = "adversary", "nominal", "widened"
TRAIN_ON = (ADVERSARY, NOMINAL, WIDENED)
_TRAINING, _RETURNS = 1, 2  # what seeds are for
_WIDENED_BY = 2.0

Told = Callable[[str], None]


@dataclass(frozen=True)
class HardenSettings:
    """How `harden` trains and judges.

    Raises:
        ApevalError: A setting is not what it may be.
    """

    steps: int
    """Environment steps of training in each round."""
    rounds: int = 1
    """Rounds at the most; it ends earlier where a round is not shown to be better."""
    episodes: int = 2_000
    """Episodes of each evaluation."""
    share: float = 0.5
    """The part of the training's episodes that the adversaries draw."""
    weights: str = NONE
    """How importance weights enter the rewards: none, clipped or full."""
    train_on: str = ADVERSARY
    """What disturbs the other part: the learned adversary, or, to compare with, nothing more than
    the nominal or plainly widened disturbances (twice as wide)."""
    population: int = 3
    """Adversaries of the last so many rounds train together, against forgetting."""
    failure_reward: float = 0.0
    """Added to the reward of a step that fails."""
    return_episodes: int = 100
    """Nominal episodes that the return is measured in, and that look for what the adversary may
    have missed: at least 3 over the old failure probability, for a verdict of better."""
    seed: int = 0
    """Of all random numbers: training, evaluations and returns have seeds of their own from it."""

    def __post_init__(self) -> None:
        for name in ("steps", "rounds", "episodes", "population", "return_episodes"):
            least = 2 if name == "return_episodes" else 1
            object.__setattr__(self, name, validate.whole(name, getattr(self, name), least))
        validate.seed(self.seed)
        for name, known in (("weights", WEIGHTS), ("train_on", TRAIN_ON)):
            if getattr(self, name) not in known:
                raise ApevalError(
                    f"{name} must be one of {', '.join(known)}; got {getattr(self, name)!r}"
                )
        if not 0.0 < validate.number("share", self.share) < 1.0:
            raise ApevalError(f"share must lie strictly between 0 and 1; got {self.share}")


def harden(
    problem: Problem | Callable[[Any], Problem],
    policy: Any,
    out: str | Path,
    *,
    steps: int,
    train: Callable[[Any, AdversarialEnv, int, int], Any] | None = None,
    callback: Any = None,
    listener: Told | None = None,
    method: str | None = None,
    **settings: Any,
) -> Hardening:
    """Train a policy against the adversary that was learned for it, and say by what factor its
    failure probability fell.

    Each round evaluates the policy, trains it on a mixture of nominal episodes and episodes of the
    last adversaries, and evaluates the new one against an adversary learned from nothing on fresh
    seeds. Everything is kept in a folder; the same call goes on where it was stopped.

    Args:
        problem: What `apeval.from_env` returned, or a function of the policy that returns it.
        policy: A Stable-Baselines3 model, which goes on learning by its own `learn`; or any policy
            with `train`.
        out: The folder: a run folder for each round, the policies, `harden.json`.
        steps: Environment steps of training in each round.
        train: For anything but Stable-Baselines3: ``train(policy, env, steps, seed)`` returns the
            new policy; `env` is an `adversarial_env`.
        callback: Of the model's `learn`.
        listener: Is told in words what happens.
        method: The method of the evaluations; by default the best there is.
        **settings: See `HardenSettings`: rounds, episodes, share, weights, train_on, population,
            failure_reward, return_episodes, seed.

    Returns:
        The rounds with a verdict: better, not shown or worse.

    Raises:
        ApevalError: An argument is wrong, the training raised, or the folder holds another
            hardening.
        ProblemError: The problem's policy cannot be exchanged.
    """
    try:
        chosen = HardenSettings(steps, **settings)
    except TypeError:
        known = [name for name in HardenSettings.__dataclass_fields__ if name != "steps"]
        odd = sorted(set(settings) - set(known))
        raise ApevalError(f"harden has no setting {odd[0]!r}; it has {', '.join(known)}") from None
    trainer = as_trainer(policy, train, callback)
    with one_thread():
        return _Loop(problem, policy, Path(out), chosen, trainer, listener, method).run()


class _Keeps(Recorder):
    """A recorder that hands over the frozen proposal too."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, careful=False)
        self.proposals: list[Mixture] = []

    def finish(self, outcome: FinishedRun) -> None:
        self.proposals.append(outcome.proposal)
        super().finish(outcome)


class _Loop:
    """One hardening."""

    def __init__(
        self,
        problem: Problem | Callable[[Any], Problem],
        policy: Any,
        out: Path,
        settings: HardenSettings,
        trainer: Trainer,
        listener: Told | None,
        method: str | None,
    ) -> None:
        self.of, self.given, self.out = problem, policy, out
        self.settings, self.trainer, self.method = settings, trainer, method
        self.tell = listener or (lambda text: None)
        self.rounds: list[Round] = []
        self.adversaries: list[Mixture] = []

    def run(self) -> Hardening:
        """All rounds."""
        self._open()
        policy = self.given
        for number in range(self.settings.rounds + 1):
            if number < len(self.rounds):
                policy = self._done_before(number, policy)
            else:
                if number > 0:
                    policy = self._trained(policy, number)
                self._evaluated(policy, number)
            if number > 0 and self.rounds[number].verdict != BETTER:
                break
        return self._answer()

    # -- the folder ----------------------------------------------------------------------------

    def _open(self) -> None:
        """Go on with what the folder has, if it is the same hardening."""
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / STATE
        if not path.exists():
            return
        try:
            held = json.loads(path.read_text("utf-8"))
            settings, rounds = held["settings"], [Round.from_json(it) for it in held["rounds"]]
        except (ValueError, KeyError, TypeError) as error:
            raise ApevalError(f"{path} is damaged ({error}): give another folder") from None
        mine = self._settings()
        differ = sorted(
            k for k in {**mine, **settings} if mine.get(k) != settings.get(k) and k != "rounds"
        )
        if differ:
            raise ApevalError(
                f"{self.out} holds a hardening with other settings ({', '.join(differ)}): give "
                "another folder, or the same settings to go on with it"
            )
        self.rounds = rounds

    def _settings(self) -> dict[str, Any]:
        return {**vars(self.settings), "method": self.method}

    def _save(self) -> None:
        data = {
            "schema_version": 1,
            "settings": self._settings(),
            **self._answer().as_json(),
        }
        text = json.dumps(data, indent=2, ensure_ascii=False)
        write_bytes(self.out / STATE, text.encode("utf-8"))

    def _done_before(self, number: int, policy: Any) -> Any:
        """A round that an earlier call finished; its adversary is learned again from its journal,
        where it is still needed."""
        self.tell(f"round {number}: done before")
        if number > 0:
            policy = self.trainer.load(self.out / self.rounds[number].policy)
        needed = number > len(self.rounds) - 1 - self.settings.population
        if needed and len(self.rounds) <= self.settings.rounds:
            problem = self._problem(policy)
            again = InMemory(problem)
            self._run(problem, number, again)
            self.adversaries.append(again.proposal)
        return policy

    # -- a round -------------------------------------------------------------------------------

    def _problem(self, policy: Any) -> Problem:
        if isinstance(self.of, Problem):
            return PlannedProblem.of(self.of).with_policy(policy)
        built = self.of(policy)
        if not isinstance(built, Problem):
            raise ApevalError(
                f"the function of the policy returned a {type(built).__name__}, expected a Problem"
            )
        return built

    def _trained(self, policy: Any, number: int) -> Any:
        s = self.settings
        problem = self._problem(policy)
        natures: Sequence[Mixture] = {
            ADVERSARY: self.adversaries[-s.population :],
            NOMINAL: [],
            WIDENED: [widened(problem, _WIDENED_BY)] if s.train_on == WIDENED else [],
        }[s.train_on]
        seed = self._seed(number, _TRAINING)

        def make_env(k: int) -> AdversarialEnv:
            own = int(np.random.SeedSequence([seed, k]).generate_state(1)[0])
            return adversarial_env(
                problem, natures, share=s.share if natures else 0.0, weights=s.weights,
                failure_reward=s.failure_reward, seed=own,
            )  # fmt: skip

        self.tell(f"round {number}: training for {s.steps:,} steps")
        trained = self.trainer.train(policy, make_env, s.steps, seed % 2**31)
        self.trainer.save(trained, self.out / f"policy-{number}")
        return trained

    def _evaluated(self, policy: Any, number: int) -> None:
        s, problem = self.settings, self._problem(policy)
        self.tell(f"round {number}: evaluating with {number_of(s.episodes, 'episode')}")
        folder = f"round-{number}"
        recorder = _Keeps(self.out / folder)
        result = self._run(problem, number, recorder)
        self.adversaries += recorder.proposals
        returns = nominal_returns(problem, s.return_episodes, self._seed(0, _RETURNS))
        mean = NominalReturn.of(returns)
        limit = detection_limit(result, s.return_episodes)
        ratio: dict[str, Any] = {"ratio": None, "ratio_interval": None}
        verdict, why, change = NOT_SHOWN, "the policy as it was given", None
        if number > 0:
            first = load(self.out / self.rounds[0].folder)
            found = compare(load(self.out / folder), first)
            ratio = {"ratio": found.ratio, "ratio_interval": found.ratio_interval}
            verdict, why = judged(result, first.result, found, limit)
            before = self.rounds[0].nominal_return.mean
            change = (mean.mean - before) / abs(before) if before else None
        self.rounds.append(
            Round(
                number=number,
                folder=folder,
                policy=f"policy-{number}" if number else "",
                trained_steps=number * s.steps,
                estimate=result.estimate,
                interval=result.interval,
                trusted=result.trusted,
                detection_limit=limit,
                nominal_return=mean,
                return_change=change,
                verdict=verdict,
                why=why,
                kinds={k: v.probability for k, v in result.kinds.items()},
                modes=described(result),
                **ratio,
            )
        )
        self._save()
        self.tell(f"round {number}: {result.estimate:.3e}, return {mean.mean:.4g}")

    def _run(self, problem: Problem, number: int, recorder: RunRecorder) -> Result:
        options: Mapping[str, Any] = {"episodes": self.settings.episodes}
        return evaluate(
            problem, self.method, seed=self._seed(number, 0), recorder=recorder, **options
        )

    def _seed(self, number: int, purpose: int) -> int:
        """A seed of its own for every round and purpose."""
        words = np.random.SeedSequence([self.settings.seed, number, purpose])
        return int(words.generate_state(1)[0])

    def _answer(self) -> Hardening:
        rounds = tuple(self.rounds)
        better = [it for it in rounds[1:] if it.verdict == BETTER]
        best = min(better, key=lambda it: it.estimate).number if better else 0
        verdict = rounds[best].verdict if best else rounds[-1].verdict
        return Hardening(str(self.out), rounds, best, verdict, self.trainer.repeats)
