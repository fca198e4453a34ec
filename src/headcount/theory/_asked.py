"""What is asked, checked: a claim or its name, and an instance of its kind."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ..core import BadArgument
from ..core._checks import check_kind

if TYPE_CHECKING:
    from ._claim import Claim


def claim_of(claim: Claim | str) -> Claim:
    """A claim, fact or lemma; those that have a name also by it."""
    from ._claim import Claim
    from ._facts import facts
    from ._registry import claims

    if isinstance(claim, str):
        return facts[claim] if claim in facts else claims[claim]
    found: Claim = check_kind("claim", claim, Claim, fix="give a claim, or a name that `list` has")
    return found


def check_instance(claim: Claim, instance: Any) -> None:
    """An instance of the class that this claim speaks about."""
    if claim.on is None and not hasattr(instance, "__dict__"):
        problem = f"is no instance of {claim.id}"
        raise BadArgument("instance", instance, problem, fix="draw one from claim.families")
    kind = claim.on
    if kind is not None and not isinstance(instance, kind):
        fields = ", ".join(claim.variables)
        fix = f"make one with claim.instance({fields})" if fields else f"give a {kind.__name__}"
        problem = f"is a {type(instance).__name__}, and {claim.id} asks about a {kind.__name__}"
        raise BadArgument("instance", instance, problem, fix=fix)


def check_fields(kind: Any, given: Collection[str]) -> None:
    """All arrays of a record, and nothing that it does not have."""
    known = kind.__dataclass_fields__
    for name in given:
        if name not in known:
            fix = f"its fields are {', '.join(known)}"
            raise BadArgument("instance", name, "is no field", fix=fix)
    missing = [name for name in kind.spaces if name in known and name not in given]
    if missing:
        raise BadArgument("instance", list(given), "is not whole", fix=f"add {', '.join(missing)}")
