"""The explorer: sizes as sliders, and what every theorem then says; a page of marimo."""

from ._controls import address as address
from ._controls import controls_of as controls_of
from ._controls import sizes_at as sizes_at
from ._curves import Ran as Ran
from ._curves import curves as curves
from ._curves import groups as groups
from ._curves import lamps as lamps
from ._draw import draw_curves as draw_curves
from ._draw import draw_loss as draw_loss
from ._draw import draw_model as draw_model
from ._sizes import Sizes as Sizes
from ._sizes import loss_at_zero as loss_at_zero
from ._sizes import promises as promises
from ._sizes import runnable as runnable
from ._sizes import train as train
from ._words import run_text as run_text
from ._words import show_lamps as show_lamps
from ._words import table as table
