"""What a model is, and the models and initialisations that the rooms of papers bring."""

from ._base import Model as Model
from ._base import models as models
from ._base import outputs as outputs
from ._base import over_heads as over_heads
from ._initialisations import initialisations as initialisations
from ._module import split_module as split_module
