"""What a review has found so far, on disk, so that one that was cut off goes on."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from longtail.log import LOG
from longtail.training.checkpoints import CheckpointFolder
from longtail.training.fingerprint import fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from longtail.review.opinions import Opinions

__all__ = ["KeptOpinions"]

_STAGE = "review"


class KeptOpinions:
    """The opinions of the parts that were asked, and the state of the training that goes on.

    Parameters
    ----------
    path : str, Path or None
        The folder; None, to keep nothing.
    opinions : Opinions
    settings : mapping
        What two reviews must have alike, beside their data, if one is to go on from the other: JSON
        values.
    every_seconds : float
        Least time between two times that something is written.

    Examples
    --------
    >>> import tempfile
    >>> from longtail import Dataset
    >>> from longtail.review.kept_opinions import KeptOpinions
    >>> from longtail.review.opinions import Opinions
    >>> opinions = Opinions.of(Dataset.of(["red wine", "old car"], [["drink"], ["vehicle"]]))
    >>> opinions.places[:] = [0, 1]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     KeptOpinions(folder, opinions, {"n_parts": 4}, every_seconds=0.0).keep(n_asked=3)
    ...     opinions.places[:] = 300
    ...     KeptOpinions(folder, opinions, {"n_parts": 4}, every_seconds=0.0).taken_up()
    3
    >>> opinions.places.tolist()
    [0, 1]
    """

    def __init__(
        self,
        path: str | Path | None,
        opinions: Opinions,
        settings: Mapping[str, Any],
        every_seconds: float,
    ) -> None:
        self._opinions = opinions
        self._folder: CheckpointFolder | None = None
        self.of_training: Path | None = None  # where the training of a part keeps its state
        if path is not None:
            points, space = opinions.dataset, opinions.dataset.label_space
            about = (points.features, points.labels, points.texts, space.names, space.texts)
            known_by = fingerprint(dict(settings), *about)
            self._folder = CheckpointFolder(path, fingerprint=known_by, every_seconds=every_seconds)
            self.of_training = self._folder.path / "training"

    def taken_up(self) -> int:
        """Fill in what is on disk, if anything; return how many parts were asked."""
        found = None if self._folder is None else self._folder.load(_STAGE)
        if found is None:
            return 0
        for name, array in self._opinions.arrays().items():
            array[:] = found.arrays[name]
        LOG.info(
            "The review goes on behind part %d, as settings and data are the same.", found.epoch
        )
        return found.epoch

    def keep(self, n_asked: int) -> None:
        """Write down the opinions of so many parts, and forget how the last was trained."""
        if self._folder is None or self.of_training is None:
            return
        self._folder.save(_STAGE, n_asked, self._opinions.arrays(), [], ends_stage=False)
        CheckpointFolder.clear_all(self.of_training)
        with suppress(OSError):  # it was not made, or something else is in it
            self.of_training.rmdir()

    def remove(self) -> None:
        """Delete what was kept, and the folder if nothing else is in it."""
        if self._folder is not None:
            self._folder.remove()
