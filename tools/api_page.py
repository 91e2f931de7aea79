"""Writes docs/reference/api.md from the docstrings: python tools/api_page.py"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import apeval

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "api.md"
GROUPS = {
    "From a problem to a number": ["make", "evaluate", "Result", "plan", "check_problem"],
    "Your own environment": [
        "from_env", "ActionNoise", "ObservationNoise", "ParameterNoise", "StartNoise",
        "CustomNoise", "DropAction", "BlankSensor", "Event",
    ],
    "Your own policy": ["DiscretePolicy", "GaussianPolicy", "load_sb3", "sb3_stochastic"],
    "Your own simulator": [
        "Problem", "Categorical", "Normal", "TruncatedNormal", "FromScipy", "Deterministic",
        "Stochastic", "TabularModel", "tabular_problem", "from_gymnasium", "with_correlated_noise",
        "Truth",
    ],
    "Stored runs, and what to ask them": [
        "Recorder", "InMemory", "resume", "load", "Run", "replay", "reweight", "compare", "merge",
    ],
    "Errors": ["ApevalError"],
}  # fmt: skip


def page() -> str:
    """The whole page."""
    listed = {name for names in GROUPS.values() for name in names}
    missing = set(apeval.__all__) - {"__version__"} ^ listed
    if missing:
        raise SystemExit(f"tools/api_page.py: put into a group, or take out: {sorted(missing)}")
    parts = [
        "# API\n\nAll that `import apeval` offers, from its docstrings "
        "(`python tools/api_page.py` writes this page). Names are\n"
        "loaded on first use. [Own problems](own-problems.md) has the "
        "arguments of `from_env` and of every disturbance, and\n[Result as JSON](json.md) every "
        "field of a `Result`.\n"
    ]
    for group, names in GROUPS.items():
        parts.append(f"\n## {group}\n")
        parts += [_entry(name, getattr(apeval, name)) for name in names]
    return "".join(parts)


def _entry(name: str, it: Any) -> str:
    return f"\n### {name}\n\n```text\n{_signature(name, it)}\n```\n\n{_text(it)}\n"


def _signature(name: str, it: Any) -> str:
    if inspect.isclass(it) and issubclass(it, Exception):
        return f"{name}(message)"
    parameters = inspect.signature(it).parameters.values()
    words, keyword_only = [], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            words.append("*")
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        words.append(star + p.name + ("" if p.default is p.empty else f"={_default(p.default)}"))
    return f"{name}({', '.join(words)})"


def _default(value: Any) -> str:
    """A default as one would write it; what has no short form is left out."""
    text = repr(value)
    return "…" if "<" in text or len(text) > 20 else text


def _text(it: Any) -> str:
    text = inspect.getdoc(it) or ""
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    return re.sub(
        r"(?:^|(?<=\n))((?:>>> .*\n?)(?:.+\n?)*)",
        lambda m: f"```pycon\n{m.group(1).rstrip()}\n```\n",
        text,
    ).rstrip()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
