"""The refusals that the documentation quotes are the real ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gymnasium.vector import SyncVectorEnv
from tests.adapt import test_functions as functions
from tests.adapt import test_observations as observations
from tests.adapt.bit_identity import episodes

import apeval
from apeval.errors import ApevalError

pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting")  # by envpool

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "supported.md").read_text("utf-8")
QUOTES = re.findall(r'\| "(.+?)" \|$', TEXT, re.MULTILINE)


def quoted(message: str) -> bool:
    """Whether the page quotes a message, up to what it leaves out (…)."""
    for quote in QUOTES:
        kept = re.split(r" ?\(?…\)?", quote.replace("lambda env: …", "lambda env: ").strip("… "))
        if all(part.strip() in message.replace("lambda env: …", "lambda env: ") for part in kept):
            return True
    return False


def noisy(env: Any, noise: Any) -> Callable[[], Any]:
    return lambda: observations.one(env, policy=lambda obs: [0.0], disturb=noise)


def of_functions() -> Any:
    return functions.drift(
        reset=lambda draws: (draws.normal(1), {"x": draws.normal(1)}),
        step=lambda draws, x, a: (x["x"], x, a[:, 0], a[:, 0] > 9, {}),
        disturb=apeval.StartNoise("state['x']", std=1.0),
        fails="terminated",
        margin=None,
    )


def hidden_start() -> Any:
    import gymnasium
    import numpy as np

    class Twice(gymnasium.Wrapper[Any, Any, Any, Any]):
        def reset(self, **given: Any) -> Any:
            obs, info = self.env.reset(**given)
            return np.tile(obs, 2), info

    start = apeval.StartNoise("state", std=1.0)
    make = lambda: Twice(observations.Plain())  # noqa: E731
    return apeval.from_env(make, policy=lambda obs: obs[:1], disturb=start, horizon=3)


def in_jax(**given: Any) -> Callable[[], Any]:
    return lambda: functions.jax_pole(**{k: make() for k, make in given.items()})


class LogWrapper:
    def __getattr__(self, name: str) -> Any:
        return getattr(functions.pole(), name)

    def step(self) -> None: ...


@dataclass
class Unknown:
    gravity: float = 1.0


def written(inputs: dict[str, list[Any]], nodes: list[Any], outputs: list[str]) -> Any:
    def build(folder: Path) -> Any:
        from tests.adapt.test_onnx import pendulum, write

        return pendulum(write(folder / "policy.onnx", inputs, nodes, outputs))

    return build


def pooled(make: Any) -> Callable[[], Any]:
    def build() -> Any:
        pytest.importorskip("envpool", reason="the extra envpool is not installed")
        from tests.adapt import test_envpool

        return test_envpool.cartpole(make(test_envpool.pool))

    return build


ADD, TANH = ("Add", ["obs", "h"], "y", {}), ("Tanh", ["obs"], "a", {})
REFUSED: dict[str, Any] = {
    "an image": noisy(observations.Pictured, apeval.ActionNoise(0.1)),
    "text": noisy(observations.Spoken, apeval.ActionNoise(0.1)),
    "a dict": noisy(observations.Named, apeval.ObservationNoise(0.1)),
    "noise on an image": noisy(observations.Pictured, apeval.ObservationNoise(0.1)),
    "a hidden start": hidden_start,
    "a view of env": lambda: observations.many(
        observations.Plain, policy=lambda obs: obs[:, :1], views={"state": lambda env: env.state}
    ),
    "a specification": lambda: observations.many(
        observations.Plain,
        policy=lambda obs: obs[:, :1],
        fails=apeval.spec("always x < 2", x=lambda obs: obs[:, 0]),
    ),
    "an unknown start": of_functions,
    "a wrapper": in_jax(env=LogWrapper),
    "a class": in_jax(params=Unknown),
    "a pool without seeds": pooled(lambda pool: lambda n: pool(list(range(n)))),
    "a pool that is asynchronous": pooled(lambda pool: lambda seeds: pool(seeds, batch_size=4)),
    "outputs": written({"obs": ["n", 3]}, [TANH, ("Tanh", ["a"], "b", {})], ["a", "b"]),
    "recurrent": written({"obs": ["n", 3], "h": ["n", 3]}, [ADD], ["y"]),
    "rows": written({"obs": [7, 3]}, [TANH], ["a"]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_page_quotes_the_refusal(what: str, tmp_path: Path) -> None:
    build = REFUSED[what]
    if what in ("outputs", "recurrent", "rows"):
        pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
        pytest.importorskip("onnx", reason="onnx, which writes the file")
    if what in ("a wrapper", "a class"):
        pytest.importorskip("jax", reason="the extra jax is not installed")
    with pytest.raises(ApevalError) as refused:
        episodes(build(tmp_path) if what in ("outputs", "recurrent", "rows") else build())
    assert quoted(str(refused.value)), str(refused.value)


def test_an_unquoted_message_is_noticed() -> None:
    assert len(QUOTES) > 20
    assert not quoted("the observation is too large")
    assert SyncVectorEnv.__name__ in TEXT
