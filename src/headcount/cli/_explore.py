"""`headcount explore`: the explorer on this machine, for this user alone."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ._flags import Whole

ADDRESS = "127.0.0.1"


def explore_command(
    *, port: Whole = 0, browser: Annotated[bool, Parameter(negative="--no-browser")] = True
) -> int:
    """Open a page where sizes are sliders and every theorem reacts; Ctrl-C or SIGTERM ends it.

    The page is served to this machine only, and asks for the token in its address.

    Parameters
    ----------
    port
        Port of 127.0.0.1; 0: any that is free.
    browser
        Open the page in the default browser.
    """
    import importlib.util
    import secrets
    import subprocess
    import sys
    import webbrowser

    from ..core import BadArgument
    from ..lab._signals import like_ctrl_c

    if importlib.util.find_spec("marimo") is None:
        fix = "pip install marimo"
        raise BadArgument("explore", "marimo", "is not installed", fix=fix)
    if not 0 <= port < 65536:
        raise BadArgument("port", port, "is no port", fix="use 0 to 65535")
    token, chosen = secrets.token_urlsafe(24), port or _free_port()
    with like_ctrl_c():
        server = subprocess.Popen(_server(chosen), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        try:
            assert server.stdin is not None
            server.stdin.write(token.encode())  # not on the command line, which all users can read
            server.stdin.close()
            address = f"http://{ADDRESS}:{chosen}?access_token={token}"
            if not _answers(chosen, server):
                print("headcount: the explorer did not start", file=sys.stderr)
                return 1
            print(f"The explorer is at {address}\nCtrl-C ends it.", flush=True)
            if browser:
                webbrowser.open(address)
            return server.wait()
        finally:
            server.terminate()
            server.wait()


def _server(port: int) -> list[str]:
    """What to start: marimo, bound to this machine, with the token from standard input."""
    import sys
    from importlib.resources import files

    page = str(files("headcount.explore") / "app.py")
    options = ["--headless", "--no-sandbox", "--no-check", "--token", "--token-password-file", "-"]
    where = ["--host", ADDRESS, "--port", str(port)]
    return [sys.executable, "-m", "marimo", "--yes", "run", page, *where, *options]


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])


def _answers(port: int, server: object, seconds: float = 60.0) -> bool:
    """Wait until the page can be asked for, or its process has ended."""
    import socket
    import subprocess
    import time

    assert isinstance(server, subprocess.Popen)
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex((ADDRESS, port)) == 0:
                return True
        time.sleep(0.2)
    return False
