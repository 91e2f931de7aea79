"""One thread for linear algebra, so that a seed gives the same digits on every machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS and torch sum in an order that depends on their threads; here there is one."""
    from threadpoolctl import threadpool_limits

    torch: Any = sys.modules.get("torch")
    threads = None if torch is None else torch.get_num_threads()
    with threadpool_limits(limits=1):
        if torch is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(threads)
