"""Astec's shortlist: near label representatives, and the labels of near points."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.data.rows import unit_vectors
from longtail.errors import InputError
from longtail.index import ExactIndex, GraphIndex, stored
from longtail.kernels.scoring import merge_shortlists
from longtail.negatives.nearest_labels import (
    LabelShortlister,
    NearestLabels,
    ShortlistSizes,
)

# Unit rows: (1, 0), (0, 1), (.6, .8).
POINTS = np.array([[1, 0], [0, 5], [3, 4]], np.float32)
# Label 3 has no point. The unit means of the others: (1, 0), (.6, 1.8) / 3.6**.5, (2, 1) / 5**.5.
LABELS = sp.csr_array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 1, 1, 0]])
QUERY = np.array([[2, 0]], np.float32)
NEAR = {0: 1.0, 1: 0.6 / 3.6**0.5, 2: 2 / 5**0.5}
# With the two nearest points, of similarity 1 and .6, the labels get 1, .6 and 1.6 votes.
SHARES = {0: 1 / 1.6, 1: 0.6 / 1.6, 2: 1.0}


def shortlist(miner, queries=QUERY, points=POINTS, labels=LABELS):
    return miner.build(points, labels, seed=0, n_threads=1).query(queries)


def as_pairs(labels, similarities):
    """One row as {label: similarity}, in order, without padding."""
    return {
        int(label): float(value)
        for label, value in zip(labels[0], similarities[0], strict=True)
        if label >= 0
    }


def clustered(n_points=1500, n_labels=700, dimension=16, seed=0):
    """Points around centres, cut off at zero as the encoder does it, and labels by the centre."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((40, dimension))
    groups = random.integers(0, 40, n_points)
    noise = 0.3 * random.standard_normal((n_points, dimension))
    points = np.maximum(centres[groups] + noise, 0).astype(np.float32)
    own = (groups[:, np.newaxis] * 17 + random.integers(0, 17, (n_points, 3))) % n_labels
    rows = np.repeat(np.arange(n_points), 3)
    labels = sp.csr_array((np.ones(3 * n_points), (rows, own.ravel())), (n_points, n_labels))
    return points, labels


class TestSimilaritiesByHand:
    def test_labels_only(self):
        found = as_pairs(*shortlist(NearestLabels(n_near_points=0)))
        assert list(found) == [0, 2, 1]
        assert found == pytest.approx(NEAR)

    def test_points_only(self):
        found = as_pairs(*shortlist(NearestLabels(n_near_points=2, point_weight=1)))
        assert list(found) == [2, 0, 1]
        assert found == pytest.approx(SHARES)

    def test_merged(self):
        found = as_pairs(*shortlist(NearestLabels(n_near_points=2, point_weight=0.25)))
        assert list(found) == [2, 0, 1]
        merged = {label: 0.75 * NEAR[label] + 0.25 * SHARES[label] for label in NEAR}
        assert found == pytest.approx(merged)

    def test_a_label_that_only_one_part_finds_counts_the_other_as_zero(self):
        miner = NearestLabels(n_near_labels=1, n_near_points=1, point_weight=0.25)
        found = as_pairs(*shortlist(miner))  # the nearest point has the labels 0 and 2
        assert found == pytest.approx({0: 1.0, 2: 0.25})

    def test_the_best_are_kept(self):
        found = as_pairs(*shortlist(NearestLabels(n_near_points=0, size=2)))
        assert list(found) == [0, 2]

    def test_the_length_of_a_feature_row_does_not_matter(self):
        miner = NearestLabels(n_near_points=2)
        scaled = POINTS * np.float32([[8], [0.5], [2]])
        for one, other in zip(shortlist(miner), shortlist(miner, 4 * QUERY, scaled), strict=True):
            np.testing.assert_array_equal(one, other)


class TestShape:
    def test_size_is_at_most_the_number_of_labels(self):
        labels, similarities = shortlist(NearestLabels(size=50, n_near_labels=90))
        assert labels.shape == similarities.shape == (1, 4)
        assert labels[0, 3] == -1  # no label but the one without points is left
        assert similarities[0, 3] == -np.inf
        assert labels.dtype == np.int32
        assert similarities.dtype == np.float32

    def test_a_row_of_zeros_gets_no_labels(self):
        queries = np.array([[0, 0], [2, 0]], np.float32)
        labels, similarities = shortlist(NearestLabels(), queries)
        assert (labels[0] == -1).all()
        assert (similarities[0] == -np.inf).all()
        assert (labels[1, :3] >= 0).all()

    def test_no_queries(self):
        assert shortlist(NearestLabels(), QUERY[:0])[0].shape == (0, 4)

    def test_no_label_has_a_point(self):
        labels, _ = shortlist(NearestLabels(), labels=sp.csr_array((3, 4)))
        assert (labels == -1).all()

    def test_points_without_features_or_labels_do_no_harm(self):
        points = np.vstack([POINTS, np.zeros((1, 2)), [[7, 7]]]).astype(np.float32)
        more = sp.csr_array(np.vstack([LABELS.toarray(), [[0, 0, 0, 1]], [[0, 0, 0, 0]]]))
        found = as_pairs(*shortlist(NearestLabels(n_near_points=0), points=points, labels=more))
        assert found == pytest.approx({**NEAR, 3: 0.0})


class TestStoredLabels:
    def test_repeated_entries_count_once(self):
        # Label 1 of the last point stands there twice.
        twice = sp.csr_array((np.ones(6), [0, 2, 1, 2, 1, 1], [0, 2, 3, 6]), shape=(3, 4))
        miner = NearestLabels(n_near_points=2, point_weight=0.5)
        for one, other in zip(shortlist(miner), shortlist(miner, labels=twice), strict=True):
            np.testing.assert_array_equal(one, other)

    def test_values_do_not_matter_and_a_stored_zero_is_no_label(self):
        weighted = sp.csr_array((np.array([9.0, 9, 3, 2, 5, 0]), [0, 2, 1, 1, 2, 3], [0, 2, 3, 6]))
        miner = NearestLabels(n_near_points=2, point_weight=0.5)
        for one, other in zip(shortlist(miner), shortlist(miner, labels=weighted), strict=True):
            np.testing.assert_array_equal(one, other)

    def test_labels_with_the_same_points_tie_and_the_smaller_id_is_first(self):
        same = sp.csr_array([[0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]])
        labels, similarities = shortlist(NearestLabels(n_near_labels=2), labels=same)
        assert labels[0, :2].tolist() == [1, 2]
        assert similarities[0, 0] == similarities[0, 1]

    def test_the_matrix_is_left_alone(self):
        labels = LABELS.astype(np.float64) * 3
        shortlist(NearestLabels(), labels=labels)
        assert set(labels.data) == {3.0}


def two_modes():
    """A head label whose points lie along two axes, and five labels between each and the mean."""
    head = np.repeat(np.eye(4)[:2], 40, axis=0)
    rivals = np.repeat([[1, 0.4, 0, 0], [0.4, 1, 0, 0]], 5, axis=0)
    points = np.vstack([head, rivals]).astype(np.float32)
    labels = np.zeros((90, 11))
    labels[:80, 0] = 1
    labels[80:, 1:] = np.eye(10)
    return points, sp.csr_array(labels)


class TestManyRepresentatives:
    queries = np.eye(4, dtype=np.float32)[:2]

    def test_a_head_label_of_two_modes_is_found_only_with_them(self):
        points, labels = two_modes()
        usual = NearestLabels(n_near_labels=5, n_near_points=0, head_frequency=50)
        several = NearestLabels(
            n_near_labels=5, n_near_points=0, head_frequency=50, n_representatives=2
        )
        assert (shortlist(usual, self.queries, points, labels)[0] != 0).all()
        found, similarities = shortlist(several, self.queries, points, labels)
        assert found[:, 0].tolist() == [0, 0]
        np.testing.assert_allclose(similarities[:, 0], 1, rtol=1e-5)

    def test_a_label_stands_once_in_the_shortlist_with_its_largest_similarity(self):
        points, labels = two_modes()
        miner = NearestLabels(n_near_points=0, head_frequency=50, n_representatives=2)
        found, similarities = shortlist(miner, self.queries, points, labels)
        assert sorted(found[0].tolist()) == list(range(11))
        np.testing.assert_allclose(similarities[:, 0], 1, rtol=1e-5)

    def test_labels_below_the_frequency_keep_one(self):
        points, labels = two_modes()
        miner = NearestLabels(n_representatives=3, head_frequency=81)
        made = miner.build(points, labels, seed=0, n_threads=1)
        assert made.label_of_representative.tolist() == list(range(11))
        miner = NearestLabels(n_representatives=3, head_frequency=80)
        made = miner.build(points, labels, seed=0, n_threads=1)
        assert made.label_of_representative[11:].tolist() == [0, 0, 0]


def build_for_many(n_threads, *, exact=False):
    """Index 1,500 points, by default through graphs."""
    miner = NearestLabels(n_near_labels=40, n_near_points=15, size=60, exact=exact)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "EXACT_BELOW", 200)
        return miner.build(*clustered(), seed=1, n_threads=n_threads)


@pytest.fixture(scope="module")
def made():
    """The same data searched through graphs and exactly."""
    return build_for_many(2), build_for_many(2, exact=True)


class TestManyPoints:
    queries = clustered(seed=7)[0][:600]

    def test_the_graph_finds_nearly_what_scanning_finds(self, made):
        graph, exact = made
        assert isinstance(graph.label_index, GraphIndex)
        assert isinstance(graph.point_index, GraphIndex)
        assert isinstance(exact.label_index, ExactIndex)
        found, wanted = graph.query(self.queries)[0], exact.query(self.queries)[0]
        hits = [
            np.isin(row[row >= 0], other).mean()
            for row, other in zip(wanted, found, strict=True)
            if (row >= 0).any()
        ]
        assert np.mean(hits) > 0.99

    @pytest.mark.parametrize("kind", [0, 1])
    def test_one_row_is_the_row_of_a_batch_and_threads_do_not_matter(self, made, kind):
        labels, similarities = made[kind].query(self.queries)
        threaded = made[kind].query(self.queries, n_threads=3)
        assert threaded[0].tobytes() == labels.tobytes()
        assert threaded[1].tobytes() == similarities.tobytes()
        for row in range(0, 600, 31):
            alone, values = made[kind].query(self.queries[row : row + 1])
            assert alone[0].tobytes() == labels[row].tobytes()
            assert values[0].tobytes() == similarities[row].tobytes()

    def test_several_threads_may_ask_at_once(self, made):
        expected = made[1].query(self.queries)
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(lambda _: made[1].query(self.queries), range(24)):
                assert np.array_equal(found[0], expected[0])
                assert np.array_equal(found[1], expected[1])

    def test_the_threads_of_the_building_do_not_matter(self, made):
        again = build_for_many(1).to_arrays()
        for name, array in made[0].to_arrays().items():
            assert array.tobytes() == again[name].tobytes()

    @pytest.mark.parametrize("kind", [0, 1])
    def test_read_only_arrays_make_it_again(self, made, kind):
        before = made[kind].query(self.queries)
        n_compiled = len(merge_shortlists.signatures)
        arrays = {name: array.copy() for name, array in made[kind].to_arrays().items()}
        for array in arrays.values():
            array.flags.writeable = False
        opened = LabelShortlister.from_parts(made[kind].config(), arrays)
        for one, other in zip(opened.query(self.queries), before, strict=True):
            assert one.tobytes() == other.tobytes()
        assert np.shares_memory(opened.label_ids, arrays["label_ids"])
        assert type(opened.label_index) is type(made[kind].label_index)
        assert len(merge_shortlists.signatures) == n_compiled


class TestRefusals:
    @pytest.mark.parametrize("setting", ["size", "n_near_labels"])
    def test_settings_out_of_range(self, setting):
        with pytest.raises(InputError, match=f"{setting} must be at least 1, got 0"):
            shortlist(NearestLabels(**{setting: 0}))

    def test_features_and_labels_of_other_points(self):
        with pytest.raises(InputError, match="3 rows but `labels` has 2"):
            shortlist(NearestLabels(), labels=LABELS[:2])

    def test_queries_of_another_model(self):
        with pytest.raises(InputError, match="3 dimensions and the index 2"):
            shortlist(NearestLabels(), np.ones((1, 3), np.float32))

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("label_of_representative", lambda array: array + 4),
            ("label_of_representative", lambda array: array[:-1]),
            ("label_starts", lambda array: array[:-1]),
            ("label_starts", lambda array: array[::-1]),
            ("label_ids", lambda array: array - 1),
            ("label_ids", lambda array: array[:-1]),
        ],
    )
    def test_arrays_that_do_not_belong_together(self, name, change):
        made = NearestLabels().build(POINTS, LABELS, seed=0, n_threads=1)
        arrays = made.to_arrays()
        arrays[name] = change(arrays[name])
        with pytest.raises(InputError, match="do not belong together"):
            LabelShortlister.from_parts(made.config(), arrays)

    def test_labels_of_too_few_points(self):
        made = NearestLabels().build(POINTS, LABELS, seed=0, n_threads=1)
        arrays = made.to_arrays()
        starts = arrays["label_starts"][:-1]
        arrays |= {"label_starts": starts, "label_ids": arrays["label_ids"][: starts[-1]]}
        with pytest.raises(InputError, match="do not belong together"):
            LabelShortlister.from_parts(made.config(), arrays)

    @pytest.mark.parametrize("name", ["label_ids", "point_index.vectors"])
    def test_a_missing_array(self, name):
        made = NearestLabels().build(POINTS, LABELS, seed=0, n_threads=1)
        arrays = made.to_arrays()
        del arrays[name]
        with pytest.raises(InputError, match=name):
            LabelShortlister.from_parts(made.config(), arrays)


class TestUnitRows:
    @pytest.mark.parametrize("dimension", [1, 3, 8, 17, 64, 301])
    def test_a_row_has_the_same_bits_whatever_stands_beside_it(self, dimension):
        drawn = np.random.default_rng(0).standard_normal((37, dimension)).astype(np.float32)
        unit = unit_vectors(drawn)
        np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, rtol=1e-5)
        for row in range(37):
            assert unit_vectors(drawn[row : row + 1].copy()).tobytes() == unit[row].tobytes()

    def test_rows_of_zeros_stay_so(self):
        assert not unit_vectors(np.zeros((2, 3), np.float32)).any()


def test_resized_looks_at_less_of_the_same():
    random = np.random.default_rng(0)
    features = random.random((60, 8)).astype(np.float32)
    labels = sp.csr_array(
        (np.ones(60, np.float32), np.arange(60) % 20, np.arange(61)), shape=(60, 20)
    )
    whole = NearestLabels(size=15).build(features, labels, seed=0, n_threads=1)
    sizes = ShortlistSizes(n_near_labels=4, n_near_points=0, size=6, beam_size=7)
    small = whole.resized(sizes)
    assert small.settings.size == 6
    assert small.settings.point_weight == whole.settings.point_weight
    ids, similarities = small.query(features[:3])
    assert ids.shape == (3, 6)
    assert ((ids >= 0).sum(axis=1) == 4).all()
    assert np.isfinite(similarities[:, :4]).all()
    assert whole.resized(ShortlistSizes(size=1000)).settings.size == 15
