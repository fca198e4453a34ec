"""Pretrained text encoders in the layouts of BERT and RoBERTa, with a read-out for classes."""

from ._checkpoint import load_checkpoint as load_checkpoint
from ._config import CheckpointConfig as CheckpointConfig
from ._config import read_config as read_config
from ._encoder import HEAD_RULES as HEAD_RULES
from ._encoder import POOLINGS as POOLINGS
from ._encoder import TextClassifier as TextClassifier
from ._encoder import TextParams as TextParams
from ._layerwise import LayerwiseMargin as LayerwiseMargin
from ._tiny import TINY as TINY
from ._tiny import random_encoder as random_encoder
