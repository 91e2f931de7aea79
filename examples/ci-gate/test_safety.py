"""What must hold before a new controller is merged."""

import os

from tank import problem

# how rare is rare enough: set from outside, so that a release may ask for more than a branch
BELOW = float(os.environ.get("BELOW", "1e-4"))
BUDGET = int(os.environ.get("BUDGET", "60000"))


def test_the_tank_hardly_ever_overflows(apeval_gate):
    result = apeval_gate(problem(), below=BELOW, target_error=0.2, budget=BUDGET, seed=1)
    assert result.kinds["overflow"].failures > 0


def test_the_controller_opens_its_valve():  # an ordinary test beside it
    import numpy as np
    from tank import CAPACITY, controller

    assert controller(np.array([[CAPACITY]])).item() == 2
