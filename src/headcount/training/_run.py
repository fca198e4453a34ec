"""The result of training: frozen, self-describing, saved as one netCDF file."""

from __future__ import annotations

import json
import warnings
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float, Int

from ..core import Array, BadArgument, check_choice
from ..core._results import mappable
from ..core._shown import Shown, html_curve
from ..core._tree import axis_letters, named_leaves
from ._runfile import write_run

if TYPE_CHECKING:
    import xarray as xr


@mappable("settings", "seeds", "recorded_steps", "seconds")
@dataclass(frozen=True, repr=False)
class Run(Shown):
    """One training run. Where `seeds` were given, every array has them as its first axis.

    A pytree: jax.tree.map(lambda a: a[0], run) is the run of the first of several seeds.
    """

    settings: dict[str, Any]
    """Plain values that describe the run, derived from the objects that ran."""
    seeds: tuple[int, ...]
    loss: Float[Array, "*seeds steps"]
    """L before step s = 0..tau-1; for mini-batches the loss of the batch; NaN after divergence."""
    final_loss: Float[Array, "*seeds"]
    """L on all samples after the last step."""
    average_loss: Any
    """L on all samples at the averaged iterate, if it was kept."""
    traces: dict[str, Float[Array, "*seeds iterates"]]
    """What the tracers noted before step s = 0..tau-1 and after the last; NaN after divergence."""
    recorded_steps: Int[Array, "records"]
    records: dict[str, Array]
    """(seeds, records, ...) for every recorder."""
    params: Any
    average: Any
    best: Any
    initial: Any
    diverged_at: Int[Array, "*seeds"]
    """The step whose loss was not finite (tau: the loss after the last one), or -1."""
    seconds: float

    def summary(self) -> dict[str, Any]:
        """Model, steps, seeds, where the loss began and ended (medians over seeds), outcome."""
        diverged = int(np.count_nonzero(np.asarray(self.diverged_at) >= 0))
        told = {name: self.settings.get(name) for name in ("model", "optimiser", "n", "dtype")}
        return {
            "model": told.pop("model"),
            "steps": np.shape(self.loss)[-1],
            "loss": f"{_median(np.asarray(self.loss)[..., 0])} -> {_median(self.final_loss)}",
            "outcome": f"{diverged} diverged" if diverged else "completed",
            "seeds": 1 if self.single else len(self.seeds),
            **told,
            "seconds": round(self.seconds, 1),
        }

    def pictures(self) -> str:
        """The loss of the first seed against the step."""
        return html_curve(np.atleast_2d(self.loss)[0], "training loss")

    def plot(self, ax: Any = None) -> Any:
        """The loss against the step, one line for each seed, on a logarithmic axis; the axes.

        `ax` is a Matplotlib axes; by default a new figure is made.
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(3.4, 2.6), layout="constrained").add_subplot()
        for seed, loss in zip(self.seeds, np.atleast_2d(self.loss), strict=False):
            ax.plot(np.arange(len(loss)), loss, linewidth=1.2, label=f"seed {seed}")
        seeds = np.atleast_2d(self.loss).shape[0]
        positive = np.nan_to_num(self.loss, nan=1.0).min() > 0
        ax.set(xlabel="step", ylabel="training loss", yscale="log" if positive else "linear")
        ax.set_title(f"{self.settings.get('model')}, {self.settings.get('optimiser')}", fontsize=9)
        if 1 < seeds <= 8:
            ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        return ax

    @property
    def min_loss(self) -> Float[Array, "*seeds"]:
        """min over s < tau of the loss trace; NaN for a seed with no finite loss."""
        shown = np.where(np.isfinite(self.loss), self.loss, np.inf)
        smallest = shown.min(axis=-1)
        return np.where(np.isfinite(smallest), smallest, np.nan)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """ "completed" or "diverged at step k", per seed."""
        return tuple(
            "completed" if step < 0 else f"diverged at step {step}"
            for step in np.atleast_1d(self.diverged_at)
        )

    @property
    def single(self) -> bool:
        """Whether this is one run without an axis of seeds."""
        return np.ndim(self.loss) == 1

    def parameters(self, which: str = "final", seed: int | None = None) -> Any:
        """The parameters of one seed: "final", "initial", or what `keep` asked for.

        The seed may be left out when the run has only one.
        """
        sets = self._parameter_sets()
        check_choice("which", which, sets)
        known = self.seeds if seed is not None or len(self.seeds) > 1 else (None,)
        if seed not in known:
            raise BadArgument("seed", seed, f"the run has {self.seeds}", fix="name one of them")
        index = known.index(seed)
        return sets[which] if self.single else jax.tree.map(lambda leaf: leaf[index], sets[which])

    def to_xarray(self) -> xr.Dataset:
        """The run as a data set with named dimensions, one of them the seeds."""
        import xarray as xr

        if self.single:
            return jax.tree.map(lambda leaf: np.asarray(leaf)[None], self).to_xarray()
        variables: dict[str, Any] = {
            "loss_trace": (("seed", "step"), self.loss),
            "final_loss": (("seed",), self.final_loss),
            "min_loss": (("seed",), self.min_loss),
            "diverged_at": (("seed",), self.diverged_at),
        }
        if self.average_loss is not None:
            variables["average_loss"] = (("seed",), self.average_loss)
        axes = _Axes(jax.tree.map(lambda leaf: leaf[0], self.initial), self.records)
        for traced, values in self.traces.items():
            variables[f"{traced}_trace"] = (("seed", "iterate"), values)
        for recorded, values in self.records.items():
            name = recorded.replace("/", "_")  # a slash would name a netCDF group
            variables[name] = (("seed", "recorded_step", *axes(name, values.shape[2:])), values)
        for label, tree in self._parameter_sets().items():
            for path, leaf in named_leaves(tree).items():
                block = path.replace("/", "_")
                variables[f"{label}_{block}"] = (("seed", *axes(block, leaf.shape[1:])), leaf)
        coordinates = {"seed": list(self.seeds), "recorded_step": self.recorded_steps}
        return xr.Dataset(
            variables, coordinates, attrs=_plain({**self.settings, "seconds": self.seconds})
        )

    def without_seeds(self) -> Run:
        """The run of a single seed, its arrays without that axis."""
        if len(self.seeds) != 1:
            raise BadArgument("seeds", self.seeds, "are several", fix="train one seed")
        return self if self.single else jax.tree.map(lambda leaf: leaf[0], self)

    def _parameter_sets(self) -> dict[str, Any]:
        sets = {"initial": self.initial, "final": self.params}
        if self.average is not None:
            sets["average"] = self.average
        if self.best is not None:
            sets["best"] = self.best
        return sets

    def save(self, path: str | Path, config: Any = None) -> Path:
        """Write the run to `path` (netCDF with a checksum), complete or not at all.

        `config` is the `TrainConfig` that describes a run of `train`, so that `read_run` and
        `headcount audit` can read it from the file; runs of `run_config` have it already. Without
        one the file is plain netCDF, and a warning says so.
        """
        if config is not None:
            self.settings.update(_described(config, self.settings))
        if "config" not in self.settings:
            text = f"{path} holds no configuration: read_run and headcount audit refuse it"
            warnings.warn(f"{text}; save(path, config=TrainConfig(...)) gives one", stacklevel=2)
        target = Path(path)
        write_run(target, self.to_xarray())
        return target


class _Axes:
    """The names of the axes of a run's arrays: the paper's letters where it has any.

    A letter that would name two sizes, or a recorded quantity as well, is not used.
    """

    def __init__(self, params: Any, taken: Container[str]) -> None:
        own = axis_letters(params)
        self._letters = {**own, **{f"iterate_{name}": axes for name, axes in own.items()}}
        self._letters |= dict.fromkeys(("outputs", "linearised_outputs"), ("sample", "class"))
        self._sizes: dict[str, int] = {}
        self._taken = taken

    def __call__(self, name: str, shape: tuple[int, ...]) -> tuple[str, ...]:
        letters = self._letters.get(name, ())[: len(shape)]
        pairs = list(zip(letters, shape, strict=False))
        known = all(self._sizes.get(letter, size) == size for letter, size in pairs)
        if len(pairs) < len(shape) or not known or any(letter in self._taken for letter in letters):
            return tuple(f"{name}_axis{k}" for k in range(len(shape)))
        self._sizes.update(pairs)
        return letters


def _described(config: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """The configuration as attributes, if it is one of a run with these settings."""
    for name in ("model", "loss", "optimiser", "steps", "n", "dtype"):
        if getattr(config, name) != settings[name]:
            problem = f"the run has {name} = {settings[name]!r}"
            raise BadArgument("config", getattr(config, name), problem, fix="describe this run")
    return {"config": json.dumps(config.model_dump(mode="json"))}


def _median(values: Any) -> str:
    finite = np.asarray(values)[np.isfinite(values)]
    return f"{np.median(finite):.3g}" if finite.size else "nan"


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Attributes that netCDF can hold."""
    return {
        k: v if isinstance(v, (int, float, str)) and not isinstance(v, bool) else str(v)
        for k, v in settings.items()
    }
