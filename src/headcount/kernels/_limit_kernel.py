"""What a limiting kernel is: blocks, their standard errors, and how they were obtained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ..core import Array, BadArgument, check_finite, check_shape
from ..core._results import mappable
from ..core._shown import Shown

if TYPE_CHECKING:
    import xarray


@mappable("method", "heads", "target_error", "target_met")
@dataclass(frozen=True, repr=False)
class LimitKernel(Shown):
    """A kernel at infinite width, by parameter block.

    `errors` are standard errors per entry (zero for a closed form); the error of the total is kept
    apart, because the blocks share their heads. `target_met` is None when no target error was
    asked for.
    """

    blocks: dict[str, Float[Array, "n1 n2"]]
    errors: dict[str, Float[Array, "n1 n2"]]
    total: Float[Array, "n1 n2"]
    total_error: Float[Array, "n1 n2"]
    method: str
    heads: int = 0
    target_error: float | None = None
    target_met: bool | None = None

    @property
    def largest_error(self) -> float:
        """The largest standard error of any entry of any block and of the total."""
        return float(max(np.max(e) for e in (*self.errors.values(), self.total_error)))

    def to_xarray(self) -> xarray.Dataset:
        """Variables `kernel` and `standard_error` over (block, x1, x2); block "total" is last."""
        import xarray

        names = [*self.blocks, "total"]
        kernel = np.stack([*self.blocks.values(), self.total])
        error = np.stack([*(self.errors[b] for b in self.blocks), self.total_error])
        dimensions = ("block", "x1", "x2")
        attributes: dict[str, Any] = {
            "method": self.method,
            "heads": self.heads,
            "largest_error": self.largest_error,
        }
        if self.target_error is not None:
            attributes["target_error"] = self.target_error
            attributes["target_met"] = int(bool(self.target_met))
        return xarray.Dataset(
            {"kernel": (dimensions, kernel), "standard_error": (dimensions, error)},
            coords={"block": names},
            attrs=attributes,
        )


def two_batches(
    x1: Float[Array, "n1 T d"], x2: Float[Array, "n2 T d"] | None
) -> tuple[Float[Array, "n1 T d"], Float[Array, "n2 T d"], bool]:
    """Both batches as checked float64 NumPy arrays; the second is the first where it is None."""
    for name, x in (("x1", x1), ("x2", x2)):
        if x is None:
            continue
        check_shape(name, x, (None, None, None))
        if 0 in np.shape(x):
            raise BadArgument(
                name, f"array of shape {np.shape(x)}", "is empty", fix="give n, T, d >= 1"
            )
        check_finite(name, x)
    first = np.asarray(x1, dtype=np.float64)
    second = first if x2 is None else np.asarray(x2, dtype=np.float64)
    if first.shape[2] != second.shape[2]:
        raise BadArgument(
            "x2",
            f"array of shape {second.shape}",
            f"has {second.shape[2]} features per token, x1 has {first.shape[2]}",
            fix="give both the same d",
        )
    return first, second, x2 is None
