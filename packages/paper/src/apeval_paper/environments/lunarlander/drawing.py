"""The lander over its pad, frame by frame."""

from __future__ import annotations

import numpy as np

from apeval.problem.draws import Draws
from apeval.problem.problem import Problem
from apeval.problem.types import FloatArray
from apeval.results.drawing import RecordedEpisode
from apeval.results.shapes import Mover, Scene, Shape, held, measure, rectangle

_FLAME = np.array([[0.2, -0.5], [0.0, -1.1], [-0.2, -0.5]])
_SIDE_FLAME = np.array([[0.62, 0.5], [1.0, 0.4], [0.62, 0.3]])


def draw(problem: Problem, it: RecordedEpisode) -> Scene:
    """Body, legs and exhaust of Box2D's lander."""
    from apeval_paper.environments.lunarlander.box2d import FPS, LANDER_POLY, LEG_H, LEG_W, SCALE
    from apeval_paper.environments.lunarlander.kernel import HALF_HEIGHT, HALF_WIDTH
    from apeval_paper.environments.lunarlander.simulator import Simulator

    p, record = problem.parameters, it.record
    frames = int(p["frames"])
    simulator = Simulator(True, frames, int(p["reset_seed"]), bool(p["random_start"]))
    x = simulator.reset(Draws(np.array(record.key, np.uint64), np.array([record.root])))
    lander = x.landers[0]
    w = np.asarray(record.a_E, np.float64)
    body, fires = [_bodies(lander)], [(False, 0)]
    for w_main, w_side in w.tolist():
        for _ in range(frames):
            if lander.ended:
                break
            main, side = np.clip(lander.command() + np.array([w_main, w_side]), -1.0, 1.0)
            lander.fly(w_main, w_side, 1)
            body.append(_bodies(lander))
            fires.append((bool(main > 0.0), int(np.sign(side)) if abs(side) > 0.5 else 0))
    poses, fired = np.array(body), np.array(fires)  # (F, 3 bodies, 5), (F, 2)
    time = np.arange(len(poses)) / FPS
    hull = np.array(LANDER_POLY, np.float64) / SCALE
    leg = rectangle(2.0 * LEG_W / SCALE, 2.0 * LEG_H / SCALE)
    craft = poses[:, 0, :3]
    mirrored = _SIDE_FLAME * (-1.0, 1.0)
    movers = (
        Mover("", (Shape(_FLAME, "flame"),), craft, fired[:, 0] > 0),
        Mover("", (Shape(mirrored, "flame"),), craft, fired[:, 1] > 0),
        Mover("", (Shape(_SIDE_FLAME, "flame"),), craft, fired[:, 1] < 0),
        Mover("", (Shape(leg, "agent"),), poses[:, 1, :3]),
        Mover("", (Shape(leg, "agent"),), poses[:, 2, :3]),
        Mover("lander", (Shape(hull, "agent"),), craft),
    )
    at, std = np.arange(len(w)) * frames / FPS, float(p["std"])
    height = poses[:, 0, 1] - 0.5 * HALF_HEIGHT
    series = (
        measure("height over the pad", "m", time, height),
        measure("vertical speed", "m/s", time, poses[:, 0, 4]),
        measure("tilt", "°", time, np.degrees(poses[:, 0, 2])),
        held("error of the main engine", "σ", at, w[:, 0] / std),
        held("error of the side engines", "σ", at, w[:, 1] / std),
    )
    low_x, high_x = float(min(0.0, craft[:, 0].min())), float(max(20.0, craft[:, 0].max()))
    top = float(max(2.0 * HALF_HEIGHT, craft[:, 1].max())) + 1.0
    return Scene(
        title=it.title,
        outcome=it.outcome,
        time=time,
        time_unit="s",
        decision=np.clip((np.arange(len(poses)) - 1) // frames + 1, 1, len(w)),
        series=series,
        bounds=(low_x, 0.0, max(high_x, 2.0 * HALF_WIDTH), top),
        static=_ground(lander.ground),
        movers=movers,
    )


def _bodies(lander: object) -> list[list[float]]:
    """x, y, angle and velocity of the hull and both legs."""
    bodies = (lander.lander, *lander.legs)  # type: ignore[attr-defined]
    return [
        [b.position.x, b.position.y, b.angle, b.linearVelocity.x, b.linearVelocity.y]
        for b in bodies
    ]


def _ground(heights: FloatArray) -> tuple[Shape, ...]:
    """The moon's surface, the pad and its flags."""
    from apeval_paper.environments.lunarlander.kernel import CHUNK_WIDTH, CHUNKS, HALF_WIDTH, PAD_Y

    surface = np.column_stack([CHUNK_WIDTH * np.arange(CHUNKS), heights])
    moon = np.vstack([surface, [[2.0 * HALF_WIDTH, 0.0], [0.0, 0.0]]])
    left, right = CHUNK_WIDTH * (CHUNKS // 2 - 1), CHUNK_WIDTH * (CHUNKS // 2 + 1)
    flags = [
        Shape(np.array([[x, PAD_Y], [x, PAD_Y + 1.4], [x + 0.7, PAD_Y + 1.15], [x, PAD_Y + 0.9]]),
              "goal", closed=False)
        for x in (left, right)
    ]  # fmt: skip
    pad = Shape(np.array([[left, PAD_Y], [right, PAD_Y]]), "goal", closed=False)
    return (Shape(moon, "ground"), pad, *flags)
