"""Where results and notes of a command go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def consoles(json: bool) -> tuple[Console, Console]:
    """Where results go and where notes go: with --json, standard output is for JSON alone."""
    from rich.console import Console

    notes = Console(stderr=True)
    return (notes if json else Console()), notes


def print_json(content: Any) -> None:
    """One JSON text on standard output; numbers that are not finite are null."""
    from ..core import json_text

    print(json_text(content))
