"""Tables, plots and files; reads results, never computes them."""

from ._count import draw_count as draw_count
from ._files import netcdf as netcdf
from ._files import table as table
from ._files import write_files as write_files
from ._plots import COLUMN_INCHES as COLUMN_INCHES
from ._plots import PAGE_INCHES as PAGE_INCHES
from ._plots import STYLE as STYLE
from ._plots import draw as draw
from ._plots import render as render
from ._progress import LineReporter as LineReporter
from ._progress import LiveReporter as LiveReporter
from ._progress import duration as duration
from ._progress import estimate_error as estimate_error
from ._progress import make_reporter as make_reporter
from ._progress import time_left as time_left
from ._tables import figures_table as figures_table
from ._tables import plan_table as plan_table
from ._tables import plans_table as plans_table
from ._tables import problems_text as problems_text
from ._tables import seeds_text as seeds_text
from ._tables import stand_in_sentence as stand_in_sentence
from ._tables import status_rows as status_rows
from ._tables import status_table as status_table
from ._tables import unable_text as unable_text
from ._tables import verdicts_summary as verdicts_summary
from ._tables import verdicts_table as verdicts_table
