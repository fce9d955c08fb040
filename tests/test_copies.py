"""Rows that were copied are learnt from once; what is asked for often is left as it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from command_line import SMALL, run, write_lines
from longtail import Dataset, LongtailClassifier
from longtail.data.copies import points_of_rows, without_copies
from longtail.data.input_notes import InputWarning
from longtail.recipes.parabel import Parabel
from small_wordnet import small_wordnet

N_POINTS = 100


IS_RARE = np.arange(N_POINTS) < 15
MANY = np.random.default_rng(0).integers(5, 21, N_POINTS)


def copied(times, *, of_features=False):
    """A data set whose points come so many times, in random order."""
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(N_POINTS), times))
    numbers = np.random.default_rng(1).random((N_POINTS, 6))
    points = numbers[rows] if of_features else [f"text {row}" for row in rows]
    labels = [[7 + row if IS_RARE[row] else row % 7, 22 + row % 3] for row in rows.tolist()]
    return Dataset.of(points, labels), rows


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "draw",
    [
        lambda random: np.minimum(random.zipf(1.7, N_POINTS), 50),
        lambda random: np.minimum(random.zipf(3, N_POINTS), 50),
        lambda random: 1 + random.poisson(3, N_POINTS),
        lambda random: random.poisson(20, N_POINTS),
        lambda random: np.where(IS_RARE, 1, random.integers(1, 20, N_POINTS)),
    ],
)
def test_what_is_asked_for_often_is_no_copy(draw, seed):
    dataset, _ = copied(draw(np.random.default_rng(seed)))
    assert points_of_rows(dataset)[0] is dataset


@pytest.mark.parametrize("seed", range(5))
def test_what_is_asked_in_few_phrases_is_no_copy(seed):
    """A label with few phrases passes for rare, but one phrase comes far more often than others."""
    random = np.random.default_rng(seed)
    few = {f"label {label}": 1 + label % 9 * 6 for label in range(18)}
    phrases = [(name, f"{name} {i}") for name, count in few.items() for i in range(count)]
    shares = [1 / (1 + int(text.split()[-1])) ** 2 / few[name] for name, text in phrases]
    drawn = random.choice(len(phrases), 4000, p=np.array(shares) / sum(shares))
    texts, labels = ([phrases[i][part] for i in drawn] for part in (1, 0))
    dataset = Dataset.of(texts, [[label] for label in labels])
    assert without_copies(dataset)[0] is dataset


def test_copies_that_make_labels_even_are_copies():
    """As RandomOverSampler draws them: each label as often as the most frequent one."""
    random = np.random.default_rng(0)
    points = [(f"text {i}", f"label {min(i % 40, 11)}") for i in range(1200)]
    names = [label for _, label in points]
    most = max(map(names.count, set(names)))
    rows = []
    for label in sorted(set(names)):
        own = [i for i, name in enumerate(names) if name == label]
        rows += [*own, *random.choice(own, most - len(own)).tolist()]
    dataset = Dataset.of([points[i][0] for i in rows], [[points[i][1]] for i in rows])
    with pytest.warns(InputWarning, match="repeat another, labels and all, and are left out"):
        assert without_copies(dataset)[0].n_points == 1200


def test_what_differs_in_labels_is_no_copy():
    texts = [f"text {number}" for number in range(N_POINTS)] * 5
    labels = [[row // N_POINTS, 5 + row % 3] for row in range(5 * N_POINTS)]
    dataset = Dataset.of(texts, labels)
    assert without_copies(dataset)[0] is dataset


def test_texts_with_labels_of_many_kinds_are_a_log():
    texts = [f"text {number}" for number in range(N_POINTS)] * 6
    labels = [[row // N_POINTS % 2] for row in range(6 * N_POINTS)]  # each set three times
    dataset = Dataset.of(texts, labels)
    assert without_copies(dataset)[0] is dataset


def test_of_few_points_none_is_left_out():
    dataset = Dataset.of(["red wine", "old car"] * 50, [["drink"], ["vehicle"]] * 50)
    assert without_copies(dataset)[0] is dataset


def test_a_joined_log_is_joined_once():
    """`longtail train` joins before `fit_dataset` does."""
    random = np.random.default_rng(0)
    pairs = [(number, label) for number in range(N_POINTS) for label in (number % 7, 7)]
    rows = [pair for pair in pairs for _ in range(random.integers(1, 11))]
    log = Dataset.of([f"text {number}" for number, _ in rows], [[label] for _, label in rows])
    with pytest.warns(InputWarning, match="are joined to"):
        joined, _ = points_of_rows(log)
    assert points_of_rows(joined)[0] is joined


def test_pairs_of_copies_go_with_them():
    dataset, rows = copied(np.full(N_POINTS, 3))
    pairs = csr_array((np.ones(len(rows)), (np.arange(len(rows)), rows % 12)))
    with pytest.warns(InputWarning, match="repeat another"):
        points, theirs = without_copies(dataset, pairs)
    numbers = [int(text.split()[1]) for text in points.texts]
    assert theirs.indices.tolist() == [number % 12 for number in numbers]
    ids = np.random.default_rng(0).integers(0, 12, len(rows))  # hardly two copies are alike
    others = csr_array((pairs.data, ids, pairs.indptr), pairs.shape)
    assert without_copies(dataset, others)[0] is dataset


@pytest.mark.parametrize("of_classes", [False, True])
def test_copies_train_the_model_of_their_points(of_classes):
    train, test = small_wordnet(300, 100, 5_000)
    own = [labels[:1] if of_classes else labels for labels in train.label_lists()]
    y = np.array([labels[0] for labels in own]) if of_classes else own
    once = LongtailClassifier(dimension=32).fit(list(train.texts), y)
    with pytest.warns(InputWarning, match="of 1,500 rows 1,200 repeat another"):
        five = LongtailClassifier(dimension=32).fit(
            list(train.texts) * 5, np.tile(y, 5) if of_classes else own * 5
        )
    for ours, theirs in zip(
        once.predict_topk(list(test.texts)), five.predict_topk(list(test.texts)), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("label_of", "message"),
    [(lambda row: row % 4, "are left out"), (lambda row: row // 50, "are joined to")],
)
def test_warnings_name_the_line_of_the_caller(label_of, message):
    texts = [f"text {row % N_POINTS}" for row in range(5 * N_POINTS)]
    labels = [[f"label {label_of(row)}"] for row in range(len(texts))]
    model = Parabel(n_threads=1, min_df=50)
    for fit in (model.fit, lambda texts, labels: model.fit_dataset(Dataset.of(texts, labels))):
        with pytest.warns(InputWarning) as seen:
            fit(texts, labels)
        said = " ".join(str(warning.message) for warning in seen)
        assert message in said
        assert "min_df=50 is lowered" in said
        assert {warning.filename for warning in seen} == {__file__}


def test_the_command_says_so_once(tmp_path, capsys):
    lines = [f"text number{number}\tlabel{number % 4}" for number in range(N_POINTS)] * 5
    path = write_lines(tmp_path / "train.tsv", lines)
    code, _, err = run(capsys, "train", path, "--model", tmp_path / "model", *SMALL)
    assert code == 0
    assert err.count("of 500 rows 400 repeat another, labels and all, and are left out") == 1
    assert "100 points, 4 labels" in err
