"""Pictures that ship with the documentation: small copies of what a results folder drew.

`docs/pictures/<paper>-<figure>.webp` is the figure, `...-readings.webp` its specification curve.
"""

from __future__ import annotations

import io
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
BYTES = 40_000
"""What a picture should not exceed."""
_SIZES = ((800, 80), (800, 50), (640, 50), (640, 25), (480, 25), (360, 25), (240, 10))
"""Width and quality, the best first."""


def small(png: bytes) -> bytes:
    """A picture on white within BYTES, as wide and as good as that allows."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as drawn:
        white = Image.new("RGBA", drawn.size, "white")
        white.alpha_composite(drawn.convert("RGBA"))
    for width, quality in _SIZES:
        size = width, round(white.height * width / white.width)
        made = io.BytesIO()
        scaled = white.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        scaled.save(made, "WEBP", quality=quality, method=6)
        if made.tell() <= BYTES:
            break
    return made.getvalue()


def name_of(figure: str, kind: str = "") -> str:
    """Its file's place below docs/."""
    return f"{FOLDER.name}/{figure.replace('/', '-')}{kind}.webp"


def write(figure: str, png: bytes, kind: str = "") -> None:
    """Put the small copy there."""
    path = FOLDER.parent / name_of(figure, kind)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(small(png))
