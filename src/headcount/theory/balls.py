"""Proved enclosures of any JAX program: balls of arbitrary precision, for tools of your own.

`enclose(function, arguments)` gives every entry of the result as a `Value` of balls, or raises
`Unsupported` with the primitive that has no rule. A comparison of overlapping balls is `UNKNOWN`,
and who needs to know it raises `Undecided`. `RULES` has every primitive that can be enclosed.
"""

from ._ball_jaxpr import RULES as RULES
from ._ball_jaxpr import BallProgram as BallProgram
from ._ball_jaxpr import Unsupported as Unsupported
from ._ball_jaxpr import enclose as enclose
from ._ball_value import Value as Value
from ._balls import FALSE as FALSE
from ._balls import TRUE as TRUE
from ._balls import UNKNOWN as UNKNOWN
from ._balls import Order as Order
from ._balls import Undecided as Undecided
