"""Policies in ONNX files: the numbers of the network that was exported, and the same bits
everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.adapt.bit_identity import company_does_not_matter, episodes, runs_agree
from tests.adapt.test_observations import Named
from tests.adapt.test_observations import one as line

import apeval
from apeval.adapt.batches import SIZE
from apeval.errors import ApevalError
from apeval.problem.problem import Problem

onnx = pytest.importorskip("onnx", reason="onnx, which writes the files of these tests")
pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(3, 64)), RNG.normal(size=(64, 2)) / 8


def write(
    path: Path,
    inputs: dict[str, list[Any]],
    nodes: list[Any],
    outputs: list[str],
    weights: dict[str, Any] | None = None,
    kind: str = "FLOAT",
) -> Path:
    """A small ONNX file."""
    from onnx import TensorProto, helper, numpy_helper

    number, chosen = getattr(TensorProto, kind), {"chosen": TensorProto.INT64}
    graph = helper.make_graph(
        [helper.make_node(op, given, [out], **more) for op, given, out, more in nodes],
        "policy",
        [helper.make_tensor_value_info(name, number, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, chosen.get(name, number), None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def network(path: Path, out: int = 1, rows: Any = "n", dtype: Any = np.float32) -> Path:
    """tanh(obs A) B."""
    nodes = [
        ("MatMul", ["obs", "A"], "h", {}), ("Tanh", ["h"], "g", {}), ("MatMul", ["g", "B"], "y", {})
    ]  # fmt: skip
    weights = {"A": FIRST.astype(dtype), "B": SECOND[:, :out].astype(dtype)}
    kind = "FLOAT" if dtype is np.float32 else "DOUBLE"
    return write(path, {"obs": [rows, 3]}, nodes, ["y"], weights, kind)


def pendulum(policy: Any, **changes: Any) -> Problem:
    given: dict[str, Any] = {
        "disturb": apeval.ObservationNoise(std=0.3),
        "fails": lambda obs: obs[0] < -0.9,
        "margin": lambda obs: obs[0] + 0.9,
        "horizon": 12,
    }
    return apeval.from_env("Pendulum-v1", policy=policy, **{**given, **changes})


@pytest.mark.parametrize("rows", ["n", 1, SIZE])
def test_a_file_answers_as_its_network_does(rows: Any, tmp_path: Path) -> None:
    path = network(tmp_path / "policy.onnx", rows=rows)
    policy: Any = apeval.load_onnx(path)
    obs = np.array([0.3, -0.4, 1.5])
    problem = pendulum(policy)
    assert policy.together == (rows != 1)
    assert np.allclose(
        policy.act(obs, np.empty(0)), np.tanh(obs @ FIRST) @ SECOND[:, :1], atol=1e-5
    )
    batch = company_does_not_matter(problem)
    by_path = pendulum(str(path))
    assert np.array_equal(episodes(by_path).s_end, batch.s_end)


def test_scores_and_whole_numbers_choose_discrete_actions(tmp_path: Path) -> None:
    weights = {"A": RNG.normal(size=(4, 2)).astype(np.float32)}
    scores = [("MatMul", ["obs", "A"], "y", {})]
    chosen = [*scores, ("ArgMax", ["y"], "chosen", {"axis": 1, "keepdims": 0})]
    given: Any = {"disturb": apeval.ObservationNoise(0.05), "horizon": 30}
    found = []
    for nodes, out in ((scores, "y"), (chosen, "chosen")):
        path = write(tmp_path / f"{out}.onnx", {"obs": ["n", 4]}, nodes, [out], weights)
        found.append(episodes(apeval.from_env("CartPole-v1", policy=path, **given)).s_end)
    assert np.array_equal(found[0], found[1])


def test_parts_of_a_dict_go_to_inputs_of_their_names(tmp_path: Path) -> None:
    import gymnasium

    class Two(Named):
        def __init__(self) -> None:
            super().__init__()
            box = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)
            self.observation_space = gymnasium.spaces.Dict({"v": box, "x": box})

        def _get_obs(self) -> Any:
            return {"v": self.state[1:].copy(), "x": self.state[:1].copy()}

    weights = {"k": np.array([-0.2], np.float64)}
    nodes = [("Add", ["v", "x"], "s", {}), ("Mul", ["s", "k"], "y", {})]
    inputs = {"v": ["n", 1], "x": ["n", 1]}
    path = write(tmp_path / "two.onnx", inputs, nodes, ["y"], weights, "DOUBLE")
    noise = apeval.ObservationNoise(0.5, key="v")
    batch = company_does_not_matter(line(Two, policy=path, disturb=noise))
    by_hand = line(Two, policy=lambda obs: (obs["v"] + obs["x"]) * -0.2, disturb=noise)
    assert np.allclose(episodes(by_hand).s_end, batch.s_end)


def test_runs_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = network(tmp_path / "policy.onnx")
    runs_agree(lambda: pendulum(path), tmp_path, monkeypatch, workers=1)


@pytest.mark.filterwarnings("ignore")  # the exporter's own
def test_an_exported_torch_module_is_the_module(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="the extra train is not installed")
    pytest.importorskip("onnxscript", reason="torch.onnx.export needs onnxscript")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    path = tmp_path / "net.onnx"
    torch.onnx.export(net, (torch.zeros(2, 3),), path, input_names=["obs"],
                      dynamic_axes={"obs": {0: "n"}})  # fmt: skip
    assert (tmp_path / "net.onnx.data").exists()  # its weights, which have to come along
    one, two = episodes(pendulum(net)), episodes(pendulum(path))
    assert np.allclose(one.s_end, two.s_end, atol=1e-4)


def test_what_does_not_fit_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ApevalError, match="no policy file"):
        apeval.load_onnx(tmp_path / "none.onnx")
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"nothing")
    with pytest.raises(ApevalError, match="is no ONNX model"):
        apeval.load_onnx(bad)
    nodes = [("Tanh", ["obs"], "a", {}), ("Tanh", ["a"], "b", {})]
    path = write(tmp_path / "two.onnx", {"obs": ["n", 3]}, nodes, ["a", "b"])
    with pytest.raises(ApevalError, match=r"has 2 outputs: say which is the action.*output='a'"):
        apeval.load_onnx(path)
    with pytest.raises(ApevalError, match="has no such output"):
        apeval.load_onnx(path, output="c")
    assert apeval.load_onnx(path, output="b")
    nodes = [("Add", ["obs", "h"], "y", {})]
    path = write(tmp_path / "lstm.onnx", {"obs": ["n", 3], "h": ["n", 3]}, nodes, ["y"])
    with pytest.raises(ApevalError, match=r"takes the inputs obs, h.*the policy has memory"):
        pendulum(path)
    with pytest.raises(ApevalError, match="7 observations at once: export it with a free first"):
        pendulum(network(tmp_path / "seven.onnx", rows=7))


def test_weights_count_in_the_identity(tmp_path: Path) -> None:
    from apeval.simulate.identity.code import digest

    one, two = (network(tmp_path / f"{k}.onnx", out=k) for k in (1, 2))
    assert digest(apeval.load_onnx(one)) == digest(apeval.load_onnx(one))
    assert digest(apeval.load_onnx(one)) != digest(apeval.load_onnx(two))
