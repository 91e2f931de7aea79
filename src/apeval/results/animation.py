"""A scene as an animated GIF: the picture, and series with a line that runs through them."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import Any

import numpy as np

from apeval.errors import ApevalError
from apeval.problem.types import Array, FloatArray
from apeval.results.files import write_bytes
from apeval.results.shapes import DISTURBANCE, MEASURE, STATE, Mover, Scene, Series, Shape

#: Okabe and Ito's colours, which colour-blind readers tell apart.
PALETTE = {
    "agent": "#0072B2",
    "adversary": "#D55E00",
    "other": "#999999",
    "ground": "#6B6B6B",
    "road": "#D9D9D9",
    "line": "#FFFFFF",
    "goal": "#009E73",
    "hazard": "#E69F00",
    "flame": "#F0E442",
}
_MOST_FRAMES, _MOST_SERIES = 120, 4
_LAST = 1.5  # seconds for which the last frame stays
_STEP = 0.1  # seconds per step of an environment that draws itself
_DECISION = 0.5  # seconds per decision where its true length is not known


def save_gif(scene: Scene, path: Path) -> Path:
    """Write the scene at about its true speed; long ones lose frames, not time."""
    _require_libraries()
    F = len(scene.time)
    keep = np.unique(np.linspace(0, F - 1, min(F, _MOST_FRAMES)).astype(int))
    pictures = _Stage(scene).pictures(keep)
    unit = 1.0 if scene.time_unit == "s" else _DECISION
    seconds = np.append(np.diff(scene.time[keep]) * unit, _LAST)
    return _save(pictures, seconds, path)


def save_pictures(pictures: list[Array], path: Path) -> Path:
    """Write an environment's own frames, one per step; long episodes lose frames, not time."""
    _require_libraries()
    F = len(pictures)
    keep = np.unique(np.linspace(0, F - 1, min(F, _MOST_FRAMES)).astype(int))
    seconds = np.append(np.diff(keep) * _STEP, _LAST)
    return _save([pictures[k] for k in keep], seconds, path)


def _require_libraries() -> None:
    missing = [name for name in ("matplotlib", "PIL") if importlib.util.find_spec(name) is None]
    if missing:
        raise ApevalError("a GIF needs Matplotlib and Pillow: pip install 'apeval[pictures]'")


def _save(pictures: list[Array], seconds: FloatArray, path: Path) -> Path:
    from PIL import Image

    images = [Image.fromarray(np.ascontiguousarray(p)).convert("RGB") for p in pictures]
    few = [image.quantize(64, dither=Image.Dither.NONE) for image in images]
    milliseconds = [max(20, round(1000 * s)) for s in seconds.tolist()]
    buffer = io.BytesIO()
    few[0].save(buffer, "GIF", save_all=True, append_images=few[1:], duration=milliseconds, loop=0)
    return write_bytes(path, buffer.getvalue())


class _Stage:
    """One figure, whose moving parts are put in place frame by frame."""

    def __init__(self, scene: Scene) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.scene = scene
        shown = _chosen(scene.series)
        wide = scene.drawable and bool(shown)
        rows = max(len(shown), 1)
        figure = Figure(figsize=(9.0 if wide else 5.5, 4.6), dpi=80, layout="constrained")
        self.canvas: Any = FigureCanvasAgg(figure)
        figure.suptitle(f"{scene.title}: {scene.outcome}", fontsize=11)
        grid = figure.add_gridspec(rows, 2 if wide else 1, width_ratios=[1.25, 1] if wide else None)
        self.bodies: list[tuple[Any, Mover]] = []
        if scene.drawable:
            self._picture(figure.add_subplot(grid[:, 0]))
        self.cursors = []
        for k, series in enumerate(shown):
            axes = figure.add_subplot(grid[k, 1 if wide else 0])
            self.cursors.append(self._series(axes, series))
            axes.tick_params(labelsize=8, labelbottom=k == len(shown) - 1)
            if k == len(shown) - 1:
                axes.set_xlabel(_with_unit("time", scene.time_unit), fontsize=8)

    def pictures(self, frames: Array) -> list[Array]:
        """RGB arrays of these frames."""
        from matplotlib.transforms import Affine2D

        moving = [*(patch for patch, _ in self.bodies), *self.cursors]
        for artist in moving:
            artist.set_animated(True)  # drawn over a background that is drawn once
        self.canvas.draw()
        background = self.canvas.copy_from_bbox(self.canvas.figure.bbox)
        done = []
        for f in frames.tolist():
            self.canvas.restore_region(background)
            for patch, mover in self.bodies:
                x, y, heading = mover.pose[f].tolist()
                place = Affine2D().rotate(heading).translate(x, y)
                patch.set_transform(place + patch.axes.transData)
                patch.set_visible(mover.visible is None or bool(mover.visible[f]))
            for cursor in self.cursors:
                cursor.set_xdata([self.scene.time[f]] * 2)
            for artist in moving:
                artist.axes.draw_artist(artist)
            done.append(np.array(self.canvas.buffer_rgba())[:, :, :3])
        return done

    def _picture(self, axes: Any) -> None:
        scene = self.scene
        if scene.bounds is not None:
            x0, y0, x1, y1 = scene.bounds
            axes.set_xlim(x0, x1)
            axes.set_ylim(y0, y1)
        axes.set_aspect("equal")
        axes.tick_params(labelsize=8)
        if scene.unit:
            axes.set_xlabel(f"x ({scene.unit})", fontsize=8)
            axes.set_ylabel(f"y ({scene.unit})", fontsize=8)
        else:
            axes.set_xticks([])
            axes.set_yticks([])
        for shape in scene.static:
            axes.add_patch(_patch(shape))
        named: list[tuple[Any, str]] = []
        for mover in scene.movers:
            for shape in mover.shapes:
                patch = axes.add_patch(_patch(shape))
                self.bodies.append((patch, mover))
                if mover.name and mover.name not in [n for _, n in named]:
                    named.append((patch, mover.name))
        if named:
            axes.legend([p for p, _ in named], [n for _, n in named], fontsize=8, loc="upper right")

    def _series(self, axes: Any, series: Series) -> Any:
        end = float(self.scene.time[-1])
        time, value = series.time, series.value
        if series.held:
            time, value = np.append(time, max(end, float(time[-1]))), np.append(value, value[-1:])
        colour = PALETTE["adversary" if series.group == DISTURBANCE else "agent"]
        axes.plot(time, value, color=colour, drawstyle="steps-post" if series.held else "default")
        axes.set_title(_with_unit(series.name, series.unit), fontsize=8, loc="left", pad=2)
        axes.set_xlim(float(self.scene.time[0]), max(end, 1e-9))
        axes.grid(alpha=0.3)
        return axes.axvline(0.0, color="#333333", linewidth=1.0)


def _patch(shape: Shape) -> Any:
    from matplotlib.patches import Polygon

    colour = PALETTE.get(shape.role, PALETTE["other"])
    fill = shape.closed
    edge = "none" if shape.role == "road" else "#222222" if fill else colour
    return Polygon(
        shape.points, closed=fill, fill=fill, facecolor=colour, edgecolor=edge,
        linewidth=0.6 if fill else 1.5,
    )  # fmt: skip


def _chosen(series: tuple[Series, ...]) -> list[Series]:
    """The first few, what a drawing measures and disturbances before states."""
    rank = {MEASURE: 0, DISTURBANCE: 1, STATE: 2}
    kept = [s for s in series if len(s.time)]
    first = sorted(kept, key=lambda s: rank.get(s.group, 3))
    if len(first) <= _MOST_SERIES:
        return first
    groups: dict[str, list[Series]] = {}
    for s in first:
        groups.setdefault(s.group, []).append(s)
    turns = [g[k] for k in range(_MOST_SERIES) for g in groups.values() if k < len(g)]
    chosen = turns[:_MOST_SERIES]
    return [s for s in first if any(s is c for c in chosen)]


def _with_unit(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name
