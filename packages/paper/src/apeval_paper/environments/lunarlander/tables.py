"""The appendix's observation and action tables of LunarLander, as data."""

from __future__ import annotations

import math

import numpy as np

from apeval.problem.types import FloatArray

#: Num, observation, min, max.
OBSERVATION = (
    (0, "horizontal coordinate", -1.5, 1.5),
    (1, "vertical coordinate", -0.5, 2.0),
    (2, "horizontal speed", -1.5, 1.5),
    (3, "vertical speed", -1.5, 1.0),
    (4, "angle", -math.pi, math.pi),
    (5, "angular speed", -3.0, 3.0),
    (6, "if first leg has contact", 0.0, 1.0),
    (7, "if second leg has contact", 0.0, 1.0),
)

#: Num, action, min, max. The disturbance is added to these, in the same order.
ACTION = (
    (0, "main engine power", -1.0, 1.0),
    (1, "orientation engine power", -1.0, 1.0),
)

LOW: FloatArray = np.array([row[2] for row in OBSERVATION])
SPAN: FloatArray = np.array([row[3] - row[2] for row in OBSERVATION])
