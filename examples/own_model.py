"""A model of your own: its tangent kernel, its smallest eigenvalue, how lazily it trains.

A model is any function of parameters and one sample. Put yours in place of `model`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from headcount import kernels, training


def model(params, x):
    """One head of attention over the tokens x: (T, d), then a layer of tanh."""
    weights = jax.nn.softmax(x @ params["attend"] @ x[-1])
    return params["read"] @ jnp.tanh(params["values"] @ (weights @ x))


rng = np.random.default_rng(0)
n, T, d, width = 40, 6, 4, 128
x = rng.normal(size=(n, T, d)) / d**0.5
y = np.sin(x[:, 0, 0])
start = {
    "attend": rng.normal(size=(d, d)) / d,
    "values": rng.normal(size=(width, d)) / d**0.5,
    "read": rng.normal(size=width) / width**0.5,
}

K = kernels.ntk(model, start, x)
least = kernels.smallest_eigenvalue(K)
print(f"lambda_min lies in [{least.lower:.4g}, {least.upper:.4g}], proved: {least.certified}")

run = training.train(model, start, x, y, rule=training.gd(0.05), steps=200, dtype="float64")
linear = kernels.train_linearised(model, start, x, y, eta=0.05, steps=200)
print(f"loss {run.loss[0]:.3f} -> {run.final_loss:.3f}; its linear model: {linear.loss[-1]:.3f}")

moved = kernels.drift(model, start, run.parameters(), x)
print(f"the kernel moved by {moved['kernel_distance']:.1%}")
