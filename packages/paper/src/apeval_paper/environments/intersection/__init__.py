"""Int-v0 and Int-v1: an unprotected left turn against an oncoming car; int-multi: four cars.

`int-v1@highway` runs on highway-env's own road, vehicles and crash check, `int-v1@twin` on a
compiled twin that gives the same states to the last bit, some ten thousand times faster; plain
`int-v1` is the twin. Likewise int-v0.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

from apeval.problem.draws import Draws
from apeval.problem.problem import Problem
from apeval.problem.registry import register
from apeval.problem.truth import Computed, Truth
from apeval.problem.types import Array
from apeval_paper.environments.intersection import state
from apeval_paper.environments.intersection.geometry import PRESETS, Geometry

#: Gymnasium ids of the same scenarios, with the adversary's a_E as the action.
GYMNASIUM_IDS = {"apeval/IntersectionA-v0": "int-v0", "apeval/IntersectionB-v0": "int-v1"}


def intersection(
    name: str,
    decisions: int | None = None,
    ego_start: float | None = None,
    challenger_start: float | None = None,
    ego_speed: float | None = None,
    challenger_speed: float | None = None,
    std: float | None = None,
    box: float | None = None,
    acc_limit: float | None = None,
    feature_distance: float | None = None,
    feature_speed: float | None = None,
    reference_speed: float | None = None,
    speed_feature: bool | None = None,
    frames: int | None = None,
    range_x: float | None = None,
    range_y: float | None = None,
    range_v: float | None = None,
) -> Problem:
    """The intersection, with any field of `Geometry` changed (None: as in the preset)."""
    changes = {k: v for k, v in locals().items() if k != "name"}
    preset, _, backend = name.partition("@")
    g = PRESETS[preset].changed(**changes)
    backend = backend or "twin"
    return Problem(
        nominal=g.nominal(),
        reset=partial(_reset, g),
        step=partial(_step, g, backend),
        failed=state.failed,
        margin=state.margin,
        horizon=g.decisions,
        kinds=("crash",),
        views=state.make_views(g),
        chunk=4096 if backend == "twin" else 16,
        name=name,
        description=DESCRIPTIONS[preset],
        parameters={"backend": backend, **g.as_dict()},
        truth=partial(_truth, g) if g == PRESETS[preset] else Computed(partial(_truth, g)),
        verify=partial(verify_truth, preset) if g == PRESETS[preset] else None,
    )


DESCRIPTIONS = {
    "int-v0": "left turn against an oncoming car, 6 decisions (the paper's Int-v0)",
    "int-v1": "left turn against an oncoming car, 3 decisions, a rare crash (the paper's Int-v1)",
}

_DRAWING = "apeval_paper.environments.intersection.drawing:draw"
_BACKENDS = {"": "on the twin", "@twin": "compiled twin", "@highway": "on highway-env"}

for _preset, _description in DESCRIPTIONS.items():
    for _backend, _text in _BACKENDS.items():
        register(
            f"{_preset}{_backend}", description=f"{_description}; {_text}", drawing=_DRAWING
        )(intersection)


@register(
    "int-multi",
    description="left turn among three cars on the other legs, one joint adversary; on highway-env",
    drawing=_DRAWING,
)
def int_multi() -> Problem:
    """Four cars on highway-env, see `multi`."""
    from apeval_paper.environments.intersection.multi import problem

    return problem()


@lru_cache(maxsize=64)
def _simulator(g: Geometry, backend: str) -> Any:
    """f_E for a batch. Imported here: highway-env and numba take seconds to load."""
    if backend == "twin":
        from apeval_paper.environments.intersection.twin import TwinStep

        return TwinStep(g)
    from apeval_paper.environments.intersection.highway import HighwayStep

    return HighwayStep(g)


def _reset(g: Geometry, draws: Draws) -> Array:
    from apeval_paper.environments.intersection.highway import reset

    return reset(draws.n, g)


def _step(g: Geometry, backend: str, x: Array, a_A: Array, a_E: Array, draws: Draws) -> Array:
    after: Array = _simulator(g, backend)(x, a_E)
    return after


def _truth(g: Geometry) -> Truth:
    from apeval_paper.environments.intersection.ground_truth import truth

    return truth(g)


def verify_truth(name: str, full: bool = False, seed: int = 20_000) -> dict[str, Any]:
    """See `ground_truth.verify_truth`."""
    from apeval_paper.environments.intersection.ground_truth import verify_truth as verify

    return verify(name.partition("@")[0], full, seed)


def register_gymnasium() -> None:
    """Make ``gymnasium.make("apeval/IntersectionB-v0")`` work. Calling it twice does no harm."""
    import gymnasium

    for gym_id, name in GYMNASIUM_IDS.items():
        if gym_id not in gymnasium.registry:
            gymnasium.register(
                gym_id,
                entry_point="apeval_paper.environments.intersection.gym_env:IntersectionAdversary",
                kwargs={"name": name},
            )
