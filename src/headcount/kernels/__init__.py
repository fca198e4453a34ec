"""Tangent kernels: empirical and limiting, their spectra, and what they predict."""

from typing import TYPE_CHECKING

from ..core._facade import front_door

if TYPE_CHECKING:
    from ..models._linearised import Linearised as Linearised
    from ._convergence import kernel_rate as kernel_rate
    from ._convergence import limit_ntk as limit_ntk
    from ._curvature import gauss_newton as gauss_newton
    from ._curvature import spectral_density as spectral_density
    from ._drift import drift as drift
    from ._drift import kernel_distance as kernel_distance
    from ._drift import relative_change as relative_change
    from ._drift import tangent_kernel as tangent_kernel
    from ._drift import weight_movement as weight_movement
    from ._dynamics import compare_runs as compare_runs
    from ._dynamics import kernel_descent as kernel_descent
    from ._dynamics import kernel_flow as kernel_flow
    from ._features import Factors as Factors
    from ._features import register_features as register_features
    from ._generic import ntk_vector_product as ntk_vector_product
    from ._hessian import head_hessian as head_hessian
    from ._hessian import head_hessians as head_hessians
    from ._hessian import hessian_extremes as hessian_extremes
    from ._hessian import hessian_vector_product as hessian_vector_product
    from ._hessian import loss_function as loss_function
    from ._hessian import model_function as model_function
    from ._lambda_min import RoundingWarning as RoundingWarning
    from ._lambda_min import smallest_eigenvalue as smallest_eigenvalue
    from ._linearised import train_linearised as train_linearised
    from ._margin import direction_margins as direction_margins
    from ._margin import kernel_margin as kernel_margin
    from ._margin import linear_margin as linear_margin
    from ._margin import margin_path as margin_path
    from ._margin import normalised_margin as normalised_margin
    from ._margin import ntk_margin as ntk_margin
    from ._ntk import ntk as ntk
    from ._ntk import plan_ntk as plan_ntk
    from ._ntk import traced_ntk as traced_ntk
    from ._regression import kernel_regression as kernel_regression
    from ._spectrum import NTKOperator as NTKOperator
    from ._spectrum import extreme_eigenvalues as extreme_eigenvalues
    from ._spectrum import trace as trace
    from ._tiles import ntk_to_file as ntk_to_file
else:
    __getattr__, __dir__ = front_door(__name__)
