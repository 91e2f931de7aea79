"""The page of `ape-scalable` says what the code does: its settings and its presets."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from apeval_paper.methods.ape_scalable.config import PRESETS, ApeScalableConfig

PAGE = Path(__file__).parents[2] / "docs" / "methods" / "ape-scalable.md"
ORDER = ("printed", "cross-entropy", "steered")


def written(value: Any) -> str:
    if value is None:
        return "spline where $d_E = 1$, else affine"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def test_the_page_names_every_setting() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [
        field.name
        for field in dataclasses.fields(ApeScalableConfig)
        if f"`{field.name}`" not in text and f"`{field.name}=" not in text
    ]
    assert not missing


def test_the_page_has_what_each_preset_chooses() -> None:
    assert sorted(PRESETS) == sorted(ORDER)
    rows = PAGE.read_text(encoding="utf-8").partition("| left open by None |")[2].splitlines()
    found = {row.split("`")[1]: row for row in rows if row.startswith("| `")}
    open_fields = {f.name for f in dataclasses.fields(ApeScalableConfig) if f.default is None}
    assert set(found) == open_fields - {"warm_scale"}
    for name in found:
        cells = [written(PRESETS[preset].get(name)) for preset in ORDER]
        assert found[name] == f"| `{name}` | {' | '.join(cells)} |"
