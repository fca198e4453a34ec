"""Deora et al. (2024), On the Optimization and Generalization of Multi-head Attention.

Its models, data laws, fast paths and kernels by name, and its claims: `deora2024.claims["..."]`.
"""

from typing import Any

from ...core._facade import facade

_find = facade(
    __name__,
    model="READOUTS MultiHeadAttention MultiHeadParams HeadGroups LinearModel LinearParams",
    starts="zero first_step_row two_phase two_phase_groups",
    dm1="DM1",
    dm2="DM2 Planted",
    fast="deora2024_path deora2024_chunk",
    kernel="features_deora2024",
    setting="Setting",
    definition_1="good_start mixture_margins GoodStart",
    theorem_runs="where_it_applies",
)


def __getattr__(name: str) -> Any:
    return _find(name)
