"""Data sets of measurements and vectors, for `benchmarks.peers`.

python -m benchmarks.dense_tables DATA OUT
python -m benchmarks.peers --quick --data OUT/wine --out RESULT

DATA is a folder with train.txt.gz of sparse rows, such as bibtex.

- iris, wine, breast-cancer, digits: those that come with scikit-learn, two fifths of them asked.
- vectors: of the rows of DATA, 128 numbers and of unit length, by a truncated SVD.
- vectors-year: beside them a column of years from 1990 to 2026, which tells nothing.
- vectors-offset: a number is added to each column, the same in all rows.
- vectors-mixed: beside them years, a column of 1,000, one of large numbers, few of them very large,
  and twenty columns of which each row has one; they tell nothing.
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
