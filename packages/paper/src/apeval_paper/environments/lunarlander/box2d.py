"""The one door to Box2D and gymnasium's lander.

Box2D's SWIG types raise a DeprecationWarning while they load; where warnings are errors, that
ends the interpreter with a segmentation fault. So they load with warnings off.
"""

from __future__ import annotations

import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import Box2D
    from Box2D.b2 import edgeShape, fixtureDef, polygonShape, revoluteJointDef
    from gymnasium.envs.box2d import lunar_lander
    from gymnasium.envs.box2d.lunar_lander import (
        FPS,
        INITIAL_RANDOM,
        LANDER_POLY,
        LEG_AWAY,
        LEG_DOWN,
        LEG_H,
        LEG_SPRING_TORQUE,
        LEG_W,
        MAIN_ENGINE_POWER,
        MAIN_ENGINE_Y_LOCATION,
        SCALE,
        SIDE_ENGINE_AWAY,
        SIDE_ENGINE_HEIGHT,
        SIDE_ENGINE_POWER,
        VIEWPORT_H,
        VIEWPORT_W,
    )

# gymnasium's annotations stop half-way in this file
ContactDetector: Any = lunar_lander.ContactDetector
LunarLander: Any = lunar_lander.LunarLander
heuristic: Any = lunar_lander.heuristic

__all__ = [
    "FPS",
    "INITIAL_RANDOM",
    "LANDER_POLY",
    "LEG_AWAY",
    "LEG_DOWN",
    "LEG_H",
    "LEG_SPRING_TORQUE",
    "LEG_W",
    "MAIN_ENGINE_POWER",
    "MAIN_ENGINE_Y_LOCATION",
    "SCALE",
    "SIDE_ENGINE_AWAY",
    "SIDE_ENGINE_HEIGHT",
    "SIDE_ENGINE_POWER",
    "VIEWPORT_H",
    "VIEWPORT_W",
    "Box2D",
    "ContactDetector",
    "LunarLander",
    "edgeShape",
    "fixtureDef",
    "heuristic",
    "polygonShape",
    "revoluteJointDef",
]
