"""The report: a results folder as one static site that needs no network."""

from ._build import Site as Site
from ._build import build_site as build_site
from ._results import FigureResult as FigureResult
from ._results import figure_results as figure_results
