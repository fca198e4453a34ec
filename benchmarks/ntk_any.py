"""Kernels of anybody's models: factors against Jacobians and vector products, side by side.

With NEURAL_TANGENTS=path/to/python of an environment that has neural-tangents 0.6.5 and JAX 0.4.23,
its three methods take turns with ours: it does not import on a newer JAX.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._timing import in_new_process, target

ROUNDS = 7
METHODS = ("auto", "jacobian", "vector-products")
CASES = {
    "mlp-1024": 300, "mlp-512-10": 100, "cnn": 100, "cnn-10": 60, "rnn": 100, "attention": 200,
    "attention-10": 60, "embedding": 100, "vit": 60,
}  # fmt: skip
"""Samples of each case; names that end in 10 have so many outputs."""


def case(name: str) -> tuple[Callable[[Any, Any], Any], Any, Any]:
    """A function, its parameters and samples."""
    import numpy as np

    rng = np.random.default_rng(0)
    n, o = CASES[name], 10 if name.endswith("-10") else 1

    def normal(*shape: int) -> Any:
        return rng.normal(size=shape) / max(shape[-2] if len(shape) > 1 else 1, 1) ** 0.5

    kind = name.removesuffix("-10")
    f, params, x = CASES_OF[kind.split("-")[0]](normal, n, o, name)
    return (f if o > 1 else lambda p, x: f(p, x)[0]), params, x


def _mlp(normal: Any, n: int, o: int, name: str) -> Any:
    import jax.numpy as jnp

    m = int(name.split("-")[1])
    params = {"1": normal(64, m), "b1": normal(m), "2": normal(m, m), "b2": normal(m)}
    params = {**params, "3": normal(m, o), "b3": normal(o)}

    def f(p: Any, x: Any) -> Any:
        h = jnp.tanh(jnp.tanh(x @ p["1"] + p["b1"]) @ p["2"] + p["b2"])
        return h @ p["3"] + p["b3"]

    return f, params, normal(n, 64)


def _cnn(normal: Any, n: int, o: int, name: str) -> Any:
    import jax

    params = {"1": normal(3, 3, 3, 16), "2": normal(3, 3, 16, 32), "3": normal(32, o)}

    def f(p: Any, x: Any) -> Any:
        h = x[None]
        for k in "12":
            numbers = ("NHWC", "HWIO", "NHWC")
            h = jax.nn.relu(
                jax.lax.conv_general_dilated(h, p[k], (2, 2), "SAME", dimension_numbers=numbers)
            )
        return h.mean((0, 1, 2)) @ p["3"]

    return f, params, normal(n, 16, 16, 3)


def _rnn(normal: Any, n: int, o: int, name: str) -> Any:
    import jax
    import jax.numpy as jnp

    params = {"U": normal(16, 256), "w": normal(256), "v": normal(256, o)}

    def f(p: Any, x: Any) -> Any:
        step = lambda h, t: (jnp.tanh(t @ p["U"] + p["w"] * h), None)  # noqa: E731
        return jax.lax.scan(step, jnp.zeros(256), x)[0] @ p["v"]

    return f, params, normal(n, 20, 16)


def _attend(p: Any, h: Any, heads: int) -> Any:
    import jax
    import jax.numpy as jnp

    T, d = h.shape
    q, k, v = ((h @ p[name]).reshape(T, heads, -1) for name in "qkv")
    a = jax.nn.softmax(jnp.einsum("the,she->hts", q, k) / (d // heads) ** 0.5)
    return jnp.einsum("hts,she->the", a, v).reshape(T, -1) @ p["o"]


def _layer(normal: Any, d: int, m: int) -> Any:
    return {**{name: normal(d, d) for name in "qkvo"}, "up": normal(d, m), "down": normal(m, d)}


def _attention(normal: Any, n: int, o: int, name: str) -> Any:
    import jax

    params = {"layers": [_layer(normal, 16, 32) for _ in "12"], "read": normal(16, o)}

    def f(p: Any, x: Any) -> Any:
        for layer in p["layers"]:
            x = x + _attend(layer, x, 4)
            x = x + jax.nn.gelu(x @ layer["up"]) @ layer["down"]
        return x.mean(0) @ p["read"]

    return f, params, normal(n, 8, 16)


def _embedding(normal: Any, n: int, o: int, name: str) -> Any:
    import numpy as np

    params = {"E": normal(5000, 32), **_layer(normal, 32, 64), "read": normal(32, o)}

    def f(p: Any, ids: Any) -> Any:
        h = p["E"][ids]
        return (h + _attend(p, h, 4)).mean(0) @ p["read"]

    return f, params, np.random.default_rng(1).integers(0, 5000, size=(n, 16))


def _vit(normal: Any, n: int, o: int, name: str) -> Any:
    import jax
    import jax.numpy as jnp

    params = {"patch": normal(48, 64), "position": normal(16, 64), "read": normal(64, o)}
    params["layers"] = [_layer(normal, 64, 128) for _ in "12"]

    def norm(h: Any) -> Any:
        h = h - h.mean(-1, keepdims=True)
        return h / jnp.sqrt((h**2).mean(-1, keepdims=True) + 1e-5)

    def f(p: Any, x: Any) -> Any:
        h = x.reshape(4, 4, 4, 4, 3).transpose(0, 2, 1, 3, 4).reshape(16, 48)
        h = h @ p["patch"] + p["position"]
        for layer in p["layers"]:
            h = h + _attend(layer, norm(h), 4)
            h = h + jax.nn.gelu(norm(h) @ layer["up"]) @ layer["down"]
        return norm(h).mean(0) @ p["read"]

    return f, params, normal(n, 16, 16, 3)


CASES_OF = {
    "mlp": _mlp, "cnn": _cnn, "rnn": _rnn, "attention": _attention, "embedding": _embedding,
    "vit": _vit,
}  # fmt: skip


def measured(name: str) -> dict[str, Any]:
    """Processor seconds of each method in float64, one core, and how far the kernels differ.

    Methods take turns; one that took five times the least is measured once.
    """
    import numpy as np

    from headcount.kernels import ntk

    f, params, x = case(name)
    kernels = {m: ntk(f, params, x, method=m, blocks="total").matrix for m in METHODS}
    size = float(np.max(np.abs(kernels["jacobian"])))
    apart = max(float(np.max(np.abs(k - kernels["jacobian"]))) for k in kernels.values()) / size
    facts = [float(kernels["jacobian"].trace()), float((kernels["jacobian"] ** 2).sum())]
    other = _Other(name)
    found = dict.fromkeys((*METHODS, *other.methods), np.inf)
    for _ in range(ROUNDS):
        near = {m for m, s in found.items() if s == np.inf or s <= 5 * min(found.values())}
        for m in near & set(METHODS):
            began = time.process_time()
            ntk(f, params, x, method=m, blocks="total")
            found[m] = min(found[m], time.process_time() - began)
        for m, seconds in other.measured(near - set(METHODS)).items():
            found[m] = min(found[m], seconds)
    other.close()
    for theirs in other.methods:
        apart = max(
            apart, *(abs(a / b - 1) for a, b in zip(other.facts[theirs], facts, strict=True))
        )
    return {"case": name, "n": CASES[name], "seconds": found, "apart": apart, "theirs": other.facts}


class _Other:
    """neural-tangents in a process of its own, where NEURAL_TANGENTS names its Python."""

    def __init__(self, name: str) -> None:
        python = os.environ.get("NEURAL_TANGENTS")
        self.process, self.facts = None, {}
        if python is None:
            return
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks._neural_tangents", name],
            cwd=Path(__file__).resolve().parent.parent,
            env={**os.environ, "PYTHONPATH": "."}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.facts = json.loads(self.process.stdout.readline())

    @property
    def methods(self) -> list[str]:
        """Those that can do the case."""
        return [m for m, facts in self.facts.items() if isinstance(facts, list)]

    def measured(self, methods: set[str]) -> dict[str, float]:
        """Processor seconds of these methods, once each."""
        if self.process is None or not methods:
            return {}
        print(json.dumps(sorted(methods)), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def run() -> dict[str, Any]:
    """All cases: `auto` over the best of all, ours and theirs, and over wide layers' Jacobians."""
    rows = [in_new_process(measured, name=name) for name in CASES]
    targets = []
    for row in rows:
        ours = {m: s for m, s in row["seconds"].items() if m in METHODS}
        theirs = [s for m, s in row["seconds"].items() if m not in METHODS]
        name, auto = row["case"], ours["auto"]
        targets.append(
            target(f"{name}: auto over our best", auto / min(ours.values()), at_most=1.15)
        )
        if theirs:
            text = f"{name}: auto over the best of neural-tangents"
            targets.append(target(text, auto / min(theirs), at_most=1.0))
        if name in ("mlp-1024", "mlp-512-10"):
            ratio = ours["jacobian"] / auto
            targets.append(target(f"{name}: Jacobians over auto", ratio, at_least=60))
    apart = max(row["apart"] for row in rows)
    targets.append(target("largest difference of kernels", apart, at_most=1e-12))
    return {"name": "ntk_any", "figures": rows, "targets": targets}
