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
from apeval.hardening.rounds import STATE, WORSE, Hardening, Round
from apeval.hardening.stored_rounds import (
    concluded,
    folder_of,
    measured,
    policy_of,
    read_stored,
    world_of,
)
from apeval.hardening.time_left import TimeLeft
from apeval.hardening.trainers import Trainer, as_trainer
from apeval.problem.problem import Problem
from apeval.results.folder import load
from apeval.results.recorder import Recorder
from apeval.run.completed_run import InMemory
from apeval.run.evaluate import evaluate
from apeval.run.result import Result
from apeval.run.run_recorder import FinishedRun, RunRecorder
from apeval.run.threads import one_thread
from apeval.simulate.adversary import Mixture
from apeval.simulate.identity.identity import in_short

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
    """Rounds of training. One that is shown to be worse is left behind: the next begins with the
    best policy so far. It ends early only where a policy did not fail at all in its evaluation, as
    there is nothing left to train against."""
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
        self.world: Any = None
        """A digest of all but the policy."""
        self.trained = 0
        """The last round whose training is over."""

    def run(self) -> Hardening:
        """All rounds."""
        self._open()
        policies = [self.given]
        for number in range(self.settings.rounds + 1):
            if number < len(self.rounds):
                policies[number:] = [self._done_before(number, self.given)]
            else:
                if number > 0:
                    policies.append(self._trained(policies[self._from()], number))
                self._evaluated(policies[number], number)
            if self.rounds[number].estimate <= 0.0:
                self.tell(f"round {number}: no failure to train against, so this is the last one")
                break
        return self._answer()

    def _from(self) -> int:
        """The round whose policy goes on learning: the last one, unless it is worse."""
        last = self.rounds[-1]
        return self._answer().best if last.verdict == WORSE else last.number

    # -- the folder ----------------------------------------------------------------------------

    def _open(self) -> None:
        """Go on with what the folder has, if it is the same hardening."""
        self.out.mkdir(parents=True, exist_ok=True)
        if not (self.out / STATE).exists():
            return
        settings, held, self.world, trained = read_stored(self.out)
        mine = self._settings()
        differ = sorted(
            k for k in {**mine, **settings} if mine.get(k) != settings.get(k) and k != "rounds"
        )
        if differ:
            raise ApevalError(
                f"{self.out} holds a hardening with other settings ({', '.join(differ)}): give "
                "another folder, or the same settings to go on with it"
            )
        self.rounds, self.trained = list(held.rounds), trained

    def _settings(self) -> dict[str, Any]:
        return {**vars(self.settings), "method": self.method}

    def _save(self) -> None:
        data = {
            "schema_version": 1,
            "settings": self._settings(),
            "world": self.world,
            "trained": self.trained,
            **self._answer().as_json(),
        }
        text = json.dumps(data, indent=2, ensure_ascii=False)
        write_bytes(self.out / STATE, text.encode("utf-8"))

    def _done_before(self, number: int, policy: Any) -> Any:
        """A round that an earlier call finished; its adversary is learned again from its journal,
        where it is still needed."""
        self.tell(f"round {number}: done before")
        if number > 0:
            policy = self.trainer.load(self.out / policy_of(number))
        problem = self._problem(policy)
        self._check_same(problem, number)
        s = self.settings
        among_the_last = number > len(self.rounds) - 1 - s.population
        if s.train_on == ADVERSARY and among_the_last and len(self.rounds) <= s.rounds:
            again = InMemory(problem)
            self._run(problem, number, again)
            self.adversaries.append(again.proposal)
        return policy

    def _check_same(self, problem: Problem, number: int) -> None:
        """A round that was done before is one of this problem with this policy."""
        run = load(self.out / folder_of(number))
        if run.result.seed != self._seed(number, 0):
            raise ApevalError(
                f"{run.path} has another seed than this hardening: give another folder"
            )
        # a policy that was saved and loaded does the same, and may hold it otherwise
        found = run.differs_from(problem, ignore=("code",))
        if self.world is not None and self.world != world_of(problem):
            found.append("the code of the environment, the disturbance or the judges")
        if found:
            what = "the policy that is kept there" if number else "the policy or the problem"
            raise ApevalError(
                f"{self.out} holds a hardening of something else: in round {number}, {what} is "
                f"another one ({in_short(found)}). Give another folder, or what was given before"
            )

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
        s, path = self.settings, self.out / policy_of(number)
        if self.trained == number:
            self.tell(f"round {number}: trained before")
            return self.trainer.load(path)
        problem = self._problem(policy)
        natures: Sequence[Mixture] = {
            ADVERSARY: self.adversaries[-s.population :],
            NOMINAL: [],
            WIDENED: [widened(problem, _WIDENED_BY)] if s.train_on == WIDENED else [],
        }[s.train_on]
        seed = self._seed(number, _TRAINING)
        left = TimeLeft(self.tell, f"round {number}: training", s.steps, "steps")

        def make_env(k: int) -> AdversarialEnv:
            own = int(np.random.SeedSequence([seed, k]).generate_state(1)[0])
            env = adversarial_env(
                problem, natures, share=s.share if natures else 0.0, weights=s.weights,
                failure_reward=s.failure_reward, seed=own,
            )  # fmt: skip
            env.on_step = left.one_more
            return env

        self.tell(f"round {number}: training for {s.steps:,} steps")
        trained = self.trainer.train(policy, make_env, s.steps, seed % 2**31)
        self.trainer.save(trained, path)
        self.trained = number
        self._save()
        return trained

    def _evaluated(self, policy: Any, number: int) -> None:
        s, problem = self.settings, self._problem(policy)
        self.tell(f"round {number}: evaluating with {number_of(s.episodes, 'episode')}")
        if number == 0:
            self.trainer.save(policy, self.out / policy_of(0))
        folder = self.out / folder_of(number)
        recorder = _Keeps(folder)
        self.world = self.world or world_of(problem)
        result = self._run(problem, number, recorder)
        self.adversaries += recorder.proposals
        mean = NominalReturn.of(
            nominal_returns(problem, s.return_episodes, self._seed(0, _RETURNS))
        )
        first = load(self.out / folder_of(0)) if number > 0 else None
        before = self.rounds[0].nominal_return if number > 0 else mean
        self.rounds.append(measured(number, load(folder), first, (mean, before), s.steps))
        self._save()
        self.tell(f"round {number}: {result.estimate:.3e}, return {mean.mean:.4g}")

    def _run(self, problem: Problem, number: int, recorder: RunRecorder) -> Result:
        options: Mapping[str, Any] = {"episodes": self.settings.episodes}
        left = TimeLeft(
            self.tell, f"round {number}: evaluating", self.settings.episodes, "episodes"
        )
        return evaluate(
            problem, self.method, seed=self._seed(number, 0), recorder=recorder,
            listener=lambda now: left.at(now.done, now.total), **options,
        )  # fmt: skip

    def _seed(self, number: int, purpose: int) -> int:
        """A seed of its own for every round and purpose."""
        words = np.random.SeedSequence([self.settings.seed, number, purpose])
        return int(words.generate_state(1)[0])

    def _answer(self) -> Hardening:
        return concluded(self.out, tuple(self.rounds), self.trainer.repeats)
