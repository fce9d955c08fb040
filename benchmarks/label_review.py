"""How many of the labels that `longtail review` names have really been spoilt.

python -m benchmarks.label_review train.jsonl.gz --labels labels.txt.gz --points 20000

Of the training points, a tenth of the labels is left out, a tenth of the points gets one label more
that is drawn from all, and a hundredth has the labels of another point in place of its own. A share
of what is found is right at the least: what was wrong in the data before counts as an error.
No test data is read.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from benchmarks.command import heading, positive, run
from benchmarks.kept_back import training_parser
from longtail.cli.settings import parse_settings
from longtail.data.copies import points_of_rows
from longtail.data.csr import rows_of_entries
from longtail.data.dataset import Dataset
from longtail.recipes.names import recipe
from longtail.review import Findings, review_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEFT_OUT, ADDED, EXCHANGED = 0.1, 0.1, 0.01
FIRST = (100, 300, 1000)


class Spoilt(NamedTuple):
    """A data set, and its pairs that were left out, and that were made up, by number."""

    dataset: Dataset
    missing: NDArray[np.int64]
    wrong: NDArray[np.int64]


def main() -> None:
    """Review once, and print two rows."""
    parser = training_parser(__doc__)
    parser.add_argument("--parts", type=positive(int), default=4, metavar="N", help="of the points")
    parser.add_argument(
        "--recipe", default="longtail", metavar="NAME", help="what is trained (longtail)"
    )
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings of the recipe"
    )
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    whole, _ = points_of_rows(Dataset.read(arguments.train, labels_file=arguments.labels))
    n_points = min(arguments.points or whole.n_points, whole.n_points)
    spoilt = spoilt_labels(whole.take(random.permutation(whole.n_points)[:n_points]), random)
    kind = recipe(arguments.recipe)
    model = kind(random_state=arguments.seed, **parse_settings(kind, arguments.set))
    started = time.process_time()
    review = review_labels(model, spoilt.dataset, n_parts=arguments.parts, most=max(FIRST))
    seconds = time.process_time() - started
    print(heading("", "spoilt", "by chance", *(f"of {n:,}" for n in FIRST), "CPU s"))
    n_given = spoilt.dataset.labels.nnz
    n_absent = n_points * spoilt.dataset.n_labels - n_given
    of_kinds = (("missing", spoilt.missing, n_absent), ("doubtful", spoilt.wrong, n_given))
    for what, pairs, n_pairs in of_kinds:
        shares = shares_right(getattr(review, what), pairs, spoilt.dataset.n_labels)
        row = (what, f"{len(pairs):,}", f"{100 * len(pairs) / n_pairs:.2f}", *shares)
        print(f"| {' | '.join(row)} | {seconds:.0f} |")


def spoilt_labels(dataset: Dataset, random: np.random.Generator) -> Spoilt:
    """Return the data set with labels left out, added and exchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.label_review import spoilt_labels
    >>> from longtail import Dataset
    >>> dataset = Dataset.of([str(i) for i in range(100)], [[i % 7] for i in range(100)])
    >>> spoilt = spoilt_labels(dataset, np.random.default_rng(0))
    >>> len(spoilt.missing), len(spoilt.wrong)
    (10, 7)
    """
    labels, n_labels = dataset.labels, np.int64(dataset.n_labels)
    points, chosen = rows_of_entries(labels), random.permutation(dataset.n_points)
    before = points * n_labels + labels.indices
    n_exchanged = round(EXCHANGED * dataset.n_points)
    whose = np.arange(dataset.n_points)
    whose[chosen[:n_exchanged]] = np.roll(chosen[:n_exchanged], 1)
    exchanged = labels[whose]
    kept = rows_of_entries(exchanged) * n_labels + exchanged.indices
    kept = kept[random.random(len(kept)) >= LEFT_OUT]
    added = random.permutation(dataset.n_points)[: round(ADDED * dataset.n_points)]
    more = added * n_labels + random.choice(labels.indices, len(added))
    after = np.union1d(kept, more)
    spoilt = csr_array((np.ones(len(after), np.float32), np.divmod(after, n_labels)), labels.shape)
    missing, wrong = np.setdiff1d(before, after), np.setdiff1d(after, before)
    made = Dataset(dataset.texts, dataset.features, spoilt, dataset.label_space)
    return Spoilt(made, missing, wrong)


def shares_right(found: Findings, spoilt: NDArray[np.int64], n_labels: int) -> list[str]:
    """Return how many percent of the first so many findings were spoilt."""
    is_right = np.isin(found.points * np.int64(n_labels) + found.labels, spoilt)
    shares = [f"{100 * is_right[:n].mean():.0f}" if len(is_right) else "" for n in FIRST]
    enough = [len(is_right) >= n for n in FIRST]
    return [share if is_all else f"({share})" for share, is_all in zip(shares, enough, strict=True)]


if __name__ == "__main__":
    run(main)
