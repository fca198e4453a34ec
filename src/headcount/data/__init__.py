"""Data models of the three papers, each with the assumption it claims and a way to measure it."""

from ._base import DataModel as DataModel
from ._base import Dataset as Dataset
from ._base import Measurement as Measurement
from ._base import as_dataset as as_dataset
from ._base import data_models as data_models
from ._checkpoints import find_checkpoint as find_checkpoint
from ._gaussian import GaussianTokens as GaussianTokens
from ._gaussian import clip_to_ball as clip_to_ball
from ._given import Arrays as Arrays
from ._images import load_images as load_images
from ._images import patches as patches
from ._positional import PositionalTokens as PositionalTokens
from ._positional import positional_channels as positional_channels
from ._tokens import batches as batches
from ._tokens import pad as pad
from ._tokens import padded_width as padded_width
from ._tokens import tokenise as tokenise
