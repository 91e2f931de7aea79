"""Functions that change what they are given, or give back what is not their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import walk as w
from .walk import Way, instead


def _scaled(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    a_E *= 1.5
    return w.step(x, a_A, a_E, draws)


def _scaled_well(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    return w.step(x, a_A, 1.5 * a_E, draws)


def _added(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    a_E += 0.3 * x
    return w.step(x, a_A, a_E, draws)


def _added_well(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    return w.step(x, a_A, a_E + 0.3 * x, draws)


def _clipped(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    np.clip(a_E, -1.5, 1.5, out=a_E)
    return w.step(x, a_A, a_E, draws)


def _clipped_well(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    return w.step(x, a_A, np.clip(a_E, -1.5, 1.5), draws)


def _after(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    new = w.step(x, a_A, a_E, draws)
    a_E[:] = 0.0
    return new


def _action(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    a_A *= 0.5
    return w.step(x, a_A, a_E, draws)


def _action_well(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    return w.step(x, 0.5 * a_A, a_E, draws)


def _state(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    chance = 0.1 * draws.normal(1)
    x[:] = 0.9 * x + a_A + a_E + chance
    return x


def _wiped(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    new = w.step(x, a_A, a_E, draws)
    x[:] = 0.0
    return new


def _ids(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    draws.ids[:] = 0
    return w.step(x, a_A, a_E, draws)


def _into_disturbance(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    np.add(0.9 * x + a_A, a_E, out=a_E)  # in the order of the proper one, to the last digit
    a_E += 0.1 * draws.normal(1)
    return a_E


def _start(draws: Any, a_0: Any) -> Any:
    a_0 *= 2.0
    return a_0.copy()


def _start_well(draws: Any, a_0: Any) -> Any:
    return 2.0 * a_0


def _same_start(draws: Any, a_0: Any) -> Any:
    return a_0


def _start_ids(draws: Any, a_0: Any) -> Any:
    draws.ids += 1
    return a_0 + 0.0


def _policy(x: Any) -> Any:
    x *= 0.8
    return -0.2 * x


def _policy_well(x: Any) -> Any:
    return -0.2 * (0.8 * x)


def _same(x: Any) -> Any:
    return x


def _by_action(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    a_A *= -0.2
    return w.step(x, a_A, a_E, draws)


def _by_action_well(x: Any, a_A: Any, a_E: Any, draws: Any) -> Any:
    return w.step(x, -0.2 * a_A, a_E, draws)


def _event(x: Any) -> Any:
    x -= w.TOP
    return x[:, 0] > 0.0


def _end(x: Any) -> Any:
    x -= w.LOW
    return x[:, 0] < 0.0


def _distance(x: Any) -> Any:
    x *= -1.0
    x += w.TOP
    return x[:, 0]


def _distance_well(x: Any) -> Any:
    return (-1.0 * x + w.TOP)[:, 0]


def _seen(x: Any) -> Any:
    x *= 2.0
    return x


def _seen_well(x: Any) -> Any:
    return 2.0 * x


def _law(x: Any, a_A: Any) -> Any:
    x *= 0.1
    return x


def _law_action(x: Any, a_A: Any) -> Any:
    a_A[:] = 0.0
    return 0.1 * x


WAYS: dict[str, Way] = {
    "step scales a_E in place": instead({"step": _scaled}, {"step": _scaled_well}),
    "step adds to a_E in place": instead({"step": _added}, {"step": _added_well}),
    "step clips a_E in place": instead({"step": _clipped}, {"step": _clipped_well}),
    "step wipes a_E afterwards": instead({"step": _after}),
    "step returns a_E": instead({"step": _into_disturbance}),
    "step scales a_A in place": instead({"step": _action}, {"step": _action_well}),
    "step changes x and returns it": instead({"step": _state}),
    "step wipes x afterwards": instead({"step": _wiped}),
    "step wipes draws.ids": instead({"step": _ids}),
    "reset scales a_0 in place": instead({"reset": _start}, {"reset": _start_well}),
    "reset returns a_0 and step changes x": instead({"reset": _same_start, "step": _state}),
    "reset changes draws.ids": instead({"reset": _start_ids}),
    "agent scales x in place": instead({"agent": _policy}, {"agent": _policy_well}),
    "agent returns x and step changes a_A": instead(
        {"agent": _same, "step": _by_action}, {"step": _by_action_well, "agent": w.view}
    ),
    "failed changes x": instead({"failed": _event}),
    "done changes x": instead({"done": _end}),
    "margin changes x": instead({"margin": _distance}, {"margin": _distance_well}),
    "view scales x in place": instead({"view": _seen}, {"view": _seen_well}),
    "view returns x and step changes it": instead({"view": _same, "step": _state}),
    "nominal's mean changes x": instead({"mean": _law}),
    "nominal's mean changes a_A": instead({"mean": _law_action}),
}
