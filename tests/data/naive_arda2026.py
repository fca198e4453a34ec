"""Loops over heads, anchors and tokens, straight from the formulas of arda2026."""

from __future__ import annotations

import numpy as np


def features(X, q, U, W, activation):
    """phi_c, phi_u, phi_w of one head, with M built as a matrix."""
    T = len(X)
    logits = np.array([X[t] @ W @ q for t in range(T)])
    alpha = np.exp(logits - logits.max())
    alpha /= alpha.sum()
    a = sum(alpha[t] * X[t] for t in range(T))
    M = sum(alpha[t] * np.outer(X[t], X[t]) for t in range(T)) - np.outer(a, a)
    value, slope = float(activation(U @ a)), float(activation.derivative(U @ a))
    return value, slope * a, slope * np.outer(M @ U, q)


def transport(teacher, anchors, weights, U, W):
    """(v_c, v_u, v_w) of one head."""
    nu_c, nu_u, nu_w = teacher.nu
    act = teacher.activation
    if teacher.attention == "diagonal":
        W = np.diag(np.diag(W))
    total = [0.0, np.zeros(len(U)), np.zeros((len(U), len(U)))]
    for anchor, weight in zip(anchors, weights, strict=True):
        phi_c, phi_u, phi_w = features(anchor, np.asarray(teacher.query(anchor)), U, W, act)
        if teacher.w_branch == "scaled":
            phi_w = nu_w / act.sigma1 * phi_w
        size = np.linalg.norm(phi_w)
        if size > nu_w:
            phi_w = phi_w * nu_w / size
        total[0] += weight * nu_c / act.sigma0 * phi_c
        total[1] += weight * nu_u / act.sigma1 * phi_u
        total[2] += weight * phi_w
    return total


def label(teacher, X, anchors, weights, heads):
    """The average over the pool of phi_c v_c + <phi_u, v_u> + <phi_w, v_w>."""
    total = 0.0
    q = np.asarray(teacher.query(X))
    for U, W in heads:
        v_c, v_u, v_w = transport(teacher, anchors, weights, U, W)
        W_used = np.diag(np.diag(W)) if teacher.attention == "diagonal" else W
        phi_c, phi_u, phi_w = features(X, q, U, W_used, teacher.activation)
        total += phi_c * v_c + phi_u @ v_u + np.sum(phi_w * v_w)
    return total / len(heads)
