"""Who simulates: one file for each backend, found by its name."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Protocol

from apeval import validate
from apeval.errors import ApevalError, unknown
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.simulate.episodes import Episodes
from apeval.simulate.task import Task, Trouble

_MOST_WORKERS = 100_000


class WorkerPool(Protocol):
    """Workers on one problem. Blocks come back by their tickets, whatever the order in which they
    are done."""

    @property
    def capacity(self) -> int:
        """Blocks that keep all workers busy."""
        ...

    @property
    def expendable(self) -> bool:
        """Whether a worker may be killed, as a hanging simulator requires."""
        ...

    def submit(self, task: Task) -> int:
        """Have a block simulated; returns its ticket.

        Args:
            task: A block of episodes.

        Returns:
            The ticket.
        """
        ...

    def result(self, ticket: int) -> Episodes | Trouble:
        """Wait for a block.

        Args:
            ticket: What `submit` returned.

        Returns:
            The block's episodes, or what went wrong.
        """
        ...

    def close(self) -> None:
        """End the workers."""
        ...


class Backend(Protocol):
    """How a worker pool is started. A module of this package has one, under the name `BACKEND`,
    made from `workers` (None: as many as there are cores) and the `address` of a cluster."""

    def start(self, problem: Problem, key: IntArray, time_limit: float | None) -> WorkerPool:
        """A pool for the problem; an episode may take `time_limit` seconds.

        Args:
            problem: What is simulated.
            key: Of the run's random numbers, (2,).
            time_limit: Seconds; None: any time.

        Returns:
            The pool, to be closed by whoever asked for it.
        """
        ...


def backend_names() -> list[str]:
    """Names of all backends."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def find_backend(
    backend: str | Backend, workers: int | None = None, address: str | None = None
) -> Backend:
    """A backend by its name; an object with `start` is taken as it is.

    Args:
        backend: "serial", "processes", "ray", or an object.
        workers: How many; None: one per core.
        address: Of a running Ray cluster.

    Returns:
        The backend.

    Raises:
        ApevalError: The name is unknown, or an option is not one of this backend.
    """
    if workers is not None:
        workers = validate.whole("workers", workers, 1, _MOST_WORKERS)
    if address is not None and (not isinstance(address, str) or not address.strip()):
        raise ApevalError(f"address must be that of a Ray cluster, such as 'auto'; got {address!r}")
    if not isinstance(backend, str):
        if not hasattr(backend, "start"):
            raise ApevalError(
                f"a backend is a name ({', '.join(backend_names())}) or an object with start(…); "
                f"got {type(backend).__name__}"
            )
        return backend
    if backend not in backend_names():
        raise unknown("backend", backend, backend_names())
    module = importlib.import_module(f"{__name__}.{backend}")
    made: Backend = module.BACKEND(workers, address)
    return made
