"""Running the application with uvicorn, by one process or several."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.supervisors import Multiprocess

from longtail.serve.application import Application
from longtail.serve.metrics import SHARED_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from longtail.serve.limits import Limits

__all__ = ["ServerSettings", "serve"]


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Where and how to listen.

    Parameters
    ----------
    host : str
        Only this machine can reach the default.
    port : int
        0 takes any free one.
    workers : int
        Processes; they share the memory map of the model.
    graceful_seconds : int
        For requests to be finished when the server is stopped.
    root_path : str
        Where a proxy shows the server, such as ``/labels``.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    graceful_seconds: int = 20
    root_path: str = ""


def serve(path: Path, settings: ServerSettings, limits: Limits) -> int:
    """Serve a model until SIGINT or SIGTERM, and return the exit code."""
    application = Application(path, limits=limits, reload_on_hangup=True)
    config = uvicorn.Config(
        application,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        root_path=settings.root_path,
        timeout_graceful_shutdown=settings.graceful_seconds,
        access_log=False,  # a line a request would cost as much as a prediction
        server_header=False,
        ws="none",
        lifespan="on",
        log_config=_log_config(),
    )
    if settings.workers == 1:
        server = uvicorn.Server(config)
        with suppress(KeyboardInterrupt):  # uvicorn raises it again, once all is finished
            server.run()
        return 0 if server.started else 1
    with _shared_metrics():
        _Workers(config, sockets=[config.bind_socket()]).run()
    return 0


class _Workers(Multiprocess):
    """Several workers on one socket. On SIGHUP each loads the model anew; none is restarted."""

    def handle_hup(self) -> None:
        """Pass the signal on."""
        for worker in self.processes:
            if worker.pid is not None and worker.process.is_alive():
                os.kill(worker.pid, signal.SIGHUP)


@contextmanager
def _shared_metrics() -> Iterator[None]:
    """Give the workers a folder in which each keeps its counts: the user's own, if there is one."""
    if os.environ.get(SHARED_FOLDER):
        yield
        return
    folder = tempfile.mkdtemp(prefix="longtail-metrics-")
    os.environ[SHARED_FOLDER] = folder
    try:
        yield
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
