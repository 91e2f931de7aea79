"""The sections of a run, each with words for what is missing."""

from __future__ import annotations

from typing import Any

from apeval.estimate.diagnostics import ENOUGH
from apeval.estimate.warnings import ENOUGH_COUNTED
from apeval.results.report.charts import Charts, axis, series, xy
from apeval.results.report.failure_list import failure_rows, replay_of
from apeval.results.report.fragments import absent, forest, plain_table
from apeval.results.report.markup import Html, tag
from apeval.results.report.number_format import count, number, one_in, percent, sentence, span
from apeval.results.report.push import pushes
from apeval.results.report.rates import failure_rate, weight_histogram
from apeval.results.report.report_data import ReportData
from apeval.results.report.stages import convergence
from apeval.results.report.value_slices import slices

_NO_EPISODES = "The run folder holds no episodes, so this picture cannot be drawn."
_NO_FAILURES = "No failure was seen, so there is nothing to show here."


def modes(it: ReportData, charts: Charts) -> list[Any]:
    """Ways to fail, each with a replay."""
    found = it.result["modes"]
    if not found:
        return [absent(_NO_FAILURES)]
    parts: list[Any] = [
        tag(
            "p",
            "A failure mode is a group of failures that nature brings about in the same way. "
            "Its share says how much of the failure probability it makes up. The replay shows "
            "the failure of the mode that nature is most likely to produce.",
        )
    ]
    for k, mode in enumerate(found, start=1):
        lo, hi = mode["share_interval"]
        share = percent(mode["share"])
        share += (
            f" of the failures ({percent(lo)} to {percent(hi)})"
            if len(found) > 1
            else " of the failures"
        )
        typical = mode["typical"]
        parts.append(
            tag(
                "div",
                tag("h3", f"Mode {k}: {mode['kind']}"),
                tag(
                    "div",
                    tag("span", style=f"width:{100 * mode['share']:.2f}%"),
                    cls="share",
                    role="img",
                    aria_label=f"share {share}",
                ),
                tag(
                    "p",
                    tag("b", share),
                    f"; {number(mode['probability'])} per episode ({span(mode['interval'])}), "
                    f"{one_in(mode['probability'])}.",
                    f" Typical: {typical}." if typical else "",
                ),
                _replay(
                    it,
                    mode["most_likely"],
                    charts,
                    f"Mode {k}: {mode['kind']}",
                    charts.room // len(found),
                ),
                cls="mode",
            )
        )
    return parts


def _replay(it: ReportData, record: Any, charts: Charts, name: str, room: int) -> Html:
    scene = replay_of(it, record, room)
    if isinstance(scene, str):
        return absent(sentence(scene))
    scene["alt"] = f"{name}: replay of its most likely failure, episode {record['id']}"
    charts.specs.append(scene)
    return tag("div", cls="replay", data_chart=len(charts.specs) - 1)


def adversary(it: ReportData, charts: Charts) -> list[Any]:
    """Where and when nature is pushed."""
    if it.episodes is None or it.sample is None:
        return [absent(_NO_EPISODES)]
    if not it.episodes.a_E.size:
        return [absent("No episode had a decision in it: there is no disturbance to show.")]
    kinds, confidence = list(it.result["kinds"]), float(it.result["confidence"])
    found = pushes(it.episodes, it.sample, kinds, confidence)
    learned = not it.sample.unweighted
    parts: list[Any] = [
        tag(
            "p",
            "The adversary replaces nature while sampling, so that failures happen often enough "
            "to be counted; weights then undo the change. “In failures, weighted” is how nature "
            "itself behaves when an episode fails."
            if learned
            else "This run is plain Monte Carlo: nature was not replaced. “In failures” is how "
            "nature behaves when an episode fails.",
        ),
        tag("p", found.strongest) if found.strongest else None,
    ]
    if not it.sample.failed.any():
        parts.append(absent("No failure was seen, so the pictures lack what nature does in one."))
    elif found.thin:
        parts.append(
            absent(
                "Fewer than five episodes, in effect, stand behind one of the curves: read it "
                "as an example."
            )
        )
    figures = [charts.figure(chart, "", title) for title, chart in found.charts]
    parts.append(tag("div", figures, cls="grid" if len(figures) > 1 else ""))
    if found.left_out:
        parts.append(
            tag("p", f"Not shown, as the push is weaker: {found.left_out} more.", cls="small")
        )
    if found.start:
        head = ("", "nominal", "adversary", "failures, weighted")
        parts.append(plain_table(head, found.start))
    return parts


def convergence_of(it: ReportData, charts: Charts) -> list[Any]:
    """Estimate over the sample, and failures over the run."""
    if it.sample is None:
        return [absent(_NO_EPISODES)]
    n, curve = count(it.sample.n), convergence(it, it.sample)
    beyond = curve["y"].get("high", 1.0) < max(curve["series"][0]["hi"])
    parts = [
        charts.figure(
            curve,
            f"What the estimate and its interval would have been after fewer of the {n} episodes "
            "that count. A sound run closes in on one value; late jumps mean that rare, heavy "
            "failures still come in."
            + (
                " It is drawn from the first five effective failures on."
                if it.sample.failed.any()
                else " No failure was seen: only the upper end falls."
            )
            + (" Where the interval leaves the picture it reaches farther." if beyond else ""),
            "Estimate as episodes come in",
        ),
    ]
    rate = failure_rate(it, it.sample)
    if rate is None:
        parts.append(absent("No recorded episode failed, so there is no failure rate to draw."))
    else:
        parts.append(
            charts.figure(
                rate,
                "How often episodes failed, without weights: how well the adversary makes "
                "failures happen. It is not the failure probability."
                if not it.sample.unweighted
                else "How often episodes failed as the run went on.",
                "Failure rate over time",
            )
        )
    if any(v > 0.0 for _, v in it.curve):
        steps, values = zip(*it.curve, strict=True)
        parts.append(
            charts.figure(
                xy(
                    "The learned value of the start against decisions simulated.",
                    axis("decisions simulated"),
                    axis("learned v(s0)", log=True),
                    [series("learned v(s0)", steps, values)],
                ),
                "The failure probability as the learner itself saw it. The estimate does not "
                "depend on it.",
                "Learned value of the start",
            )
        )
    return parts


def weights(it: ReportData, charts: Charts) -> list[Any]:
    """How far the sample can be trusted."""
    d, final = it.result["diagnostics"], it.result["final"]
    if not final["failures"]:
        return [absent(_NO_FAILURES)]
    rows = [
        (
            "Effective failures (ESS)",
            number(d["ess"]),
            f"Monte Carlo's failures all count the same. At least {ENOUGH_COUNTED:.0f} are wanted."
            if it.result["method"] == "mc" or final["failures"] == 1
            else f"The {count(final['failures'])} failures of unequal weight say as much as this "
            f"many of equal weight. At least {ENOUGH:.0f} are wanted.",
        ),
        (
            "Largest share",
            percent(d["largest_share"]),
            "What the heaviest failure alone contributes. Above 20 % one episode decides.",
        ),
        ("Pareto k", _k(d["pareto_k"]), _k_words(d["pareto_k"])),
    ]
    if d["nominal_only_share"] is not None:
        rows.append(
            (
                "Outside the adversary",
                percent(d["nominal_only_share"]),
                "Share of the estimate from failures that the adversary hardly produces. Above "
                "10 % it misses a mode.",
            )
        )
    if d["missed_share"] is not None:
        rows.append(
            (
                "Lost since learning",
                percent(d["missed_share"]),
                "Share of the probability seen while learning that the frozen stage hardly "
                "produces. Above 5 % a mode may be missing.",
            )
        )
    parts: list[Any] = [plain_table(("diagnostic", "value", "meaning"), rows)]
    if it.sample is None:
        return [*parts, absent(_NO_EPISODES)]
    chart = weight_histogram(it.sample)
    if chart is None:
        return [*parts, absent("All failures have the same weight: a histogram would be one bar.")]
    return [
        *parts,
        charts.figure(
            chart,
            "A weight is how much likelier an episode is under nature than under the adversary. "
            "Trouble looks like this: almost all of the estimate in the last bar on the right, "
            "where almost no failures are."
            + (" Failures lighter still share the first bar." if chart["clipped"] else ""),
            "Weights of the failures",
        ),
    ]


def _k(k: float | None) -> str:
    return "–" if k is None else f"{k:.2f}".replace("-", "−")


def _k_words(k: float | None) -> str:
    if k is None:
        return "Not defined: equal weights, or fewer than 25 failures."
    if k <= 0.5:
        return "Good (at most 0.5): the heaviest weights seen speak for those not seen."
    if k <= 0.7:
        return "Acceptable (0.5 to 0.7): the tail of the weights is long, the estimate still holds."
    return "Heavy (above 0.7): failures not seen may weigh more than all those seen."


def value(it: ReportData, charts: Charts) -> list[Any]:
    """v over state slices."""
    found = slices(it)
    if found is None and it.result["value_function"]:
        return [absent("At each decision all episodes stand in the same state: nothing to cut.")]
    if found is None:
        return [absent(f"This run of {it.result['method']} learned no value function over states.")]
    through = " and ".join(str(c) for c in found.components)
    others = (
        f" The other {found.others} are held at their mean among failures." if found.others else ""
    )
    return [
        tag(
            "p",
            "How likely a failure is from a given state on, as far as the failures seen can tell. "
            f"The slices run through state components {through} of the view "
            f"“{it.result['view']}”, which it depends on most.{others} "
            "It is a guide to where danger lies; the estimate does not rest on it.",
        ),
        tag(
            "div",
            [charts.figure(chart, "", title) for title, chart in found.charts],
            cls="grid three" if len(found.charts) == 3 else "grid",
        ),
        tag("p", "Colour is the failure probability from the state on; lines join states of equal "
            "probability. × marks "
            "sampled episodes that failed, ○ those that did not.", cls="small")
        if found.charts[0][1]["kind"] == "heat"
        else None,
    ]  # fmt: skip


def tail(it: ReportData, charts: Charts) -> list[Any]:
    """P(margin ≤ m)."""
    points = it.result["tail"]
    if not points:
        return [absent("The problem has no margin, so how near other episodes came is not known.")]
    m = [p["margin"] for p in points]
    return [
        charts.figure(
            xy(
                "Probability that an episode's smallest margin is at most m, with interval.",
                axis("margin m (units of the margin)"),
                axis("P(margin ≤ m)", log=True),
                [
                    series(
                        f"P(margin ≤ m) with {100 * it.confidence:.4g} % interval",
                        m,
                        [p["probability"] or None for p in points],
                        ([p["interval"][0] for p in points], [p["interval"][1] for p in points]),
                    )
                ],
                rules=[{"x": 0.0, "name": "failure"}],
            ),
            "The margin is an episode's smallest distance to failure. At 0 the curve is the "
            "failure probability; to the right it says how often episodes come near. A gentle "
            "slope at 0 means that a slightly stricter limit would change the number much.",
            "How near episodes come",
        )
    ]


def kinds(it: ReportData, charts: Charts) -> list[Any]:
    """The parts of the kinds of failure."""
    found = it.result["kinds"]
    if len(found) == 1:
        return [tag("p", f"The problem knows one kind of failure: {next(iter(found))}.")]
    rows = [
        (name, number(k["probability"]), span(k["interval"]), _often(k), count(k["failures"]))
        for name, k in found.items()
    ]  # fmt: skip
    entries = [
        {"name": name, "value": k["probability"], "lo": k["interval"][0], "hi": k["interval"][1]}
        for name, k in found.items()
    ]
    return [
        charts.figure(forest("Probability of each kind of failure.", entries), "", ""),
        plain_table(
            ("kind", "probability", "interval", "in words", "failures seen"), rows, wrap=False
        ),
    ]


def _often(kind: Any) -> str:
    if kind["probability"] > 0.0:
        return one_in(kind["probability"])
    return f"none seen; at most {one_in(kind['interval'][1])}"


def failures(it: ReportData) -> list[Any]:
    """The sortable table."""
    if not it.result["final"]["failures"]:
        return [absent(_NO_FAILURES)]
    titles, rows, total = failure_rows(it)
    if not rows:
        return [absent(_NO_EPISODES)]
    said = f"The {len(rows)} weightiest of {count(total)} failures" if total > len(rows) else (
        f"All {count(total)} failures" if total > 1 else "The one failure"
    )  # fmt: skip
    head = [
        tag("th", tag("button", title, type="button"), scope="col", aria_sort="none")
        for title in titles
    ]
    body = []
    for row in rows:
        cells = []
        for title, cell in zip(titles, row, strict=True):
            text = percent(cell) if title.startswith("share") else _cell(cell)
            key = cell if isinstance(cell, int | float) else None
            cells.append(tag("td", text, data_key=key, cls="" if isinstance(cell, str) else "num"))
        body.append(tag("tr", cells))
    return [
        tag("p", f"{said} behind the estimate. Choose a heading to sort by it.", cls="small"),
        tag(
            "div",
            tag("table", tag("thead", tag("tr", head)), tag("tbody", body), cls="sortable"),
            cls="wide tall",
            tabindex="0",
            role="region",
            aria_label="Table of failures",
        ),
    ]


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return number(value).replace("-", "−") if isinstance(value, float) else str(value)
