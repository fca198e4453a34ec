"""Training: update rules, projections, recorders, gradient paths and the one loop."""

from ..core import HALF_SQUARED_SUM as HALF_SQUARED_SUM
from ..core import LOGISTIC as LOGISTIC
from ..core import MEAN_SQUARED as MEAN_SQUARED
from ..core import Loss as Loss
from ..core import losses as losses
from ._path_arda2026 import arda2026_chunk as arda2026_chunk
from ._path_arda2026 import arda2026_path as arda2026_path
from ._paths import GradientPath as GradientPath
from ._paths import generic_path as generic_path
from ._paths import gradient_path as gradient_path
from ._paths import naive_path as naive_path
from ._paths import register_path as register_path
from ._projections import HeadBalls as HeadBalls
from ._projections import NoProjection as NoProjection
from ._projections import Projection as Projection
from ._projections import omega as omega
from ._projections import omega_indrnn as omega_indrnn
from ._rules import UpdateRule as UpdateRule
from ._rules import adam as adam
from ._rules import from_optax as from_optax
from ._rules import gd as gd
from ._rules import momentum as momentum
from ._rules import optimisers as optimisers
from ._rules import projgd as projgd
from ._rules import projsgd as projsgd
from ._rules import sgd as sgd
