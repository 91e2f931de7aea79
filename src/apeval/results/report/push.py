"""The adversary against the nominal: where in an episode it pushes, and how hard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apeval.estimate.interval import effective_size
from apeval.estimate.quantiles import normal_upper_quantile
from apeval.estimate.sample import Sample
from apeval.estimate.weighted import effective
from apeval.problem.types import BoolArray, FloatArray
from apeval.results.report.charts import Chart, axis, series, xy
from apeval.results.report.moments import FEWEST, Decisions
from apeval.simulate.episodes import Episodes

_PANELS = 4
_SECOND_KIND = 0.05  # share of the failures that a second kind needs to be shown apart
_FEW = 12  # decisions that are drawn as points, not as a line


@dataclass(frozen=True)
class Push:
    """Charts, one per component or outcome, and the strongest push in words."""

    charts: tuple[tuple[str, Chart], ...]
    strongest: str
    start: tuple[tuple[str, ...], ...]
    """A controlled start: rows of component, nominal, adversary, failures."""
    left_out: int
    thin: bool
    """Whether a curve of failures rests on very few of them."""


@dataclass(frozen=True)
class _Drawn:
    """Episodes that are looked at together, by a weight of each."""

    name: str
    """For the legend."""
    where: str
    """In a sentence."""
    w: FloatArray
    slot: int

    @property
    def thin(self) -> bool:
        """Fewer episodes, in effect, than a mean needs."""
        return effective_size(self.w) < FEWEST


@dataclass(frozen=True)
class _Shown:
    """What such episodes did at each decision."""

    drawn: _Drawn
    mean: FloatArray
    spread: FloatArray | None
    keep: BoolArray
    """Decisions at which enough of them still ran."""
    error: FloatArray
    """Of the mean, in nominal standard deviations, (G,)."""


def pushes(episodes: Episodes, sample: Sample, kinds: Sequence[str], confidence: float) -> Push:
    """Nominal, adversary and failures at every decision. A push is named where it is farther from
    the nominal than the largest of as many means is by chance, at this confidence."""
    groups, law = Decisions.of(episodes.t), episodes.law
    drawn = [d for d in _drawn(sample, kinds) if d.w.any()]
    if law.discrete:
        p = law.outcome_probabilities()
        p = np.broadcast_to(p, (len(episodes.t), p.shape[1]))
        values = np.eye(p.shape[1])[episodes.a_E.reshape(-1).astype(np.int64)]
        usual, _ = groups.mean(p, np.ones(len(p)))
        sigma = np.sqrt(np.maximum(usual * (1.0 - usual), 1e-9))
    else:
        values = episodes.a_E
        usual, sigma = groups.nominal(law, values.shape[1])
    shown = []
    for it in drawn:
        w = it.w[episodes.episode]
        mean, spread = groups.mean(values, w)
        error = groups.error(w) * np.sqrt(_alike(sample, it.w))
        keep = groups.enough(w)
        shown.append(_Shown(it, mean, None if law.discrete else spread, keep, error))
    return _pictured(groups, usual, sigma, shown, _start(episodes, sample), confidence)


def _alike(sample: Sample, w: FloatArray) -> float:
    """How many times fewer episodes there are in effect, as those of one family count as one."""
    return effective_size(w) / max(effective(sample, w, np.ones(sample.n, bool)), 1.0)


def _drawn(sample: Sample, kinds: Sequence[str]) -> list[_Drawn]:
    """The adversary's episodes and the failing ones. The two likeliest kinds of failure stand
    apart: what pushes to opposite sides must not be averaged."""
    learned = (~sample.nominal[sample.component]).astype(np.float64)
    drawn = [_Drawn("sampled by the adversary", "of the adversary", learned, 1)]
    w = sample.weights * sample.failed
    mass = np.array([w[sample.kind == k].sum() for k in range(1, len(kinds) + 1)])
    likeliest = np.argsort(-mass, kind="stable")[:2]
    if len(mass) < 2 or mass[likeliest[1]] <= _SECOND_KIND * mass.sum():
        return [*drawn, _Drawn("in failures, weighted", "in failures", w, 2)]
    for slot, k in enumerate(likeliest.tolist(), start=2):
        name = f"in “{kinds[k]}” failures"
        drawn.append(_Drawn(f"{name}, weighted", name, w * (sample.kind == k + 1), slot))
    return drawn


def _pictured(
    groups: Decisions,
    usual: FloatArray,
    sigma: FloatArray,
    shown: list[_Shown],
    start: tuple[tuple[str, ...], ...],
    confidence: float,
) -> Push:
    discrete = bool(shown) and shown[0].spread is None
    last = max((int(np.flatnonzero(it.keep)[-1]) for it in shown), default=len(groups.x) - 1)
    strength = np.zeros((len(shown), *usual.shape))
    for k, it in enumerate(shown):
        if k > 0 or len(shown) == 1:  # the adversary is the means, failures are the end
            push = np.nan_to_num((it.mean - usual) / sigma)
            strength[k] = np.where(it.keep[:, None], push, 0.0)
    size = strength if discrete else np.abs(strength)
    rank = size.max(axis=(0, 1), initial=0.0)
    order = np.argsort(-rank, kind="stable")[:_PANELS].tolist()
    d = usual.shape[1]
    charts = []
    for j in sorted(order) if discrete else order:
        title, label = _titles(j, d, discrete)
        lines = [_line("nominal", groups.x, usual[:, j], None if discrete else sigma[:, j], 0)]
        for it in shown:
            y = np.where(it.keep, it.mean[:, j], np.nan)
            spread = None if it.spread is None else it.spread[:, j]
            lines.append(_line(it.drawn.name, groups.x, y, spread, it.drawn.slot))
        x = "decision number" + (f" ({groups.width} together)" if groups.width > 1 else "")
        across = axis(x, low=float(groups.x[0]), high=float(groups.x[last])) | {"whole": True}
        alt = f"{title} at each decision: nominal, adversary and failures."
        charts.append((title, xy(alt, across, label, lines)))
    words = ""
    looks = max(int((strength != 0.0).sum()), 1)
    limit = normal_upper_quantile((1.0 - confidence) / (2.0 * looks))
    error = np.stack([it.error for it in shown])[:, :, None] if shown else 0.0
    size = np.where(np.abs(strength) > limit * error, size, 0.0)
    if (strength != 0.0).any():
        words = "No push stands out from what chance makes of so many decisions and components."
    if size.max(initial=0.0) > 0.0:
        k, g, j = (int(i) for i in np.unravel_index(np.argmax(size), size.shape))
        when = f"The strongest push {shown[k].drawn.where} is at {groups.when(g)}"
        mean = float(shown[k].mean[g, j])
        if discrete:
            words = f"{when}: outcome {j} in {mean:.0%}, where nature has it in {usual[g, j]:.0%}."
        else:
            words = (
                f"{when}{f' in component {j + 1}' if d > 1 else ''}: {strength[k, g, j]:+.1f} "
                f"nominal standard deviations in the mean ({mean:.3g} where nature has "
                f"{_rounded(usual[g, j], sigma[g, j])} ± {sigma[g, j]:.3g})."
            ).replace("-", "−")
    thin = any(it.drawn.thin for it in shown)
    return Push(tuple(charts), words, start, max(0, d - _PANELS), thin)


def _titles(j: int, d: int, discrete: bool) -> tuple[str, dict[str, Any]]:
    if discrete:
        return f"Outcome {j}", axis(f"probability of outcome {j}", low=0.0)
    title = f"Component {j + 1} of the disturbance" if d > 1 else "Disturbance"
    return title, axis("mean ± 1 σ (units of a_E)")


def _line(name: str, x: Any, y: FloatArray, sd: FloatArray | None, slot: int) -> dict[str, Any]:
    mark = "line" if len(x) > _FEW else "dots"
    return series(name, x, y, None if sd is None else (y - sd, y + sd), mark=mark, slot=slot)


def _rounded(mean: float, spread: float) -> str:
    """A mean to a thousandth of the spread: 0 is 0."""
    return f"{round(mean / spread, 3) * spread + 0.0:.3g}" if spread > 0.0 else f"{mean:.3g}"


def _start(episodes: Episodes, sample: Sample) -> tuple[tuple[str, ...], ...]:
    law = episodes.law_0
    if law is None or law.discrete or not episodes.a_0.shape[1]:
        return ()
    mean, sd = law.take(np.zeros(1, np.int64)).moments(1, episodes.a_0.shape[1])
    parts = [(mean[0], sd[0])]
    learned = ~sample.nominal[sample.component]
    for w in (learned.astype(np.float64), sample.weights * sample.failed):
        if w.any():
            m = np.average(episodes.a_0, axis=0, weights=w)
            parts.append((m, np.sqrt(np.average((episodes.a_0 - m) ** 2, axis=0, weights=w))))
        else:
            parts.append((np.full(mean.shape[1], np.nan), sd[0]))
    return tuple(
        (
            f"start, component {j + 1}",
            *(
                f"{_rounded(m[j], s[j])} ± {s[j]:.3g}" if np.isfinite(m[j]) else "–"
                for m, s in parts
            ),
        )
        for j in range(mean.shape[1])
    )
