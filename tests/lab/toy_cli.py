"""The commands of the lab with the toy figure registered; run as a script or called in tests."""

from __future__ import annotations

import signal

import toy_figure
from cyclopts import App

from headcount.cli._reproduce import reproduce_command
from headcount.cli._show import show_command
from headcount.cli._status import status_command

figure = toy_figure.figure
app = App()
app.command(reproduce_command, name="reproduce")
app.command(show_command, name="show")
app.command(status_command, name="status")

if __name__ == "__main__":
    # A test run in the background of a shell has SIGINT ignored, and so would this process.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    app()
