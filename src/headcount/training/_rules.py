"""Update rules: an optax transformation, a projection, and how many samples a step sees."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jax
import numpy as np
import optax

from ..core import BadArgument, Registry, check_count, check_nonnegative, check_positive
from ..core._named import Call, Named
from ._projections import NoProjection, Projection


@dataclass(frozen=True)
class UpdateRule(Named):
    """theta <- Proj(theta + update(grad L_B(theta))), B all samples or a random batch.

    `settings` is what a record shows; the constructors below fill it from the values that they
    use. They build each transformation once, so that rules with equal settings are equal and
    share compiled programs.
    """

    name: str
    transform: optax.GradientTransformation
    projection: Projection = field(default_factory=NoProjection)
    batch_size: int | None = None
    settings: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)

    def found_by(self) -> Call | None:
        """By the constructor of its name and what that takes, if these make an equal rule."""
        if self.name not in optimisers:
            return None
        values = {**dict(self.settings), **vars(self)}
        taken = inspect.signature(optimisers[self.name]).parameters
        given = {name: values[name] for name in taken if name in values}
        same = taken.keys() == given.keys() and optimisers[self.name](**given) == self
        return (_made, (self.name, tuple(given.items()))) if same else None


def gd(eta: float) -> UpdateRule:
    """Full-batch gradient descent: theta <- theta - eta grad L(theta)."""
    return _plain("gd", _sgd(check_positive("eta", eta)), eta=eta)


def projgd(eta: float, projection: Projection) -> UpdateRule:
    """ProjGD: full-batch descent, then the exact projection."""
    _require_projection("projgd", projection)
    return _plain("projgd", _sgd(check_positive("eta", eta)), projection, eta=eta)


def projsgd(eta: float, projection: Projection, batch_size: int = 1) -> UpdateRule:
    """ProjSGD: indices drawn independently and uniformly, `batch_size` per step."""
    _require_projection("projsgd", projection)
    check_count("batch_size", batch_size)
    transform = _sgd(check_positive("eta", eta))
    return _plain("projsgd", transform, projection, batch_size, eta=eta)


def sgd(eta: float, batch_size: int) -> UpdateRule:
    """Mini-batch descent, indices drawn with replacement, no projection."""
    check_count("batch_size", batch_size)
    return _plain("sgd", _sgd(check_positive("eta", eta)), None, batch_size, eta=eta)


def momentum(eta: float, beta: float = 0.9, batch_size: int | None = None) -> UpdateRule:
    """Heavy ball: b <- beta b + grad, theta <- theta - eta b."""
    _check_decay("beta", beta)
    transform = _sgd(check_positive("eta", eta), momentum=beta)
    return _plain("momentum", transform, None, batch_size, eta=eta, beta=beta)


def adam(
    eta: float,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    batch_size: int | None = None,
) -> UpdateRule:
    """Adam with constant step size: theta <- theta - eta m^/(sqrt(v^) + eps)."""
    for argument, decay in (("b1", b1), ("b2", b2)):
        _check_decay(argument, decay)
    transform = _adam(check_positive("eta", eta), b1, b2, check_positive("eps", eps))
    return _plain("adam", transform, None, batch_size, eta=eta, b1=b1, b2=b2, eps=eps)


def adamw(
    eta: float,
    weight_decay: float = 0.01,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    batch_size: int | None = None,
) -> UpdateRule:
    """AdamW: Adam's step, and theta <- theta - eta weight_decay theta beside it."""
    for argument, decay in (("b1", b1), ("b2", b2)):
        _check_decay(argument, decay)
    check_nonnegative("weight_decay", weight_decay)
    transform = _adamw(check_positive("eta", eta), b1, b2, check_positive("eps", eps), weight_decay)
    settings = {"eta": eta, "weight_decay": weight_decay, "b1": b1, "b2": b2, "eps": eps}
    return _plain("adamw", transform, None, batch_size, **settings)


def from_optax(
    transform: optax.GradientTransformation,
    projection: Projection | None = None,
    batch_size: int | None = None,
    name: str = "optax",
) -> UpdateRule:
    """Any optax transformation, with an explicit projection if one is wanted."""
    if not (callable(getattr(transform, "init", None)) and hasattr(transform, "update")):
        raise BadArgument(
            "transform", transform, "is no optax transformation", fix="for example optax.lion(0.1)"
        )
    return UpdateRule(
        name=name,
        transform=transform,
        projection=NoProjection() if projection is None else projection,
        batch_size=batch_size,
    )


def as_rule(rule: Any) -> UpdateRule:
    """An update rule, or an optax transformation made one: the whole data set, no projection."""
    if isinstance(rule, UpdateRule):
        return rule
    if callable(getattr(rule, "init", None)) and callable(getattr(rule, "update", None)):
        return from_optax(rule)
    fix = "for example training.gd(0.1), or an optax transformation such as optax.adam(0.01)"
    raise BadArgument("rule", rule, "is no update rule", fix=fix)


def check_equal_heads(rule: UpdateRule, model: Any, params: Any) -> None:
    """Where one entry stands for equal heads, the rule must move it as it moves each of them.

    Ours do: they look at every number alone. A transformation from elsewhere is tried on the
    entries as they are and on copies of them: a norm over all heads, or noise, tells them apart.
    """
    counts = getattr(model, "multiplicities", None)
    if counts is None or set(counts) == {1} or rule.settings:
        return
    copies = np.arange(2, len(counts) + 2)  # unequal: a ratio of two norms changes, too

    def copied(leaf: Any) -> Any:
        return np.repeat(leaf, copies, axis=0)

    few = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), params)
    steep = jax.tree.map(
        lambda p: 1e6 * np.cos(np.arange(p.size, dtype=p.dtype)).reshape(p.shape), few
    )
    alone = jax.tree.map(copied, _first_update(rule, few, steep))
    among = _first_update(rule, jax.tree.map(copied, few), jax.tree.map(copied, steep))
    if not all(
        np.allclose(a, b, rtol=1e-3)
        for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(among), strict=True)
    ):
        fix = "train model.plain from model.expand(initial), or use a rule without norms and noise"
        problem = "moves a head by what the other heads do, and this model has groups of equal ones"
        raise BadArgument("rule", rule.name, problem, fix=fix)


def _first_update(rule: UpdateRule, params: Any, gradient: Any) -> Any:
    transform = rule.transform
    update = jax.jit(lambda p, g: transform.update(g, transform.init(p), p)[0])
    with jax.numpy_dtype_promotion("standard"):  # optax counts its steps in int32
        return update(params, gradient)


optimisers: Registry[Callable[..., UpdateRule]] = Registry("optimiser")
"""Update rules by the name that the command line uses."""
for _rule in (gd, projgd, projsgd, sgd, momentum, adam, adamw):
    optimisers.register(_rule.__name__, _rule)


def _made(name: str, given: tuple[tuple[str, Any], ...]) -> UpdateRule:
    return optimisers[name](**dict(given))


@lru_cache(maxsize=256)
def _sgd(eta: float, momentum: float | None = None) -> optax.GradientTransformation:
    return optax.sgd(eta, momentum=momentum)


@lru_cache(maxsize=256)
def _adam(eta: float, b1: float, b2: float, eps: float) -> optax.GradientTransformation:
    return optax.adam(eta, b1=b1, b2=b2, eps=eps)


@lru_cache(maxsize=256)
def _adamw(
    eta: float, b1: float, b2: float, eps: float, weight_decay: float
) -> optax.GradientTransformation:
    return optax.adamw(eta, b1=b1, b2=b2, eps=eps, weight_decay=weight_decay)


def _check_decay(argument: str, value: float) -> None:
    check_nonnegative(argument, value)
    if value >= 1:
        raise BadArgument(argument, value, "must be below 1", fix=f"for example {argument}=0.9")


def _plain(
    name: str,
    transform: optax.GradientTransformation,
    projection: Projection | None = None,
    batch_size: int | None = None,
    **settings: Any,
) -> UpdateRule:
    return UpdateRule(
        name=name,
        transform=transform,
        projection=NoProjection() if projection is None else projection,
        batch_size=batch_size,
        settings=tuple(settings.items()),
    )


def _require_projection(name: str, projection: Projection) -> None:
    if projection is None or isinstance(projection, NoProjection):
        raise BadArgument(
            "projection",
            projection,
            f"is missing, and {name} projects",
            fix="give omega(rho_c, rho_u, rho_w), or use gd / sgd",
        )
    if not callable(projection):
        fix = "give omega(rho_c, rho_u, rho_w)"
        raise BadArgument("projection", projection, "is no projection", fix=fix)
