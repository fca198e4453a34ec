"""How results show themselves: one line at the prompt, a small table in a notebook."""

from __future__ import annotations

import html
from dataclasses import fields
from typing import Any


class Shown:
    """A result that shows itself by `summary()`; its dataclass is declared with repr=False."""

    def summary(self) -> dict[str, Any]:
        """What is worth showing, by name; arrays appear as dtype and shape."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore

    def __repr__(self) -> str:
        parts = (f"{name}={brief(value)}" for name, value in self.summary().items())
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(brief(value))}</td></tr>"
            for name, value in self.summary().items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


def brief(value: Any, most: int = 60) -> str:
    """A value in a few characters.

    >>> import numpy as np
    >>> brief(np.zeros((3, 2))), brief({"a": np.zeros(2)}), brief(0.123456789)
    ('float64[3, 2]', '{a: float64[2]}', '0.123457')
    """
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        if value.ndim == 0:
            return brief(value.item())
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {brief(v)}" for k, v in value.items()) + "}"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."
