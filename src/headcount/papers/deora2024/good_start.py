"""Good initialisation in deora2024: Definition 1, Proposition 7 and Corollary 5 (training)."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Family, Hypothesis, Sides, instance_class
from ...theory.slow import Arithmetic, dot
from . import constants, naive, naive_constants
from . import quantities as model
from .declare import claim, false, tier_of
from .instances import ModelInstance, as_rows, draw_models, signs
from .naive import Data, Rows


@instance_class
@dataclass(frozen=True)
class StartInstance(ModelInstance):
    """A start (U, W), a direction theta_* = (vU, vW)/sqrt(H), eps, and K steps of size eta."""

    vU: Float[Array, "G r d"] = 0.0
    vW: Float[Array, "G d d"] = 0.0
    eps: Float[Array, ""] = 0.5
    eta: Float[Array, ""] = 0.1
    K: int = 1

    positive: ClassVar[tuple[str, ...]] = ("k", "eps", "eta")

    @property
    def direction(self) -> Float[Array, "G p"]:
        """theta_*."""
        return as_rows(self.vU, self.vW) / jnp.sqrt(self.H)

    @property
    def B_2(self) -> Float[Array, ""]:
        """P1: the largest head, at least 1."""
        return jnp.maximum(1.0, model.widest(self.rows))

    @property
    def B_Phi(self) -> Float[Array, ""]:
        """P2: the largest output, at least 1."""
        return jnp.maximum(1.0, jnp.max(jnp.abs(model.outputs(self, self.rows))))

    @property
    def slopes(self) -> Float[Array, "n"]:
        """y_i <grad Phi~(X_i; theta_0), theta_*>."""
        g = model.head_gradients(self, self.rows) / jnp.sqrt(self.H)
        return self.y * jnp.einsum("ngp,gp,g->n", g, self.direction, self.k)

    @property
    def gamma(self) -> Float[Array, ""]:
        """P3: the margin of this direction."""
        return jnp.min(self.slopes)

    @property
    def G(self) -> Float[Array, ""]:
        """(2 B_Phi + log(1/eps))/gamma."""
        return constants.spread(self.B_Phi, self.gamma, self.eps)


class NaiveStart:
    """The twin of `StartInstance`'s properties."""

    def __init__(self, num: Arithmetic, data: Data) -> None:
        self.num, self.H = num, naive.total(num, data)
        root = num.sqrt(self.H)
        self.rows = naive.parameters(data)
        raw = naive.parameters({"U": data["vU"], "W": data["vW"]})
        self.direction: Rows = [[e / root for e in row] for row in raw]
        parts = naive.samples(num, data, self.rows)
        one = num.number(1)
        self.B_2 = num.largest([one, naive.widest(num, self.rows)])
        self.B_Phi = num.largest([one] + [num.absolute(part.margin) for part in parts])
        self.gamma = num.smallest(
            [y * self._slope(data, part) / root for part, y in zip(parts, data["y"], strict=True)]
        )
        self.G = (2 * self.B_Phi - num.log(data["eps"])) / self.gamma
        self.R, (self.T, self.d) = naive.token_bound(num, data), naive.shape(data)
        self.readout: str = data["readout"]

    def _slope(self, data: Data, part: naive.Sample) -> Any:
        rows = zip(data["k"], part.gradients, self.direction, strict=True)
        return self.num.total([k * dot(g, v) for k, g, v in rows])


def _project(i: StartInstance, tier: str, root: Any, step: Any = None) -> StartInstance:
    """Data of one sign per label, heads in opposite pairs, sqrt(H) just above `root`."""
    y = signs(i.y)
    U = jnp.clip(i.U[:1], -0.3, 0.3)
    W = jnp.clip(i.W[:1], -1.0, 1.0)
    vU, vW = 0.2 + jnp.clip(jnp.abs(i.vU), 0.0, 3.0), jnp.clip(i.vW, -0.2, 0.2)
    scale = jnp.sqrt(2 * len(i.k) / (jnp.sum(vU**2) + jnp.sum(vW**2)))
    near = replace(
        i,
        X=y[:, None, None] * jnp.clip(jnp.abs(i.X), 0.5, 1.2),
        y=y,
        k=jnp.ones_like(i.k),
        U=jnp.concatenate([U, -U]),
        W=jnp.concatenate([W, W]),
        vU=scale * vU,
        vW=scale * vW,
        eps=jnp.full_like(i.eps, 1 / i.K) if step is not None else jnp.clip(i.eps, 1e-3, 1.0),
    )
    size = root(near, tier) ** 2 * (1 + 1e-9)
    wide = replace(near, k=jnp.broadcast_to(jnp.ceil(size / 2), i.k.shape))
    eta = jnp.clip(jnp.abs(i.eta), 1e-6, 1.0) if step is None else step(wide, tier) * (1 - 1e-9)
    return replace(wide, eta=eta)


def _realizable_root(i: StartInstance, tier: str) -> Any:
    return constants.realizable_root(i.G, i.B_2, i.B_Phi, i.R, i.T, i.d, tier, i.readout)


def draw_starts(rng: np.random.Generator, count: int, *, K: int, **shape: Any) -> StartInstance:
    models = draw_models(rng, count, **shape)
    values = {f.name: getattr(models, f.name) for f in fields(ModelInstance)}
    return StartInstance(
        **values,
        vU=rng.normal(size=models.U.shape),
        vW=rng.normal(size=models.W.shape),
        eps=rng.uniform(1e-3, 1.0, count),
        eta=np.full(count, 0.1),
        K=K,
    )


def start_family(
    name: str, tier: str, root: Any, step: Any = None, *, d: int = 2, K: int = 1
) -> Family:
    """Good starts of one shape."""
    draw = functools.partial(draw_starts, n=2, d=d, T=2, G=2, K=K, readout="full")
    project = functools.partial(_project, tier=tier, root=root, step=step)
    return Family(f"good start {name}", draw, project)


STARTS = (
    start_family("v2", "v2", _realizable_root),
    start_family("v1", "v1", _realizable_root),
    start_family("sharp", "sharp", _realizable_root, d=1),
)
SEPARABLE = Hypothesis(
    "P3: a margin above 0, as -gamma",
    lambda i: -i.gamma,
    lambda num, data: -NaiveStart(num, data).gamma,
    -1e-6,
)
DIRECTION = Hypothesis(
    "|theta_*|^2 = 2",
    lambda i: jnp.abs(model.length(i, i.direction) ** 2 - 2),
    lambda num, data: num.absolute(
        naive.squared_length(num, data, NaiveStart(num, data).direction) - 2
    ),
    1e-9,
)


def form_of(variant: str) -> str:
    """Which g_0 Corollary 5 is stated with: G as printed and in its sharp form, else sqrt(2) G."""
    return "printed" if variant in ("printed", "sharp") else "corrected"


def _wide_limit(i: StartInstance, variant: str) -> Any:
    return jnp.sqrt(i.H) / _realizable_root(i, tier_of(variant))


def _wide_limit_naively(num: Arithmetic, data: Data, variant: str) -> Any:
    s = NaiveStart(num, data)
    wanted = (s.G, s.B_2, s.B_Phi, s.R, s.T, s.d, tier_of(variant), s.readout)
    return num.sqrt(s.H) / naive_constants.realizable_root(num, *wanted)


WIDE = Hypothesis(
    "(98): 1 <= sqrt(H)/(what it must reach)",
    lambda i: jnp.ones(()),
    lambda num, data: num.number(1),
    threshold=_wide_limit,
    naive_threshold=_wide_limit_naively,
)


def _margin_ceiling(i: StartInstance, variant: str) -> Sides:
    return Sides(i.gamma, 2**0.5 * constants.beta_1(i.B_2, i.R, i.T, i.readout))


def _margin_ceiling_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    s = NaiveStart(num, data)
    slope = naive_constants.beta_1(num, s.B_2, s.R, s.T, s.readout)
    return s.gamma, num.sqrt(num.number(2)) * slope


claim(
    "definition-1",
    "Good initialisation: what its margin can be",
    "Definition 1 (P1-P3)",
    "With P1 and |theta_*| = sqrt(2), the margin gamma of P3 is at most sqrt(2) beta_1(B_2). B_2, "
    "B_Phi and the largest gamma of any start and data are measured by `start.good_start`.",
    r"\gamma\le\sqrt2\,\sqrt TR(2R^2B_2+1)",
    sides=_margin_ceiling,
    naive=_margin_ceiling_naive,
    families=STARTS,
    hypotheses=(DIRECTION,),
    forms="what Proposition 1 allows",
    where="Sec. 4.3",
)


def _least_loss(i: StartInstance) -> Any:
    """A lower bound of the loss within G of the start: exact for one token and one sample."""
    if i.T > 1 or len(i.y) > 1:
        return jnp.zeros(())
    best = i.y * model.outputs(i, i.rows) + i.G * jnp.linalg.norm(i.X[0, 0])
    return model.logistic(best)[0]


def _least_loss_naively(num: Arithmetic, data: Data, s: NaiveStart) -> Any:
    if s.T > 1 or len(data["y"]) > 1:
        return num.number(0)
    part = naive.samples(num, data, s.rows)[0]
    size = num.root(dot(data["X"][0][0], data["X"][0][0]))
    return naive.softplus(num, -(part.margin + s.G * size))


def _witness(i: StartInstance, variant: str) -> Sides:
    if variant == "printed":
        return Sides(_least_loss(i), i.eps)
    move = i.G * i.direction
    g0 = constants.g_0(i.B_Phi, i.gamma, i.eps)
    lhs = [model.loss(i, i.rows + move), model.length(i, move), model.widest(i.rows + move)]
    table = {"B_2": i.B_2, "B_Phi": i.B_Phi, "gamma": i.gamma, "H": i.H}
    return Sides(jnp.stack(lhs), jnp.stack([i.eps, g0, i.B_2 + g0]), table)


def _witness_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    s = NaiveStart(num, data)
    if variant == "printed":
        return _least_loss_naively(num, data, s), data["eps"]
    move = [[s.G * e for e in row] for row in s.direction]
    there = naive.combined(s.rows, move, 1)
    g0 = num.sqrt(num.number(2)) * s.G
    lhs = [
        naive.loss(num, data, there),
        naive.length(num, data, move),
        naive.widest(num, there),
    ]
    return lhs, [data["eps"], g0, s.B_2 + g0]


def _one_token() -> tuple[StartInstance, ...]:
    """One token, one sample, start at zero: the model is linear, and gamma = sqrt(2)."""
    one = np.ones((1, 1, 1))
    v = np.sqrt(2.0) * one
    return (
        StartInstance(
            X=one,
            y=np.ones(1),
            k=np.array([2.0**40]),
            U=0 * one,
            W=0 * one,
            readout="full",
            vU=v,
            vW=0 * one,
            eps=np.asarray(2.0**-14),
            eta=np.asarray(0.1),
            K=1,
        ),
    )


claim(
    "proposition-7",
    "From a good start to realizability",
    "Proposition 7, Assumption 2, Eqs. (98)-(100)",
    "With (98) there is, for every eps, a theta with L <= eps within g_0 of the start and "
    "|theta|_{2,inf} <= B_2 + g_0; the witness is theta_0 + G theta_*, G = (2 B_Phi + log(1/eps))/"
    "gamma. As printed g_0 = G: the least loss within G of the start is at most eps.",
    r"g_0(\epsilon)=\sqrt2\,\frac{2B_\Phi+\log(1/\epsilon)}\gamma,\quad g=B_2+g_0",
    sides=_witness,
    naive=_witness_naive,
    families=STARTS,
    hypotheses=(SEPARABLE, DIRECTION, WIDE),
    targets=_one_token,
    forms={
        "printed": false("g_0 = G, forgetting that |theta_*| is sqrt(2)", "E2"),
        "corrected": ("g_0 = sqrt(2) G", "E2"),
        "v1": ("the same with the first text's beta_3 in the condition on H", "E9"),
        "sharp": ("the same with sharp beta_3 in the condition on H", "E2"),
    },
    where="App. C.3",
)
