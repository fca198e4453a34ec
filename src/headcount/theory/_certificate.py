"""Certificates: a counterexample as a small self-contained JSON file.

Arrays are written as decimal strings that read back to the same float64. An "instance"
certificate holds one instance; a "frequency" certificate holds a case, a seed and counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..core import BadArgument
from ..core._files import json_text, write_atomically
from ._asked import claim_of
from ._claim import SLACK, Check, Claim, Instance, Kind
from ._frequency import frequency_of
from ._in_notebooks import CertificateShown
from ._pytree import arrays_of
from ._verdict import judge

FORMAT = "headcount-certificate"
VERSION = 1
KINDS = {"instance": {"instance", "hypotheses"}, "frequency": {"case"}}
"""What a certificate of each kind holds beside the fields of all."""
FIELDS = {"format", "version", "claim", "variant", "kind", "note", "claimed"}
CLAIMED = {
    "instance": {"lhs", "rhs", "ratio"},
    "frequency": {"exceedances", "repetitions", "seed", "delta", "low", "ratio"},
}
"""The numbers that a file of each kind states; there are no others."""
LARGEST_FILE = 3 * 10**7
"""Bytes; a million entries take less than this."""
MOST_NAMES = 1000
"""Entries of one table, and hypotheses: no claim has as many."""


@dataclass(frozen=True, repr=False)
class Certificate(CertificateShown):
    """A counterexample to one variant of one claim."""

    claim: str
    variant: str
    kind: str
    claimed: Mapping[str, float]
    instance: Mapping[str, Any] = field(default_factory=dict)
    hypotheses: tuple[Check, ...] = ()
    case: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """The file's content."""
        content: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "claim": self.claim,
            "variant": self.variant,
            "kind": self.kind,
            "note": self.note,
            "claimed": {key: repr(float(value)) for key, value in self.claimed.items()},
        }
        if self.kind == "instance":
            content["instance"] = {name: encode(value) for name, value in self.instance.items()}
            content["hypotheses"] = [check.to_json() for check in self.hypotheses]
        else:
            content["case"] = dict(self.case)
        return content

    def write(self, path: Path) -> Path:
        """Write the file; a half-written file never bears the name."""
        write_atomically(path, f"{json_text(self.to_json(), indent=1)}\n".encode())
        return path

    @property
    def file_name(self) -> str:
        """paper-lemma-5-printed.json and the like."""
        own = self.claim.replace("/", "-").replace(".py:", "-")
        return f"{own}-{self.variant}.json"


def encode(value: Any) -> Any:
    """An array as decimal strings that read back to the same float64; names and counts as is."""
    if isinstance(value, (str, int)):
        return value
    array = np.asarray(value, dtype=np.float64)
    return {"shape": list(array.shape), "values": [repr(float(v)) for v in array.ravel()]}


def decode(name: str, value: Any) -> Any:
    """The array (or name, or count) that `encode` wrote."""
    if isinstance(value, (str, int)):
        return value
    try:
        shape, values = value["shape"], value["values"]
        if not (isinstance(shape, list) and all(type(size) is int for size in shape)):
            raise TypeError(f"shape {shape!r}")
        if not isinstance(values, list):
            raise TypeError("its values are no list")
        array = np.array([_number(v) for v in values], dtype=np.float64)
        if min(shape, default=0) < 0 or math.prod(shape) != array.size:
            raise ValueError(f"{array.size} values for the shape {shape}")
        return array.reshape(shape)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadArgument(
            "file", name, f"is not an array: {error}", fix="write it again"
        ) from error


def _number(value: Any) -> float:
    """A number, or its decimal string; nothing else that Python would take for one."""
    plain = isinstance(value, str) and value.isascii() and "_" not in value
    if isinstance(value, bool) or not (plain or isinstance(value, (int, float))):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; two entries of one name could be read in two ways."""
    if len(pairs) > MOST_NAMES:
        raise ValueError(f"a table has {len(pairs)} entries, more than {MOST_NAMES}")
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a name occurs twice in one table")
    return table


def _bounded(path: Path) -> bytes:
    """What is in a regular file of bounded size: a device or a pipe may never end."""
    if not path.is_file() and path.exists():
        raise ValueError("it is no regular file")
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError(f"its bytes exceed {LARGEST_FILE}")
    return content


def read_certificate(path: Path) -> Certificate:
    """Read and check the form of a certificate file."""
    try:
        text = _bounded(Path(path)).decode("utf-8")
        content = json.loads(text, object_pairs_hook=_without_repetition)
    except (OSError, ValueError, RecursionError) as error:
        raise BadArgument(
            "file", str(path), f"cannot be read: {error}", fix="give a file"
        ) from error
    return certificate_from_json(content, str(path))


_OF_A_HYPOTHESIS = set(Check("", 0.0, 0.0).to_json())


def _check(stated: Mapping[str, Any]) -> Check:
    """A hypothesis as the file states it; its margin must follow from its numbers."""
    check = Check(stated["name"], _number(stated["value"]), _number(stated["threshold"]))
    margin = _number(stated.get("margin", check.margin))
    if not abs(margin - check.margin) <= SLACK * max(abs(check.value), abs(check.threshold)):
        raise ValueError(f"the margin of {check.name}: {margin!r} is not {check.margin!r}")
    return check


def _no_others(what: str, table: Mapping[str, Any], known: set[str]) -> None:
    for name in sorted(set(table) - known):
        raise ValueError(f"{name}, which is no {what}")


def certificate_from_json(content: Any, source: str = "certificate") -> Certificate:
    """A certificate from its parsed JSON."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise BadArgument(
            "file", source, "is not a Headcount certificate", fix="use what falsify wrote"
        )
    if type(content.get("version")) is not int or content["version"] != VERSION:
        raise BadArgument(
            "file", source, f"has version {content.get('version')}", fix=f"need {VERSION}"
        )
    try:
        kind = content["kind"]
        for name in ("claim", "variant", "kind"):
            if not isinstance(content[name], str):
                raise TypeError(f"{name}: {content[name]!r} is no text")
        if kind not in KINDS:
            raise ValueError(f"kind {kind!r}, which is none of {', '.join(KINDS)}")
        for name in ("instance", "claimed", "case"):
            if not isinstance(content.get(name, {}), dict):
                raise TypeError(f"{name}: {content[name]!r} is no table")
        _no_others("field of such a certificate", content, FIELDS | KINDS[kind])
        _no_others("number that it can state", content["claimed"], CLAIMED[kind])
        if len(content.get("hypotheses", [])) > MOST_NAMES:
            raise ValueError(f"hypotheses, of which it has more than {MOST_NAMES}")
        for stated in content.get("hypotheses", []):
            _no_others("part of a hypothesis", stated, _OF_A_HYPOTHESIS)
        note = content.get("note", "")
        if any(h.get("holds", True) is not True for h in content.get("hypotheses", [])):
            raise ValueError("hypotheses, one of which it says does not hold")
        if not isinstance(note, str):
            raise TypeError(f"note: {note!r} is no text")
        checks = tuple(_check(stated) for stated in content.get("hypotheses", []))
        return Certificate(
            claim=content["claim"],
            variant=content["variant"],
            kind=kind,
            claimed={key: _number(value) for key, value in content["claimed"].items()},
            instance={name: decode(name, v) for name, v in content.get("instance", {}).items()},
            hypotheses=checks,
            case=content.get("case", {}),
            note=note,
        )
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, BadArgument):
            raise
        raise BadArgument(
            "file", source, f"lacks or garbles {error}", fix="write it again"
        ) from error


def certify(claim: Claim | str, instance: Instance, variant: str, note: str = "") -> Certificate:
    """The certificate of one instance; the numbers are those of the fast path."""
    claim = claim_of(claim)
    verdict = judge(claim, instance, variant)
    return Certificate(
        claim=claim.id,
        variant=variant,
        kind="instance",
        claimed={"lhs": verdict.lhs, "rhs": verdict.rhs, "ratio": verdict.ratio},
        instance=arrays_of(instance),
        hypotheses=verdict.hypotheses,
        note=note or _reading(claim.kind),
    )


def certify_frequency(
    claim: Claim,
    case: Mapping[str, Any],
    variant: str,
    *,
    repetitions: int,
    seed: int = 0,
    note: str = "",
) -> Certificate:
    """The certificate of a frequency, counted by the slow path so that a recheck is exact."""
    if claim.experiment is None:
        raise BadArgument("claim", claim.id, "is not tested by frequency", fix="use certify")
    count = claim.experiment.exceeds_naively(case, variant, seed, repetitions)
    result = frequency_of(count, repetitions, claim.experiment.delta(case))
    claimed = {
        "exceedances": count,
        "repetitions": repetitions,
        "seed": seed,
        "delta": result.delta,
        "low": result.interval.low,
        "ratio": result.rate / result.delta,
    }
    return Certificate(claim.id, variant, "frequency", claimed, case=case, note=note)


def _reading(kind: Kind) -> str:
    if kind is Kind.IDENTITY:
        return "the two sides of the identity differ on this instance"
    return "the left side exceeds the right side on this instance"
