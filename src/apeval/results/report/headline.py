"""The first screen: warnings, the number, what was evaluated."""

from __future__ import annotations

from typing import Any

from apeval.errors import UnknownNameError
from apeval.learn.method import find_method
from apeval.remedies import in_shell
from apeval.results.report.markup import Html, tag, together
from apeval.results.report.number_format import (
    count,
    in_words,
    number,
    one_in,
    percent,
    plain,
    sentence,
    span,
)
from apeval.results.report.report_data import ReportData
from apeval.run.result_text import where_truth_lies


def title_of(it: ReportData) -> str:
    """What the run is called in headings."""
    return it.result["problem"] or it.name


def warnings(runs: list[ReportData]) -> Html:
    """What must be known before a number is believed; said also where there is nothing."""
    boxes = []
    for it in runs:
        texts, trusted = it.result["warnings"], it.result["trusted"]
        if not texts:
            continue
        whose = f"{it.name}: " if len(runs) > 1 else ""
        if it.provenance.get("command"):  # whoever made the run types commands
            texts = [in_shell(text) for text in texts]
        boxes.append(
            tag(
                "div",
                tag(
                    "p",
                    tag("span", "!" if not trusted else "i", cls="icon", aria_hidden="true"),
                    whose,
                    "Do not rely on this interval yet."
                    if not trusted
                    else "The interval stands. Read these notes with it.",
                    cls="box-title",
                ),
                tag("ul", [tag("li", sentence(text)) for text in texts]),
                cls="box serious" if not trusted else "box note",
            )
        )
    if not boxes:
        what = "either run" if len(runs) == 2 else "any run" if len(runs) > 2 else "this run"
        boxes.append(
            tag(
                "div",
                tag(
                    "p",
                    tag("span", "✓", cls="icon", aria_hidden="true"),
                    f"No warnings for {what}: every check of the sample passed.",
                    cls="box-title",
                ),
                cls="box fine",
            )
        )
    return tag("section", tag("h2", "Warnings"), boxes, id="warnings")


def headline(it: ReportData) -> list[Html]:
    """The number, in figures and in words."""
    r = it.result
    lo, hi = r["interval"]
    level = f"{100 * it.confidence:.4g} %"
    words = in_words(r["estimate"], hi)
    bounds = f"{one_in(lo)} to {one_in(hi)}" if lo > 0.0 else f"at most {one_in(hi)}"
    parts = [
        tag(
            "div",
            tag("p", "Failure probability per episode", cls="eyebrow"),
            tag("p", number(r["estimate"]) if r["estimate"] else f"below {number(hi)}", cls="big"),
            tag("p", words[0].upper() + words[1:], cls="words"),
            tag("p", f"{level} interval: ", tag("b", span(r["interval"])), f", or {bounds}."),
            _truth(r, lo, hi),
            None
            if r["trusted"]
            else tag("p", "Read the warnings first: this interval may be wrong.", cls="caution"),
            cls="hero",
        ),
        tag("dl", [_tile(*t) for t in _tiles(it)], cls="tiles"),
    ]
    return parts + _extended(it) + _answers(r, level)


def _extended(it: ReportData) -> list[Html]:
    """The common answer, where the run extends earlier ones."""
    both = it.extended
    if both is None:
        return []
    return [
        tag(
            "p",
            tag(
                "b",
                "This run extends an earlier one. "
                if len(both["parts"]) == 2
                else f"This run extends {len(both['parts']) - 1} earlier ones. ",
            ),
            f"Together they give {number(both['estimate'])} ({span(both['interval'])}), "
            f"{in_words(both['estimate'], both['interval'][1])}, from "
            f"{count(both['episodes'])} counted episodes. The rest of this page is about this "
            "run alone.",
            [tag("br"), together([" ".join(sentence(w) for w in both["warnings"])])]
            if both["warnings"]
            else None,
            cls="answer",
        )
    ]


def _truth(r: Any, lo: float, hi: float) -> Html | None:
    if r["truth"] is None:
        return None
    error = r.get("truth_error") or 0.0
    value = number(r["truth"]) + (f" ± {number(error)}" if error else "")
    where = where_truth_lies(r["truth"], error, (lo, hi))
    return tag("p", f"The known truth, {value}, lies {where}.")


def _tile(value: str, what: str) -> Html:
    return tag("div", tag("dt", what), tag("dd", value))


def _tiles(it: ReportData) -> list[tuple[str, str]]:
    r, final = it.result, it.result["final"]
    tiles = [
        (count(r["episodes"]), f"episodes simulated, {count(r['steps'])} decisions"),
        (
            count(final["failures"]),
            "failures behind the estimate"
            + (f", worth {number(final['ess'])} equal ones" if final["failures"] else ""),
        ),
    ]
    if r["monte_carlo_episodes"] and r["trusted"] and r["method"] != "mc":
        worth = float(f"{r['monte_carlo_episodes']:.2g}")
        tiles.append((count(worth), "Monte Carlo episodes for the same precision"))
    if r["detection_limit"] is not None and r["method"] != "mc":
        tiles.append(
            (
                one_in(r["detection_limit"]),
                "detection limit: a failure mode that the adversary never produces is sure to be "
                "seen only above this",
            )
        )
    return tiles


def _answers(r: Any, level: str) -> list[Html]:
    parts = []
    if r["below"]:
        b = r["below"]
        text = {
            "shown": f"It is below: at most {number(b['upper'])}",
            "refuted": f"It is not below: at least {number(b['lower'])}",
            "undecided": f"This run cannot say: at most {number(b['upper'])}",
        }[b["verdict"]]
        more = f" About {count(b['budget'])} {b['unit']} would decide." if b["budget"] else ""
        parts.append(
            tag(
                "p",
                tag("b", f"Is it below {number(b['below'])}? "),
                f"{text} at {level} confidence.{more}",
                cls="answer",
            )
        )
    if r["target"]:
        t = r["target"]
        reached = "no failure was seen" if t["reached"] is None else f"± {percent(t['reached'])}"
        more = f" About {count(t['budget'])} {t['unit']} would do." if t["budget"] else ""
        parts.append(
            tag(
                "p",
                tag("b", f"Wanted: ± {percent(t['error'])}. "),
                f"{'Reached' if t['met'] else 'Not reached'} ({reached}).{more}",
                cls="answer",
            )
        )
    return parts


def _method(name: str) -> str:
    """A method with its description; a folder may name one that is not known here."""
    try:
        return f"{name}: {find_method(name).description}"
    except UnknownNameError:
        return name


def evaluated(it: ReportData) -> list[Html | None]:
    """What the number is about."""
    r, of = it.result, it.provenance.get("identity", {})
    rows: list[tuple[str, Any]] = [("Problem", r["problem"] or "without a name")]
    if of.get("description"):
        rows[0] = ("Problem", f"{r['problem']}: {of['description']}")
    horizon = of.get("horizon")
    longest = "until the episode ends" if horizon is None else f"at most {horizon}"
    rows.append(("Decisions of nature", f"{longest} per episode"))
    for entry, name in (("nominal", "Disturbance, nominal"), ("initial", "Start, nominal")):
        if isinstance(law := of.get(entry), dict):
            rows.append((name, law.get("words", "")))
    rows += [
        ("Counts as failure", ", ".join(r["kinds"])),
        ("Method", _method(r["method"])),
        ("Seen of the state", f"the view “{r['view']}”"),
        *([("Policy", "has memory, which is part of the state")] if r.get("policy_memory") else []),
        ("Time taken", f"{r['seconds']:.1f} s"),
    ]
    return [
        facts(rows),
        _folded("Parameters of the problem", r["parameters"]),
        _folded("Settings of the method", r["settings"]),
        *[tag("p", sentence(text), cls="absent") for text in it.missing],
    ]


def facts(rows: list[tuple[str, Any]]) -> Html:
    """A table of names and values."""
    return tag(
        "table",
        tag("tbody", [tag("tr", tag("th", k, scope="row"), tag("td", v)) for k, v in rows]),
        cls="facts",
    )


def _folded(title: str, values: Any) -> Html | None:
    if not values:
        return None
    return tag("details", tag("summary", title), facts([(k, plain(v)) for k, v in values.items()]))
