"""Tables 4 and 6: parts exchanged one at a time, each scored and held against its rival."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.command import heading
from longtail.data.blocks import points_of
from longtail.errors import InputError
from longtail.metrics.hits import find_hits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from longtail import Dataset
    from longtail.predictor import Predictor

    from .on_features import OnFeatures
    from .variants import Variant

    Precisions = NDArray[np.float64]

__all__ = ["cells", "difference"]

COLUMNS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@5", "R@100")
PAIRED = (1, 5)
HEAD = ("varied", "variant", *COLUMNS, "P@1 and P@5 more", "training, CPU s", "published")


def cells(
    variants: Sequence[Variant],
    settings: dict[str, Any],
    train: Dataset,
    test: Dataset,
    propensity: tuple[float, float],
) -> Iterator[str]:
    """Yield the lines of a table, each as soon as it is there.

    "P@1 and P@5 more" is how far a variant is ahead of the one that it is held against, with the
    standard error of the mean over points: points that are hard for both do not blur it.
    """
    yield from heading(*HEAD).splitlines()
    found: dict[str, Precisions] = {}
    for variant in variants:
        started = time.process_time()
        try:
            estimator = variant.make(settings, train.n_points).fit_dataset(train)
        except InputError as error:
            reason = str(error).partition(". ")[0]
            row = [variant.group, f"{variant.name}: not run. {reason}", *[""] * len(COLUMNS)]
            yield f"| {' | '.join([*row, '', '', variant.published])} |"
            continue
        seconds = time.process_time() - started
        metrics = estimator.predictor_.evaluate(test, propensity=propensity)
        found[variant.name] = precisions(estimator.predictor_, test)
        columns = [f"{metrics[column]:.2f}" for column in COLUMNS]
        is_rival = variant.name == variant.rival
        more = "" if is_rival else difference(found[variant.name], found.get(variant.rival))
        row = [variant.group, variant.name, *columns, more, f"{seconds:.0f}", variant.published]
        yield f"| {' | '.join(row)} |"


def precisions(predictor: Predictor | OnFeatures, test: Dataset) -> Precisions:
    """Return P@1 and P@5 of each point (n, 2), in percent."""
    if test.label_space.names is not None:
        test = test.relabelled(predictor.label_space)
    points = points_of(test)
    hits = find_hits(predictor.predict_topk(points, max(PAIRED))[0], test.labels, max(PAIRED))
    counts = [np.bincount(hits.up_to(k).points, minlength=test.n_points) / k for k in PAIRED]
    return 100 * np.stack(counts, axis=1)


def difference(of: Precisions, rival: Precisions | None) -> str:
    """Say how far the one is ahead of the other, and the standard error of that.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.paper.cells import difference
    >>> one, other = np.array([[100, 40], [0, 20], [100, 0]]), np.array([[0, 0], [0, 20], [0, 0]])
    >>> difference(one, other)
    '+66.67 ± 33.33, +13.33 ± 13.33'
    """
    if rival is None:
        return ""
    ahead = of - rival
    errors = ahead.std(axis=0, ddof=1) / len(ahead) ** 0.5
    pairs = zip(ahead.mean(axis=0), errors, strict=True)
    return ", ".join(f"{mean:+.2f} ± {error:.2f}" for mean, error in pairs)
