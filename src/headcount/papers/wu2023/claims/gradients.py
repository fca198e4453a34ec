"""Lemmas 12 and 13 of wu2023: the sizes of the loss gradient and of the network's gradient.

And what the tangent kernel K = J J^T does with them: (5), and the inequality of the proof sketch.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from ....theory import Sides
from ....theory.slow import flat, flattened, norm
from ....theory.slow_spectrum import operator_norm, outer_gram, smallest_eigenvalue
from .. import quantities, twins
from ..constants import state
from ..records import Network

on_networks = functools.partial(
    state.claim,
    on=Network,
    proved="App. C.1",
    no_rival="the size of a gradient is known in no other way",
)
FACTORS = {
    "W_Q": ("2 rho tau0 S lamK lamV lamO", r"2\rho\tau_0S\bar\lambda_K\bar\lambda_V\bar\lambda_O"),
    "W_K": ("2 rho tau0 S lamQ lamV lamO", r"2\rho\tau_0S\bar\lambda_Q\bar\lambda_V\bar\lambda_O"),
    "W_V": ("rho lamO", r"\rho\bar\lambda_O"),
    "w_O": ("rho lamV", r"\rho\bar\lambda_V"),
}


def lemma_12(block):
    """The statement about one block of the weights."""

    def size(network, k):
        slope = jax.grad(lambda t: quantities.loss(network, t))(network.theta)
        residual = jnp.linalg.norm(quantities.outputs(network, network.theta) - network.y)
        return jnp.linalg.norm(jnp.ravel(getattr(slope, block))), k.rho * k.slopes[block] * residual

    def slow_size(num, network, k):
        theta = twins.theta_of(network)
        r = twins.residual(num, network, theta)
        slope = getattr(twins.loss_gradient(num, network, theta, r), block)
        return norm(num, flattened(slope)), k.rho * k.slopes[block] * norm(num, r)

    text, latex = FACTORS[block]
    size.__doc__ = f"The gradient of (1/2)|f - y|^2 in {block} has norm at most {text} |f - y|."
    claim = on_networks(
        f"lemma-12-{block[-1]}",
        f"Size of the loss gradient in {block}",
        where="Lemma 12, (7)-(10)",
        says=rf"\|\nabla_{{{block}}}\ell\|_F\le{latex}\|f-y\|_2",
        forms="with relu' (0 or 1) where the proof prints relu",
        notes=("E3",),
    )(size)
    claim.twin(slow_size)
    return claim


lemmas_12 = [lemma_12(block) for block in twins.BLOCKS]


@on_networks(
    "lemma-13",
    "Size of the network's gradient",
    where="Lemma 13, (11)",
    says=r"\|\nabla_\theta f\|_2\le c_2",
    forms={"printed": ("tight; the proof lacks squares on three norms", "E25")},
    right=lambda k: k.c2,
    bound=None,
)
def lemma_13(network):
    """The N x p Jacobian of f has spectral norm at most c2 = rho sqrt(lamO^2 + lamV^2
    + (2 tau0 S lamK lamV lamO)^2 + (2 tau0 S lamQ lamV lamO)^2)."""
    return quantities.spectral(quantities.jacobian(network, network.theta))


@lemma_13.twin
def _(num, network):
    slopes = twins.jacobian(num, network, twins.theta_of(network))
    return operator_norm(num, [slope.flat() for slope in slopes])


@state.identity(
    "eq-5",
    "Outputs along the gradient flow",
    where="(5)",
    proved="App. B.1",
    on=Network,
    says=r"\frac{df(\theta^t)}{dt}=-K^t(f(\theta^t)-y)",
    forms="the derivative along -grad l, away from kinks",
)
def eq_5(network):
    """df/dt = -K (f - y) along the flow d theta/dt = -grad l, K = J J^T the tangent kernel."""
    theta, f = network.theta, quantities.outputs(network, network.theta)
    slope = jax.grad(lambda t: quantities.loss(network, t))(theta)
    down = jax.tree.map(jnp.negative, slope)
    moved = jax.jvp(lambda t: quantities.outputs(network, t), (theta,), (down,))[1]
    J = quantities.jacobian(network, theta)
    scale = jnp.sum(J**2) * jnp.max(jnp.abs(f - network.y))
    return Sides(moved, -J @ (J.T @ (f - network.y)), scale=scale)


@on_networks(
    "pl-inequality",
    "The inequality of Polyak and Lojasiewicz",
    lower=True,
    where="Proof sketch of Proposition 1",
    proved="Sec. 4.1",
    says=r"\|\nabla\ell\|_2^2\ge2\lambda_{\min}(K)\ell\ge2\lambda_{\min}(F_{\rm pre}"
    r"F_{\rm pre}^\top)\ell",
)
def pl_inequality(network):
    """|grad l|^2 >= 2 lambda_min(K) l >= 2 lambda_min(F_pre F_pre^T) l. Sides carry l tr K as a
    common summand."""
    theta, loss = network.theta, quantities.loss(network, network.theta)
    slope = jax.grad(lambda t: quantities.loss(network, t))(theta)
    square = sum(jnp.sum(block**2) for block in slope)
    J, F = quantities.jacobian(network, theta), quantities.features(network, theta)
    of_kernel, of_features = (2 * jnp.linalg.eigvalsh(A @ A.T)[0] * loss for A in (J, F))
    common = loss * jnp.sum(J**2)
    return (
        jnp.stack([of_kernel, of_features]) + common,
        jnp.stack([square, of_kernel]) + common,
    )


@pl_inequality.twin
def _(num, network):
    theta = twins.theta_of(network)
    r, rows = twins.residual(num, network, theta), twins.jacobian(num, network, theta)
    J, loss = [slope.flat() for slope in rows], twins.half_square(num, r)
    square = num.total([x**2 for x in twins.loss_gradient(num, network, theta, r).flat()])
    F, common = twins.features(num, network, theta), loss * num.total([x**2 for x in flat(J)])
    of_kernel, of_features = (2 * smallest_eigenvalue(num, outer_gram(A)) * loss for A in (J, F))
    return [of_kernel + common, of_features + common], [square + common, of_kernel + common]
