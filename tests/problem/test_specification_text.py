"""Texts that are no specification: each is refused with the place of the mistake."""

from __future__ import annotations

from typing import Any

import pytest

import apeval
from apeval.errors import ProblemError
from apeval.problem.specification.mistakes import SpecificationError

WRONG = [  # line and column of the mistake, looked at one by one
    ("always gapp > 2", 1, 8),
    ("always[0,5] gap 2", 1, 17),
    ("gap + 1", 1, 1),
    ("always", 1, 7),
    ("always[0,5]", 1, 12),
    ("always[0,5 gap > 2", 1, 12),
    ("always[0 5] gap > 2", 1, 10),
    ("always[5,0] gap > 2", 1, 7),
    ("always[-1,5] gap > 2", 1, 8),
    ("always[0,5.5] gap > 2", 1, 10),
    ("always[0,5] (gap > 2", 1, 13),
    ("always[0,5] gap > 2)", 1, 20),
    ("gap > 2 and", 1, 12),
    ("and gap > 2", 1, 1),
    ("gap > 2 or or speed < 1", 1, 12),
    ("gap > 2 speed < 1", 1, 9),
    ("gap > > 2", 1, 7),
    ("gap > ", 1, 6),
    ("> 2", 1, 1),
    ("gap = 2", 1, 5),
    ("gap => 2", 1, 5),
    ("gap =< 2", 1, 5),
    ("gap <> 2", 1, 6),
    ("gap > 2 until", 1, 14),
    ("until gap > 2", 1, 1),
    ("gap > 2 until speed < 1 until gap > 3", 1, 25),
    ("G gap > 2", 1, 1),
    ("G[0,5] gap > 2", 1, 1),
    ("F[0,5] gap > 2", 1, 1),
    ("alwys gap > 2", 1, 1),
    ("allways gap > 2", 1, 1),
    ("eventualy gap > 2", 1, 1),
    ("Always gap > 2", 1, 1),
    ("gap > 2 AND speed > 1", 1, 9),
    ("gap > 2 implys speed < 1", 1, 9),
    ("gap > 2m", 1, 7),
    ("always[0,5s] gap > 2", 1, 10),
    ("gap[0] > 2", 1, 4),
    ("gap.x > 2", 1, 4),
    ('"gap" > 2', 1, 1),
    ("gap > 2;", 1, 8),
    ("gap > 2 @ 3", 1, 9),
    ("gap > $2", 1, 7),
    ("gap > 2 %", 1, 9),
    ("gap > inf", 1, 7),
    ("inf > gap", 1, 1),
    ("always[inf,inf] gap > 2", 1, 8),
    ("always[0,] gap > 2", 1, 10),
    ("always[,5] gap > 2", 1, 8),
    ("always[] gap > 2", 1, 8),
    ("always[a,b] gap > 2", 1, 8),
    ("always [0,5,7] gap > 2", 1, 12),
    ("always(0,5) gap > 2", 1, 9),
    ("not", 1, 4),
    ("not not", 1, 8),
    ("not gap > ", 1, 10),
    ("!", 1, 2),
    ("abs(gap) ", 1, 1),
    ("abs gap > 2", 1, 5),
    ("abs() > 2", 1, 5),
    ("abs(gap, speed) > 2", 1, 1),
    ("min(gap) > 2", 1, 1),
    ("max() > 2", 1, 5),
    ("sin(gap) > 2", 1, 1),
    ("gap(2) > 2", 1, 4),
    ("speed(gap) > 1", 1, 6),
    ("(gap > 2) + 1 > 3", 1, 1),
    ("(gap > 2) > 1", 1, 1),
    ("1 + (gap > 2)", 1, 5),
    ("-(gap > 2)", 1, 2),
    ("2 * always gap > 2", 1, 5),
    ("gap > always speed > 1", 1, 7),
    ("gap > not speed", 1, 7),
    ("gap + > 2", 1, 7),
    ("gap * / 2 > 1", 1, 7),
    ("gap ^ > 2", 1, 7),
    ("gap ** > 2", 1, 8),
    ("gap > 2 and (speed < 1 or gap > 3", 1, 13),
    ("((gap > 2)", 1, 1),
    ("gap > 2))", 1, 8),
    ("()", 1, 2),
    ("(gap > 2)(speed < 1)", 1, 10),
    ("gap > 2 , speed < 1", 1, 9),
    ("gap > 2 : speed", 1, 9),
    ("[0,5] gap > 2", 1, 1),
    ("gap > 2 [0,5]", 1, 9),
    ("gap ] > 2", 1, 5),
    ("gap > 1e999", 1, 7),
    ("gap > 1.2.3", 1, 10),
    ("gap > 1..2", 1, 9),
    ("gap > 0x10", 1, 7),
    ("true false", 1, 6),
    ("true > 1", 1, 1),
    ("always true > 1", 1, 8),
    ("gap > 2 implies", 1, 16),
    ("implies gap > 2", 1, 1),
    ("gap -> > 2", 1, 8),
    ("gap > 2 -> -> speed < 1", 1, 12),
    ("gap != ", 1, 7),
    ("gap ! 2", 1, 5),
    ("gap !== 2", 1, 7),
    ("gap === 2", 1, 7),
    ("if gap > 2", 1, 1),
    ("gap > 2 then speed < 1", 1, 9),
    ("eventually[0,5](gap > 2", 1, 16),
    ("eventually[1:] gap > 2", 1, 14),
    ("eventually{0,5} gap > 2", 1, 11),
    ("always gap > 2 and eventually[0,10] sped < 1", 1, 37),
    ("gap > 2 & speed > & 1", 1, 19),
    ("x > 2", 1, 1),
    ("next gap > 2", 1, 1),
    ("gap > 2 since speed < 1", 1, 9),
    ("historically gap > 2", 1, 1),
    ('gap > "2"', 1, 7),
    ("gap >2 \n and sped < 1", 2, 6),
    ("", 1, 1),
    ("   ", 1, 1),
    ("# nothing", 1, 10),
    ("\n\n", 1, 1),
    ("gap > 2\nand spee < 1 # x", 2, 5),
    ("always[0, 2e12] gap > 2", 1, 11),
]


def refused(text: str, **given: Any) -> SpecificationError:
    with pytest.raises(SpecificationError) as found:
        apeval.spec(text, gap=None, speed=None, **given)
    return found.value


@pytest.mark.parametrize(("text", "line", "column"), WRONG)
def test_a_mistake_is_shown_at_its_place(text: str, line: int, column: int) -> None:
    error = refused(text)
    assert (error.line, error.column) == (line, column)
    message, shown, caret = str(error).splitlines()
    assert message.startswith(f"line {line}, column {column}: ")
    assert shown[4:] == (text.splitlines() or [""])[line - 1].replace("\t", " ")
    assert caret.index("^") == 4 + column - 1
    assert set(caret.strip()) == {"^"}


def test_there_are_enough_of_them() -> None:
    assert len({text for text, _, _ in WRONG}) >= 100


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("always gapp > 2", "gap"),
        ("always sped > 2", "speed"),
        ("alwys gap > 2", "always"),
        ("G gap > 2", "always"),
        ("F[0,5] gap > 2", "eventually"),
        ("gap > 2 AND speed > 1", "and"),
        ("gap > 2 implys speed < 1", "implies"),
    ],
)
def test_the_nearest_name_is_told(text: str, meant: str) -> None:
    assert f"Did you mean '{meant}'?" in str(refused(text))


def test_a_name_that_is_near_nothing_gets_the_signals() -> None:
    assert "Signals: gap, speed." in str(refused("always x > 2"))


@pytest.mark.parametrize("text", ["(" * 500 + "gap > 2", "not " * 500, "-" * 500 + "gap > 2"])
def test_a_text_as_deep_as_python_cannot_go_is_refused(text: str) -> None:
    assert refused(text).column > 1


def test_a_long_row_is_no_depth() -> None:
    text = " and ".join(["always gap > 2"] * 500)
    assert apeval.spec(text, gap=None).robustness(gap=[3.0, 4.0]) == 1.0
    assert "terms in a row" in str(refused(" + ".join(["gap"] * 500) + " > 1"))


def test_seconds_between_which_there_is_no_moment_are_refused() -> None:
    assert "no moment lies in" in str(refused("always[0.11, 0.19] gap > 2", dt=0.1))
    assert "beyond any episode" in str(refused("always[0, 1e12] gap > 2", dt=0.1))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"dt": 0.0}, "dt must be"),
        ({"dt": float("nan")}, "dt must be"),
        ({"dt": "0.1"}, "dt must be"),
        ({"kind": 3}, "kind is a int"),
        ({"signals": {"2nd": None}}, "cannot name a signal"),
        ({"signals": {"always": None}}, "cannot name a signal"),
        ({"signals": {3: None}}, "cannot name a signal"),
    ],
)
def test_other_arguments_are_looked_at(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ProblemError, match=why):
        apeval.spec("always gap > 2", gap=None, **given)


def test_a_text_must_be_one() -> None:
    with pytest.raises(ProblemError, match="is a text"):
        apeval.spec(3)  # type: ignore[arg-type]


def test_a_terminal_does_not_obey_the_text() -> None:
    assert "\x1b" not in str(refused("gap > \x1b[31m 2"))
