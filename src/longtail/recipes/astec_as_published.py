"""Astec to the letter of its authors' code, where that differs from their paper.

docs/architecture.md lists the differences: "Where paper and published code differ".
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from longtail.classifiers.reranker import Reranker
from longtail.classifiers.shortlisted import ShortlistedOneVsAll, ShortlistTraining
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.recipes.deepxml import DeepXML
from longtail.surrogates.label_clusters import LabelClusters
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.optimisers import LazyAdam
from longtail.training.schedule import Schedule
from longtail.transfer.bounded_residual import BoundedResidual

if TYPE_CHECKING:
    from longtail.recipes.astec import Astec

__all__ = ["published_astec"]


def published_astec(astec: Astec) -> DeepXML:
    """Return Astec as its authors' code has it, with settings from the middle of its own.

    These differ between data sets: learning rates (of Module I from .003 to .03), epochs, halvings,
    and the length of the re-ranker's lists. Three of nine sets have 300 representatives a head
    label; here all have, where a label has 7,500 points.

    Parameters
    ----------
    astec : Astec
        Of its settings, those count that the code leaves to its user: the dimension, the sizes of
        the shortlist, whether there is label correlation, a re-ranker, and how many learners.

    Examples
    --------
    >>> from longtail import Astec
    >>> from longtail.recipes.astec_as_published import published_astec
    >>> published_astec(Astec()).classifier.training.batch_size
    255
    """
    residual = BoundedResidual(always_divide=True, dropout=0.5, learning_rate=0.002)
    features = BagOfTokens(dimension=astec.dimension or 300, dropout=0.5, make_optimiser=LazyAdam)
    on_shortlists = partial(
        ShortlistTraining,
        batch_size=255,
        own_only=True,
        neighbourhood_size=0,
        random_start=True,
        make_optimiser=LazyAdam,
    )
    return DeepXML(
        features=features,
        surrogate=MetaLabelTask(
            clusters=LabelClusters(
                n_meta_labels=2**16,
                normalise_points=False,  # they come with unit length
                plus_plus=False,
                label_correlation=astec.label_correlation,
                max_label_frequency=5000,
            ),
            schedule=Schedule(epochs=20, learning_rate=0.01, halve_at=(14,)),
            batch_size=255,
            residual=replace(residual, learning_rate=0.01),
            mean_loss=True,
            make_optimiser=LazyAdam,
        ),
        negatives=astec.shortlister(n_representatives=300),
        transfer=residual,
        classifier=ShortlistedOneVsAll(
            training=on_shortlists(
                schedule=Schedule(epochs=15, learning_rate=0.002, halve_at=(14,)),
                n_hard=astec.shortlist_size,
                n_random=150,
            )
        ),
        reranker=Reranker(
            architecture=features,
            transfer=residual,
            training=on_shortlists(
                schedule=Schedule(epochs=12, learning_rate=0.002, halve_at=(8, 10)),
                n_hard=astec.n_confused,
                n_random=0,
            ),
            n_confused=astec.n_confused,
            from_first=False,
        )
        if astec.reranker
        else None,
        fusion_as_in_code=True,
        n_learners=astec.n_learners,
    )
