"""A car of highway-env whose driver errs."""

from __future__ import annotations

from typing import Any

import numpy as np
from highway_env.vehicle.behavior import IDMVehicle


class DisturbedCar(IDMVehicle):  # type: ignore[misc]
    """highway-env's driver model (IDM and MOBIL), with an error added to its acceleration."""

    error: float = 0.0
    """In m/s²."""

    def act(self, action: Any = None) -> None:
        """Decide as the model does, then add the error within the model's limits.

        Args:
            action: Not used, as in the model.
        """
        super().act(action)
        if not self.crashed:
            wanted = self.action["acceleration"] + self.error
            self.action["acceleration"] = np.clip(wanted, -self.ACC_MAX, self.ACC_MAX)
