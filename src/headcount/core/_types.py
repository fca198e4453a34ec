"""The array type of every signature.

A NumPy or a JAX array: parameters and data are stored as NumPy float64 and become JAX arrays of
the run's precision where they are used. At run time this is jaxtyping's own union, so that shapes
can be checked; static checkers see Any, because NumPy's and JAX's stubs do not agree on methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Array = Any
else:
    import jax
    import numpy as np

    Array = jax.Array | np.ndarray | np.generic  # an entry of a NumPy array is a scalar
    """An array of JAX or NumPy."""
