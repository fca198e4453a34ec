"""Figures declared once, sweeps that cannot be lost, verdicts that are computed."""

from typing import TYPE_CHECKING

from ..core._facade import front_door

if TYPE_CHECKING:
    from ._address import content_address as content_address
    from ._collect import Collection as Collection
    from ._collect import collect as collect
    from ._context import Context as Context
    from ._context import PlainContext as PlainContext
    from ._drawing import COLOURS as COLOURS
    from ._drawing import draw_interval as draw_interval
    from ._drawing import draw_power_law as draw_power_law
    from ._drawing import draw_reference_slope as draw_reference_slope
    from ._drawing import log_log as log_log
    from ._drawing import tick_at as tick_at
    from ._errors import CorruptFile as CorruptFile
    from ._errors import ExecutionError as ExecutionError
    from ._errors import NewerFormat as NewerFormat
    from ._errors import StorageError as StorageError
    from ._estimates import Estimate as Estimate
    from ._estimates import difference_from as difference_from
    from ._estimates import geometric_mean as geometric_mean
    from ._estimates import mean as mean
    from ._estimates import median as median
    from ._estimates import paired_difference as paired_difference
    from ._estimates import proportion as proportion
    from ._estimates import steps_below as steps_below
    from ._executors import Hint as Hint
    from ._executors import InlineExecutor as InlineExecutor
    from ._executors import TrialExecutor as TrialExecutor
    from ._executors import WorkerDied as WorkerDied
    from ._executors import open_executor as open_executor
    from ._figure import SCALES as SCALES
    from ._figure import Figure as Figure
    from ._figure import Measurement as Measurement
    from ._figure import Trial as Trial
    from ._figure import figures as figures
    from ._figure import register as register
    from ._findings import CONFIRMED as CONFIRMED
    from ._findings import INCONCLUSIVE as INCONCLUSIVE
    from ._findings import NOT_CONFIRMED as NOT_CONFIRMED
    from ._findings import NOT_JUDGED as NOT_JUDGED
    from ._findings import OURS as OURS
    from ._findings import SANITY as SANITY
    from ._findings import Finding as Finding
    from ._findings import Source as Source
    from ._findings import inside as inside
    from ._findings import surviving as surviving
    from ._plan import Plan as Plan
    from ._plan import cost as cost
    from ._plan import make_plan as make_plan
    from ._processes import ProcessExecutor as ProcessExecutor
    from ._readings import open_choices as open_choices
    from ._readings import readings as readings
    from ._readings import robustness as robustness
    from ._reporting import Reporter as Reporter
    from ._reporting import Sweep as Sweep
    from ._seeds import parse_seeds as parse_seeds
    from ._statistics import loglog_slope as loglog_slope
    from ._statistics import over_seeds as over_seeds
    from ._statistics import power_law as power_law
    from ._store import Store as Store
    from ._sweep import Policy as Policy
    from ._sweep import run_plan as run_plan
    from ._verdicts import difference as difference
    from ._verdicts import everywhere as everywhere
    from ._verdicts import exponent as exponent
    from ._verdicts import fitted_exponent as fitted_exponent
    from ._verdicts import monotone as monotone
    from ._verdicts import separation as separation
    from ._verdicts import share as share
    from ._verdicts import threshold as threshold
else:
    __getattr__, __dir__ = front_door(__name__)
