"""What a model is, and the models and initialisations that the rooms of papers bring."""

from ..core import Activation as Activation
from ..core import FixedQuery as FixedQuery
from ..core import LastToken as LastToken
from ..core import Query as Query
from ..core import activations as activations
from ..core import seeded_query as seeded_query
from ._base import Model as Model
from ._base import models as models
from ._base import outputs as outputs
from ._base import over_heads as over_heads
from ._initialisations import expect_model as expect_model
from ._initialisations import initialisations as initialisations
from ._linearised import Linearised as Linearised
