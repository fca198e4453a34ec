"""The shallow Transformers of the three papers, their baselines and initialisations."""

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
from ._initialisations import first_step_row as first_step_row
from ._initialisations import he as he
from ._initialisations import initialisations as initialisations
from ._initialisations import lecun as lecun
from ._initialisations import ntk_normal as ntk_normal
from ._initialisations import paired as paired
from ._initialisations import paired_indrnn as paired_indrnn
from ._initialisations import two_phase as two_phase
from ._initialisations import two_phase_groups as two_phase_groups
from ._initialisations import unpaired as unpaired
from ._initialisations import zero as zero
from ._linearised import Linearised as Linearised
