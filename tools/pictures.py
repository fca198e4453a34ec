"""Pictures that ship with the documentation: small copies of what a results folder drew.

`docs/pictures/<paper>-<figure>.webp` is the figure, `...-readings.webp` its specification curve.
"""

from __future__ import annotations

import io
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
BYTES = 40_000
"""Most of one picture."""
_WIDTHS, _QUALITIES = (800, 640, 520), (80, 60, 40, 20)


def small(png: bytes) -> bytes:
    """A picture on white of at most BYTES, as wide and as good as that allows."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as drawn:
        white = Image.new("RGBA", drawn.size, "white")
        white.alpha_composite(drawn.convert("RGBA"))
    for width in _WIDTHS:
        size = width, round(white.height * width / white.width)
        scaled = white.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        for quality in _QUALITIES:
            made = io.BytesIO()
            scaled.save(made, "WEBP", quality=quality, method=6)
            if made.tell() <= BYTES:
                return made.getvalue()
    raise ValueError(f"the picture of {len(png)} bytes does not fit into {BYTES}")


def name_of(figure: str, kind: str = "") -> str:
    """Its file's place below docs/."""
    return f"{FOLDER.name}/{figure.replace('/', '-')}{kind}.webp"


def write(figure: str, png: bytes, kind: str = "") -> None:
    """Put the small copy there."""
    path = FOLDER.parent / name_of(figure, kind)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(small(png))
