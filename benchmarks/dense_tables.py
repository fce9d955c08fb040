"""Data sets of measurements, vectors and counts, for `benchmarks.peers`.

python -m benchmarks.dense_tables DATA OUT
python -m benchmarks.peers --quick --data OUT/wine --out RESULT

DATA is a folder with train.txt.gz of sparse rows, such as bibtex.

- iris, wine, breast-cancer, digits: those that come with scikit-learn, two fifths of them asked.
- vectors: of the rows of DATA, 128 numbers and of unit length, by a truncated SVD.
- vectors-year: beside them a column of years from 1990 to 2026, which tells nothing.
- vectors-offset: a number is added to each column, the same in all rows.
- vectors-mixed: beside them years, a column of 1,000, one of large numbers, few of them very large,
  and twenty columns of which each row has one; they tell nothing.
- noise: five classes by ten columns, and 490 columns of noise beside them, all spread alike.
- missing: six classes by sums of twelve columns, of whose numbers a fifth are missing: -999.
- plays: how often 4,000 people played some of 1,000 things, some very often; a person has one to
  three of forty tastes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from sklearn import datasets
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from benchmarks.command import run
from benchmarks.set_files import parser_of_places
from longtail import Dataset
from longtail.data import LabelSpace

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

ASKED = 0.4
DIMENSION = 128


def main() -> None:
    """Write all of them."""
    arguments = parser_of_places(__doc__).parse_args()
    points = Dataset.read(arguments.data / "train.txt.gz")
    for name in ("iris", "wine", "breast_cancer", "digits"):
        features, classes = getattr(datasets, f"load_{name}")(return_X_y=True)
        write(arguments.out / name.replace("_", "-"), features, np.eye(classes.max() + 1)[classes])
    for name, features in tables(points.features).items():
        write(arguments.out / name, features, points.labels)
    for name, (features, labels) in drawn().items():
        write(arguments.out / name, features, labels)


def tables(features: csr_array | None) -> dict[str, NDArray[Any]]:
    """Return the vectors of sparse rows, by themselves and beside other columns."""
    vectors = normalize(TruncatedSVD(DIMENSION, random_state=0).fit_transform(features))
    random, n = np.random.default_rng(0), len(vectors)
    years = random.integers(1990, 2027, (n, 1))
    large = random.lognormal(3, 2, (n, 1))
    one_of_twenty = np.eye(20)[random.integers(0, 20, n)]
    return {
        "vectors": vectors,
        "vectors-year": np.hstack([vectors, years]),
        "vectors-offset": vectors + random.standard_normal(DIMENSION),
        "vectors-mixed": np.hstack([vectors, years, np.full((n, 1), 1000), large, one_of_twenty]),
    }


def drawn() -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Return features and labels of sets that are drawn at random."""
    features, classes = datasets.make_classification(
        4_000,
        500,
        n_informative=10,
        n_redundant=0,
        n_classes=5,
        n_clusters_per_class=1,
        random_state=0,
    )
    return {"noise": (features, np.eye(5)[classes]), "missing": missing(), "plays": plays()}


def missing(n_points: int = 4_000) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return columns that tell classes by sums, with a number for what is missing."""
    random = np.random.default_rng(0)
    features = random.standard_normal((n_points, 12))
    scores = features @ random.standard_normal((12, 6)) + random.gumbel(size=(n_points, 6))
    features[random.random(features.shape) < 0.2] = -999
    return features, np.eye(6)[scores.argmax(axis=1)]


def plays(n_points: int = 4_000) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return counts of what people with some tastes played, and their tastes."""
    random = np.random.default_rng(0)
    tastes = random.dirichlet(np.full(1_000, 0.05), 40)
    features, labels = np.zeros((n_points, 1_000)), np.zeros((n_points, 40))
    for counts, own in zip(features, labels, strict=True):
        some = random.choice(40, random.integers(1, 4), replace=False)
        chance = 0.5 * tastes[some].mean(axis=0) + 0.5 / len(counts)
        played = np.unique(random.choice(len(counts), random.integers(10, 40), p=chance))
        counts[played] = np.ceil(np.exp(random.normal(1, 2, len(played))))
        own[some] = 1
    return features, labels


def write(folder: Path, features: NDArray[Any], labels: Any) -> None:
    """Write a part to learn from, and one that is asked."""
    folder.mkdir(parents=True, exist_ok=True)
    order = np.random.default_rng(0).permutation(len(features))
    n_asked = round(ASKED * len(order))
    labels = csr_array(labels, dtype=np.float32)
    points = Dataset(
        None, csr_array(features, dtype=np.float32), labels, LabelSpace(labels.shape[1])
    )
    for part, rows in {"train": order[n_asked:], "test": order[:n_asked]}.items():
        points.take(rows).write(folder / f"{part}.txt.gz", format="repository")


if __name__ == "__main__":
    run(main)
