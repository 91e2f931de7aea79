"""The options of a run: what each means, what it may be, and who takes it.

An option is described once, under its name in the keywords below: an editor shows that text at a
call, the reference has it, and the command line's help is its first paragraph. Its default, and
what it may be, stand in `RunOptions`. `evaluate`, `plan` and `resume`, their commands and run
folders take it from there.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from apeval import validate
from apeval.errors import unknown

if TYPE_CHECKING:
    from apeval.estimate.precision_target import PrecisionTarget
    from apeval.simulate.backends import Backend
    from apeval.simulate.fault_handling import FaultPolicy
    from apeval.simulate.simulation import Budget
else:  # loaded when a run starts; the command line's help needs none of them
    Backend = Any

LONGEST = 1_000_000
"""Steps that a run with a target error and no budget may take."""
FINISH, RAISE = "finish", "raise"


class SimulationKeywords(TypedDict, total=False):
    """Who simulates, and what happens when a simulator does not come back: what may differ each
    time that a run goes on."""

    backend: str | Backend
    """Who simulates: `"serial"` (the default), `"processes"` (the cores of this machine) or `"ray"`
    (a cluster). The result does not depend on it.

    In Python also an object with a method `start` like theirs.
    """
    workers: int | None
    """How many processes or Ray workers; by default one per core."""
    address: str | None
    """Address of a running Ray cluster, such as `"auto"`; by default one is started for the run."""
    on_fault: str
    """What happens to an episode that does not come back: `"stop"` (the default) ends the run,
    `"unresolved"` counts it as unresolved, which widens the interval.

    A simulator that raises, dies, returns values that are not finite or takes too long is tried
    again first, see `retries`.
    """
    retries: int
    """How often a block of episodes that did not come back is tried again with the same random
    numbers; 1 by default."""
    time_limit: float | None
    """Seconds that an episode may take; needs workers that can be stopped, see `backend`.

    A year at the most.
    """
    on_interrupt: str
    """What a first Ctrl-C does: `"raise"` (the default), or `"finish"`, which ends the run early
    with a valid smaller result."""


class PlanKeywords(SimulationKeywords, total=False):
    """Everything but how long a run is and what it is asked."""

    seed: int
    """Seed of all random numbers: same seed, same result; 0 by default.

    Below 1,000 for tuning, from 10,000 on for reporting.
    """
    confidence: float
    """Confidence of every interval; 0.95 by default."""
    settings: Mapping[str, Any] | None
    """Settings of the method that differ from its defaults, by name."""
    block: int | None
    """Episodes that a worker simulates together; by default the problem's `chunk`.

    Part of what the result depends on, as a network's last digits depend on its batch.
    """
    check: bool
    """Look a problem of your own over before the run, and repeat some of its episodes afterwards
    (the default). Takes at most 2 seconds or 2 % of the run.

    A problem that would give a wrong number is refused with a remedy (not where `on_fault` or
    `time_limit` expect it to raise or hang). A result whose episodes do not repeat themselves is
    not trusted. Where single decisions and episodes are slower than that, it takes what they take.
    Problems of apeval's own have their tests.
    """
    estimator: str
    """How the interval is made: `"auto"` (the default: what fits how the episodes were drawn),
    `"log-t"`, `"weighted-count"`, `"family-t"`, or one of your own. The estimate is the same with
    all."""


class ComparisonKeywords(PlanKeywords, total=False):
    """Everything but what a single run is asked; a budget is that of both policies together."""

    steps: int | None
    """Budget in decisions of nature, for learning and estimating together."""
    episodes: int | None
    """Budget in episodes, instead of `steps`."""


class RunKeywords(ComparisonKeywords, total=False):
    """All options of a run but for its method."""

    target_error: float | None
    """Stop as soon as the interval's half-width is at most this part of the estimate, such as 0.1;
    the budget is then the most that the run may take (1,000,000 steps where none is given).

    At least 1e-6.
    """
    below: float | None
    """Say whether the probability is shown to lie below this bound, such as 1e-5: a one-sided test
    at the run's `confidence`.

    The answer is shown, refuted or undecided. The one-sided bound that it rests on is nearer to the
    estimate than the end of the two-sided interval.
    """
    second_opinion: bool
    """Spend a fifth of the budget on `splitting`, which shares nothing with the method, and say
    whether the two agree; False by default.

    A result whose second opinion disagrees is not trusted. The problem needs a margin.
    """


_NOT_STORED, _NO_FLAG = {"stored": False}, {"flag": False}


@dataclass(frozen=True)
class RunOptions:
    """The options of one run, with their defaults; the keywords above say what each means.

    Raises:
        ApevalError: An option is not what it may be, or there is no budget.
    """

    method: str | None = None
    steps: int | None = field(default=None, metadata=_NOT_STORED)  # kept as `budget`
    episodes: int | None = field(default=None, metadata=_NOT_STORED)
    target_error: float | None = None
    below: float | None = None
    seed: int = 0
    confidence: float = 0.95
    settings: Mapping[str, Any] | None = field(default=None, metadata=_NO_FLAG)  # --set is
    block: int | None = None
    backend: str | Backend = field(default="serial", metadata=_NOT_STORED)
    workers: int | None = field(default=None, metadata=_NOT_STORED)
    address: str | None = field(default=None, metadata=_NOT_STORED)
    on_fault: str = "stop"
    retries: int = 1
    time_limit: float | None = None
    on_interrupt: str = field(default=RAISE, metadata=_NOT_STORED | _NO_FLAG)
    check: bool = True
    estimator: str = "auto"
    second_opinion: bool = False

    def __post_init__(self) -> None:
        """Names of methods, settings, estimators and backends are looked up when the run starts."""
        from apeval.estimate.verdict import check_bound

        self._set("seed", validate.seed(self.seed))
        self._set("confidence", validate.confidence(self.confidence))
        if self.block is not None:
            self._set("block", validate.whole("block", self.block, 1))
        if self.target_error is not None:
            self._set("target_error", validate.target_error(self.target_error))
        if self.below is not None:
            self._set("below", check_bound(self.below, self.confidence))
        if self.target_error is not None and self.steps is None and self.episodes is None:
            self._set("steps", LONGEST)
        self._set("steps", self.budget.steps)
        self._set("episodes", self.budget.episodes)
        self._set("retries", self.faults.retries)
        self._set("time_limit", self.faults.time_limit)
        if self.on_interrupt not in (FINISH, RAISE):
            raise unknown("value of on_interrupt", str(self.on_interrupt), (FINISH, RAISE))
        self._set("check", bool(self.check))
        self._set("second_opinion", bool(self.second_opinion))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def as_json(self) -> dict[str, Any]:
        """What a run folder keeps of the options, but for the budget."""
        kept = {name: getattr(self, name) for name in STORED}
        return {k: v for k, v in kept.items() if k in ALWAYS_STORED or v != DEFAULTS[k]}

    @property
    def budget(self) -> Budget:
        """What may be simulated."""
        from apeval.simulate.simulation import Budget

        return Budget(self.steps, self.episodes)

    @property
    def target(self) -> PrecisionTarget | None:
        """The wanted precision."""
        from apeval.estimate.precision_target import PrecisionTarget

        return None if self.target_error is None else PrecisionTarget(self.target_error)

    @property
    def faults(self) -> FaultPolicy:
        """What is done with a simulator that does not come back."""
        from apeval.simulate.fault_handling import FaultPolicy

        return FaultPolicy(self.on_fault, self.retries, self.time_limit)


DEFAULTS: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(RunOptions)}
"""Every option with its default."""
FLAGS = [f.name for f in dataclasses.fields(RunOptions) if f.metadata.get("flag", True)]
"""Options that the command line has under their own names."""
STORED = [f.name for f in dataclasses.fields(RunOptions) if f.metadata.get("stored", True)]
"""Options that a run folder keeps."""
ALWAYS_STORED = (
    "method", "target_error", "below", "seed", "confidence", "settings", "block", "on_fault",
    "retries", "time_limit", "check",
)  # fmt: skip
"""What every run folder has. An option that came later is kept only where it is not the default,
so that folders from before can still be read, and new ones are the same as before without it."""


F = TypeVar("F", bound=Callable[..., Any])


def with_options(keywords: type) -> Callable[[F], F]:
    """Show a function's options one by one in its signature, for `help` and notebooks.

    Args:
        keywords: What the function takes as ``**options``, such as `RunKeywords`.
    """

    def decorate(function: F) -> F:
        before = inspect.signature(function)
        taken = [it for it in before.parameters.values() if it.kind is not Parameter.VAR_KEYWORD]
        for name, default in DEFAULTS.items():
            if name in keywords.__annotations__:
                kind = RunOptions.__annotations__[name]
                option = Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
                taken.append(option)
        function.__signature__ = before.replace(parameters=taken)  # type: ignore[attr-defined]
        return function

    return decorate


def check_names(given: Mapping[str, Any], keywords: type) -> None:
    """Refuse a keyword that a function does not take, as Python itself would.

    Args:
        given: What it was called with.
        keywords: What it takes, such as `RunKeywords`.

    Raises:
        TypeError: With the nearest name.
    """
    for name in given:
        if name not in keywords.__annotations__:
            raise TypeError(str(unknown("option", name, keywords.__annotations__)))
