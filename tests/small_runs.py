"""Trainings on one thread."""

from __future__ import annotations

from longtail.training.run import TrainingRun


def a_run(*callbacks, folder=None, n_threads=1, seed=0):
    """A training that callbacks are told of; `folder` is a `CheckpointFolder`."""
    return TrainingRun(seed=seed, n_threads=n_threads, callbacks=callbacks, checkpoints=folder)
