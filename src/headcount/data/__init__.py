"""Data models of the three papers, each with the assumption it claims and a way to measure it."""

from ._ar import ARWindows as ARWindows
from ._ar import positional_channels as positional_channels
from ._base import DataModel as DataModel
from ._base import Dataset as Dataset
from ._base import Measurement as Measurement
from ._base import as_dataset as as_dataset
from ._base import assumption_holds as assumption_holds
from ._base import data_models as data_models
from ._dm1 import DM1 as DM1
from ._dm2 import DM2 as DM2
from ._dm2 import Planted as Planted
from ._gaussian import GaussianTokens as GaussianTokens
from ._gaussian import clip_to_ball as clip_to_ball
from ._real import Images as Images
from ._real import mnist as mnist
from ._real import patches as patches
from ._real import read_idx as read_idx
from ._real import read_series as read_series
from ._real import windows_of_series as windows_of_series
from ._teacher import TransportTeacher as TransportTeacher
from ._transport import TransportMap as TransportMap
from ._transport import TransportVectors as TransportVectors
from ._transport import transported as transported
from ._wu2023 import GaussianRegression as GaussianRegression
from ._wu2023 import VectorInput as VectorInput
from ._wu2023 import encoder_assumptions as encoder_assumptions
