"""Running the application with uvicorn, by one process or several."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from longtail.errors import InputError
from longtail.predictor import load
from longtail.serve.application import Application
from longtail.serve.connections import HttpProtocol
from longtail.serve.metrics import SHARED_FOLDER
from longtail.serve.threads import stopping
from longtail.warm_up import warm_up

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from longtail.serve.application import Reply, Scope, Send
    from longtail.serve.body import Receive
    from longtail.serve.limits import Limits

__all__ = ["ServerSettings", "serve"]

# Until a process can handle them: SIGHUP would end it, and SIGINT print a traceback.
HELD_BACK = frozenset({signal.SIGHUP, signal.SIGINT})
# In which a worker must answer, else it is killed and replaced. Uvicorn gives it five seconds; on a
# busy machine the imports take longer, and a worker that is killed each time never starts.
WORKER_SECONDS = 60
SILENT = f"has not answered for {WORKER_SECONDS} seconds"
_log = logging.getLogger("longtail.serve")


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Where and how to listen.

    Parameters
    ----------
    host : str
        The address to listen on.
    port : int
        0 takes any free one.
    workers : int
        Processes; they share the memory map of the model.
    root_path : str
        Where a proxy shows the server, such as ``/labels``.
    keep_alive : float
        Seconds for which a connection may be silent after an answer.
    graceful_seconds : int
        For requests to be finished when the server is stopped.
    """

    host: str
    port: int
    workers: int
    root_path: str
    keep_alive: float
    graceful_seconds: int = 20


def serve(path: Path, settings: ServerSettings, limits: Limits) -> int:
    """Serve a model until SIGINT or SIGTERM, and return the exit code.

    Raises
    ------
    InputError
        If one cannot listen where it is wanted.
    """
    _check_address(settings.host, settings.port)
    application = _ServedApplication(path, limits=limits, reload_on_hangup=True)
    config = uvicorn.Config(
        application,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        root_path=settings.root_path,
        timeout_keep_alive=settings.keep_alive,  # type: ignore[arg-type]  # a float will do
        timeout_graceful_shutdown=settings.graceful_seconds,
        access_log=False,  # a line a request would cost as much as a prediction
        server_header=False,
        http=partial(HttpProtocol, seconds=limits.seconds),  # type: ignore[arg-type]  # it is called
        ws="none",
        lifespan="on",
        log_config=_log_config(),
    )
    if settings.workers == 1:
        server = uvicorn.Server(config)
        with suppress(KeyboardInterrupt):  # uvicorn raises it again, once all is finished
            server.run()
        return 0 if server.started else 1
    warm_up(load(path))  # compiles what is not yet: else each worker would, for minutes
    with _shared_metrics() as own_folder:
        application.own_folder = own_folder
        workers = _Workers(config, sockets=[_listener(config)])
        workers.run()
    return 0 if workers.could_start else STARTUP_FAILURE


def _check_address(host: str, port: int) -> None:
    """Raise InputError unless one can listen there."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except (OSError, UnicodeError) as error:
        raise _cannot_listen(host, port, error) from error


def _listener(config: uvicorn.Config) -> socket.socket:
    """Return a socket that listens before any worker does.

    Several servers may bind the same port as long as none of them listens, and the workers of
    those that come too late would fail without a word.
    """
    listener = config.bind_socket()
    try:
        listener.listen(config.backlog)
    except OSError as error:
        listener.close()
        raise _cannot_listen(config.host, config.port, error) from error
    return listener


def _cannot_listen(host: str, port: int, error: Exception) -> InputError:
    """Return what is said where one cannot listen."""
    cause = getattr(error, "strerror", None) or error
    return InputError(
        f"The server cannot listen on {host}, port {port}: {cause}. Pass another --host or --port."
    )


class _ServedApplication(Application):
    """An application that ends its process if that is a worker and the server's is gone.

    Uvicorn cancels what is under way when the time to stop is over, or Ctrl-C comes twice: that is
    an answer here, and no failure with a traceback.

    Attributes
    ----------
    own_folder : str or None
        The folder of counts that the server made, and would have removed.
    """

    own_folder: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "own_folder": self.own_folder}

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        """Start and stop with the server."""
        threading.Thread(target=self._end_with_server, daemon=True).start()
        with suppress(asyncio.CancelledError):
            await super()._lifespan(receive, send)

    async def _reply(self, path: str, scope: Scope, receive: Receive) -> Reply:
        """Return the reply to one request, also where there is no time for it any more."""
        try:
            return await super()._reply(path, scope, receive)
        except asyncio.CancelledError:
            raise stopping() from None

    def _reload_on_hangup(self) -> None:
        """Handle signals, also those that came meanwhile."""
        super()._reload_on_hangup()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)

    def _end_with_server(self) -> None:
        """Stop as on SIGTERM once the server's process is gone; killed, it cannot say so."""
        server = multiprocessing.parent_process()
        if server is None:
            return
        server.join()
        _log.warning("The server's process is gone, so this worker stops.")
        if self.own_folder is not None:
            shutil.rmtree(self.own_folder, ignore_errors=True)
        os.kill(os.getpid(), signal.SIGTERM)


class _Workers(Multiprocess):
    """Several workers on one socket. On SIGHUP each loads the model anew; none is restarted.

    Some signals are held back here for good, since they are then held back in workers that start.
    """

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self.could_start = True
        self._asked: dict[Process, float] = {}
        resource_tracker.ensure_running()  # which lets SIGINT through when it begins
        signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)

    def handle_signals(self) -> None:
        """Handle the signals that came."""
        for number in HELD_BACK & signal.sigpending():
            self.signal_queue.append(signal.sigwait({number}))
        super().handle_signals()

    def terminate_all(self) -> None:
        """Stop the workers and refuse new clients, who would wait here until the last one stops."""
        super().terminate_all()
        for listener in self.sockets:
            listener.close()

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have ended or hang. Nothing is waited for, as uvicorn's own does.

        So signals are handled soon, and whoever is killed is soon replaced.
        """
        if self.should_exit.is_set():  # workers have ended as well, as systemd stops all
            return
        for place, worker in enumerate(self.processes):
            is_alive = worker.process.is_alive()
            if is_alive and self._answers(worker):
                continue
            self._asked.pop(worker, None)
            worker.kill()
            worker.process.join()
            if worker.exitcode == STARTUP_FAILURE:
                _log.error("Worker %s could not start, so the server stops.", worker.pid)
                self.could_start = False
                self.should_exit.set()
                return
            how = SILENT if is_alive else _ended(worker.exitcode)
            _log.warning("Worker %s %s, and another one takes its place.", worker.pid, how)
            self.processes[place] = Process(self.config, self.sockets)
            self.processes[place].start()

    def _answers(self, worker: Process) -> bool:
        """Ask a worker whether it lives, and return False if there has been no answer for long."""
        pipe = worker.parent_conn
        if worker in self._asked and pipe.poll():
            pipe.recv()
            del self._asked[worker]
        if worker not in self._asked:
            pipe.send(b"ping")
            self._asked[worker] = time.monotonic()
        return time.monotonic() - self._asked[worker] < WORKER_SECONDS

    def handle_hup(self) -> None:
        """Pass the signal on."""
        for worker in self.processes:
            if worker.pid is not None and worker.process.is_alive():
                os.kill(worker.pid, signal.SIGHUP)


def _ended(code: int | None) -> str:
    """Return how a process has ended, by its exit code, which is below 0 after a signal."""
    if code == -signal.SIGKILL:
        return "has ended by SIGKILL, which the system sends where memory is short"
    if code is not None and -code in set(signal.Signals):
        return f"has ended by {signal.Signals(-code).name}"
    return f"has ended with exit code {code}"


@contextmanager
def _shared_metrics() -> Iterator[str | None]:
    """Give the workers a folder in which each keeps its counts: the user's own, if there is one.

    Yields the folder if it was made here, and goes at the end.
    """
    if os.environ.get(SHARED_FOLDER):
        yield None
        return
    folder = tempfile.mkdtemp(prefix="longtail-metrics-")
    os.environ[SHARED_FOLDER] = folder
    try:
        yield folder
    finally:
        del os.environ[SHARED_FOLDER]
        shutil.rmtree(folder, ignore_errors=True)


def _log_config() -> dict[str, object]:
    """Return where log lines go: to standard error, one a line, with the time."""
    line = {"format": "%(asctime)s %(levelname)s [%(process)d] %(message)s"}
    to_stderr = {"class": "logging.StreamHandler", "formatter": "line"}
    loud = {"handlers": ["stderr"], "level": "INFO", "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": line},
        "handlers": {"stderr": to_stderr},
        "loggers": {"uvicorn": loud, "uvicorn.error": {"level": "INFO"}, "longtail.serve": loud},
    }
