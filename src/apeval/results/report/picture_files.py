"""Pictures of an environment as text that the report holds: small enough for one offline file."""

from __future__ import annotations

import base64
import importlib.util
import io
from collections.abc import Sequence
from typing import Any

from apeval.problem.types import Array

_SIZES = ((480, 80), (480, 60), (400, 50), (320, 45), (240, 40), (160, 30))  # width, quality
_TRIED = 8  # one picture of so many tells how large all will be


def can_encode() -> bool:
    """Whether the library that makes pictures small is installed."""
    return importlib.util.find_spec("PIL") is not None


def as_data(pictures: Sequence[Array], room: int) -> list[str] | None:
    """Every picture as a data address, all together in at most `room` characters; None where they
    do not fit even when small."""
    from PIL import Image

    images = [Image.fromarray(it) for it in pictures]
    for width, quality in _SIZES:
        tried = [_encoded(it, width, quality) for it in images[::_TRIED]]
        if sum(map(len, tried)) * len(images) > 0.95 * room * len(tried):
            continue
        texts = [_encoded(it, width, quality) for it in images]
        if sum(map(len, texts)) <= room:
            return texts
    return None


def _encoded(image: Any, width: int, quality: int) -> str:
    """WebP where the library has it, else JPEG; never larger than it was."""
    from PIL import Image, features

    height = max(1, round(image.height * width / image.width))
    small = image if width >= image.width else image.resize((width, height), Image.Resampling.BOX)
    kind = "webp" if features.check("webp") else "jpeg"
    buffer = io.BytesIO()
    small.save(buffer, kind.upper(), quality=quality)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"
