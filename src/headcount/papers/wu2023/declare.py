"""How wu2023 declares its claims: what most of them share, written once."""

from __future__ import annotations

import functools

from ...theory import declare
from ...theory.declare import false as false

claim = functools.partial(declare.claim, "wu2023", forms="as printed")
identity = functools.partial(declare.identity, "wu2023", forms="as printed")
