"""Functions that remember, count, drift, or look at the episodes beside their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import walk as w
from .walk import Late, Way, instead

SOON, LATER = 500, 5_000
"""Rows after which something begins: within what a check sees, and beyond."""


def _remembering() -> dict[str, Any]:
    last: dict[str, Any] = {"x": None}

    def agent(x: Any) -> Any:
        before = x if last["x"] is None or len(last["x"]) != len(x) else last["x"]
        last["x"] = x.copy()
        return -0.2 * before

    return {"agent": agent}


def _counting() -> dict[str, Any]:
    calls = [0]

    def agent(x: Any) -> Any:
        calls[0] += 1
        return -0.2 * x if calls[0] % 3 else 0.4 * x

    return {"agent": agent}


def _integrating() -> dict[str, Any]:
    total = [0.0]

    def agent(x: Any) -> Any:
        total[0] += float(x.mean())
        return -0.2 * x - 0.05 * total[0]

    return {"agent": agent}


def _normalising() -> dict[str, Any]:
    seen = {"n": 1.0, "sum": 0.0, "square": 1.0}

    def agent(x: Any) -> Any:
        seen["n"] += len(x)
        seen["sum"] += float(x.sum())
        seen["square"] += float((x**2).sum())
        centre = seen["sum"] / seen["n"]
        return -0.2 * (x - centre) / np.sqrt(seen["square"] / seen["n"])

    return {"agent": agent}


def _drifting(part: str, after: int, late: Callable[..., Any]) -> Way:
    """A part that becomes another one after so many rows."""

    def make() -> dict[str, Any]:
        begun, before = Late(after), getattr(w, part)

        def function(x: Any, *more: Any) -> Any:
            return late(x, *more) if begun(x) else before(x, *more)

        return {part: function}

    return Way(make)


def _carried() -> dict[str, Any]:
    """A simulator that starts an episode where the last one ended."""
    ended = [0.0]

    def reset(draws: Any, a_0: Any) -> Any:
        return a_0 + 0.5 * ended[0]

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        new = w.step(x, a_A, a_E, draws)
        ended[0] = float(new[-1, 0])
        return new

    return {"reset": reset, "step": step}


def _wear() -> dict[str, Any]:
    worn = [0]

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        worn[0] += len(x)
        return w.step(x, a_A, a_E * (1.0 + worn[0] / 20_000), draws)

    return {"step": step}


def _seen_before() -> dict[str, Any]:
    last = [0.0]

    def view(x: Any) -> Any:
        s = x + 0.3 * last[0]
        last[0] = float(x[0, 0])
        return s

    return {"view": view}


def _buffer(part: str) -> Way:
    """A part that answers with an array of its own, which it writes over the next time."""

    def make() -> dict[str, Any]:
        kept: dict[int, Any] = {}
        inner = getattr(w, part)

        def function(*arguments: Any) -> Any:
            answer = np.asarray(inner(*arguments))
            buffer = kept.setdefault(len(answer), np.zeros_like(answer))
            buffer[:] = answer
            return buffer

        return {part: function}

    return Way(make)


def _remembered_by_id() -> dict[str, Any]:
    cache: dict[int, Any] = {}

    def agent(x: Any) -> Any:
        return cache.setdefault(id(x), -0.2 * x)

    return {"agent": agent}


def _centred(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    return w.step(x, a_A, a_E + 0.5 * x.mean(), draws)


def _ordered(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    return w.step(x, a_A, a_E + 0.3 * (np.arange(len(x))[:, None] % 2), draws)


def _sized(x: Any) -> Any:
    return -0.2 * x if len(x) > 20 else 0.3 * x


def _neighbour(x: Any) -> Any:
    return -0.2 * np.roll(x, 1, axis=0)


def _ranked(x: Any) -> Any:
    return x[:, 0] > max(w.TOP, float(np.quantile(x[:, 0], 0.9)))


def _relative(x: Any) -> Any:
    return (w.TOP - x[:, 0]) * (1.0 + abs(float(x.mean())))


def _exhausted() -> dict[str, Any]:
    numbers = iter(np.linspace(-0.5, 0.5, 120))

    def step(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
        return w.step(x, a_A, a_E + next(numbers), draws)

    return {"step": step}


def _dropping() -> dict[str, Any]:
    """A network that was left in its training mode."""
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.Dropout(0.3))
    torch.nn.init.constant_(next(net.parameters()), -0.2)
    net.train()

    def agent(x: Any) -> Any:
        with torch.no_grad():
            answer: torch.Tensor = net(torch.as_tensor(x, dtype=torch.float32))
        return answer.double().numpy()

    return {"agent": agent}


def _stronger(x: Any, *more: Any) -> Any:
    return w.step(x, *more) + 0.3


def _weaker(x: Any) -> Any:
    return 0.2 * x


def _stricter(x: Any) -> Any:
    return x[:, 0] > 0.8 * w.TOP


def _nearer(x: Any) -> Any:
    return 0.8 * w.TOP - x[:, 0]


def _sooner(x: Any) -> Any:
    return x[:, 0] < 0.2 * w.LOW


def _shifted(x: Any, *more: Any) -> Any:
    return 0.1 * x + 0.3


def _moved(x: Any) -> Any:
    return x + 1.0


WAYS: dict[str, Way] = {
    "policy remembers the last observation": Way(_remembering),
    "policy counts its calls": Way(_counting),
    "policy integrates": Way(_integrating),
    "policy keeps running statistics": Way(_normalising),
    "policy drifts": _drifting("agent", SOON, _weaker),
    "policy drifts late": _drifting("agent", LATER, _weaker),
    "policy answers from a cache by id": Way(_remembered_by_id),
    "policy looks at its neighbour": instead({"agent": _neighbour}),
    "policy depends on the batch's size": instead({"agent": _sized}),
    "policy is a network with dropout": Way(_dropping),
    "simulator starts where the last episode ended": Way(_carried),
    "simulator wears out": Way(_wear),
    "simulator drifts": _drifting("step", SOON, _stronger),
    "simulator drifts late": _drifting("step", LATER, _stronger),
    "simulator depends on the batch's mean": instead({"step": _centred}),
    "simulator depends on the order of rows": instead({"step": _ordered}),
    "simulator reads numbers that run out": Way(_exhausted),
    "failed drifts": _drifting("failed", SOON, _stricter),
    "failed drifts late": _drifting("failed", LATER, _stricter),
    "failed depends on the batch": instead({"failed": _ranked}),
    "margin drifts": _drifting("margin", SOON, _nearer),
    "margin depends on the batch": instead({"margin": _relative}),
    "done drifts": _drifting("done", SOON, _sooner),
    "done drifts late": _drifting("done", LATER, _sooner),
    "view remembers": Way(_seen_before),
    "view drifts": _drifting("view", SOON, _moved),
    "nominal's mean drifts": _drifting("mean", SOON, _shifted),
    "nominal's mean drifts late": _drifting("mean", LATER, _shifted),
    "step writes over its last answer": _buffer("step"),
    "reset writes over its last answer": _buffer("reset"),
    "agent writes over its last answer": _buffer("agent"),
    "view writes over its last answer": _buffer("view"),
    "margin writes over its last answer": _buffer("margin"),
    "failed writes over its last answer": _buffer("failed"),
    "done writes over its last answer": _buffer("done"),
    "nominal's mean writes over its last answer": _buffer("mean"),
}
