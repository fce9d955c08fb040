"""Trainings on one thread."""

from __future__ import annotations

import numpy as np

from longtail.classifiers.listed_points import points_listing
from longtail.training.run import TrainingRun


def a_run(*callbacks, folder=None, n_threads=1, seed=0):
    """A training that callbacks are told of; `folder` is a `CheckpointFolder`."""
    return TrainingRun(seed=seed, n_threads=n_threads, callbacks=callbacks, checkpoints=folder)


def on_shortlists(solver, features, labels, shortlists, run):
    """What a `SparseOneVsRest` learns of labels against the points that have them shortlisted."""
    return among(solver, features, labels, points_listing(shortlists, labels.shape[1]), run)


def among(solver, features, labels, candidates, run):
    """What it learns of each label against candidates of its own."""
    return solver.learn_among(
        features,
        labels,
        candidates,
        np.arange(labels.shape[1], dtype=np.int32),
        seed=run.seed_for("one versus rest"),
        n_threads=run.n_threads,
    )
