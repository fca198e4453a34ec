"""HDF5 files of others: all that they hold must be in them, as plain numbers of a bounded size."""

from __future__ import annotations

import os
from pathlib import Path


def check_self_contained(path: str | Path) -> None:
    """Raise a ValueError unless the file is a flat list of numbers that it holds itself.

    A data set may lie in another file, link to one or claim more than there is; a library that
    reads it would look there, or ask for the memory.
    """
    import h5py

    if not os.path.isfile(path):
        raise FileNotFoundError(path)
    size = os.path.getsize(path)
    with h5py.File(path, "r") as file:
        for name in file:
            if not isinstance(file.get(name, getlink=True), h5py.HardLink):
                raise ValueError(f"{name!r} is a link to something else")
            item = file[name]
            if not isinstance(item, h5py.Dataset) or item.dtype.kind not in "biuf":
                raise ValueError(f"{name!r} is no array of numbers")
            if item.external or item.is_virtual:
                raise ValueError(f"{name!r} lies in another file")
            if item.nbytes > size:
                raise ValueError(f"{name!r} claims {item.nbytes} bytes in a file of {size}")
