"""Texts, features and labels as Python users hold them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array, csr_array, csr_matrix, lil_array

from longtail.data import Dataset, InputWarning, LabelForm, features_from, labels_from, texts_from
from longtail.data.foreign import own_dtype
from longtail.errors import InputError
from longtail.recipes.parabel import Parabel

DENSE = [[1, 1, 0], [0, 0, 0], [1, 0, 1]]


class NAType:
    """As pandas calls the class of what is missing."""


@pytest.mark.parametrize(
    ("labels", "form", "names"),
    [
        ([["b", "a"], [], ("b", "c")], LabelForm.NAMES, ["b", "a", "c"]),
        ([{0, 1}, [], np.array([0, 2])], LabelForm.IDS, None),
        (csr_matrix(DENSE), LabelForm.SPARSE, None),
        (coo_array(np.array(DENSE, dtype=bool)), LabelForm.SPARSE, None),
        (np.array(DENSE), LabelForm.DENSE, None),
        (np.array(DENSE, dtype=np.float64), LabelForm.DENSE, None),
    ],
)
def test_every_form_gives_the_same_matrix(labels, form, names):
    matrix, space, found = labels_from(labels, 3)
    assert matrix.toarray().tolist() == DENSE
    assert matrix.dtype == np.float32
    assert matrix.has_canonical_format
    assert found is form
    assert (space.names and list(space.names)) == names
    assert space.n_labels == 3


@pytest.mark.parametrize(
    ("labels", "names", "has_texts"),
    [
        (["b", "a", "b"], ["a", "b"], True),
        (np.array([7, 3, 7]), ["3", "7"], False),
        (np.array([1.0, 0.0, 1.0]), ["0.0", "1.0"], False),
        ([True, False, True], ["False", "True"], False),
    ],
)
def test_classes(labels, names, has_texts):
    matrix, space, form = labels_from(labels, 3)
    assert form is LabelForm.CLASSES
    assert matrix.toarray().tolist() == [[0, 1], [1, 0], [0, 1]]
    assert list(space.names) == names
    assert (space.texts is not None) == has_texts


def test_pandas_like_objects():
    class Series:
        def __array__(self, dtype=None, copy=None):
            column = np.empty(2, dtype=object)
            column[:] = [["x"], []]
            return column

    assert labels_from(Series(), 2)[0].toarray().tolist() == [[1], [0]]


@pytest.mark.parametrize("dtype", ["category", "str", "torch.float32", None])
def test_a_dtype_that_numpy_does_not_know(dtype):
    class Column:
        """As a column of pandas with categories, strings or missing numbers, or a tensor."""

        def __init__(self, values):
            self.values, self.dtype = values, dtype

        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.values, dtype)

    assert own_dtype(Column([1])) is None
    assert features_from(Column([[1, 0]])).toarray().tolist() == [[1, 0]]
    assert list(labels_from(Column(["b", "a"]), 2)[1].names) == ["a", "b"]


class OfArrow:
    """A column of pyarrow: what goes through it gets no strings."""

    def __init__(self, values):
        self.to_pylist = lambda: values

    def __len__(self):
        return 2

    def __iter__(self):
        return iter([object(), object()])


class ArrowTable:
    """A table of pyarrow: its `columns` are columns, and their names stand elsewhere."""

    def __init__(self, values, names):
        self._values, self.column_names = np.asarray(values), list(names)
        self.columns = [OfArrow(column.tolist()) for column in self._values.T]
        self.shape, self.num_columns = self._values.shape, len(names)

    def __array__(self, dtype=None, copy=None):
        return self._values if dtype is None else self._values.astype(dtype)

    def __len__(self):
        return len(self._values)

    def __getitem__(self, place):
        return self.columns[place]

    def to_pylist(self):
        return [dict(zip(self.column_names, row, strict=True)) for row in self._values.tolist()]


def test_columns_of_a_table_of_pyarrow_have_names():
    _, space, form = labels_from(ArrowTable([[1, 0], [1, 1]], ["bread", "yeast"]), 2)
    assert (form, list(space.names)) == (LabelForm.DENSE, ["bread", "yeast"])
    X, classes = np.eye(2)[np.arange(20) % 2], ["bread", "yeast"] * 10
    model = Parabel(n_threads=1).fit(ArrowTable(X, ["sweet", "sour"]), classes)
    assert model.feature_names_in_.tolist() == ["sweet", "sour"]
    assert model.predict(ArrowTable(X, ["sweet", "sour"])).tolist() == classes
    with pytest.raises(InputError, match="the same columns, in another order"):
        model.predict(ArrowTable(X, ["sour", "sweet"]))


def test_a_column_may_be_called_as_the_names_of_pyarrow():
    table = ArrowTable([[1, 0], [1, 1]], ["bread", "column_names"])
    table.columns, table.column_names = table.column_names, table.columns[1]  # as pandas has them
    assert list(labels_from(table, 2)[1].names) == ["bread", "column_names"]


def test_columns_of_pyarrow():
    data = Dataset.of(OfArrow(["one", "two"]), OfArrow([["a"], []]))
    assert (list(data.texts), list(data.label_lists())) == (["one", "two"], [[0], []])
    assert list(labels_from(OfArrow(["b", "a"]), 2)[1].names) == ["a", "b"]
    assert list(texts_from(OfArrow(["one", "two"]))) == ["one", "two"]


@pytest.mark.parametrize("texts", [[b"one", b"two"], np.array(["one", "two"], "S3")])
def test_texts_as_bytes_are_no_features(texts):
    with pytest.raises(InputError, match=r"Text 0 is .*b'one'.*, not a string"):
        Dataset.of(texts, [["a"], []])


def test_explicit_zeros_go_and_the_input_stays():
    given = csr_array((np.array([1, 0]), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    matrix, _, _ = labels_from(given, 1)
    assert matrix.nnz == 1
    assert given.indices.tolist() == [1, 0]
    assert given.nnz == 2
    assert given.indices.dtype == np.int64
    assert matrix.indices.dtype == features_from(given).indices.dtype == np.int32


def test_repeats_are_merged_with_one_warning():
    with pytest.warns(InputWarning, match=r"twice \(merged\): 2, first at row 0") as caught:
        matrix, _, _ = labels_from([[3, 3], [1], [0, 0]], 3)
    assert len(caught) == 1
    assert matrix.sum() == 3


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "missing"),
        ([["a"], ["b"], []], "y has 3 rows, but there are 4 points. Pass one label list per point"),
        (csr_array(np.eye(3)), "y has 3 rows, but there are 4 points"),
        (np.eye(3), "y has 3 rows, but there are 4 points"),
        ("text", "y must hold one label list per point, got 'text'"),
        ({"a", "b", "c", "d"}, "in the order of the points, got {.* .set."),
        ({"one": ["a"], "two": ["b"]}, "in the order of the points, got {'one': .* .dict."),
        (3, "y must hold one label list per point, got 3"),
        (np.array(3), "y has 0 dimensions"),
        (coo_array(np.ones(4)), "y has 1 dimensions, not 2"),
        (np.array([["a", "b"]] * 4, object), "0 and 1, got object. Pass names as a list of lists"),
        (np.array([[1, None]] * 4), "0 and 1 only, got nan"),
        (np.full((4, 2), np.nan), "0 and 1 only, got nan"),
        (csr_array(np.full((4, 2), 2.0)), "0 and 1 only, got 2.0"),
        (np.full((4, 2), "a"), "Pass names as a list of lists"),
        (np.full((4, 1), "a"), r"or one class a point as a column: .*array\[:, 0\]"),
        ([["a"], float("nan"), [], []], r"row 1: got nan \(float\) where other rows are lists"),
        ([["a"], [3], [], []], r"row 1: got 3 \(int\) among names"),
        ([["a"], [None], [], []], "row 1: got None .*, a missing label. Leave it out of the list"),
        ([[], [None, "a"], [], []], "row 1: got None .*, a missing label. Leave it out"),
        ([[0], [], [np.nan], []], "row 2: got nan .*, a missing label. Leave it out of the list"),
        (["a", None, "b", "a"], "row 1: got None .*, a missing label. Leave the point out"),
        (["a", NAType(), "b", "a"], "row 1: got .*, a missing label. Leave the point out"),
        ([[0], ["a"], [], []], r"row 1: got 'a' \(str\) as a label id"),
        ([[0], [-1], [], []], "row 1: got -1"),
        ([[0], [1.5], [], []], "row 1: got 1.5"),
        ([[0], [True], [], []], "row 1: got True"),
        ([[0], [2**31], [], []], r"got 2147483648 .* to 2147483646. Pass other numbers as strings"),
        ([0.0, 1.0, float("nan"), 1.0], "row 2: got nan .*, a missing label. Leave the point out"),
        ([0.5, 1.0, 0.0, 1.0], "row 0: got 0.5"),
        (["a", 1, "b", 2], "mixes strings and numbers"),
        ([{"a": 1}] * 4, "row 0: got {'a': 1}"),
        ([["a"], ["b", ""], [], []], "row 1: got '', a label without a name. Leave it out"),
        (["a", "b", " ", "a"], "row 2: got ' ', a label without a name. Leave the point out"),
        ([["a"], ["['a', 'b']"], [], []], "row 1: got .*the text of a list.*ast.literal_eval"),
        (["['a' 'b']", "[]", "['a']", "a"], "row 0: got .*the text of a list"),
        (['["a", "b"]'] * 4, "row 0: got .*the text of a list"),
        ([[1, 0, 0], [0, 1, 1], [1, 1, 1], [0, 0, 0]], r"zeros and ones.*Pass numpy\.array"),
        ([[1, 0], [0, 1], [1, 0], [0, 1]], "zeros and ones"),
        ([[7], [1_234_567_890], [], []], "run up to 1,234,567,890, but points have 2 labels"),
    ],
)
def test_wrong_labels(labels, message):
    with pytest.raises(InputError, match=message):
        labels_from(labels, 4)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a|b", "c"], r"1 of 2 points .* holds '\|', such as 'a\|b' .*label.split\('\|'\)"),
        ([["b; a"], [], ["a; c; b"]], "2 of 2 points with a label .* holds ';'"),
        (["b,a", "a,c", "c"], "2 of 3 points with a label .* holds ','"),
        (["a,1,2,3,4", "5,a,6,7,8"], "holds ','"),  # most are in one name only, as rare labels are
    ],
)
def test_several_labels_in_one_string_are_pointed_out(labels, message):
    with pytest.warns(InputWarning, match=message):
        space = labels_from(labels, len(labels))[1]
    assert space.n_labels == len({str(label) for label in labels if label})


@pytest.mark.parametrize(
    "labels",
    [
        ["Paris, France", "Lyon, France", "Rome, Italy"],
        ["a|b", "c", "d"],
        [["a|b", "c"], ["c|d", "a"]],
        ["|", "a|", ";"],
        ["[sic]", "[1]", "[]"],
    ],
)
def test_signs_may_be_part_of_a_name(labels):
    assert labels_from(labels, len(labels))[1].n_labels >= 3


def test_texts():
    column = texts_from(np.array(["a", "b"], dtype=object))
    assert list(column) == ["a", "b"]
    assert texts_from(column) is column


@pytest.mark.parametrize("labels", [[[0, 1], [0, 1]], [[1, 0]], [[0], [1]], [[1, 0], [2, 0]]])
def test_ids_that_are_no_zeros_and_ones(labels):
    matrix, _, form = labels_from(labels, len(labels))
    assert form is LabelForm.IDS
    assert matrix.sum() == sum(map(len, labels))


@pytest.mark.parametrize(
    "texts", ["one text", b"one text", 3, None, {"text": "one"}, np.array("one text")]
)
def test_not_a_sequence_of_texts(texts):
    with pytest.raises(InputError, match=r"pass \[text\]"):
        texts_from(texts)


def test_texts_without_an_order():
    with pytest.raises(InputError, match=r"in an order, got {'one'} .set."):
        texts_from({"one"})


def test_a_table_of_zeros_ones_and_truth_values():
    matrix, _, form = labels_from(np.array([[True, 0], [False, 1], [False, 1.0]], object), 3)
    assert form is LabelForm.DENSE
    assert matrix.toarray().tolist() == [[1, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize(
    "kind", [np.array, list, csr_array, lil_array, lambda rows: csr_array(rows).tocoo()]
)
def test_numbers_that_are_too_small_are_told(kind):
    with pytest.warns(InputWarning, match=r"^features: .* nearer to 0 .*: 1, first at row 0"):
        matrix = features_from(kind([[1e-300, 0.0], [0.0, 1.0]]))
    assert matrix.toarray().tolist() == [[0, 0], [0, 1]]


def test_features():
    assert features_from(np.array([[0, 2], [1, 0]])).toarray().tolist() == [[0, 2], [1, 0]]
    repeated = coo_array((np.ones(2), (np.array([0, 0]), np.array([1, 1]))), shape=(1, 2))
    assert features_from(repeated).toarray().tolist() == [[0, 2]]
    given = csr_array(np.eye(3, dtype=np.float32))
    assert np.shares_memory(features_from(given).data, given.data)
    stored = csr_array((np.array([0.0, 2, 1e-60]), [0, 1, 2], [0, 3]), shape=(1, 3))
    assert features_from(stored).indices.tolist() == [1]
    assert stored.nnz == 3  # the caller's stays as it was


@pytest.mark.parametrize(
    "classes", [[2**63, -1, 2**63 + 1], [2**53, 2**53 + 1, 1.0], ["a", "a\0", "b"]]
)
def test_classes_that_numpy_would_make_one_of_stay_apart(classes):
    matrix, space, _ = labels_from(classes * 2, 6)
    assert matrix.shape == (6, 3)
    assert {*space.names} == {str(value) for value in classes}


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize(
    ("part", "value"),
    [("indices", [0, 1, 2, 4]), ("indices", [0, -1, 2, 3]), ("indptr", [0, 3, 9])],
)
def test_a_sparse_matrix_with_indices_beyond_it_is_refused(form, part, value):
    broken = csr_array(np.eye(4)).asformat(form)
    setattr(broken, part, np.array(value, np.int32))
    for read in (features_from, lambda matrix: labels_from(matrix, 4)):
        with pytest.raises(InputError, match=r"broken sparse matrix: .* shape \(4, 4\)"):
            read(broken)
    assert features_from(csr_array(np.eye(4)).asformat(form)).nnz == 4


def test_what_no_array_can_be_made_of():
    class Tensor:
        ndim = 2

        def __array__(self, *_: object, **__: object):
            raise TypeError("can't convert Sparse layout tensor to numpy. Use to_dense() first.")

    with pytest.raises(InputError, match=r"y cannot be read as an array of numpy.*to_dense"):
        labels_from(Tensor(), 4)


def test_a_tensor_with_a_gradient_has_no_numbers_to_read():
    tensor = torch.eye(4).requires_grad_()
    with pytest.raises(InputError, match=r"`features` cannot be read .*\.detach\(\)"):
        features_from(tensor)
    with pytest.raises(InputError, match=r"y cannot be read .*\.detach\(\)"):
        labels_from(tensor, 4)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([[0, 1], [np.nan, 0]], "NaN, or infinite values .first in row 1"),
        (csr_array(np.diag([1, np.inf])), "first in row 1"),
        ([[0, 1e39]], "first in row 0.*beyond 3e38"),
        ([1, 2], "1 dimensions"),
        ([["a"]], "cannot be read as a matrix.* Texts are passed as a list of strings"),
        (
            np.array([["a"]]),
            r"cannot be read as a matrix.* of an array with one column, array\[:, 0",
        ),
        ([None, "a"], "cannot be read as a matrix.* Texts are passed as a list of strings"),
        ([[1], [1, 2]], "cannot be read as a matrix"),
        (coo_array(np.arange(4.0)), "1 dimensions, not 2"),
        ([[0, 1], [NAType(), 0]], "NaN, or infinite values .first in row 1"),
    ],
)
def test_wrong_features(features, message):
    with pytest.raises(InputError, match=message):
        features_from(features)


def test_a_missing_truth_value_of_a_table_is_no_name():
    table = np.array([[True, False], [NAType(), True]], object)
    with pytest.raises(InputError, match="must hold 0 and 1 only, got nan"):
        labels_from(table, 2)


def test_a_sparse_array_of_one_dimension_is_no_points():
    with pytest.raises(InputError, match=r"`features` has 1 dimensions, not 2"):
        Parabel().fit(coo_array(np.arange(4.0)), ["a", "b"] * 2)


def test_values_that_are_masked_are_no_numbers():
    values = np.eye(3)
    masked = np.ma.masked_array(values, mask=values > 0)
    with pytest.raises(InputError, match=r"`features` is a masked array: 3 of 9.* features.filled"):
        features_from(masked)
    with pytest.raises(InputError, match=r"y is a masked array: 3 of 9 values"):
        labels_from(masked, 3)
    with pytest.raises(InputError, match=r"y is a masked array: 1 of 2 values"):
        labels_from(np.ma.masked_array([4, 7], mask=[True, False]), 2)
    whole = np.ma.masked_array(values)
    assert features_from(whole).toarray().tolist() == values.tolist()
