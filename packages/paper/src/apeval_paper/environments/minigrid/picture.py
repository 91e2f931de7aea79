"""The paper's picture of the MiniGrid problem: MiniGrid's rendering of the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apeval.problem.types import Array
from apeval_paper.environments.minigrid import rules
from apeval_paper.environments.minigrid.env import FlowingLavaEnv

_TILE = 64  # pixels per cell


def picture(lava: tuple[int, int] = rules.LAVA_STARTS["s1"], tile: int = _TILE) -> Array:
    """The start with the lava at the given (x, y), as an RGB array of 7·tile × 7·tile pixels."""
    env = FlowingLavaEnv(p_stay=1.0, lava=lava, render_mode="rgb_array")
    env.tile_size = tile
    env.reset()
    image: Array = env.render()  # type: ignore[no-untyped-call]
    return image


def save_picture(path: Path, lava: tuple[int, int] = rules.LAVA_STARTS["s1"]) -> None:
    """Write the picture as PNG, with s1, s2 and s3 marked in their cells."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    size = rules.GRID_SIZE
    figure = Figure(figsize=(4.0, 4.0), dpi=size * _TILE / 4.0)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.imshow(picture(lava), extent=(0.0, size, size, 0.0), interpolation="nearest")
    look: dict[str, Any] = {"color": "white", "fontsize": 20, "ha": "center", "va": "center"}
    behind = {"boxstyle": "round,pad=0.1", "facecolor": "black", "edgecolor": "none"}
    for name, (x, y) in rules.LAVA_STARTS.items():
        axes.text(x + 0.5, y + 0.5, f"$s_{name[1:]}$", bbox=behind, **look)
    figure.savefig(path)
