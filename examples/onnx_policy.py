"""A policy in an ONNX file balances a pole whose sensors are noisy.

    python -c "import examples.onnx_policy as it; it.export()"
    apeval run examples/onnx_policy.py --episodes 1000

Any framework that exports ONNX will do; here it is torch, with a small network that imitates a
controller. Needs the extra `onnx`, and to export `torch`, `onnx` and `onnxscript`.
"""

from __future__ import annotations

import apeval


def export(path: str = "policy.onnx", steps: int = 500) -> None:
    """Train a network on what the controller does, and write it."""
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    towards = torch.tensor([0.05, 0.1, 1.0, 0.5])
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(steps):
        obs = 0.2 * torch.randn(256, 4)
        loss = torch.nn.functional.cross_entropy(net(obs), (obs @ towards > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    free = {"obs": {0: "n"}}
    torch.onnx.export(net, (torch.zeros(2, 4),), path, input_names=["obs"], dynamic_axes=free)


def problem(model: str = "policy.onnx", noise: float = 0.06) -> apeval.Problem:
    return apeval.from_env(
        "CartPole-v1",
        policy=apeval.load_onnx(model),
        disturb=apeval.ObservationNoise(std=noise, hold=5),
        margin=lambda obs: min(0.20944 - abs(obs[2]), (2.4 - abs(obs[0])) / 10),
        horizon=100,
        description="a policy in an ONNX file balances a pole by noisy sensors",
    )
