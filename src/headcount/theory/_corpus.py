"""Worst instances on file, so that what one search found no later search has to find again.

A paper's folder `corpus/` has one JSON file for each claim: instances as in certificates. Every
variant of the claim is evaluated on all of them, so a sharper form never looks looser.
"""

import json
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..core import papers
from ..core._files import json_text, write_atomically
from ._certificate import decode, encode
from ._claim import Claim, Instance
from ._pytree import arrays_of, instance_from


def corpus_folder(paper: str) -> Path | None:
    """Where the worst instances of a paper's claims are; None if the paper keeps none."""
    return papers[paper].file("corpus") if paper in papers else None


@lru_cache(maxsize=256)
def _stored(paper: str, name: str) -> tuple[Any, ...]:
    folder = corpus_folder(paper)
    file = folder / f"{name}.json" if folder is not None else None
    if file is None or not file.exists():
        return ()
    return tuple(json.loads(file.read_text(encoding="utf-8"))["instances"])


def known_instances(claim: Claim) -> tuple[Instance, ...]:
    """The worst instances on file for a claim."""
    stored = _stored(claim.paper, claim.id.split("/", 1)[-1])
    kind = claim.instance_class
    if kind is None:
        return ()
    # A number that the class got since the file was written has its default.
    since = {f.name: np.asarray(f.default) for f in fields(kind) if isinstance(f.default, float)}
    return tuple(
        instance_from(kind, since | {name: decode(name, value) for name, value in entry.items()})
        for entry in stored
    )


def write_corpus(claim: Claim, instances: list[Instance]) -> Path:
    """Replace what is on file for a claim."""
    folder = corpus_folder(claim.paper)
    if folder is None:
        raise FileNotFoundError(f"{claim.paper} keeps no corpus")
    entries = [
        {name: encode(value) for name, value in arrays_of(instance).items()}
        for instance in instances
    ]
    content = {"claim": claim.id, "instances": entries}
    file = folder / f"{claim.id.split('/', 1)[1]}.json"
    write_atomically(file, f"{json_text(content, indent=None)}\n".encode())
    _stored.cache_clear()
    return file
