"""A figure's files: data set, table of every plotted number, plots, verdicts."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core._files import json_text
from ..lab import Collection, Store
from ..lab._files import write_atomically
from ._plots import Look, render
from ._tables import seeds_text

if TYPE_CHECKING:
    import xarray as xr


def write_files(
    collection: Collection, store: Store, message: Callable[[str], None] | None = None
) -> list[Path]:
    """Write data.nc, plotted.csv, verdicts.json and figure.png/.pdf/.svg; returns their paths.

    Data and verdicts are on the disk before anything is drawn. A plot that fails is told to
    `message`, its files are left out; without `message` the error is raised.
    """
    plan = collection.plan
    folder = store.figure_folder(plan.figure.id, plan.scale)
    name = "-".join(f"{key}={value}" for key, value in _unusual(collection).items())
    folder = folder / name if name else folder
    contents = {
        "data.nc": netcdf(collection.data),
        "plotted.csv": table(collection.statistics).encode(),
        "verdicts.json": _verdicts(collection).encode(),
    }
    for file, content in contents.items():
        write_atomically(folder / file, content)
    try:
        plots = render(collection, "png", "pdf", "svg")
    except Exception as error:  # a figure's own code, which met numbers nobody thought of
        if message is None:
            raise
        message(f"the plot failed ({type(error).__name__}: {error}); data and verdicts are written")
        plots = {}
    for kind, content in plots.items():
        write_atomically(folder / f"figure.{kind}", content)
    return [folder / file for file in (*contents, *(f"figure.{kind}" for kind in plots))]


def write_picture(collection: Collection, store: Store, look: Look, kind: str, name: str) -> Path:
    """One picture that looks as it is asked to, beside the figure's files."""
    folder = store.figure_folder(collection.plan.figure.id, collection.plan.scale)
    path = folder / f"figure-{name}.{kind}"
    write_atomically(path, render(collection, kind, look=look)[kind])
    return path


def netcdf(data: xr.Dataset) -> bytes:
    """The data set as netCDF 4."""
    return bytes(data.to_netcdf(engine="h5netcdf"))


def table(statistics: xr.Dataset) -> str:
    """Long CSV: one row per plotted number, with its coordinates, and its interval if any."""
    names = [str(name) for name in statistics.data_vars]
    centres = [name for name in names if not _is_bound(name, names)]
    dims = sorted({str(dim) for name in centres for dim in statistics[name].dims})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["quantity", *dims, "value", "low", "high"])
    for name in centres:
        variable = statistics[name]
        for index in np.ndindex(*variable.shape):
            place = dict(zip(map(str, variable.dims), index, strict=True))
            at = {dim: statistics[dim].values[i] for dim, i in place.items()}
            bounds = [
                statistics[name + end].transpose(*variable.dims).values[index]
                if name + end in statistics
                else None
                for end in ("_low", "_high")
            ]
            numbers = [_cell(number) for number in (variable.values[index], *bounds)]
            writer.writerow([name, *(_cell(at.get(dim)) for dim in dims), *numbers])
    return text.getvalue()


def _unusual(collection: Collection) -> dict[str, str]:
    """Options and seeds that differ from the defaults: they get a folder of their own."""
    plan = collection.plan
    unusual = {
        name: value for name, value in plan.options.items() if value != plan.figure.options[name][0]
    }
    if plan.seeds != tuple(range(plan.figure.scales[plan.scale]["seeds"])):
        unusual["seeds"] = seeds_text(plan.seeds).replace(":", "-to-")
    return unusual


def _is_bound(name: str, names: list[str]) -> bool:
    return any(name.endswith(end) and name[: -len(end)] in names for end in ("_low", "_high"))


def _cell(value: Any) -> str:
    """Shortest text that gives the same number back; empty when there is none."""
    if value is None:
        return ""
    if isinstance(value, (float, np.floating)):
        return "" if math.isnan(value) else repr(float(value))
    return str(value)


def _verdicts(collection: Collection) -> str:
    content = {
        **collection.plan.describe(),
        "notes": collection.plan.figure.notes,
        "stand_in": collection.plan.stand_in,
        "missing_trials": collection.missing,
        "environments": list(collection.notes),
        "verdicts": [{**v.to_json(), "sentence": v.sentence} for v in collection.verdicts],
    }
    return json_text(content) + "\n"
