"""The commands with the toy figure registered; run as a script or called in tests."""

from __future__ import annotations

import signal

import toy_figure

from headcount.cli import app as app

figure = toy_figure.figure

if __name__ == "__main__":
    # A test run in the background of a shell has SIGINT ignored, and so would this process.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    app()
