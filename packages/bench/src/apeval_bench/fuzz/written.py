"""The text of a user's problem: right but for one to three parts.

`mistakes.json` has, for each argument of each way to write a problem, expressions that are right
together and wrong ones.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

_WAYS = {"batch": 10, "gym": 5, "adapted": 4, "table": 2, "file": 1}
Parts = dict[str, tuple[list[str], list[str]]]


def source(rng: Random) -> str:
    """One user's file."""
    way = rng.choices(list(_WAYS), list(_WAYS.values()))[0]
    if way == "file":
        text: str = rng.choice(_known()["files"])
        return text
    head = "\n".join(_known()["head"])
    if way == "batch":
        return head + _factory(_call("apeval.Problem", _chosen(rng, "batch")))
    if way == "table":
        model = _call("apeval.TabularModel", _chosen(rng, "table"))
        return head + _factory(f"apeval.tabular_problem({model})")
    if way == "adapted":
        arguments = _chosen(rng, "adapted")
        environment = _environment(_chosen(rng, "env", 0))
        return head + environment + _factory(_call("apeval.from_env", arguments, "env"))
    inside = rng.random() < 0.5
    environment = _environment(_chosen(rng, "env", None if inside else 0))
    arguments = {"make_env": "Env", **_chosen(rng, "gym", 0 if inside else None)}
    return head + environment + _factory(_call("apeval.from_gymnasium", arguments, "make_env"))


@cache
def _known() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(Path(__file__).with_name("mistakes.json").read_text("utf-8"))
    return known


@cache
def _parts(way: str) -> Parts:
    return {name: _expressions(part) for name, part in _known()[way].items()}


def _expressions(part: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Right ones and wrong ones, with those that are wrong anywhere."""
    known, right, wrong = _known(), part["right"], part["wrong"]
    anything = known["anything"] if part.get("anything") else []
    if "function_of" not in part:
        return right, [*wrong, *anything]
    head, (body,) = f"lambda {part['function_of']}: ", right
    often = [f"now_and_then({body}, {error}, 3)" for error in known["errors"]]
    always = [f"now_and_then({body}, {error}, 1)" for error in known["errors"][:4]]
    other = [*often, *always, *known["no_rows"], f"({body})[1:]", f"np.asarray({body}).tolist()"]
    return [head + body], [*(head + text for text in (*wrong, *wrong, *other)), *anything]


def _chosen(rng: Random, way: str, wrong: int | None = None) -> dict[str, str]:
    """An expression for every part, some of them wrong."""
    parts = _parts(way)
    count = rng.choice((0, 1, 1, 1, 2, 3)) if wrong is None else wrong
    spoilt = rng.sample(list(parts), min(count, len(parts)))
    return {k: rng.choice(bad if k in spoilt else good) for k, (good, bad) in parts.items()}


def _environment(parts: dict[str, str]) -> str:
    return "\n\n" + "\n".join(_known()["environment"]).format(**parts)


def _call(name: str, arguments: dict[str, str], first: str = "") -> str:
    given = [v if k == first else f"{k}={v}" for k, v in arguments.items()]
    return f"{name}({', '.join(given)})"


def _factory(expression: str) -> str:
    return f"\n\ndef problem():\n    return {expression}\n"
