"""Lemma 5, Corollary 1 (= Lemma 6) and Eq. (24) of deora2024: H heads and the logistic loss."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np

from ....theory import false, given
from .. import quantities
from .. import twins as slow
from ..constants import HESSIAN_TIERS, NO_SIZE, state
from ..records import SMALL_MODELS, Model, opposite_model


def _tight() -> tuple[Model, ...]:
    return tuple(opposite_model(r, k) for r in ("full", "pooling", "last") for k in (1.0, 4.0))


def _equal_tokens() -> tuple[Model, ...]:
    """Equal tokens, U = 0: |grad Phi~| = (power of T) R."""
    return tuple(one.changed(X=np.ones((1, 2, 1))) for one in _tight())


on_models = functools.partial(
    state.claim, on=Model, bound=None, proved="App. A.1, A.2", no_rival=NO_SIZE
)
"""At a model's own N: that of a setting belongs to a target."""
on_small_models = functools.partial(
    on_models, shapes=SMALL_MODELS, tight=_tight, forms=HESSIAN_TIERS
)


@on_models(
    "lemma-5-gradient",
    "Gradient of the multi-head model",
    where="Lemma 5 (1)",
    says=r"\|\nabla\widetilde\Phi\|\le\sqrt TR(2R^2\max_h\|U_h\|_F+1)",
    given=(
        given(
            "the full read-out, as in Lemma 5 (0 where it is)",
            lambda i: 0.0 if i.readout == "full" else 1.0,
            0.0,
            lambda i: f"the read-out is {i.readout!r}, Lemma 5 is about the full one",
            forms=("printed",),
        ),
    ),
    forms={
        "corrected": ("sqrt(T) for a full read-out, T for pooling, 1 for the last token", "E20"),
        "printed": ("sqrt(T), for the full read-out that the lemma is about", "E20"),
        "same-constant": false("sqrt(T) for pooling and the last token, too", "E20"),
    },
    tight=_equal_tokens,
    right=lambda k: k.beta_1 if k.form == "corrected" else k.full_beta_1,
)
def lemma_5_gradient(model):
    """|grad Phi~(X)| <= beta_1 = sqrt(T) R (2 R^2 max_h |U_h|_F + 1)."""
    # The gradient of Phi~ in one head is H^{-1/2} grad Phi, and a group has k_g of them.
    squares = jnp.sum(quantities.head_gradients(model, model.rows) ** 2, axis=-1) @ model.k
    return jnp.sqrt(jnp.max(squares / model.H))


@lemma_5_gradient.twin
def _(num, model):
    H = slow.total(num, model)
    parts = slow.samples(num, model, slow.parameters(model))
    squares = [slow.squared_length(num, model, part.gradients) / H for part in parts]
    return num.root(num.largest(squares))


@on_small_models(
    "lemma-5-hessian",
    "Hessian of the multi-head model",
    where="Lemma 5 (2)",
    says=r"\|\nabla^2\widetilde\Phi\|\le\beta_3/\sqrt H",
    right=lambda k: k.bend,
)
def lemma_5_hessian(model):
    """|Hess Phi~(X)| <= beta_3/sqrt(H): it is block diagonal over heads."""
    return jnp.max(quantities.model_hessian_norms(model))


@lemma_5_hessian.twin
def _(num, model):
    return num.largest(slow.model_hessian_norms(num, model))


@on_models(
    "eq-24",
    "Derivatives of the logistic loss",
    where="Eq. (24)",
    no_rival="means of derivatives of the loss are compared with the loss itself",
    says=r"\tfrac1n\sum|\ell'|\le\widehat L\wedge1,\quad\tfrac1n\sum|\ell''|\le\tfrac14",
    forms={
        "printed": false("mean |l'| <= L <= 1: the loss is not at most 1", "E6"),
        "corrected": ("the smaller of L and 1", "E6"),
    },
)
def eq_24(model, form):
    """mean |l'| <= min(L, 1) and mean |l''| <= 1/4. As printed L itself is at most 1."""
    z = model.y * quantities.outputs(model, model.rows)
    L, mean = quantities.loss(model, model.rows), jnp.mean(-quantities.slope(z))
    if form == "printed":
        return jnp.stack([mean, L]), jnp.stack([L, jnp.ones(())])
    curved = jnp.mean(quantities.curvature(z))
    return jnp.stack([mean, mean, curved]), jnp.stack([L, jnp.ones(()), jnp.full((), 0.25)])


@eq_24.twin
def _(num, model, form):
    parts = slow.samples(num, model, slow.parameters(model))
    L, n, one = slow.mean_loss(num, parts), len(parts), num.number(1)
    mean = num.total([-part.slope for part in parts]) / n
    if form == "printed":
        return [mean, L], [L, one]
    curved = num.total([part.curvature for part in parts]) / n
    return [mean, mean, curved], [L, one, one / 4]


@on_models(
    "corollary-1-1",
    "The loss bounds its own gradient",
    where="Lemma 6 (1), which gives Corollary 1 (1), Eq. (64)",
    says=r"\|\nabla\widehat L\|\le\beta_1\widehat L",
    forms={"printed": "beta_1 L", "sharp": "beta_1 min(L, 1), since |l'| <= 1"},
)
def corollary_1_1(model, k, form):
    """|grad L| <= beta_1 L."""
    L = quantities.loss(model, model.rows)
    lhs = quantities.length(model, quantities.loss_gradient(model, model.rows))
    return lhs, k.beta_1 * (jnp.minimum(L, 1.0) if form == "sharp" else L)


@corollary_1_1.twin
def _(num, model, k, form):
    parts = slow.samples(num, model, slow.parameters(model))
    L = slow.mean_loss(num, parts)
    factor = num.smallest([L, num.number(1)]) if form == "sharp" else L
    return slow.length(num, model, slow.loss_gradient(num, model, parts)), k.beta_1 * factor


@on_small_models(
    "corollary-1-2",
    "Smoothness of the loss",
    where="Lemma 6 (2), which gives Corollary 1 (2), Eqs. (65), (66)",
    says=r"\|\nabla^2\widehat L\|\le\beta_3/\sqrt H+\beta_1^2/4",
    right=lambda k: k.beta_2,
    notes=("E15",),
)
def corollary_1_2(model):
    """|Hess L| <= beta_2 = beta_3/sqrt(H) + beta_1^2/4."""
    low, high = quantities.loss_hessian_ends(model, model.rows)
    return jnp.maximum(-low, high)


@corollary_1_2.twin
def _(num, model):
    low, high = slow.loss_hessian_ends(num, model, slow.parameters(model))
    return num.largest([-low, high])


@on_small_models(
    "corollary-1-3",
    "Self-bounded weak convexity",
    where="Lemma 6 (3), which gives Corollary 1 (3)",
    says=r"\lambda_{\min}(\nabla^2\widehat L)\ge-(\beta_3/\sqrt H)\widehat L",
)
def corollary_1_3(model, k):
    """The smallest eigenvalue of Hess L is at least -(beta_3/sqrt(H)) L."""
    low, _ = quantities.loss_hessian_ends(model, model.rows)
    return -low, k.bend * quantities.loss(model, model.rows)


@corollary_1_3.twin
def _(num, model, k):
    rows = slow.parameters(model)
    return -slow.loss_hessian_ends(num, model, rows)[0], k.bend * slow.loss(num, model, rows)
