"""Tangent kernels: empirical and limiting, their spectra, and what they predict."""

from ._arda2026 import features_arda2026 as features_arda2026
from ._deora2024 import features_deora2024 as features_deora2024
from ._deora2024 import features_head_groups as features_head_groups
from ._features import register_features as register_features
from ._generic import ntk_vector_product as ntk_vector_product
from ._ntk import EmpiricalNTK as EmpiricalNTK
from ._ntk import ntk as ntk
from ._ntk import plan_ntk as plan_ntk
from ._ntk import traced_ntk as traced_ntk
from ._plan import KernelTooLarge as KernelTooLarge
from ._plan import MemoryPlan as MemoryPlan
from ._wu2023 import features_wu2023 as features_wu2023
