"""Arda et al. (2026), Finite-Time Analysis of Gradient Descent for Shallow Transformers.

Its models, data laws, fast paths and kernels by name, and its claims: `arda2026.claims["..."]`.
"""

from typing import Any

from ...core._facade import facade

_find = facade(
    __name__,
    model="PooledAttention PooledAttentionParams IndRNN IndRNNParams",
    starts="paired unpaired paired_indrnn",
    recipes="omega omega_indrnn",
    teacher="TransportTeacher",
    transport_map="TransportMap TransportVectors transported",
    needed_transport="TransportProblem easiest_transport goal_of",
    ar="ARWindows",
    fast="arda2026_path arda2026_chunk",
    fast_indrnn="indrnn_path indrnn_chunk",
    fast_positional="positional_path",
    kernel="features_arda2026",
    limit="limit_arda2026",
    setting="Setting",
    records="Head Near Target",
    runs="Run RunTrace simulate",
    audit="subject slack",
)


def __getattr__(name: str) -> Any:
    return _find(name)
