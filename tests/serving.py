"""``longtail serve`` as a process of its own, to be asked over the network."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

COMMAND = "import sys; from longtail.cli import main; sys.exit(main(sys.argv[1:]))"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def launched(path, *options, streams=""):
    """Start a server, with its streams as a shell is told; yield the process and its port."""
    port = free_port()
    arguments = ["serve", path, "--port", port, *options]
    shell = ["sh", "-c", f'exec "$@" {streams}', "sh"] if streams else []
    process = subprocess.Popen(
        [*shell, sys.executable, "-c", COMMAND, *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process, port
    finally:
        # Its workers, too: they hold the other end of the pipe that is read to its end here.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@contextmanager
def server(path, *options, streams=""):
    """Run a server; yield the process and its port."""
    with launched(path, *options, streams=streams) as (process, port):
        wait_for(process, port)
        yield process, port


def wait_for(process, port):
    """Wait until a server answers."""
    stop = time.monotonic() + 60
    while True:
        try:
            if ask(port, "GET", "/healthz")[0] == 200:
                break
        except OSError:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < stop
            time.sleep(0.05)


def ask(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def counted(port, name):
    """Return a count that the server shows."""
    lines = ask(port, "GET", "/metrics")[1].decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))


def until(holds, seconds=60):
    """Wait for something to come true; fail if it does not."""
    stop = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < stop
        time.sleep(0.05)
