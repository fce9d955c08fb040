"""How an estimator answers: in the form that y had, and as scikit-learn's scorers ask."""

from __future__ import annotations

from collections.abc import Iterator, ValuesView
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, isspmatrix

from longtail.data.csr import csr_of_chosen
from longtail.data.dataset import Dataset
from longtail.data.foreign import as_classes, own_dtype
from longtail.data.from_python import LabelForm, labels_from
from longtail.data.input_notes import warn
from longtail.data.label_space import in_ids_of
from longtail.errors import InputError
from longtail.estimators.scikit_learn import Parameters, not_fitted
from longtail.evaluation import LEAST_KNOWN, warn_of_unknown_labels
from longtail.metrics import precision_at_k
from longtail.metrics.hits import USUAL_PLACES, USUAL_RECALL_PLACES
from longtail.metrics.propensity import USUAL_PROPENSITY
from longtail.predictor import Predictor  # noqa: TC001 - `get_type_hints` of a recipe looks it up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


__all__ = ["AnsweringEstimator", "matrix_dtype", "rereadable", "sparse_type"]

USUALLY_PREDICTED = 100  # labels of a point that are asked for first; if all are chosen, more
LEAST_CHOSEN = 0.5  # probability
MOST_NUMBERS = 2**30  # of a matrix of all probabilities: 8 GB
MATRICES = (LabelForm.SPARSE, LabelForm.DENSE)


class AnsweringEstimator(Parameters):
    """What a fitted estimator says of points.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> model = LongtailClassifier().fit(texts, ["drink", "drink", "vehicle", "vehicle"] * 5)
    >>> model.predict(["a bottle of wine"]).tolist()  # a class a point, as y had
    ['drink']
    >>> model.predict_topk(["a bottle of wine"], k=2)[0].tolist()
    [[0, 1]]
    """

    predictor_: Predictor
    label_form_: LabelForm
    _label_dtype: np.dtype[Any]
    _sparse_type: type[csr_array | csr_matrix]
    _own_classes: np.ndarray[Any, Any]

    @property
    def classes_(self) -> NDArray[Any]:
        """Return the classes, where y had one a point; where it was a matrix, 0 and 1 a label.

        With it scikit-learn's scorers tell several classes, (n_classes,), from several labels,
        (n_labels, 2). Where y was lists there is no such attribute: they cannot read lists.
        """
        self._check_is_fitted()
        if self.label_form_ is LabelForm.CLASSES:
            return self._own_classes
        if self.label_form_ in MATRICES:
            return np.tile([0, 1], (self.predictor_.n_labels, 1))
        raise AttributeError(
            "There are no `classes_` where y was lists of labels: scikit-learn's scorers, which "
            "ask for them, read a matrix of 0 and 1. Pass y as "
            "MultiLabelBinarizer().fit_transform(y) makes it, or omit `scoring` for P@1."
        )

    def predict(self, X: Any) -> Any:
        """Return the labels whose probability is at least one half, in the form that y had.

        Lists of names or of ids, or a matrix (n_points, n_labels). Where y had one class a point,
        the most probable one; the most frequent one for a point of which nothing is known. For the
        best k labels whatever their probability, see `predict_topk`.
        """
        self._check_is_fitted()
        if self.label_form_ is LabelForm.CLASSES:
            return self._best_classes(self.predict_topk(X, 1)[0])
        X = rereadable(X)
        most = self.predictor_.most_answers
        k = min(most, USUALLY_PREDICTED)
        ids, probabilities = self.predict_topk(X, k)
        while k < most and (probabilities[:, -1] >= LEAST_CHOSEN).any():
            k = min(most, 4 * k)
            ids, probabilities = self.predict_topk(X, k)
        return self._in_form_of_y(ids, probabilities >= LEAST_CHOSEN)

    def predict_topk(self, X: Any, k: int = 5) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return ids (n_points, k) and probabilities of the best labels, best first.

        Ids are int32, padded with -1; probabilities float32, padded with -inf. `Predictor` has more
        to ask for: names, a threshold, only some labels.

        Raises
        ------
        InputError
            If X is not what the model was trained on; of a table with named columns, if they have
            other names or another order.
        """
        self._check_is_fitted()
        return self.predictor_.predict_topk(X, k)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of every label, for scorers of scikit-learn: (n_points, n_labels).

        Columns are in the order of the label ids, which is that of y's columns; 0 for what is not
        among the 10,000 best. Where y had one class a point, of the classes in the order of
        `classes_`; they add up to 1, and are those of the training where nothing is known of a
        point. Of many labels, `predict_topk` says the best few in far less memory.

        Raises
        ------
        InputError
            If there would be more than 2^30 numbers.
        """
        self._check_is_fitted()
        n_points, n_labels = _n_points(X), self.predictor_.n_labels
        if n_points * n_labels > MOST_NUMBERS:
            raise InputError(
                f"All probabilities of {n_points:,} points and {n_labels:,} labels would take "
                f"{8e-9 * n_points * n_labels:,.0f} GB. Ask predict_topk for the best few, or for "
                "fewer points at a time."
            )
        ids, probabilities = self.predict_topk(X, self.predictor_.most_answers)
        of_all = np.zeros((len(ids), n_labels))
        rows, places = np.nonzero(ids >= 0)
        of_all[rows, ids[rows, places]] = probabilities[rows, places]
        if self.label_form_ is LabelForm.CLASSES:
            of_all[~of_all.any(axis=1)] = self.predictor_.train_label_counts
            of_all /= of_all.sum(axis=1, keepdims=True)
        return of_all

    def score(self, X: Any, y: Any) -> float:
        """Return P@1, the share (0 to 1) of points whose best label is right.

        Labels of y with names are matched by name, and those that the model does not know count as
        misses; so do ids beyond the model's. A matrix without names has the model's columns.

        Raises
        ------
        InputError
            If y is of other points, or a matrix of another width than the model's.
        """
        ids, _ = self.predict_topk(X, 1)
        y = rereadable(y)
        labels, space, form = labels_from(y, len(ids))
        if self.label_form_ is form is LabelForm.CLASSES:
            true = as_classes(y)
            self._warn_of_unknown_classes(true)
            return float(np.mean(self._best_classes(ids) == true))
        n_labels = self.predictor_.n_labels
        if space.names is None and form in MATRICES and space.n_labels != n_labels:
            raise InputError(
                f"y has {space.n_labels:,} columns, but the model has {n_labels:,} labels. Pass a "
                "matrix with the same columns as in training."
            )
        no_points = csr_array((len(ids), 0), dtype=np.float32)
        asked = Dataset(None, no_points, labels, space)
        labels = in_ids_of(self.predictor_.label_space, asked).labels
        warn_of_unknown_labels(labels, n_labels)
        return precision_at_k(ids, labels, 1)

    def evaluate(
        self,
        dataset: Dataset,
        ks: Sequence[int] = USUAL_PLACES,
        *,
        recall_ks: Sequence[int] = USUAL_RECALL_PLACES,
        propensity: tuple[float, float] = USUAL_PROPENSITY,
        set_aside: csr_array | None = None,
    ) -> dict[str, float]:
        """Return all metrics on a test set, in percent; see `Predictor.evaluate`."""
        self._check_is_fitted()
        return self.predictor_.evaluate(
            dataset, ks, recall_ks=recall_ks, propensity=propensity, set_aside=set_aside
        )

    def _check_is_fitted(self) -> None:
        if not hasattr(self, "predictor_"):
            raise not_fitted(self)

    def _warn_of_unknown_classes(self, true: NDArray[Any]) -> None:
        """Warn where most points have classes that the model does not know, or by another type."""
        known = set(self.classes_.tolist())
        unknown = [value for value in true.tolist() if value not in known]
        if len(unknown) > (1 - LEAST_KNOWN) * len(true):
            warn(
                f"The model does not know {len(unknown):,} of the {len(true):,} classes of the "
                f"points, such as {unknown[0]!r}, which count as misses. It knows "
                f"{self.classes_[0].item()!r}, for one: were they written otherwise?",
            )

    def _best_classes(self, ids: NDArray[np.int32]) -> NDArray[Any]:
        """Return the class of each point from the ids of its best labels."""
        usual = self.predictor_.train_label_counts.argmax()
        classes: NDArray[Any] = self.classes_[np.where(ids[:, 0] < 0, usual, ids[:, 0])]
        return classes

    def _in_form_of_y(self, ids: NDArray[np.int32], chosen: NDArray[np.bool_]) -> Any:
        """Return chosen labels as names, ids, or a sparse or dense matrix."""
        if self.label_form_ is LabelForm.NAMES:
            name = self.predictor_.label_space.name
            return [[name(i) for i in row[on]] for row, on in zip(ids, chosen, strict=True)]
        if self.label_form_ is LabelForm.IDS:
            return [row[on].tolist() for row, on in zip(ids, chosen, strict=True)]
        ones = np.ones(ids.shape, self._label_dtype)
        matrix = csr_of_chosen(ids, ones, chosen, self.predictor_.n_labels)
        is_sparse = self.label_form_ is LabelForm.SPARSE
        return self._sparse_type(matrix) if is_sparse else matrix.toarray()


def rereadable(given: Any) -> Any:
    """Return points or labels as they are, and a generator, which is read only once, as a list.

    Examples
    --------
    >>> from longtail.estimators.answers import rereadable
    >>> labels = rereadable(names for names in (["bread"], []))
    >>> list(labels), list(labels)
    ([['bread'], []], [['bread'], []])
    """
    return list(given) if isinstance(given, Iterator | ValuesView) else given


def sparse_type(y: Any) -> type[csr_array | csr_matrix]:
    """Return scipy's class of a matrix like y: its older one, if y is of that, multiplies by ``*``.

    Examples
    --------
    >>> from scipy.sparse import csc_matrix
    >>> from longtail.estimators.answers import sparse_type
    >>> sparse_type(csc_matrix((2, 3))).__name__, sparse_type([["bread"]]).__name__
    ('csr_matrix', 'csr_array')
    """
    found: type[csr_array | csr_matrix] = csr_matrix if isspmatrix(y) else csr_array
    return found


def matrix_dtype(y: Any) -> np.dtype[Any]:
    """Return the dtype of matrices of predicted labels: that of y, if scipy has such matrices.

    A table has that of all its columns together.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.estimators.answers import matrix_dtype
    >>> matrix_dtype(np.eye(2, dtype=int)), matrix_dtype([["bread"]])
    (dtype('int64'), dtype('float32'))
    """
    given = np.asarray(y).dtype if hasattr(y, "columns") else own_dtype(y)
    # scipy has no sparse matrices of Python objects or of float16.
    is_usual = given is not None and given.kind in "biuf" and given != np.float16
    return given if given and is_usual else np.dtype(np.float32)


def _n_points(X: Any) -> int:
    """Return how many points there are, or 0 of what is no points, which will be refused."""
    shape = getattr(X, "shape", None)
    if shape is not None:
        return int(shape[0]) if shape else 0
    return len(X) if hasattr(X, "__len__") else 0
