"""Reading ``training.json`` of a model folder: the error where it lacks what is read."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from longtail.errors import RETRAIN, ModelFolderError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["TRAINING", "reading_training"]

TRAINING = "training.json"


@contextmanager
def reading_training(folder: Path) -> Iterator[None]:
    """Raise ModelFolderError where the document lacks what is read of it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.cli.training_document import reading_training
    >>> with reading_training(Path("model")):
    ...     {}["wall_seconds"]
    Traceback (most recent call last):
        ...
    longtail.errors.ModelFolderError: model/training.json says something else than how training ...
    """
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFolderError(
            f"{folder / TRAINING} says something else than how training went "
            f"({error!r:.80}). It may be of another version. {RETRAIN}"
        ) from error
