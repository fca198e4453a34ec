"""Data models of the three papers, each with the assumption it claims and a way to measure it."""

from . import _given as _given  # registers arrays and series
from ._base import DataModel as DataModel
from ._base import Dataset as Dataset
from ._base import Measurement as Measurement
from ._base import as_dataset as as_dataset
from ._base import assumption_holds as assumption_holds
from ._base import data_models as data_models
from ._base import largest_token_norm as largest_token_norm
from ._base import token_norms as token_norms
from ._checkpoints import find_checkpoint as find_checkpoint
from ._checkpoints import located as located
from ._checkpoints import planned_checkpoint as planned_checkpoint
from ._gaussian import GaussianTokens as GaussianTokens
from ._gaussian import clip_to_ball as clip_to_ball
from ._images import IMAGE_CHOICES as IMAGE_CHOICES
from ._images import IMAGE_SETS as IMAGE_SETS
from ._images import chosen_images as chosen_images
from ._images import load_images as load_images
from ._images import patches as patches
from ._positional import PositionalTokens as PositionalTokens
from ._positional import positional_channels as positional_channels
from ._reviews import chosen_reviews as chosen_reviews
from ._reviews import load_reviews as load_reviews
from ._reviews import some_reviews as some_reviews
from ._text import chosen_text as chosen_text
from ._text import embedded as embedded
from ._text import load_sentences as load_sentences
from ._text import random_table as random_table
from ._text import read_vectors as read_vectors
from ._text import vectors_file as vectors_file
from ._tokens import batches as batches
from ._tokens import pad as pad
from ._tokens import padded_width as padded_width
from ._tokens import restrict_vocabulary as restrict_vocabulary
from ._tokens import tokenise as tokenise
from ._tokens import tokenise_words as tokenise_words
