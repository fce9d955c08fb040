"""What is kept on disk while a model is trained, so that a killed training goes on."""

from __future__ import annotations

import hashlib
import json
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from longtail.data.text_column import TextColumn
from longtail.errors import TrainingError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from torch import Tensor

__all__ = ["Checkpoint", "CheckpointFolder", "fingerprint"]

SUFFIX = ".checkpoint"


@dataclass(frozen=True)
class Checkpoint:
    """The state of a stage after some epochs."""

    epoch: int
    arrays: dict[str, NDArray[Any]]
    history: list[dict[str, Any]]


class CheckpointFolder:
    """One safetensors file a stage, replaced as the stage goes on, removed in the end.

    What else is in the folder is left alone.

    A checkpoint counts only for the same settings and the same data: both are in the fingerprint.

    Parameters
    ----------
    path : str or Path
    fingerprint : str
        See `fingerprint`.
    every_seconds : float
        Epochs that end sooner after the last checkpoint are not written.
    """

    def __init__(self, path: str | Path, *, fingerprint: str, every_seconds: float = 60.0) -> None:
        self.path = Path(path)
        self._fingerprint = fingerprint
        self._every_seconds = every_seconds
        self._last_saved = time.monotonic()

    def load(self, stage: str) -> Checkpoint | None:
        """Return the last checkpoint of a stage, None if there is none for this run."""
        try:
            with safe_open(self._file(stage), framework="np") as file:
                note = json.loads((file.metadata() or {}).get("longtail", "{}"))
                if note.get("fingerprint") != self._fingerprint:
                    return None
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, json.JSONDecodeError):
            return None  # absent, or cut short by a full disk: that stage starts anew
        return Checkpoint(note["epoch"], arrays, note["history"])

    def save(
        self,
        stage: str,
        epoch: int,
        tensors: dict[str, Tensor],
        history: list[dict[str, Any]],
        *,
        at_once: bool,
    ) -> None:
        """Replace the checkpoint of a stage; unless `at_once`, only if the last one is old.

        Raises
        ------
        TrainingError
            If the disk refuses.
        """
        if not at_once and time.monotonic() - self._last_saved < self._every_seconds:
            return
        note = {"fingerprint": self._fingerprint, "epoch": epoch, "history": history}
        target = self._file(stage)
        partial = target.with_suffix(".partial")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            on_cpu = {name: tensor.detach().cpu() for name, tensor in tensors.items()}
            save_file(on_cpu, partial, metadata={"longtail": json.dumps(note)})
            partial.replace(target)
        except (OSError, SafetensorError) as error:
            with suppress(OSError):
                partial.unlink()
            raise TrainingError(
                f"The checkpoint {target} could not be written ({error}). Make room on the disk "
                "and train again: it goes on from the last checkpoint."
            ) from error
        self._last_saved = time.monotonic()

    def clear(self) -> None:
        """Delete all checkpoints."""
        for pattern in (f"*{SUFFIX}", "*.partial"):  # the latter from a kill while it was written
            for file in self.path.glob(pattern):
                file.unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete all checkpoints, and the folder if nothing else is in it."""
        self.clear()
        with suppress(OSError):
            self.path.rmdir()

    def _file(self, stage: str) -> Path:
        """Return the file of a stage."""
        return self.path / f"{re.sub('[^a-z0-9]+', '-', stage.lower())}{SUFFIX}"


def fingerprint(settings: dict[str, Any], *data: csr_array | TextColumn | None) -> str:
    """Return a digest of settings and data.

    Parameters
    ----------
    settings : dict
        JSON values.
    *data : csr_array, TextColumn or None
        None for what is not there.

    Returns
    -------
    str
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for part in data:
        arrays = _arrays_of(part)
        digest.update(repr([array.shape for array in arrays]).encode())
        for array in arrays:
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def _arrays_of(part: csr_array | TextColumn | None) -> tuple[NDArray[Any], ...]:
    """Return what a matrix or a column of texts is made of."""
    if part is None:
        return ()
    if isinstance(part, TextColumn):
        return part.buffer, part.offsets
    return np.array(part.shape), part.indptr, part.indices, part.data
