"""The command line `headcount`."""

from ._app import app as app
from ._app import main as main
from ._app import run as run
