"""Certificates that carry themselves: a counterexample with its statement as a program of numbers.

`check_certificate.py` proves such a file with python-flint alone. The program is written by running
the jaxpr of hypotheses and sides on terms (`_term.py`); the point is exact, inside its domain.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from flint import arb, fmpq

from .. import check_certificate
from ..core import BadArgument
from ..core._files import write_atomically
from ._ball_jaxpr import BallProgram, Unsupported
from ._balls import Undecided, at_precision
from ._certificate import Certificate, certify
from ._claim import Claim, Instance, Kind
from ._exact_points import Exact, assembled, exact_point, rationals
from ._prove import CONSTANT_ULPS, traced
from ._pytree import arrays_of, axes_of, instance_from
from ._record import blocks_of, sizes_of
from ._term import Tape, Term, shown
from ._verification import Verification
from ._verify import at_points

BITS = 320
"""At which decisions are made; whoever checks the program makes them again."""


class NotPortable(BadArgument):
    """A counterexample that is no program of real numbers, or none that is proved."""


def export(claim: Claim, certificate: Certificate, path: Path) -> list[str]:
    """Write the portable form of a certificate; what the checker proves of it, in sentences."""
    content, proved = portable(claim, certificate)
    write_atomically(path, f"{json.dumps(content, indent=1)}\n".encode())
    return proved


def certificate_of(lemma: Claim, found: Verification) -> Certificate:
    """The certificate of a verification's counterexample."""
    point = {name: np.asarray(x, dtype=np.float64) for name, x in found.instance.items()}
    letters = axes_of(lemma.on)
    seen = {a: n for name, x in point.items() for a, n in zip(letters[name], x.shape, strict=True)}
    static = {f"size_{name}": found.sizes[name] for name in lemma.on.sized if name not in seen}
    return certify(lemma, lemma.instance(**point, **static), found.variant)


def portable(claim: Claim, certificate: Certificate) -> tuple[dict[str, Any], list[str]]:
    """The content of the file, and what the checker proves of it."""
    if certificate.kind != "instance" or claim.instance_class is None:
        problem = "is a count of random draws, or no point: there is no program to check"
        raise NotPortable("certificate", claim.id, problem, fix="use headcount recheck")
    instance = instance_from(claim.instance_class, certificate.instance)
    problems = []
    for decimal in (True, False):
        try:
            content = _content(claim, certificate.variant, instance, decimal=decimal)
            return content, check_certificate.check(content)
        except (check_certificate.Refused, Undecided, Unsupported) as error:
            problems.append(str(error))
    raise NotPortable("certificate", claim.id, f"has no program: {problems[-1]}", fix="recheck it")


def _content(claim: Claim, form: str, instance: Instance, *, decimal: bool) -> dict[str, Any]:
    sizes: dict[str, tuple[int, int, int]] = {}
    if claim.raw:
        own = sizes_of(instance)
        sizes = {n: (own[n], s.low, s.high) for n, s in claim.on.sized.items()}
        exact = _of_lemma(claim, instance, own, decimal=decimal)
    else:
        exact = _of_record(instance, decimal=decimal)
    stated = _stated(claim, form, instance)
    tape = Tape()
    inputs = {name: _terms(tape, name, array) for name, array in exact.items()}
    floats = {name: array.values.astype(float) for name, array in exact.items()}
    program = BallProgram(stated, floats, ulps=CONSTANT_ULPS)
    with at_precision(BITS):
        terms = [inputs[name] for name in sorted(floats)]  # as JAX orders a dictionary
        measured, lhs, rhs = program.on_terms(BITS, terms, tape.constant)
        entry, left, right = _violating(claim, tape, lhs, rhs)
        pairs = [(tape.lifted(value), tape.lifted(limit)) for value, limit in measured]
        asked = [left, right, *itertools.chain.from_iterable(pairs)]
        lines, names = tape.written(asked)
        seen = [_seen(term) for term in asked]
    content: dict[str, Any] = {
        "format": "headcount-program",
        "version": 1,
        "statement": {
            "id": claim.id,
            "form": f"{form}: {claim.variants[form].text}",
            "words": claim.statement,
            "latex": claim.latex,
        },
        "sizes": sizes,
        "fixed": {} if claim.raw else _static(instance),
        "domain": {name: array.where for name, array in exact.items()},
        "point": {
            name: [shown(fmpq(v.numerator, v.denominator)) for v in array.values.ravel()]
            for name, array in exact.items()
        },
        "program": lines,
        "hypotheses": [
            {
                "name": h.name,
                "value": names[2 + 2 * k],
                "threshold": names[3 + 2 * k],
                "seen": seen[2 + 2 * k : 4 + 2 * k],
            }
            for k, h in enumerate(claim.asked(form))
        ],
        "relation": "=" if claim.kind is Kind.IDENTITY else "<=",
        "entry": entry,
        "lhs": names[0],
        "rhs": names[1],
        "seen": seen[:2],
    }
    content = json.loads(json.dumps(content))
    return {**content, "fingerprint": check_certificate.fingerprint(content)}


def _static(instance: Instance) -> dict[str, Any]:
    return {k: v for k, v in arrays_of(instance).items() if isinstance(v, (str, int))}


def _of_lemma(
    lemma: Claim, instance: Instance, sizes: Mapping[str, int], *, decimal: bool
) -> dict[str, Exact]:
    found: dict[str, Exact] = {}
    axes = axes_of(type(instance))
    for name, space in lemma.variables.items():
        raw = blocks_of(instance, name)
        for own, array in exact_point(name, space, raw, sizes, decimal=decimal).items():
            letters = [a if a in sizes else "" for a in axes[own]]
            where = {"shape": list(array.values.shape), "axes": letters, **array.where}
            found[own] = Exact(array.values, where)
    return found


def _of_record(instance: Instance, *, decimal: bool) -> dict[str, Exact]:
    """A paper's point: where it lies is measured by hypotheses, but for signs."""
    found: dict[str, Exact] = {}
    axes = axes_of(type(instance))
    for name, value in arrays_of(instance).items():
        if isinstance(value, (str, int)):
            continue
        space = "positive" if name in instance.positive else "reals"
        space = "fraction" if name in instance.fractions else space
        where = {"shape": list(np.shape(value)), "axes": list(axes[name]), "in": space}
        found[name] = Exact(rationals(value, decimal=decimal), where)
    return found


def _stated(claim: Claim, form: str, instance: Instance) -> Callable[[Mapping[str, Any]], Any]:
    """Hypotheses and both sides as a function of the arrays of a point."""
    if not claim.raw:
        whole, static = traced(claim, form), _static(instance)
        return lambda arrays: whole(type(instance)(**arrays, **static))
    sizes = sizes_of(instance)

    def stated(arrays: Mapping[str, Any]) -> Any:
        points = {
            name: assembled(name, space, arrays, sizes) for name, space in claim.variables.items()
        }
        lhs, rhs, checks = at_points(claim, points, form)
        left, right = jnp.broadcast_arrays(jnp.asarray(lhs), jnp.asarray(claim.factor * rhs))
        return checks, left, right

    return stated


def _terms(tape: Tape, name: str, array: Exact) -> Any:
    shape = array.values.shape
    found = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        label = f"{name}[{','.join(map(str, place))}]" if shape else name
        found[place] = tape.input(label, Fraction(array.values[place]))
    return found


def _violating(claim: Claim, tape: Tape, lhs: Any, rhs: Any) -> tuple[list[int], Term, Term]:
    """An entry at which the balls show that the statement fails."""
    left, right = (np.asarray(side, dtype=object) for side in (lhs, rhs))
    best: tuple[float, list[int], Term, Term] | None = None
    for place in np.ndindex(left.shape):
        x, y = tape.lifted(left[place]), tape.lifted(right[place])
        gap = x.ball - y.ball
        apart = gap > 0 or (claim.kind is Kind.IDENTITY and gap < 0)
        excess = float(abs(gap).mid()) if apart else -1.0
        if apart and (best is None or excess > best[0]):
            best = excess, list(place), x, y
    if best is None:
        raise Undecided("no entry is seen to violate it")
    return best[1:]


def _seen(term: Term) -> str:
    """Sixteen digits and more of a value, as a decimal."""
    ball: arb = term.ball
    if not ball.is_finite():
        raise Undecided(f"{term.name} is not finite")
    return ball.mid().str(18, radius=False).replace("+", "")
