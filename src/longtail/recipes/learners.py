"""Several models of one kind, trained one after another to answer as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.scorers.ensemble import EnsembleScorer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingRun

__all__ = ["averaged", "averaged_learners"]


def averaged_learners(
    learn: Callable[[TrainingRun], Scorer], n_learners: int, run: TrainingRun
) -> Scorer:
    """Train learners one after another, each from its own random numbers, and average their scores.

    One alone is trained by `run` as it is, so that it keeps its random numbers and stages.

    Parameters
    ----------
    learn : callable
        Trains one.
    n_learners : int
        At least 1.
    run : TrainingRun

    Examples
    --------
    What is trained here is told its own name, and no more. One alone has none.

    >>> from longtail.recipes.learners import averaged_learners
    >>> from longtail.training.run import TrainingRun
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> averaged_learners(lambda run: run.scope, 2, run).members
    ('learner 1: ', 'learner 2: ')
    >>> averaged_learners(lambda run: run.scope, 1, run)
    ''
    """
    if n_learners == 1:
        return learn(run)
    runs = (run.within(f"learner {i + 1}: ") for i in range(n_learners))
    return averaged([learn(own) for own in runs])


def averaged(members: Sequence[Scorer]) -> Scorer:
    """Return what averages the scores of trained models; one alone is itself.

    Examples
    --------
    >>> from longtail.recipes.learners import averaged
    >>> averaged(["one"]), averaged(["one", "other"]).members
    ('one', ('one', 'other'))
    """
    return members[0] if len(members) == 1 else EnsembleScorer(tuple(members))
