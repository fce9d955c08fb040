"""What is kept on disk while a model is trained, so that a killed training goes on."""

from __future__ import annotations

import json
import re
import time
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open

from longtail.array_file import MappedArrays, layouts_in, read_header, write_arrays
from longtail.errors import TrainingError
from longtail.folder_exchange import obstacle_to
from longtail.log import LOG
from longtail.training.fingerprint import Fingerprint
from longtail.training.state import as_array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.training.state import State

__all__ = ["Checkpoint", "CheckpointFolder"]

SUFFIX = ".checkpoint"
# The end of a stage is kept where that takes at most so much of the time since the last time.
BYTES_A_SECOND, LARGEST_SHARE = 400e6, 0.05
# What a damaged file raises; most of these where its note is other JSON than that of a checkpoint.
_BROKEN = (OSError, SafetensorError, ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True)
class Checkpoint:
    """The state of a stage after some epochs; its arrays are views of a mapped file."""

    epoch: int
    arrays: Mapping[str, NDArray[Any]]
    history: list[dict[str, Any]]

    @property
    def checksum(self) -> int:
        """The CRC-32 of all that is kept: no proof against forgery, but quicker than to write it.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.training.checkpoints import Checkpoint
        >>> kept, other = (Checkpoint(3, {"bias": np.full(2, size)}, []) for size in (1.0, 2.0))
        >>> kept.checksum == other.checksum
        False
        """
        check = zlib.crc32(json.dumps([self.epoch, self.history]).encode())
        for name, array in sorted(self.arrays.items()):
            check = zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), check)
            check = zlib.crc32(array.reshape(-1).view(np.uint8).data, check)
        return check


class CheckpointFolder:
    """One safetensors file a stage, replaced as the stage goes on, removed in the end.

    A checkpoint counts only for the same settings and the same data, which the fingerprint is made
    of. Each fingerprint has a folder of its own within, so trainings that differ do not touch each
    other's. What else is there is left alone.

    Parameters
    ----------
    path : str or Path
    fingerprint : Fingerprint
    every_seconds : float
        Epochs that end sooner after the last checkpoint are not written; the last epoch of a stage
        is, unless to write it takes more than a twentieth of the time that it would save.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from longtail.training.checkpoints import CheckpointFolder
    >>> from longtail.training.fingerprint import Fingerprint
    >>> with TemporaryDirectory() as path:
    ...     folder = CheckpointFolder(path, fingerprint=Fingerprint('{"seed": 0}', "data"))
    ...     folder.save("encoder", 3, {"bias": np.ones(2)}, [], ends_stage=True)
    ...     found = folder.load("encoder")
    ...     other = CheckpointFolder(path, fingerprint=Fingerprint('{"seed": 1}', "data"))
    ...     found.epoch, found.arrays["bias"].tolist(), other.load("encoder")
    (3, [1.0, 1.0], None)
    """

    def __init__(
        self, path: str | Path, *, fingerprint: Fingerprint, every_seconds: float = 60.0
    ) -> None:
        self.path: Path = Path(path).absolute()  # a process may move on before it saves its model
        self._own = self.path / fingerprint.digest
        self._fingerprint = fingerprint
        self._every_seconds = every_seconds
        self._last_saved = time.monotonic()

    def announce(self) -> None:
        """Say whether there is something to go on from, or only what differs and how.

        Raises
        ------
        TrainingError
            If no checkpoint could be written there: better now than when the first one is due.
        """
        obstacle = obstacle_to(self.path)
        if obstacle is not None:
            raise TrainingError(
                f"Checkpoints cannot be kept in {self.path}: {obstacle} is no folder that can be "
                "written to. Name another place, or make that one writable."
            )
        others = {folder for folder in _in_use(self.path) if folder != self._own}
        if self._own in _in_use(self.path):
            LOG.info("Resuming from %s: the data and the settings are the same.", self._own)
        elif others:
            latest = max(others, key=lambda folder: folder.stat().st_mtime)
            LOG.warning(
                "This training starts over: the earlier one in %s has %s. It is kept, and the "
                "command that started it can resume it; delete it if you no longer need it.",
                latest,
                self._differences(latest),
            )

    def _differences(self, folder: Path) -> str:
        """Say what the checkpoints of another folder were made with."""
        for file in folder.glob(f"*{SUFFIX}"):
            with suppress(*_BROKEN):
                with safe_open(file, framework="np") as opened:
                    note = json.loads(opened.metadata()["longtail"])
                return self._fingerprint.differences(Fingerprint(**note["fingerprint"]))
        return "checkpoints that cannot be read"

    def load(self, stage: str) -> Checkpoint | None:
        """Return the last checkpoint of a stage, None if there is none for this run."""
        file = self._file(stage)
        try:
            with safe_open(file, framework="np") as opened:
                note = json.loads((opened.metadata() or {}).get("longtail", "{}"))
                if note.get("fingerprint") != asdict(self._fingerprint):
                    return None
            # Not read into memory, since each array is copied over the one that is there already;
            # torch warns of what cannot be written to, so a write would change a copy.
            mapped = np.asarray(np.memmap(file, np.uint8, mode="c"))
            layouts = layouts_in(file, read_header(file), len(mapped))
            arrays = MappedArrays({name: (mapped, layout) for name, layout in layouts.items()})
            found = Checkpoint(note["epoch"], arrays, note["history"])
            if note.get("checksum") != found.checksum:
                raise ValueError("its checksum differs")
        except FileNotFoundError:
            return None
        except _BROKEN as error:
            LOG.warning("%s cannot be read (%s): %s starts over.", file, error, stage)
            return None
        return found

    def save(
        self,
        stage: str,
        epoch: int,
        state: State,
        history: list[dict[str, Any]],
        *,
        ends_stage: bool,
    ) -> None:
        """Replace the checkpoint of a stage if the last one is old; at its end, a younger one too.

        Where the disk refuses, a warning says so and training goes on: a checkpoint is several
        times a model, and the hours that one would have saved are not to be lost for it.
        """
        least = self._every_seconds
        if ends_stage:
            n_bytes = sum(part.nbytes for part in state.values())
            least = min(least, n_bytes / BYTES_A_SECOND / LARGEST_SHARE)
        if time.monotonic() - self._last_saved < least:
            return
        target = self._file(stage)
        partial = target.with_suffix(".partial")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            arrays = {name: np.ascontiguousarray(as_array(part)) for name, part in state.items()}
            note = {
                "fingerprint": asdict(self._fingerprint),
                "epoch": epoch,
                "history": history,
                "checksum": Checkpoint(epoch, arrays, history).checksum,
            }
            write_arrays(partial, arrays, note=json.dumps(note))
            partial.replace(target)
        except OSError as error:
            with suppress(OSError):
                partial.unlink()
            LOG.warning(
                "The checkpoint %s could not be written (%s). Training goes on; were it stopped, "
                "it would resume from an older one or anew. Free some space for the next, or make "
                "the place writable.",
                target,
                error,
            )
        self._last_saved = time.monotonic()

    def remove(self) -> None:
        """Delete the checkpoints of this run, and the folder if nothing else is in it."""
        _clear(self._own)
        with suppress(OSError):
            self.path.rmdir()

    @staticmethod
    def has_any(path: Path) -> bool:
        """Return whether a folder has checkpoints of any run."""
        return bool(_in_use(path))

    @staticmethod
    def clear_all(path: Path) -> None:
        """Delete the checkpoints of all runs."""
        for folder in _in_use(path):
            _clear(folder)

    def _file(self, stage: str) -> Path:
        """Return the file of a stage."""
        return self._own / f"{re.sub('[^a-z0-9]+', '-', stage.lower())}{SUFFIX}"


def _in_use(path: Path) -> set[Path]:
    """Return the folders of all runs."""
    return {file.parent for file in path.glob(f"*/*{SUFFIX}")}


def _clear(folder: Path) -> None:
    """Delete the checkpoints of a run, and its folder."""
    for pattern in (f"*{SUFFIX}", "*.partial"):  # the latter from a kill while it was written
        for file in folder.glob(pattern):
            file.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
