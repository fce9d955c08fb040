"""The model that answers now, replaced while requests are answered when its folder is."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from pathlib import Path

from longtail.errors import InputError, LongtailError
from longtail.manifest import MANIFEST
from longtail.model_folder import ModelFolder
from longtail.predictor import Predictor
from longtail.warm_up import warm_up

__all__ = ["LiveModel", "check_reads_texts"]

SECONDS_BETWEEN_TRIES = 10.0  # of a folder that could not be loaded and has not changed
N_SHOWN = 16  # characters of a checksum
_log = logging.getLogger("longtail.serve")

Fingerprint = tuple[int, int, int]


@dataclass(frozen=True)
class LoadedModel:
    """A model, and which one it is.

    Parameters
    ----------
    predictor : Predictor
    identity : str
        The checksum that its manifest bears, shortened.
    """

    predictor: Predictor
    identity: str


class LiveModel:
    """A predictor and the folder that it came from.

    `current` is replaced in one step, so a request that has taken it goes on with the model that it
    began with. The memory map of a replaced folder stays until its last request is answered. If a
    new folder cannot be loaded, the old model goes on and `problem` says why.

    Any number of threads may read it, but one at a time may `load`.

    Attributes
    ----------
    current : LoadedModel or None
    problem : str or None
        Why there is no model, or not the one that is in the folder now.
    n_loads : int
        How many models have been loaded so far.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.current: LoadedModel | None = None
        self.problem: str | None = "The model is still being loaded. Try again in a moment."
        self.n_loads = 0
        self._seen: Fingerprint | None = None
        self._tried: Fingerprint | None = None
        self._try_again_at = 0.0

    @property
    def has_changed(self) -> bool:
        """Whether there is another model than `current`, or one that could not be loaded."""
        if self.problem is None:
            return self._fingerprint() != self._seen
        # Not each second: a folder that is half copied, or no model of texts, takes long to load.
        return self._fingerprint() != self._tried or time.monotonic() >= self._try_again_at

    def load(self) -> None:
        """Load what is in the folder, also if that is the current model already."""
        self._tried = self._fingerprint()
        try:
            folder = ModelFolder.open(self.path)
            model = Predictor.from_folder(folder)
            check_reads_texts(model, "The model")
            warm_up(model)
        except Exception as error:  # noqa: BLE001  # whatever is wrong, the old model goes on
            self._note(_sentence(error))
            self._try_again_at = time.monotonic() + SECONDS_BETWEEN_TRIES
            return
        # The problem last: other threads must never find neither a model nor a problem.
        self.current = LoadedModel(model, folder.checksum[:N_SHOWN])
        self.n_loads += 1
        self._seen, self.problem = self._tried, None
        which = self.current.identity  # as `/healthz` shows it
        _log.info("Loaded %s: %s labels, model %s.", self.path, f"{model.n_labels:,}", which)

    def _fingerprint(self) -> Fingerprint | None:
        """Return what changes when the manifest is replaced; None without one. Does not read it."""
        try:
            status = (self.path / MANIFEST).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def _note(self, problem: str) -> None:
        """Keep what is wrong, and log it once."""
        if problem != self.problem:
            _log.error("Could not load the model: %s", problem)
        self.problem = problem


def check_reads_texts(model: Predictor, name: str) -> None:
    """Raise InputError for a model, called so, that no request could ask.

    Examples
    --------
    >>> from longtail.recipes.parabel import Parabel
    >>> from longtail.serve.live_model import check_reads_texts
    >>> model = Parabel().fit([[1.0, 0.0], [0.0, 1.0]], [["drink"], ["vehicle"]])
    >>> check_reads_texts(model.predictor_, "my-model")
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: my-model was trained on ready-made features, so it cannot answer ...
    """
    if model.vectorizer is None:
        raise InputError(
            f"{name} was trained on ready-made features, so it cannot answer texts. Serve a model "
            "that was trained on texts."
        )


def _sentence(error: Exception) -> str:
    """Return what is wrong, in one line."""
    if isinstance(error, LongtailError):
        return " ".join(str(error).split())
    return f"The folder cannot be used ({type(error).__name__}: {error}). Train or copy it again."
