"""One lander in flight: gymnasium's own step, and a stripped one that equals it bit by bit.

Both let OpenAI's heuristic fly (it is π_A, and part of f_E) and add the disturbance w to its
command after its own clip: a = clip(heuristic(s) + w, ±1).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from apeval.problem.types import FloatArray
from apeval_paper.environments.lunarlander.box2d import (
    FPS,
    INITIAL_RANDOM,
    LANDER_POLY,
    LEG_AWAY,
    LEG_DOWN,
    LEG_H,
    LEG_SPRING_TORQUE,
    LEG_W,
    SCALE,
    Box2D,
    ContactDetector,
    LunarLander,
    edgeShape,
    fixtureDef,
    heuristic,
    polygonShape,
    revoluteJointDef,
)
from apeval_paper.environments.lunarlander.kernel import (
    CHUNK_WIDTH,
    CHUNKS,
    HALF_HEIGHT,
    HALF_WIDTH,
    MAX_FRAMES,
    PAD_Y,
    REST_Y,
    margin,
    thrust,
)

CRASH, AWAY, TIMEOUT = 1, 2, 3
KINDS = ("crash", "away", "timeout")


class Start(NamedTuple):
    """What `reset(seed)` draws: the terrain and the initial push."""

    ground: FloatArray  # heights of the terrain's corners
    force: tuple[float, float]


@lru_cache(maxsize=1024)
def start_of(seed: int) -> Start:
    """Gymnasium's terrain and initial force for a reset seed, number by number."""
    rng = np.random.default_rng(seed)
    height = rng.uniform(0, HALF_HEIGHT, size=CHUNKS + 1)
    force = rng.uniform(-INITIAL_RANDOM, INITIAL_RANDOM, size=2)
    height[CHUNKS // 2 - 2 : CHUNKS // 2 + 3] = PAD_Y
    ground = [0.33 * (height[i - 1] + height[i] + height[i + 1]) for i in range(CHUNKS)]
    return Start(np.array(ground), (float(force[0]), float(force[1])))


class Lander(LunarLander):  # type: ignore[misc]
    """Gymnasium's LunarLander, flown by its heuristic through its own step."""

    def __init__(self, **options: Any) -> None:
        super().__init__(continuous=True, **options)

    def launch(self, start_seed: int, dispersion_seed: int) -> None:
        """Begin an episode. The engines' dispersion gets a generator of its own: with the
        generator that `reset` seeds, equal starts would freeze it."""
        self.ground = start_of(start_seed).ground
        self.frames, self.kind, self.ended = 0, 0, False
        self._place(start_seed, dispersion_seed)
        self.margin = self._margin()

    def fly(self, w_main: float, w_side: float, frames: int) -> None:
        """One decision: the disturbance held over some frames, or until the episode ends."""
        for _ in range(min(frames, MAX_FRAMES - self.frames)):
            self.ended = self._frame(w_main, w_side)
            self.frames += 1
            self.margin = min(self.margin, self._margin())
            if self.ended:
                outside = abs(self.lander.position.x - HALF_WIDTH) >= HALF_WIDTH
                self.kind = CRASH if self.game_over else AWAY if outside else 0
                return
        if self.frames == MAX_FRAMES:
            self.ended, self.kind = True, TIMEOUT

    def observation(self) -> FloatArray:
        """The 8 numbers of the appendix's table, in gymnasium's single precision."""
        return np.asarray(self._s, dtype=np.float64)

    def command(self) -> FloatArray:
        """a_A: what the heuristic commands now, before any disturbance."""
        return np.asarray(heuristic(self, self._s), dtype=np.float64)

    def _place(self, start_seed: int, dispersion_seed: int) -> None:
        self._s, _ = self.reset(seed=start_seed)
        self.np_random = np.random.default_rng(dispersion_seed)

    def _frame(self, w_main: float, w_side: float) -> bool:
        a = np.clip(heuristic(self, self._s) + np.array([w_main, w_side]), -1, 1)
        self._s, _, terminated, _, _ = self.step(a)
        return bool(terminated)

    def _margin(self) -> float:
        body = self.lander
        x, y, vy = body.position.x, body.position.y, body.linearVelocity.y
        airborne = not (self.legs[0].ground_contact or self.legs[1].ground_contact)
        return float(margin(x, y, vy, body.angle, airborne, self.frames, self.ground))


class FastLander(Lander):
    """The same flight without what nobody reads: no reward, no arrays, no rebuilt definitions.

    Box2D's world is still new in every episode (gymnasium's issue 728: a reused one remembers).
    """

    def _place(self, start_seed: int, dispersion_seed: int) -> None:
        start = start_of(start_seed)
        world = self.world = Box2D.b2World(gravity=(0, self.gravity))
        world.contactListener_keepref = world.contactListener = _Contacts(self)
        self.game_over, self.touch = False, [False, False]
        self.moon = world.CreateBody(_MOON)
        for fixture in terrain(start_seed):
            self.moon.CreateFixture(fixture)
        self.lander = world.CreateBody(_BODY)
        self.lander.CreateFixture(_BODY_FIXTURE)
        self.lander.ApplyForceToCenter(start.force, True)
        self.legs = []
        for definition, joint in zip(_LEGS, _JOINTS, strict=True):
            leg = world.CreateBody(definition)
            leg.CreateFixture(_LEG_FIXTURE)
            joint.bodyA, joint.bodyB = self.lander, leg
            world.CreateJoint(joint)
            self.legs.append(leg)
        self._dispersion = np.random.default_rng(dispersion_seed)
        self._uniforms: list[float] = []
        world.Step(1.0 / FPS, 6 * 30, 2 * 30)
        self._read()

    def disperse(self, uniforms: list[float]) -> None:
        """Serve these next, two per frame on (−1, 1), instead of the episode's own dispersion."""
        self._uniforms = uniforms[::-1]

    def _frame(self, w_main: float, w_side: float) -> bool:
        if not self._uniforms:
            # reversed, so that pop() serves them in the order in which gymnasium draws them
            self._uniforms = self._dispersion.uniform(-1.0, 1.0, 2 * FPS)[::-1].tolist()
        u0, u1 = self._uniforms.pop(), self._uniforms.pop()
        touch = self.touch[0] or self.touch[1]
        main, m_x, m_y, m_px, m_py, side, s_x, s_y, s_px, s_py = thrust(
            self.px, self.py, self.vx, self.vy, self.angle, self.spin, touch, w_main, w_side, u0, u1
        )
        if main:
            self.lander.ApplyLinearImpulse((m_x, m_y), (m_px, m_py), True)
        if side:
            self.lander.ApplyLinearImpulse((s_x, s_y), (s_px, s_py), True)
        self.world.Step(1.0 / FPS, 6 * 30, 2 * 30)
        self._read()
        return self.game_over or not 0.0 < self.px < 2 * HALF_WIDTH or not self.lander.awake

    def _read(self) -> None:
        position, velocity = self.lander.position, self.lander.linearVelocity
        self.px, self.py, self.angle = position.x, position.y, self.lander.angle
        self.vx, self.vy, self.spin = velocity.x, velocity.y, self.lander.angularVelocity

    @property
    def _s(self) -> Any:
        return np.array(
            [
                (self.px - HALF_WIDTH) / HALF_WIDTH,
                (self.py - REST_Y) / HALF_HEIGHT,
                self.vx * HALF_WIDTH / FPS,
                self.vy * HALF_HEIGHT / FPS,
                self.angle,
                20.0 * self.spin / FPS,
                *self.touch,
            ],
            dtype=np.float32,
        )

    def _margin(self) -> float:
        airborne = not (self.touch[0] or self.touch[1])
        x, y, vy, angle = self.px, self.py, self.vy, self.angle
        return float(margin(x, y, vy, angle, airborne, self.frames, self.ground))


class _Contacts(ContactDetector):  # type: ignore[misc]
    """Gymnasium's rule for touch and crash, with the two callbacks it does not use cut short."""

    def BeginContact(self, contact: Any) -> None:
        bodies = contact.fixtureA.body, contact.fixtureB.body
        self.env.game_over |= self.env.lander in bodies
        self._touch(bodies, True)

    def EndContact(self, contact: Any) -> None:
        self._touch((contact.fixtureA.body, contact.fixtureB.body), False)

    def _touch(self, bodies: tuple[Any, Any], touches: bool) -> None:
        for i, leg in enumerate(self.env.legs):
            if leg in bodies:
                self.env.touch[i] = touches

    def PreSolve(self, contact: Any, old_manifold: Any) -> None:
        pass

    def PostSolve(self, contact: Any, impulse: Any) -> None:
        pass


@lru_cache(maxsize=1024)
def terrain(start_seed: int) -> list[Any]:
    """The fixtures of the moon's surface for a reset seed."""
    ground = start_of(start_seed).ground.tolist()
    corners = [(CHUNK_WIDTH * i, ground[i]) for i in range(CHUNKS)]
    floor = fixtureDef(shape=edgeShape(vertices=[(0, 0), (2 * HALF_WIDTH, 0)]))
    edges = [edgeShape(vertices=[p, q]) for p, q in pairwise(corners)]
    return [floor, *[fixtureDef(shape=edge, density=0, friction=0.1) for edge in edges]]


# Gymnasium's definitions of the bodies, made once. Box2D copies them into each world.
_TOP = (HALF_WIDTH, 2 * HALF_HEIGHT)
_MOON = Box2D.b2BodyDef(type=Box2D.b2_staticBody)
_BODY = Box2D.b2BodyDef(type=Box2D.b2_dynamicBody, position=_TOP, angle=0.0)
_BODY_FIXTURE = fixtureDef(
    shape=polygonShape(vertices=[(x / SCALE, y / SCALE) for x, y in LANDER_POLY]),
    density=5.0,
    friction=0.1,
    categoryBits=0x0010,
    maskBits=0x001,
    restitution=0.0,
)
_LEGS = [
    Box2D.b2BodyDef(
        type=Box2D.b2_dynamicBody,
        position=(_TOP[0] - i * LEG_AWAY / SCALE, _TOP[1]),
        angle=i * 0.05,
    )
    for i in (-1, +1)
]
_LEG_FIXTURE = fixtureDef(
    shape=polygonShape(box=(LEG_W / SCALE, LEG_H / SCALE)),
    density=1.0,
    restitution=0.0,
    categoryBits=0x0020,
    maskBits=0x001,
)
_JOINTS = [
    revoluteJointDef(
        localAnchorA=(0, 0),
        localAnchorB=(i * LEG_AWAY / SCALE, LEG_DOWN / SCALE),
        referenceAngle=i * 0.05,
        enableMotor=True,
        enableLimit=True,
        maxMotorTorque=LEG_SPRING_TORQUE,
        motorSpeed=+0.3 * i,
        lowerAngle=+0.9 - 0.5 if i == -1 else -0.9,
        upperAngle=+0.9 if i == -1 else -0.9 + 0.5,
    )
    for i in (-1, +1)
]
