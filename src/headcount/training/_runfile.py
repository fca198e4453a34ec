"""Run files: netCDF with a checksum over all that they hold, looked at before it is used."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core import BadArgument
from ..core._files import replacing
from ..core._hdf5 import check_self_contained

if TYPE_CHECKING:
    import xarray as xr

_CHECKSUM = "checksum"


class UncheckedRun(UserWarning):
    """A run file of an earlier version, in which damage would not be noticed."""


def write_run(path: Path, dataset: xr.Dataset) -> None:
    """Write a data set and its checksum, complete or not at all."""
    with replacing(path) as partial:
        whole = dataset.assign_attrs({_CHECKSUM: checksum_of(dataset)})
        whole.to_netcdf(partial, engine="h5netcdf")


def load_run(path: str | Path) -> xr.Dataset:
    """All of a run file, in memory and checked; a `BadArgument` says what is wrong with it."""
    import xarray as xr

    try:
        check_self_contained(path)
        stored = xr.load_dataset(path, engine="h5netcdf")
    except FileNotFoundError:
        raise no_run(path, "it does not exist") from None
    except Exception as error:  # a damaged file makes HDF5 and xarray raise whatever they find
        reason = str(error).split("\n")[0]
        raise no_run(path, f"it cannot be read ({reason})") from None
    said = stored.attrs.pop(_CHECKSUM, None)
    if said is None:
        text = f"{path} has no checksum: damage to it would not be noticed"
        warnings.warn(text, UncheckedRun, stacklevel=2)
    elif said != checksum_of(stored):
        fix = "fetch it again, or train it again"
        raise BadArgument("run", str(path), "is damaged: its checksum does not match", fix=fix)
    return stored


def no_run(path: str | Path, problem: str) -> BadArgument:
    """The error of a file that is not one of ours."""
    fix = "give a file of headcount train, or of run.save(path, config=TrainConfig(...))"
    return BadArgument("run", str(path), f"is not a run: {problem}", fix=fix)


def checksum_of(dataset: xr.Dataset) -> str:
    """A sha256 of the names, shapes, types and values of all arrays, and of the attributes."""
    digest = hashlib.sha256()
    attributes = {str(k): _python(v) for k, v in dataset.attrs.items() if k != _CHECKSUM}
    digest.update(json.dumps(attributes, sort_keys=True).encode())
    for name in sorted(map(str, dataset.variables)):
        variable = dataset[name]
        values = np.array(variable.values, order="C")
        if values.dtype.kind == "f":
            values[np.isnan(values)] = np.nan  # netCDF has one NaN, XLA has several
        digest.update(f"|{name}{variable.dims}{values.shape}{values.dtype.str}|".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def _python(value: object) -> object:
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value
