"""Training: update rules, projections, recorders, gradient paths and the one loop."""

from typing import TYPE_CHECKING

from ..core._facade import front_door

if TYPE_CHECKING:
    from ._build import build as build
    from ._build import build_problem as build_problem
    from ._build import run_config as run_config
    from ._config import TrainConfig as TrainConfig
    from ._config import config_of_run as config_of_run
    from ._epochs import EpochTraining as EpochTraining
    from ._epochs import cross_entropy as cross_entropy
    from ._epochs import sign_regression as sign_regression
    from ._paths import GradientPath as GradientPath
    from ._paths import generic_path as generic_path
    from ._paths import gradient_path as gradient_path
    from ._paths import into_chunks as into_chunks
    from ._paths import naive_path as naive_path
    from ._paths import register_path as register_path
    from ._projections import HeadBalls as HeadBalls
    from ._projections import NoProjection as NoProjection
    from ._recipes import Recipe as Recipe
    from ._recipes import recipe_of as recipe_of
    from ._recorders import AttentionMass as AttentionMass
    from ._recorders import Snapshot as Snapshot
    from ._recorders import recorders as recorders
    from ._rules import adam as adam
    from ._rules import adamw as adamw
    from ._rules import from_optax as from_optax
    from ._rules import gd as gd
    from ._rules import momentum as momentum
    from ._rules import optimisers as optimisers
    from ._rules import projgd as projgd
    from ._rules import projsgd as projsgd
    from ._rules import sgd as sgd
    from ._run import Run as Run
    from ._stored import read_run as read_run
    from ._stored import replay as replay
    from ._tracers import tracers as tracers
    from ._train import stack_seeds as stack_seeds
    from ._train import train as train
else:
    __getattr__, __dir__ = front_door(__name__)
