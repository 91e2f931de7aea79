"""A problem on its way to another process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from apeval.adapt.address import load_files, loaded_files
from apeval.errors import ApevalError
from apeval.problem.problem import Problem
from apeval.problem.types import IntArray
from apeval.remedies import Option
from apeval.simulate.adversary import Mixture

ONE_THREAD: Mapping[str, str] = dict.fromkeys(
    (
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS",
    ),
    "1",
)  # fmt: skip
"""Set before the libraries are loaded: one core per worker, and the same digits everywhere."""


def pack(problem: Problem, key: IntArray) -> bytes:
    """The problem with all that another process needs to build it: the user's files are loaded
    there anew, functions that stand in no file travel themselves."""
    import cloudpickle

    try:
        body: bytes = cloudpickle.dumps((problem, key))
        whole: bytes = cloudpickle.dumps((loaded_files(), body))
    except Exception as error:
        raise ApevalError(
            f"the problem cannot be sent to a worker ({_short(error)}): make what cannot be copied "
            "(locks, files, connections) inside `reset` or the environment's factory, or use "
            f"{Option('backend', 'serial')}"
        ) from error
    return whole


def unpack(data: bytes) -> tuple[Problem, IntArray]:
    """The inverse of `pack`, in the worker."""
    import pickle

    files, body = pickle.loads(data)
    load_files(files)
    problem, key = pickle.loads(body)
    limit_torch()
    return problem, key


def pack_proposal(proposal: Mixture) -> bytes:
    """A proposal, frozen as it is."""
    import cloudpickle

    data: bytes = cloudpickle.dumps(proposal)
    return data


def limit_torch() -> None:
    """One thread, where torch is loaded."""
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


@contextmanager
def one_thread_inherited() -> Iterator[None]:
    """Processes that are started here inherit the limits."""
    with set_for_a_while(ONE_THREAD):
        yield


@contextmanager
def set_for_a_while(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment variables, as they were before in the end."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}".removesuffix(": ")
