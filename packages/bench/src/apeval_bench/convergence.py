"""The appendix's convergence analysis in numbers, on a chain whose v* is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

from apeval.problem.types import FloatArray
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment
from apeval_paper.methods.ape_scalable.gp import GaussianProcess

WIDTHS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
DISCOUNTS = (0.9, 0.97, 0.99, 0.997, 0.999, 0.9997, 0.9999)
REPRESENTATIVES = (4, 6, 8, 12, 16, 24, 32, 48)
_FINE, _NODES, _SWEEPS = 2_001, 400, 2_000
_TINY = 1e-12
_LENGTH = 3.0  # length scale of v_ψ, in distances of its representatives


@dataclass(frozen=True)
class Chain:
    """S = [−margin, 1 + margin], x' ~ N(x − drift, std²) on S; an episode starts at s0, fails in
    R = (1, 1 + margin] and ends in T = [−margin, 0): v*(x) is the probability to leave I = [0, 1]
    at the top."""

    s0: float = 0.1
    drift: float = 0.04
    std: float = 0.1
    margin: float = 0.4

    def density(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """p(x, y), a density over S, for all pairs."""
        z = (y[None, :] - x[:, None] + self.drift) / self.std
        mass = self.mass(x, -self.margin, 1.0 + self.margin)
        p: FloatArray = np.exp(-0.5 * z * z) / (np.sqrt(2.0 * np.pi) * self.std) / mass[:, None]
        return p

    def mass(self, x: FloatArray, low: float, high: float) -> FloatArray:
        """Normal probability of [low, high], before conditioning on S."""
        a, b = ((e - x + self.drift) / self.std for e in (low, high))
        p: FloatArray = ndtr(b) - ndtr(a)
        return p

    def fails(self, x: FloatArray) -> FloatArray:
        """P(x' ∈ R)."""
        whole = self.mass(x, -self.margin, 1.0 + self.margin)
        p: FloatArray = self.mass(x, 1.0, 1.0 + self.margin) / whole
        return p


@dataclass(frozen=True)
class ExactChain:
    """v_γ* by Gauss–Legendre quadrature: v(x) = P(fail | x) + γ ∫_I p(x, y) v(y) dy."""

    chain: Chain
    gamma: float
    nodes: FloatArray
    weights: FloatArray
    values: FloatArray

    def __call__(self, x: FloatArray) -> FloatArray:
        v: FloatArray = self.chain.fails(x) + self.gamma * (
            self.chain.density(x, self.nodes) @ (self.weights * self.values)
        )
        return v


def exact(chain: Chain, gamma: float = 1.0) -> ExactChain:
    """Solve at the nodes; smooth kernels converge faster than any power of their number."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    nodes, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    kernel = gamma * chain.density(nodes, nodes) * weights
    values = np.asarray(np.linalg.solve(np.eye(_NODES) - kernel, chain.fails(nodes)), np.float64)
    return ExactChain(chain, gamma, nodes, weights, values)


def slotted(chain: Chain, h: float) -> Callable[[FloatArray], FloatArray]:
    """ṽ^h*, the fixed point of the appendix's T̃^h: p and r read at the slots' middles, rows
    normalised over all slots."""
    edges = np.arange(round((1.0 + 2.0 * chain.margin) / h) + 1) * h - chain.margin
    middle = 0.5 * (edges[1:] + edges[:-1])
    p = chain.density(middle, middle) * h
    p /= p.sum(axis=1, keepdims=True)
    inner, top = (middle > 0.0) & (middle < 1.0), middle > 1.0
    A = np.eye(int(inner.sum())) - p[np.ix_(inner, inner)]
    v = np.zeros(len(middle))
    v[inner] = np.linalg.solve(A, p[np.ix_(inner, top)].sum(axis=1))

    def value(x: FloatArray) -> FloatArray:
        slot = np.clip(((x + chain.margin) / h).astype(np.int64), 0, len(middle) - 1)
        found: FloatArray = v[np.clip(slot, *np.flatnonzero(inner)[[0, -1]])]
        return found

    return value


def fitted(chain: Chain, representatives: int, log: bool) -> Callable[[FloatArray], FloatArray]:
    """v_ψ on a number of representatives, at the fixed point of its own Bellman targets; the
    squared-exponential GP's length scale follows their distance. On raw values or on logarithms."""
    X = np.linspace(0.0, 1.0, representatives)[:, None]
    spacing = 1.0 / (representatives - 1)
    gp = GaussianProcess(np.array([1.0 / (_LENGTH * spacing) ** 2]), w=1.0, sigma=1e-6)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    nodes, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    step = chain.density(X[:, 0], nodes) * weights
    base = chain.fails(X[:, 0])
    y = np.full(representatives, 1e-3)
    gp.set_data(X, y)

    def value(x: FloatArray) -> FloatArray:
        mean = gp.mean(x[:, None])
        found: FloatArray = np.exp(np.minimum(mean + offset, 0.0)) if log else np.clip(mean, 0, 1)
        return found

    offset = 0.0
    for _ in range(_SWEEPS):
        if log:
            t = np.log(np.maximum(y, _TINY))
            offset = float(t.mean())
            gp.set_targets(t - offset)
        else:
            gp.set_targets(y)
        new = base + step @ value(nodes)
        change, y = float(np.abs(new - y).max()), new
        if change < 1e-13:
            break
    return value


@experiment("reproduce", "convergence", "the appendix's convergence analysis in numbers", seeds=1)
def convergence(request: ExperimentRequest) -> ExperimentReport:
    """Errors against slot width, discount and expressiveness; nothing here is random."""
    chain = Chain()
    x = np.linspace(0.0, 1.0, _FINE)[1:-1]
    v_star, s0 = exact(chain), np.array([chain.s0])
    truth, at_s0 = v_star(x), float(v_star(s0)[0])
    data: dict[str, Any] = {"chain": vars(chain), "v_s0": at_s0}

    def error(name: str, value: float, v: Callable[[FloatArray], FloatArray]) -> dict[str, float]:
        return {
            name: value,
            "sup_error": float(np.abs(v(x) - truth).max()),
            "relative_at_s0": float(v(s0)[0]) / at_s0 - 1.0,
        }

    data["slots"] = [error("h", h, slotted(chain, h)) for h in WIDTHS]
    request.tick("discounts", 1, 3)
    data["discounts"] = [error("gamma", g, exact(chain, g)) for g in DISCOUNTS]
    request.tick("expressiveness", 2, 3)
    for name, log in (("gp_raw", False), ("gp_log", True)):
        data[name] = [error("n", n, fitted(chain, n, log)) for n in REPRESENTATIVES]
    data["orders"] = {
        "slots": slope([r["h"] for r in data["slots"]], [r["sup_error"] for r in data["slots"]]),
        "discounts": slope(
            [1.0 - r["gamma"] for r in data["discounts"]],
            [r["sup_error"] for r in data["discounts"]],
        ),
    }
    files = {}
    if request.out is not None:
        files["figure"] = picture(data, request.out / "convergence.png")
    return ExperimentReport(data, as_text(data), files=files)


def slope(x: list[float], y: list[float]) -> float:
    """Order of convergence: the slope of log y over log x in the finer half.

    >>> round(slope([0.4, 0.2, 0.1], [0.16, 0.04, 0.01]), 6)
    2.0
    """
    half = len(x) // 2
    return float(np.polyfit(np.log(x[half:]), np.log(y[half:]), 1)[0])


def picture(data: dict[str, Any], path: Path) -> Path:
    """Three panels, one per source of error."""
    from apeval_bench import style

    figure, axes = style.subplots(1, 3, 11.0, 4.2)
    panels: tuple[tuple[str, list[tuple[str, str, str, str, Callable[[Any], float]]]], ...] = (
        ("slot width h", [("slots", "slotted value", style.BLUE, "o-", lambda r: r["h"])]),
        ("1 − γ", [("discounts", "discounted value", style.BLUE, "o-", lambda r: 1 - r["gamma"])]),
        (
            "representatives of v_ψ",
            [
                ("gp_raw", "GP on raw values", style.VERMILION, "s--", lambda r: r["n"]),
                ("gp_log", "GP on log values", style.BLUE, "o-", lambda r: r["n"]),
            ],
        ),
    )
    for ax, (label, lines) in zip(axes[0], panels, strict=True):
        for key, name, colour, mark, at in lines:
            rows = data[key]
            where = [at(r) for r in rows]
            ax.plot(where, [r["sup_error"] for r in rows], mark, color=colour, label=f"{name}, sup")
            ax.plot(
                where, [abs(r["relative_at_s0"]) for r in rows], mark, color=colour, alpha=0.45,
                markerfacecolor="white", label=f"{name}, relative at s₀",
            )  # fmt: skip
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel(label)
        ax.set_ylabel("error")
        ax.grid(alpha=0.25)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), fontsize=8)
    axes[0, 2].set_xticks(REPRESENTATIVES, [f"{n}" for n in REPRESENTATIVES])
    axes[0, 2].minorticks_off()
    return style.save(figure, path)


def as_text(data: dict[str, Any]) -> str:
    """Three tables."""
    parts = []
    for key, column, name in (
        ("slots", "slot width h", "h"),
        ("discounts", "γ", "gamma"),
        ("gp_raw", "representatives, GP on raw values", "n"),
        ("gp_log", "representatives, GP on log values", "n"),
    ):
        lines = [f"| {column} | sup error | relative error at s0 |", "|---|---|---|"]
        lines += [
            f"| {r[name]:g} | {r['sup_error']:.2e} | {r['relative_at_s0']:+.2e} |"
            for r in data[key]
        ]
        parts.append("\n".join(lines))
    c = data["chain"]
    parts.append(
        f"A chain on [{-c['margin']:g}, {1 + c['margin']:g}] with x' ~ N(x − {c['drift']:g}, "
        f"{c['std']:g}²): failure above 1, end below 0, start at {c['s0']:g}, "
        f"v\\*(s0) = {data['v_s0']:.4e}. Measured orders: error ∝ h^{data['orders']['slots']:.2f} "
        f"(the appendix bounds it by a multiple of h) and ∝ (1 − γ)^"
        f"{data['orders']['discounts']:.2f}."
    )
    return "\n\n".join(parts)
