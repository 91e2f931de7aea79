"""Ask rtamt for the robustness of random formulas on random signals: tests/data/rtamt.json.

    python3 -m venv rtamt && rtamt/bin/pip install rtamt==0.4.10
    rtamt/bin/python tools/rtamt_answers.py tests/data/rtamt.json

rtamt (https://github.com/nickovic/rtamt) pins its parser and is slow, so it is no dependency: its
answers are kept. Formulas are in full parentheses, and both languages read them. Time is discrete
and rtamt's evaluation offline; what it says of its open issue 210, a wrong sign of `until`, is
about dense time, which is not asked for here.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

FORMULAS, TRACES, LONGEST, SEED = 2_500, 40, 14, 1
_SIGNS = ("<", "<=", ">", ">=", "==")
_TERMS = ("x", "y", "z", "(x + y)", "(x - z)", "(2 * y)", "(z / 4)", "abs(x)")


def traces() -> list[dict[str, list[float]]]:
    """Signals x, y and z, some with values that meet the formulas' numbers exactly."""
    rng = random.Random(SEED)
    found = []
    for number in range(TRACES):
        length = 2 + number % LONGEST  # of one moment rtamt says nothing
        digits = 0 if number % 2 else 3
        found.append(
            {name: [round(rng.uniform(-4, 4), digits) for _ in range(length)] for name in "xyz"}
        )
    return found


def formula(rng: random.Random, depth: int) -> str:
    """A random formula with as many operators inside each other."""
    if depth == 0 or rng.random() < 0.1:
        return f"({rng.choice(_TERMS)} {rng.choice(_SIGNS)} {rng.randint(-3, 3)})"
    one = formula(rng, depth - 1)
    kind = rng.choice(("not", "join", "time", "time", "until"))
    if kind == "not":
        return f"(not {one})"
    if kind == "time":
        return f"({rng.choice(('always', 'eventually'))}{_bounds(rng)} {one})"
    word = rng.choice(("and", "or", "implies")) if kind == "join" else f"until{_bounds(rng)}"
    return f"({one} {word} {formula(rng, depth - 1)})"


def _bounds(rng: random.Random) -> str:
    if rng.random() < 0.4:
        return ""
    low = rng.randint(0, 4)
    return f"[{low},{low + rng.randint(0, 5)}]"


def ask(text: str, signals: dict[str, list[float]]) -> float:
    """rtamt's robustness at the start of the signals."""
    import rtamt

    it = rtamt.StlDiscreteTimeSpecification()
    for name in signals:
        it.declare_var(name, "float")
    it.spec = text
    it.parse()
    length = len(next(iter(signals.values())))
    rows = it.evaluate({"time": list(range(length)), **{k: list(v) for k, v in signals.items()}})
    return float(rows[0][1])


def main(path: str) -> None:
    """Write the answers."""
    rng, given = random.Random(SEED), traces()
    answers: list[list[Any]] = []
    for number in range(FORMULAS):
        text, trace = formula(rng, rng.randint(1, 4)), number % TRACES
        answers.append([text, trace, str(ask(text, given[trace]))])
    head = {"made by": "tools/rtamt_answers.py", "rtamt": "0.4.10", "seed": SEED, "traces": given}
    lines = ",\n".join(json.dumps(row) for row in answers)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'{json.dumps(head)[:-1]}, "answers": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main(sys.argv[1])
