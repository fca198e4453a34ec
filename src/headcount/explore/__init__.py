"""The explorer: sizes as sliders, and what every theorem then says; a page of marimo."""

from ._draw import draw_loss as draw_loss
from ._draw import draw_model as draw_model
from ._sizes import Sizes as Sizes
from ._sizes import promises as promises
from ._sizes import table as table
from ._sizes import train as train
