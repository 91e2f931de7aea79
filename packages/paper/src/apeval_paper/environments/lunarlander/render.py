"""Pictures of the lander and its pad: stills, and replays of recorded episodes.

    python -m apeval_paper.environments.lunarlander.render FOLDER

draws the paper's figure (a still) and an animated replay.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apeval.problem.draws import Draws, make_key
from apeval.problem.types import Array, IntArray
from apeval_paper.environments.lunarlander import RESET_SEED
from apeval_paper.environments.lunarlander.box2d import FPS, Box2D
from apeval_paper.environments.lunarlander.lander import KINDS, Lander, terrain
from apeval_paper.environments.lunarlander.simulator import Simulator


class FilmedLander(Lander):
    """Gymnasium's lander with its viewer. The exhaust lives in a world of its own: in the
    lander's it would change the order in which contacts are solved, and so the flight."""

    world: Any

    def __init__(self) -> None:
        super().__init__(render_mode="rgb_array")

    def _place(self, start_seed: int, dispersion_seed: int) -> None:
        super()._place(start_seed, dispersion_seed)
        self._exhaust = Box2D.b2World(gravity=(0, self.gravity))
        moon = self._exhaust.CreateStaticBody()
        for fixture in terrain(start_seed):
            moon.CreateFixture(fixture)

    def _create_particle(self, *particle: Any) -> Any:
        flight = self.world
        self.world = self._exhaust
        try:
            return super()._create_particle(*particle)
        finally:
            self.world = flight

    def _clean_particles(self, all_particle: bool) -> None:
        while self.particles and (all_particle or self.particles[0].ttl < 0):
            self._exhaust.DestroyBody(self.particles.pop(0))

    def _frame(self, w_main: float, w_side: float) -> bool:
        self._exhaust.Step(1.0 / FPS, 6, 2)
        return super()._frame(w_main, w_side)


class _Studio(Simulator):
    def _build(self) -> Lander:
        return FilmedLander()


@dataclass(frozen=True)
class Film:
    """A replayed episode: pictures (height, width, 3), one per `every` frames, and the end."""

    pictures: list[Array]
    every: int
    frames: int
    outcome: str

    def save(self, path: Path) -> None:
        """Write an animated GIF at about the true speed; the last picture stays a second."""
        from PIL import Image

        images = [Image.fromarray(picture) for picture in self.pictures]
        step = 1000 * self.every // FPS
        durations = [step] * (len(images) - 1) + [1000]
        images[0].save(path, save_all=True, append_images=images[1:], duration=durations, loop=0)


def film(
    key: IntArray,
    episode: int,
    a_E: Sequence[Sequence[float]] | Array,
    frames: int = 50,
    reset_seed: int = RESET_SEED,
    random_start: bool = False,
    every: int = 2,
) -> Film:
    """Replay episode number `episode` of the run `key` under its recorded disturbances."""
    draws = Draws(key, np.array([episode]))
    x = _Studio(False, frames, reset_seed, random_start).reset(draws)
    lander = x.landers[0]
    pictures = [lander.render()]
    for w_main, w_side in np.asarray(a_E, dtype=np.float64).tolist():
        for _ in range(frames):
            if lander.ended:
                break
            lander.fly(w_main, w_side, 1)
            picture = lander.render()  # in every frame: it also ages the exhaust
            if lander.frames % every == 0 or lander.ended:
                pictures.append(picture)
    outcome = KINDS[lander.kind - 1] if lander.kind else "landed" if lander.ended else "in flight"
    return Film(pictures, every, lander.frames, outcome)


def still(path: Path, frame: int = 80, reset_seed: int = RESET_SEED) -> None:
    """The paper's figure: the lander on its way to the pad between the flags, undisturbed."""
    from PIL import Image

    shown = film(make_key(0), 0, np.zeros((1, 2)), frames=frame, reset_seed=reset_seed)
    Image.fromarray(shown.pictures[-1]).save(path)


def main(folder: Path) -> None:
    """Draw the still, a landing and a crash that too little thrust in decision 1 leads to."""
    folder.mkdir(parents=True, exist_ok=True)
    still(folder / "lunarlander.png")
    film(make_key(0), 0, np.zeros((20, 2))).save(folder / "lunarlander-landing.gif")
    weak = np.zeros((20, 2))
    weak[1, 0] = -0.5
    film(make_key(0), 0, weak).save(folder / "lunarlander-crash.gif")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
