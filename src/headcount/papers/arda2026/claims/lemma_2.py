"""Lemma 2 pilot."""

from ....theory.families import safe_norm
from ....theory.slow import norm
from .. import naive as slow
from .. import quantities as model
from ..records import Head
from ..statements import state
from .facts import antipodal


@state.claim(
    "lemma-2a",
    "Lipschitz constant of a head",
    where="Lemma 2 (a)",
    on=Head,
    says=r"\|\nabla_\theta h\|_2\le L_1=\sigma_1\sqrt{1+B_U^2}",
    forms={"printed": "L1 = s1 sqrt(1 + B_U^2)", "sharp": "L1* = s1 max(1, B_U)"},
    right=lambda k: k.L1,
    tight=lambda: (antipodal(U=3.0), antipodal(U=0.0, logit=40.0)),
    needs_event=True,
)
def lemma_2a(head):
    """|grad_theta h| <= L1 = s1 sqrt(1 + B_U^2) wherever |U| <= B_U."""
    return safe_norm(model.head_gradient(head))


@lemma_2a.twin
def _(num, head):
    return norm(num, slow.one_head(num, head).gradient)
