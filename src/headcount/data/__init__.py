"""Data models of the three papers, each with the assumption it claims and a way to measure it."""

from ._base import DataModel as DataModel
from ._base import Dataset as Dataset
from ._base import Measurement as Measurement
from ._base import as_dataset as as_dataset
from ._base import assumption_holds as assumption_holds
from ._base import data_models as data_models
from ._gaussian import GaussianTokens as GaussianTokens
from ._gaussian import clip_to_ball as clip_to_ball
from ._teacher import TransportTeacher as TransportTeacher
from ._transport import TransportMap as TransportMap
from ._transport import TransportVectors as TransportVectors
from ._transport import transported as transported
