"""What Prometheus is told."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = CONTENT_TYPE_LATEST.encode()
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
# 50 microseconds to 10 seconds.
BUCKETS = (
    *(0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005),
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
)

_log = logging.getLogger("longtail.serve")


class Metrics:
    """Counts and times of requests.

    Of several workers, each writes files of its own into the folder that the environment variable
    ``PROMETHEUS_MULTIPROC_DIR`` names, and whichever is asked sums up all of them: that is how
    prometheus_client does it. Where someone has deleted them, each tells its own.

    Examples
    --------
    >>> from longtail.serve.metrics import Metrics
    >>> metrics = Metrics()
    >>> for status in (200, 200, 413):
    ...     metrics.count("/predict", status, seconds=0.004)
    >>> for line in metrics.text().decode().splitlines():
    ...     if line.startswith("longtail_requests_total"):
    ...         print(line)
    longtail_requests_total{path="/predict",status="200"} 2.0
    longtail_requests_total{path="/predict",status="413"} 1.0
    """

    def __init__(self) -> None:
        own = CollectorRegistry()
        self._shared_folder = os.environ.get(SHARED_FOLDER)
        if self._shared_folder:
            Path(self._shared_folder).mkdir(parents=True, exist_ok=True)
        self._requests = Counter(
            "longtail_requests", "Requests by path and status.", ["path", "status"], registry=own
        )
        self._seconds = Histogram(
            "longtail_request_seconds",
            "From the request's head to the answer's last byte handed over, or the client leaving.",
            ["path"],
            buckets=BUCKETS,
            registry=own,
        )
        self._model_seconds = Histogram(
            "longtail_model_seconds",
            "Time that the model took for a request.",
            buckets=BUCKETS,
            registry=own,
        )
        self._texts = Counter("longtail_texts", "Texts answered.", registry=own)
        self._loads = Counter("longtail_model_loads", "Models loaded.", registry=own)
        self._ready = Gauge(
            "longtail_model_ready",
            "1 where the model in the folder answers, else 0.",
            multiprocess_mode="mostrecent",
            registry=own,
        )
        self._registry = own
        self._has_said_lost = False
        self._of_path: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count a request; `path` is one of ours, never what a client sent."""
        key = (path, status)
        both = self._of_path.get(key)
        if both is None:
            both = self._requests.labels(path, str(status)), self._seconds.labels(path)
            self._of_path[key] = both
        both[0].inc()
        both[1].observe(seconds)

    def count_texts(self, n_texts: int, model_seconds: float) -> None:
        """Count answered texts."""
        self._texts.inc(n_texts)
        self._model_seconds.observe(model_seconds)

    def note_model(self, *, is_ready: bool, n_new_loads: int) -> None:
        """Keep whether the model answers, and count models that were loaded since the last time."""
        self._ready.set(int(is_ready))
        if n_new_loads:
            self._loads.inc(n_new_loads)

    def text(self) -> bytes:
        """Return the page that Prometheus reads."""
        registry = self._registry
        if self._shared_folder and self._is_in(self._shared_folder):
            registry = CollectorRegistry()
            MultiProcessCollector(registry, self._shared_folder)  # type: ignore[no-untyped-call]  # its own
        return generate_latest(registry)

    def _is_in(self, folder: str) -> bool:
        """Return whether the files of this process are in the folder; if not, say so once."""
        if any(Path(folder).glob(f"*_{os.getpid()}.db")):
            return True
        if not self._has_said_lost:
            self._has_said_lost = True
            _log.warning(
                "The files of this process are gone from %s, the folder of counts. Until the "
                "server is started again, /metrics shows the counts of one process only.",
                folder,
            )
        return False
