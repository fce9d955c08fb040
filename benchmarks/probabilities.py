"""How far a recipe's probabilities can be trusted, on held-out training points.

python -m benchmarks.probabilities train.jsonl.gz --labels labels.txt.gz

A tenth of the training points is kept from the training. Of its best labels are told: how probable
they were said to be and how many are right, in percent; how far the two are apart on average in
ten bins of probability (expected calibration error); how often a right answer has a higher
probability than a wrong one (AUC); and the mean squared error (Brier), beside that of one who says
the same of all. No test data is read.

Three more rows are of the best label where that has few, some or many training points. Where points
are texts, three are of the best label of fragments of them: of the first half of their words, the
first two, and one that is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from benchmarks.command import heading, run
from benchmarks.kept_back import recipe_of, recipe_parser, split_of
from longtail.data.blocks import points_of
from longtail.metrics.hits import true_among

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail import Dataset, Predictor

N_BINS = 10
N_BEST = (1, 5, 20)
NOT_FEW, MANY = 10, 100  # training points of a label
COLUMNS = ("said", "right", "apart", "AUC", "Brier", "of a constant")


def main() -> None:
    """Train once, and print rows for the best label, the five and the twenty best."""
    arguments = recipe_parser(__doc__).parse_args()
    train, points = split_of(arguments)
    model = recipe_of(arguments).fit_dataset(train)
    asked = points_of(points)
    ids, probabilities = model.predictor_.predict_topk(asked, max(N_BEST))
    is_right = true_among(ids, points.labels)
    print(heading("best labels", *COLUMNS))
    for k in N_BEST:
        known = ids[:, :k] >= 0
        tell(str(k), probabilities[:, :k][known], is_right[:, :k][known])
    tell_of_frequencies(train, ids[:, 0], probabilities[:, 0], is_right[:, 0])
    if points.texts is not None:
        tell_of_fragments(model.predictor_, points, arguments.seed)


def tell_of_frequencies(
    train: Dataset,
    best: NDArray[np.int32],
    said: NDArray[np.float32],
    is_right: NDArray[np.bool_],
) -> None:
    """Print a row for best labels with few, some and many training points, where there are any."""
    n_points = np.bincount(train.labels.indices, minlength=train.n_labels)[best]
    kinds = {
        f"fewer than {NOT_FEW} points": n_points < NOT_FEW,
        f"fewer than {MANY}": (n_points >= NOT_FEW) & (n_points < MANY),
        f"{MANY} and more": n_points >= MANY,
    }
    for name, is_one in kinds.items():
        some = is_one & (best >= 0)
        if some.any():
            tell(f"1 of {name}", said[some], is_right[some])


def tell_of_fragments(predictor: Predictor, points: Dataset, seed: int) -> None:
    """Print a row for each kind of fragment."""
    random = np.random.default_rng(seed)
    words = [text.split() for text in points.texts or ()]
    kinds = {
        "half": [some[: max(1, len(some) // 2)] for some in words],
        "two words": [some[:2] for some in words],
        "one word": [[random.choice(some)] if some else [] for some in words],
    }
    for name, fragments in kinds.items():
        texts = [" ".join(some) for some in fragments]
        ids, probabilities = predictor.predict_topk(texts, 1)
        is_right, known = true_among(ids, points.labels), ids >= 0
        tell(f"1 of {name}", probabilities[known], is_right[known])


def tell(name: str, said: NDArray[np.float32], is_right: NDArray[np.bool_]) -> None:
    """Print a row."""
    row = quality(said.astype(np.float64), is_right)
    print(f"| {name} |" + "".join(" |" if value is None else f" {value:.1f} |" for value in row))


def quality(said: NDArray[np.float64], is_right: NDArray[np.bool_]) -> list[float | None]:
    """Return the columns of a row, in percent; no AUC where all are right, or all are wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.probabilities import quality
    >>> said, is_right = np.array([0.9, 0.9, 0.1, 0.1]), np.array([True, True, False, True])
    >>> [round(value, 1) for value in quality(said, is_right)]
    [50.0, 75.0, 25.0, 83.3, 21.0, 18.8]
    >>> quality(said, is_right | True)[3] is None
    True
    """
    share = is_right.mean()
    bins = np.minimum((said * N_BINS).astype(int), N_BINS - 1)
    sums = [np.bincount(bins, weights, N_BINS) for weights in (said, is_right)]
    apart = np.abs(sums[0] - sums[1]).sum() / len(said)
    n_right, ranks = is_right.sum(), rankdata(said)
    n_pairs = n_right * (len(said) - n_right)
    n_ahead = ranks[is_right].sum() - n_right * (n_right + 1) / 2
    ahead = n_ahead / n_pairs if n_pairs else None
    brier = ((said - is_right) ** 2).mean()
    values = (said.mean(), share, apart, ahead, brier, share * (1 - share))
    return [None if value is None else 100 * float(value) for value in values]


if __name__ == "__main__":
    run(main)
