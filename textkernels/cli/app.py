"""textkernels app: the pages in a browser, as a process of their own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from textkernels.cli.options import MAIN, Command, option
from textkernels.cli.prediction import check_model

FIRST_PORT = 8501
# Importing Streamlit and starting its server takes a second or two, on a busy machine many.
START_SECONDS = 60.0


@click.command("app", cls=Command, short_help="Open the pages for a model in a browser.")
@option("--model", group=MAIN, metavar="DIR", required=True, help="Folder of the fitted model.")
@option(
    "--port",
    group=MAIN,
    type=click.IntRange(1, 65535),
    metavar="N",
    help=f"Port to listen on.  [default: the first free one from {FIRST_PORT}]",
)
@option("--host", group=MAIN, default="127.0.0.1", metavar="ADDRESS", help="Address to listen on.")
def app_command(model: str, port: int | None, host: str) -> None:
    """Open the pages for a fitted model: type or upload texts, see labels, probabilities and uncertainty.

    Runs until Ctrl-C. The address is printed when the pages answer.

    \b
    textkernels app --model imdb.model
    textkernels app --model imdb.model --port 8600
    """
    check_model(model)
    script = app_script()
    if port is None:
        port = next((p for p in range(FIRST_PORT, FIRST_PORT + 100) if _free(host, p)), None)
    elif not _free(host, port):
        raise ValueError(f"port {port} is in use; choose another with --port, or leave --port out")
    if port is None:
        raise ValueError(f"expected a free port from {FIRST_PORT} on, found none; choose one with --port")
    raise SystemExit(_serve(script, str(Path(model).resolve()), host, port))


def app_script() -> Path:
    """Path of app/main.py, found without importing it.

    Raises:
        ImportError: the package app or Streamlit is not installed.
    """
    if find_spec("streamlit") is None:
        raise ImportError('the pages need Streamlit; run pip install "textkernels[app]"')
    spec = find_spec("app")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    for folder in folders:
        if (Path(folder) / "main.py").is_file():
            return Path(folder) / "main.py"
    raise ImportError("expected the package app with its main.py beside textkernels; install textkernels again")


def _free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _serve(script: Path, model: str, host: str, port: int) -> int:
    """Run Streamlit until it ends or the user stops it; its exit status."""
    command = [sys.executable, "-m", "streamlit", "run", str(script)]
    command += ["--server.port", str(port), "--server.address", host, "--server.headless", "true"]
    command += ["--server.fileWatcherType", "none", "--browser.gatherUsageStats", "false"]
    command += ["--client.toolbarMode", "minimal"]
    environment = {**os.environ, "TEXTKERNELS_MODEL": model}
    # A terminated parent must not leave the server behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        if _answers(host, port, lambda: server.poll() is None):
            click.echo(f"The pages are open at http://{_shown(host)}:{port} (Ctrl-C stops them).")
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        server.terminate()
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else {"0.0.0.0": "127.0.0.1"}.get(host, host)


def _answers(host: str, port: int, running: Callable[[], Any]) -> bool:
    """True as soon as the server accepts a connection; False if it ends or never does."""
    deadline = time.monotonic() + START_SECONDS
    while running() and time.monotonic() < deadline:
        try:
            with socket.create_connection((_shown(host).strip("[]"), port), timeout=1.0):
                return True
        except OSError:
            time.sleep(0.1)
    return False
