"""Does the nominal's density belong to its samples? Every situation's law is asked for many.

Under a correct law a bad verdict has probability below `FALSE_ALARM` for all tests together:
thresholds are Bernstein's inequality (known variance) and its empirical form (Maurer and Pontil,
2009, Theorem 4), with the level shared out among the tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from apeval.problem.draws import NATURE, Draws, make_key
from apeval.problem.laws import Law
from apeval.problem.types import Array, BoolArray, FloatArray, IntArray
from apeval.simulate.check.contract import ask
from apeval.simulate.check.report import BrokenError, Finding

FALSE_ALARM = 1e-5
_SITUATIONS, _SAMPLES, _PILOT = 40, 120_000, 1_000
_HALVES = 8  # components whose lower half is tested on its own
_OUTCOMES = 10_000  # above this many, outcomes are not summed over


@dataclass(frozen=True)
class SampledLaws:
    """R situations' laws, asked for K disturbances each."""

    part: str
    law: Law
    rows: IntArray
    dim: int
    key: IntArray

    def sample(self, k: int, stage: int) -> Array:
        """k disturbances in each situation, shape (R, k, d)."""
        R = len(self.rows)
        ids = np.arange(R * k) + stage * R * _SAMPLES
        u = Draws(self.key, ids).stream(NATURE, self.dim)
        law = self._repeated(k)
        a = ask(f"{self.part} law's sample", lambda: np.asarray(law.sample(u)))
        return a.reshape(R, k, -1)

    def log_prob(self, a: Array) -> FloatArray:
        """log π of (R, k, d) disturbances, shape (R, k)."""
        R, k, d = a.shape
        law = self._repeated(k)
        part = f"{self.part} law's log_prob"
        log_p = ask(part, lambda: np.asarray(law.log_prob(a.reshape(R * k, d)), np.float64))
        if log_p.shape != (R * k,):
            raise BrokenError(
                "density",
                f"`{part}` returned shape {log_p.shape}, expected ({R * k},): one number per row, "
                "the sum over the components",
            )
        bad = np.isnan(log_p) | (log_p == np.inf)
        if bad.any():
            raise BrokenError(
                "density",
                f"`{part}` returned NaN or +inf for {bad.sum():,} of {len(bad):,} disturbances: "
                "a log-density is a number, or -inf outside the support",
            )
        return log_p.reshape(R, k)

    def _repeated(self, k: int) -> Law:
        return ask(f"{self.part} law's take", lambda: self.law.take(np.repeat(self.rows, k)))


def check_density(
    part: str, law: Law, n: int, dim: int, discrete: bool, outcomes: int | None, seed: int
) -> Finding:
    """Test samples against density in up to 40 of the n situations of `law`."""
    key = make_key(seed, 1)
    rows = np.sort(np.random.default_rng(seed).permutation(n)[:_SITUATIONS])
    asked = SampledLaws(part, law, rows, dim, key)
    k = _SAMPLES // len(rows)
    a = asked.sample(k, 0)
    _inside_support(asked, a)
    name = "density" if part == "nominal" else f"{part} density"
    gap = _discrete(asked, a, outcomes) if discrete else _continuous(asked, a)
    if gap:
        return Finding(name, False, gap)
    told = f"{a.shape[0] * k:,} samples in {len(rows)} situations fit the density"
    return Finding(name, True, told)


def _inside_support(asked: SampledLaws, a: Array) -> None:
    outside = np.isneginf(asked.log_prob(a))
    if outside.any():
        raise BrokenError(
            "density",
            f"{outside.sum():,} of {outside.size:,} samples of the {asked.part} law lie where its "
            f"own density is 0 (e.g. {a[outside][0].tolist()}): sample and log_prob must have the "
            "same support",
        )


def bernstein(variance: FloatArray, largest: float, level: float) -> FloatArray:
    """How far a sum of independent terms, each within `largest` of its mean, may stray."""
    L = np.log(2.0 / level)
    b = L * largest / 3.0
    stray: FloatArray = b + np.sqrt(b * b + 2.0 * variance * L)
    return stray


def empirical_bernstein(terms: FloatArray, width: float, level: float) -> FloatArray:
    """How far the mean over the last axis may stray, for terms in an interval of `width`."""
    n = terms.shape[-1]
    L = np.log(4.0 / level)
    noise = np.sqrt(2.0 * terms.var(axis=-1, ddof=1) * L / n)
    stray: FloatArray = noise + 7.0 * width * L / (3.0 * (n - 1))
    return stray


def _discrete(asked: SampledLaws, a: Array, outcomes: int | None) -> str:
    codes = a[:, :, 0]
    if not np.array_equal(codes, np.floor(codes)) or codes.min() < 0:
        return f"the {asked.part} law is discrete: its samples must be the codes 0, 1, 2, …"
    K = outcomes or int(codes.max()) + 1
    if codes.max() >= K:
        return (
            f"the {asked.part} law gave outcome {int(codes.max())}, but has {K} outcomes coded "
            f"0 … {K - 1}: give outcomes= their number"
        )
    if K > _OUTCOMES:
        return ""
    R, n = codes.shape
    each = np.broadcast_to(np.arange(K)[None, :, None], (R, K, 1))
    p = np.exp(asked.log_prob(np.ascontiguousarray(each)))
    total = p.sum(axis=1)
    worst = int(np.abs(total - 1.0).argmax())
    if abs(total[worst] - 1.0) > 1e-6 and (outcomes or total[worst] > 1.0):
        return (
            f"the probabilities of the {asked.part} law sum to {total[worst]:.6g} in a situation: "
            "divide each row by its sum"
        )
    counts = np.stack([np.bincount(row, minlength=K) for row in codes.astype(np.int64)])
    level = FALSE_ALARM / ((R + 1) * K)
    off = np.abs(counts - n * p) > bernstein(n * p * (1.0 - p), 1.0, level)
    pooled = np.abs((counts - n * p).sum(axis=0)) > bernstein(
        (n * p * (1.0 - p)).sum(axis=0), 1.0, level
    )
    if not (off.any() or pooled.any()):
        return ""
    r, j = np.argwhere(off)[0] if off.any() else (0, int(np.argmax(pooled)))
    share = counts[r, j] / n if off.any() else counts[:, j].mean() / n
    told = p[r, j] if off.any() else p[:, j].mean()
    return _mismatch(asked.part, f"outcome {j}", float(share), float(told))


def _continuous(asked: SampledLaws, a: Array) -> str:
    """P(B) of boxes B: how many samples fall into them, against the density's integral over
    them. The integral is an average over points of our own (half of them Gaussian, half uniform
    in the box), so that its terms are bounded whatever the support of the law."""
    R, K, d = a.shape
    for j in range(d):
        values, times = np.unique(a[:, :, j], return_counts=True)
        if times.max() > max(10, R * K // 10_000):
            return (
                f"the {asked.part} law gives the value {values[times.argmax()]:.6g} in "
                f"{times.max():,} of {R * K:,} samples, which no density can: does it clip or "
                "round? Condition instead of clipping (TruncatedNormal), or use Categorical"
            )
    pilot = asked.sample(_PILOT, 1)
    lo, hi = np.quantile(pilot, [0.005, 0.995], axis=1, keepdims=True)
    b, log_g = _points(pilot, lo, hi, K, asked.key)
    ratio = np.exp(asked.log_prob(b) - log_g)
    boxes = _boxes(pilot, lo, hi)
    level = FALSE_ALARM / ((R + 1) * len(boxes))
    width = 1.0 + 2.0 * float(ratio.max())
    for name, low, high in boxes:
        inside, integrand = _in(a, low, high), ratio * _in(b, low, high)
        gap = inside - integrand
        off = np.abs(gap.mean(axis=1)) > empirical_bernstein(gap, width, level)
        if off.any():
            r = int(np.argmax(off))
            share, told = inside[r].mean(), integrand[r].mean()
            return _mismatch(asked.part, name, float(share), float(told))
        everything = gap.reshape(1, -1)
        if np.abs(everything.mean()) > empirical_bernstein(everything, width, level)[0]:
            share, told = inside.mean(), integrand.mean()
            return _mismatch(asked.part, name, float(share), float(told))
    return ""


def _points(
    pilot: Array, lo: Array, hi: Array, K: int, key: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Points in the box [lo, hi] and the log of their density, row by row."""
    R, _, d = pilot.shape
    m, s = pilot.mean(axis=1, keepdims=True), pilot.std(axis=1, keepdims=True)
    p_lo, p_hi = ndtr((lo - m) / s), ndtr((hi - m) / s)
    ids = np.arange(R * K) + 2 * R * _SAMPLES
    unit = Draws(key, ids).stream(NATURE, d + 1).reshape(R, K, d + 1)
    u, uniform = unit[:, :, :d], unit[:, :, d:] < 0.5
    normal = m + s * ndtri(p_lo + u * (p_hi - p_lo))
    b = np.where(uniform, lo + u * (hi - lo), np.clip(normal, lo, hi))
    z = (b - m) / s
    log_normal = (-0.5 * z * z - np.log(s * (p_hi - p_lo) * np.sqrt(2.0 * np.pi))).sum(axis=2)
    log_uniform = -np.log(hi - lo).sum(axis=2)
    return b, np.logaddexp(log_normal, log_uniform) - np.log(2.0)


def _boxes(pilot: Array, lo: Array, hi: Array) -> list[tuple[str, Array, Array]]:
    """The outer box, an inner one with half of its mass, and the outer one's lower halves."""
    d = pilot.shape[2]
    tail = 0.5 * (1.0 - 0.5 ** (1.0 / d))
    inner = np.quantile(pilot, [tail, 1.0 - tail], axis=1, keepdims=True)
    boxes = [("the outer box", lo, hi), ("the middle", inner[0], inner[1])]
    middle = np.median(pilot, axis=1, keepdims=True)
    for j in range(min(d, _HALVES)):
        top = hi.copy()
        top[:, :, j] = middle[:, :, j]
        boxes.append((f"the lower half of component {j}", lo, top))
    return boxes


def _in(a: Array, low: Array, high: Array) -> BoolArray:
    return np.asarray(np.all((a >= low) & (a <= high), axis=2))


def _mismatch(part: str, where: str, share: float, told: float) -> str:
    return (
        f"the {part} law's density does not match its samples: {share:.3g} of them fall into "
        f"{where}, log_prob says {told:.3g}. Check that sample and log_prob use the same "
        "parameters, and that the density integrates to 1"
    )
