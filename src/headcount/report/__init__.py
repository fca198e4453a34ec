"""Tables, plots and files; reads results, never computes them."""

from ._files import write_files as write_files
from ._plots import draw as draw
from ._plots import render as render
from ._progress import make_reporter as make_reporter
