"""The paper's pictures of its environments, and a replay of a failure in each continuous one."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from apeval.atomic_files import written_whole
from apeval.problem.types import FloatArray
from apeval_bench.registry import ExperimentReport, ExperimentRequest, experiment

_TRIED = 200_000
_WIDENED = 3.0


@experiment("reproduce", "environments", "the paper's pictures of MiniGrid, Int and LunarLander", 1)
def environments(request: ExperimentRequest) -> ExperimentReport:
    """Stills (PNG) and replays (GIF) in the output folder."""
    from apeval_paper.environments.lunarlander.render import main as draw_lander
    from apeval_paper.environments.minigrid.picture import save_picture

    folder = request.out or Path(mkdtemp(prefix="apeval-environments-"))
    files = {"minigrid": folder / "minigrid.png"}
    save_picture(files["minigrid"])
    for k, name in enumerate(("int-v0", "int-v1")):
        request.tick(name, k, 3)
        files |= _draw_intersection(name, folder, request.first_seed)
    request.tick("lunarlander", 2, 3)
    draw_lander(folder)
    for part, ending in (("", "png"), ("-landing", "gif"), ("-crash", "gif")):
        files[f"lunarlander{part}"] = folder / f"lunarlander{part}.{ending}"
    text = "\n".join(f"- {what}: {path.name}" for what, path in files.items())
    return ExperimentReport({"files": {k: v.name for k, v in files.items()}}, text, files=files)


def _draw_intersection(name: str, folder: Path, seed: int) -> dict[str, Path]:
    from PIL import Image

    from apeval_paper.environments.intersection.geometry import PRESETS
    from apeval_paper.environments.intersection.render import picture, replay

    g, a_E = PRESETS[name], likely_crash(name, seed)
    files = {name: folder / f"{name}.png", f"{name}-crash": folder / f"{name}-crash.png"}
    for file, drawn in ((name, picture(g)), (f"{name}-crash", picture(g, a_E))):
        with written_whole(files[file]) as png:
            Image.fromarray(drawn).save(png, "PNG")
    files[f"{name}-replay"] = replay(g, a_E, folder / f"{name}-crash.gif")
    return files


def likely_crash(name: str, seed: int) -> FloatArray:
    """The crash of largest nominal density among many episodes under widened noise, (T, d_E)."""
    from apeval_paper.environments.intersection.geometry import PRESETS
    from apeval_paper.environments.intersection.sampling import nominal_actions
    from apeval_paper.environments.intersection.twin import episodes

    g = PRESETS[name]
    a_E = nominal_actions(g, _TRIED, np.random.default_rng(seed), _WIDENED)
    crashed, _ = episodes(g, a_E)
    among = a_E[np.asarray(crashed) > 0]
    likeliest: FloatArray = among[np.argmin((among**2).sum(axis=(1, 2)))]
    return likeliest
