"""`apeval.resume("runs/x")`: go on with an interrupted run, to the result it would have had.

Nothing executable is stored. The run is made again from its inputs: episodes that were recorded
are taken from the journal, learners learn from them what they learned before, and only what is
missing is simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apeval import validate
from apeval.errors import ApevalError
from apeval.problem.draws import make_key
from apeval.problem.problem import Problem
from apeval.remedies import Note, Option
from apeval.results.folder import load
from apeval.results.inputs import INPUTS, changes, read_inputs
from apeval.results.manifest import check, check_asked, read_state
from apeval.results.problem_rebuild import build_again
from apeval.results.recorder import Recorder
from apeval.run.evaluate import evaluate_with
from apeval.run.progress import Listener
from apeval.run.result import Result
from apeval.run.run_options import SimulationKeywords, check_names, with_options
from apeval.simulate.backends import find_backend
from apeval.simulate.backends.serial import Serial
from apeval.simulate.check.precheck import look
from apeval.simulate.identity.identity import in_short
from apeval.simulate.identity.reference import Reference
from apeval.simulate.isolation import look_apart

if TYPE_CHECKING:
    from typing_extensions import Unpack


@with_options(SimulationKeywords)
def resume(
    path: str | Path,
    problem: Problem | str | None = None,
    *,
    listener: Listener | None = None,
    allow_changes: bool = False,
    tell: Callable[[str], None] | None = None,
    **options: Unpack[SimulationKeywords],
) -> Result:
    """Go on with the run in a folder; the result is that of a run that nobody interrupted.

    Who simulates, and what happens to faults, may differ from before. Where `on_fault`, `retries`
    or `time_limit` is not given, it is what the run began with.

    Args:
        path: The run folder.
        problem: A problem of your own, or its address: a folder's word alone does not make apeval
            run code. Not needed for a problem that comes with apeval.
        listener: Is told the run's `Progress` after every batch.
        allow_changes: Go on although code or libraries have changed since, which is else refused.
        tell: Hears of a torn last file, which is dropped.
        **options: Who simulates (`backend`, `workers`, `address`) and what happens to faults
            (`on_fault`, `retries`, `time_limit`, `on_interrupt`): see `SimulationKeywords`.

    Returns:
        The result; at once where the run was complete.

    Raises:
        ApevalError: There is no run that can be resumed, or it began with another problem or other
            code.

    Examples:
        >>> import apeval, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> done = apeval.evaluate(
        ...     apeval.make("walk", top=5), steps=2_000, recorder=apeval.Recorder(folder)
        ... )
        >>> resume(folder).estimate == done.estimate  # it was complete
        True
    """
    check_names(options, SimulationKeywords)
    folder = validate.input_folder("path", path)
    if not read_state(folder).resumable:
        return load(folder).result
    state = read_state(folder)
    check(folder, INPUTS, state)
    asked = read_inputs(folder)
    check_asked(folder, state, asked.about["inputs"])
    it = asked.inputs
    built = (
        problem
        if isinstance(problem, Problem)
        else build_again(it.problem, it.parameters, problem, folder)
    )
    built = replace(built, name=it.problem, view=it.view or built.view)
    given: dict[str, Any] = {k: v for k, v in options.items() if v is not None}
    run = replace(asked.options, **given)
    careful = run.faults.expected or not run.check
    apart = not isinstance(find_backend(run.backend, run.workers, run.address), Serial)

    def ask() -> Reference | None:
        if careful:
            return None
        key = make_key(run.seed)
        looked = look_apart(built, key, False) if apart else look(built, key, False)
        return None if looked is None else looked.answers

    changed = changes(asked, built, ask)
    if changed and not allow_changes:
        raise ApevalError(
            f"the run in {folder} began with another problem or other code: {in_short(changed)}. "
            "Episodes of two kinds must not be mixed: restore it, run it anew with "
            f"{Option('careful', False)}, or, where it makes no difference to the simulation, add "
            f"{Option('allow_changes', True)}"
        )
    recorder = Recorder.resuming(folder, changed)
    if recorder.note and tell is not None:
        tell(recorder.note)
    return evaluate_with(built, run, listener, recorder, _mixed(changed))


def _mixed(changed: list[str]) -> list[Note]:
    """That a result rests on episodes from before and after a change."""
    if not changed:
        return []
    text = (
        f"the run was resumed though not all was as before ({Option('allow_changes', True)}), so "
        f"its episodes are of two kinds, unless it made no difference: {in_short(changed)}"
    )
    return [Note(text, serious=False)]
