"""Proved enclosures of any JAX program: balls of arbitrary precision, for tools of your own.

`enclose(function, arguments)` gives every entry of the result as a `Value` of balls, or raises
`Unsupported` with the primitive that has no rule. A comparison of overlapping balls is `UNKNOWN`,
and who needs to know it raises `Undecided`. `RULES` has every primitive that can be enclosed; the
functions of balls are what a rule of your own is made of.
"""

from ._ball_jaxpr import RULES as RULES
from ._ball_jaxpr import BallProgram as BallProgram
from ._ball_jaxpr import Unsupported as Unsupported
from ._ball_jaxpr import enclose as enclose
from ._ball_value import Value as Value
from ._balls import FALSE as FALSE
from ._balls import TRUE as TRUE
from ._balls import UNKNOWN as UNKNOWN
from ._balls import Ball as Ball
from ._balls import Order as Order
from ._balls import Undecided as Undecided
from ._balls import at_precision as at_precision
from ._balls import equal as equal
from ._balls import hull as hull
from ._balls import less as less
from ._balls import nearest as nearest
from ._balls import power as power
from ._balls import roughly as roughly
from ._balls import separate as separate
from ._balls import whole as whole
