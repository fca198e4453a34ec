"""The memory plan: what a kernel will allocate, computed before anything is allocated."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rich.filesize import decimal

from ..core import HeadcountError

_MARGIN = 0.9
"""The share of the available memory that a plan may use."""


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes by purpose for one kernel of n1 x n2 samples.

    `features` are kept for all samples when they fit, otherwise recomputed tile by tile (then
    `features` counts two tiles); they are made `chunk` samples at a time. `kernel` counts the
    total and, if asked for, every block; it is zero when the kernel is streamed to a file, and
    `file` is its size on disk. `scratch` is what one tile and one chunk need on top.
    """

    n1: int
    n2: int
    outputs: int
    dtype: str
    method: str
    tile: int
    tiles: int
    chunk: int
    stored_features: bool
    features: int
    kernel: int
    scratch: int
    file: int
    available: int
    ways: tuple[str, ...] = ()
    """How each part of the kernel is made, in words."""

    @property
    def peak(self) -> int:
        """The most that will be allocated at once."""
        return self.features + self.kernel + self.scratch

    @property
    def fits(self) -> bool:
        """Whether the peak stays within nine tenths of the available memory."""
        return self.peak <= _MARGIN * self.available

    def to_dict(self) -> dict[str, Any]:
        """Every field, with the peak and the verdict."""
        return {**asdict(self), "peak": self.peak, "fits": self.fits}

    def __str__(self) -> str:
        rows, columns = self.n1 * self.outputs, self.n2 * self.outputs
        kept = "kept" if self.stored_features else "recomputed per tile"
        lines = [
            f"kernel {rows} x {columns}, {self.dtype}, {self.method} path",
            f"  {self.tiles} tile{'s' if self.tiles != 1 else ''} of up to {self.tile} samples",
            f"  features   {decimal(self.features):>10}  ({kept})",
            f"  kernel     {decimal(self.kernel):>10}",
            f"  scratch    {decimal(self.scratch):>10}",
            f"  peak       {decimal(self.peak):>10}  of {decimal(self.available)} available",
        ]
        lines += [f"  {way}" for way in self.ways]
        if self.file:
            lines.append(f"  on disk    {decimal(self.file):>10}")
        return "\n".join(lines)


class KernelTooLarge(HeadcountError):
    """The plan does not fit into memory; nothing has been allocated. The plan is attached."""

    def __init__(self, plan: MemoryPlan, fix: str) -> None:
        self.plan = plan
        super().__init__(f"this kernel does not fit into memory; {fix}\n{plan}")


def require_fit(plan: MemoryPlan) -> None:
    """Refuse a plan that does not fit, before any work."""
    if plan.fits:
        return
    if plan.kernel == 0:
        raise KernelTooLarge(plan, "use a smaller tile, or give a larger memory_limit")
    saving = "blocks='total' keeps only the sum of the blocks; " if plan.kernel > plan.file else ""
    raise KernelTooLarge(
        plan, f"{saving}ntk_to_file streams it to disk; memory_limit overrides the limit"
    )
