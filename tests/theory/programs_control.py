"""Random programs around linear algebra, loops, branches and calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from programs import MP, Generator, Program, seen_as


def _symmetric(rng: np.random.Generator, size: int) -> Any:
    half = rng.normal(size=(size, size))
    return half + half.T


def _eigh(rng: np.random.Generator) -> Iterator[Program]:
    for size, lower in ((3, True), (3, False), (1, True), (4, True)):

        def values(x: Any, lower: bool = lower) -> Any:
            return lax.linalg.eigh(x, lower=lower, symmetrize_input=False)[1]

        def exact(x: Any, lower: bool = lower) -> Any:
            here = np.where(np.tri(len(x)) if lower else np.tri(len(x)).T, x, x.T)
            return sorted_numbers(MP.eigsy(MP.matrix(here.tolist()), eigvals_only=True))

        yield Program(values, (_symmetric(rng, size),), exact, radius=1e-3)
        yield Program(values, (rng.normal(size=(size, size)),), exact)
    yield Program(values, (np.diag([1.0, 1.0, 2.0]),), exact, radius=0.0)


def sorted_numbers(values: Any) -> Any:
    return [np.array(sorted(values), dtype=object)]


def _svd(rng: np.random.Generator) -> Iterator[Program]:
    values = functools.partial(lax.linalg.svd, compute_uv=False)
    for shape in ((2, 3), (3, 2), (3, 3), (1, 1)):

        def exact(x: Any) -> Any:
            found = MP.svd_r(MP.matrix(x.tolist()), compute_uv=False)
            return [np.array(sorted(found, reverse=True), dtype=object)]

        yield Program(values, (rng.normal(size=shape),), exact, radius=1e-3)


def _cholesky(rng: np.random.Generator) -> Iterator[Program]:
    factor = functools.partial(lax.linalg.cholesky, symmetrize_input=False)
    for size in (1, 2, 4):
        half = rng.normal(size=(size, size))

        def exact(x: Any) -> Any:
            lower = np.where(np.tri(len(x)), x, x.T)
            return [np.array(MP.cholesky(MP.matrix(lower.tolist())).tolist(), dtype=object)]

        yield Program(factor, (half @ half.T + np.eye(size),), exact, radius=1e-3)


def _triangular(rng: np.random.Generator) -> Iterator[Program]:
    for number in range(16):
        left, lower, transposed, unit = (bool(number >> k & 1) for k in range(4))
        solve = functools.partial(
            lax.linalg.triangular_solve,
            **{"left_side": left, "lower": lower, "transpose_a": transposed},
            unit_diagonal=unit,
        )

        def exact(
            a: Any,
            b: Any,
            left: bool = left,
            lower: bool = lower,
            *,
            t: bool = transposed,
            unit: bool = unit,
        ) -> Any:
            a = np.where(np.tri(3) if lower else np.tri(3).T, a, MP.mpf(0))
            a = np.where(np.eye(3), MP.mpf(1), a) if unit else a
            a = a.T if t == left else a
            b = b if left else b.T
            columns = [MP.lu_solve(MP.matrix(a.tolist()), list(c)) for c in b.T]
            found = np.array([list(c) for c in columns], dtype=object)
            return [found.T if left else found]

        a = rng.normal(size=(3, 3)) + 3 * np.eye(3)
        shape = (3, 2) if left else (2, 3)
        yield Program(solve, (a, rng.normal(size=shape)), exact, radius=0.01)


def _scan(rng: np.random.Generator) -> Iterator[Program]:
    for reverse in (False, True):
        for length in (0, 1, 4):

            def run(x: Any, z: Any, k: Any, reverse: bool = reverse) -> Any:
                def body(carry: Any, y: Any) -> Any:
                    total, count = carry
                    return (total * y + z, count * 3), (total - y, count, y > 0)

                start = (jnp.ones(()), k)
                return lax.scan(body, start, x, reverse=reverse)

            exact = functools.partial(_scanned, reverse)
            arguments = (rng.uniform(-1, 1, length), np.float64(0.3), np.int8(7))
            yield Program(run, arguments, exact, radius=0.1)
    many = lambda x: lax.scan(lambda c, _: (lax.sin(c), None), x, length=3)[0]  # noqa: E731
    exact = np.frompyfunc(lambda x: MP.sin(MP.sin(MP.sin(x))), 1, 1)
    yield Program(many, (rng.normal(size=2),), exact, radius=0.1)


def _scanned(reverse: bool, x: Any, z: Any, k: Any) -> list[Any]:
    total, count, rows = MP.mpf(1), int(k), []
    for y in reversed(x) if reverse else x:
        rows.append((total - y, count, y > 0))
        total, count = total * y + z[()], (count * 3 + 128) % 256 - 128
    columns = zip(*(rows[::-1] if reverse else rows), strict=True) if rows else ([],) * 3
    return [np.array(part, dtype=object) for part in (total, count, *columns)]


def _while(rng: np.random.Generator) -> Iterator[Program]:
    def loop(x: Any, y: Any) -> Any:
        step = lambda c: (c[0] + np.int32(1), lax.sin(c[1]) + y)  # noqa: E731
        return lax.while_loop(lambda c: c[0] < 4, step, (np.int32(0), x))

    def exact(x: Any, y: Any) -> Any:
        value = x[()]
        for _ in range(4):
            value = MP.sin(value) + y[()]
        return [4, np.array(value, dtype=object)]

    yield Program(loop, (rng.normal(size=()), np.float64(0.25)), exact, radius=0.1)
    doubled = lambda x: lax.while_loop(lambda v: v < 10.0, lambda v: v * 2.0, x)  # noqa: E731
    yield Program(doubled, (np.float64(1.0),), radius=0.1)


def _cond(rng: np.random.Generator) -> Iterator[Program]:
    branches = [lax.sin, lax.cos, lax.exp]
    numbers = [MP.sin, MP.cos, MP.exp]
    exact = np.frompyfunc(lambda k, x: numbers[min(max(int(k), 0), 2)](x), 2, 1)
    switch = lambda k, x: lax.switch(seen_as("int32", k), branches, x)  # noqa: E731
    for k in (0, 2, -4, 9):
        yield Program(switch, (np.int32(k), rng.normal(size=2)), exact)
    yield Program(switch, (np.float64(1.5), rng.normal(size=2)), exact, radius=1.0)
    kinds = lambda x: lax.cond(  # noqa: E731
        *(
            x[0] > 0,
            lambda v: (v, v > 1, seen_as("int8", v)),
            lambda v: (-v, v < 1, -seen_as("int8", v)),
        ),
        x,
    )
    yield Program(kinds, (rng.uniform(-1, 1, 3),), radius=0.5)


@jax.custom_jvp
def _own_slope(x: Any) -> Any:
    return lax.exp(x)


_own_slope.defjvp(lambda primals, tangents: (_own_slope(*primals), tangents[0]))


@jax.custom_vjp
def _own_pullback(x: Any) -> Any:
    return lax.exp(x)


_own_pullback.defvjp(lambda x: (_own_pullback(x), None), lambda _, g: (2 * g,))


def _platform(rng: np.random.Generator) -> Iterator[Program]:
    here = lambda x: lax.platform_dependent(x, cpu=lax.exp, default=lax.sin)  # noqa: E731
    yield Program(here, (rng.normal(size=2),), np.frompyfunc(MP.exp, 1, 1), radius=0.1)


def _call(function: Callable[[Any], Any], rng: np.random.Generator) -> Iterator[Program]:
    yield Program(function, (rng.normal(size=3),), np.frompyfunc(MP.exp, 1, 1), radius=0.1)


GENERATORS: dict[str, Generator] = {
    "eigh": _eigh,
    "svd": _svd,
    "cholesky": _cholesky,
    "triangular_solve": _triangular,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "platform_index": _platform,
    "jit": functools.partial(_call, jax.jit(lax.exp)),
    "remat2": functools.partial(_call, jax.checkpoint(lax.exp)),
    "custom_jvp_call": functools.partial(_call, _own_slope),
    "custom_vjp_call": functools.partial(_call, _own_pullback),
}
