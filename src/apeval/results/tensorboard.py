"""A run's course for TensorBoard, as it happens."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Any

from apeval import validate
from apeval.errors import ApevalError
from apeval.run.progress import ESTIMATING, Progress
from apeval.run.result import Result


class TensorBoard:
    """A listener that writes an event file; the step is the decision of nature.

    | tag | meaning |
    |---|---|
    | `estimate/value` | the estimate of the frozen stage |
    | `estimate/lower`, `estimate/upper` | the ends of its interval |
    | `estimate/ess` | effective sample size of the failures |
    | `learning/value` | the learned v(s0), where the method learns one |
    | `failures/per_batch` | failures in the last batch |
    | `failures/rate` | the part of the last batch's episodes that failed |
    """

    def __init__(self, folder: Path | str) -> None:
        folder = validate.output_folder("tensorboard", folder)
        try:
            str(folder).encode()
        except UnicodeError:
            raise ApevalError(
                f"TensorBoard cannot write to {str(folder)!a}, whose name is no UTF-8: choose "
                "another name"
            ) from None
        try:
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as error:
            raise ApevalError(
                "the log needs TensorBoard: pip install 'apeval[tensorboard]'"
            ) from error
        try:
            self._writer: Any = EventFileWriter(str(folder))
        except OSError as error:
            raise ApevalError(
                f"cannot write {folder} ({error.strerror}): choose another folder"
            ) from error

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close()

    def listen(self, now: Progress) -> None:
        """Write where the run stands."""
        numbers: dict[str, float | None] = {}
        if now.batch is not None:
            failed, n = now.batch
            numbers |= {"failures/per_batch": failed, "failures/rate": failed / n}
        if now.phase == ESTIMATING and now.interval is not None:
            numbers |= _estimate(now.estimate, now.interval, now.ess)
        else:
            numbers["learning/value"] = now.estimate
        self._write(now.steps, numbers)

    def finish(self, result: Result) -> None:
        """Write the numbers that the run ended with."""
        self._write(result.steps, _estimate(result.estimate, result.interval, result.final.ess))

    def _write(self, step: int, numbers: dict[str, float | None]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=k, simple_value=v) for k, v in numbers.items() if v is not None]
        if values:
            summary = Summary(value=values)
            self._writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))


def _estimate(
    value: float | None, interval: tuple[float, float], ess: float | None
) -> dict[str, float | None]:
    return {
        "estimate/value": value,
        "estimate/lower": interval[0],
        "estimate/upper": interval[1],
        "estimate/ess": ess,
    }
