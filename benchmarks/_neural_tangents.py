"""Kernels by neural-tangents, in an environment of its own: it imports on JAX 0.4 only.

Run as a script by `ntk_any` with the name of a case. At first it prints what tells kernels apart;
then, for every line of names of methods, the processor seconds that each took.
"""

from __future__ import annotations

import json
import sys
import time


def main(name: str) -> None:
    """One case, until the input ends; methods that cannot do it are left out."""
    import jax
    import neural_tangents as nt
    import numpy as np

    from benchmarks.ntk_any import case

    jax.config.update("jax_enable_x64", True)
    f, params, x = case(name)
    kernels, facts = {}, {}
    for kind in nt.NtkImplementation:
        if kind.name == "AUTO":
            continue
        kernel = nt.empirical_ntk_fn(
            lambda p, x: jax.vmap(f, (None, 0))(p, x),
            trace_axes=(), vmap_axes=0, implementation=kind,
        )  # fmt: skip
        run = jax.jit(lambda p, x, kernel=kernel: kernel(x, None, p))
        try:
            K = np.asarray(run(params, x))
        except Exception as error:  # out of memory, or no rule for a primitive
            facts[kind.name.lower()] = str(error).splitlines()[0][:80]
            continue
        kernels[kind.name.lower()] = run
        facts[kind.name.lower()] = [float(np.einsum(K, trace(K))), float((K**2).sum())]
    print(json.dumps(facts), flush=True)
    for line in sys.stdin:
        seconds = {}
        for method in json.loads(line):
            began = time.process_time()
            jax.block_until_ready(kernels[method](params, x))
            seconds[method] = time.process_time() - began
        print(json.dumps(seconds), flush=True)


def trace(K: object) -> list[int]:
    """Axes for a sum over the diagonal of (n, n) or (n, n, o, o)."""
    return [0, 0, 1, 1][: K.ndim]  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(sys.argv[1])
